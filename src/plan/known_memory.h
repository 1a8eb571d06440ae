/* Declares a table of addresses that lie in the device's memory. The driver takes 0.1 us to
 * classify an address, and programs pass the same addresses again and again. */
#ifndef TGI_KNOWN_MEMORY_H
#define TGI_KNOWN_MEMORY_H

#include <stdatomic.h>
#include <stdint.h>

#define TGI_KNOWN_MEMORY_BITS 10

/* An address stays at the place of its hash until another address of that place replaces it. The
 * program may have freed the memory since. A table of zeros knows only NULL. */
typedef struct tgi_known_memory {
    atomic_uint loss_count; /* how often all addresses were forgotten */
    _Atomic uintptr_t addresses[1 << TGI_KNOWN_MEMORY_BITS];
} tgi_known_memory;

/* Returns the place of an address. */
static inline _Atomic uintptr_t *tgi_known_memory_find(tgi_known_memory *known, const void *memory)
{
    const uint64_t hash = (uint64_t)(uintptr_t)memory * UINT64_C(0x9e3779b97f4a7c15);
    return &known->addresses[hash >> (64 - TGI_KNOWN_MEMORY_BITS)];
}

/* Returns 0 if the address is known. */
static inline uintptr_t tgi_known_memory_lacks(tgi_known_memory *known, const void *memory)
{
    return (uintptr_t)memory ^
           atomic_load_explicit(tgi_known_memory_find(known, memory), memory_order_relaxed);
}

static inline void tgi_known_memory_add(tgi_known_memory *known, const void *memory)
{
    atomic_store_explicit(tgi_known_memory_find(known, memory), (uintptr_t)memory,
                          memory_order_relaxed);
}

/* Forgets every address. */
static inline void tgi_known_memory_forget(tgi_known_memory *known)
{
    atomic_fetch_add_explicit(&known->loss_count, 1, memory_order_relaxed);
    for (int i = 0; i < 1 << TGI_KNOWN_MEMORY_BITS; i++)
        atomic_store_explicit(&known->addresses[i], 0, memory_order_relaxed);
}

#endif
