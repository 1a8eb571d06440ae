/* Declares a cache that finds plans by their key. Readers take no lock: a reader pins the slot of a
 * plan, and a writer replaces no plan whose slot is pinned. */
#ifndef TGI_PLAN_CACHE_H
#define TGI_PLAN_CACHE_H

#include "core/lock.h"
#include "plan/plan_object.h"

#define TGI_PLAN_CACHE_SETS 256
#define TGI_PLAN_CACHE_WAYS 4
#define TGI_PLAN_CACHE_HINTS 256

/* The highest bit of pin_count is set while a writer replaces the plan. */
#define TGI_PLAN_REPLACING (1u << 31)

typedef struct tgi_plan_slot {
    _Atomic uint64_t hash; /* hash of the plan's key; 0: the slot is empty */
    tg_plan *plan;         /* may be read while the slot is pinned */
    atomic_uint pin_count; /* readers, and TGI_PLAN_REPLACING */
} tgi_plan_slot;

/* A hash selects a set of TGI_PLAN_CACHE_WAYS slots. If a set is full, the oldest of its plans that
 * is not in use is replaced. */
typedef struct tgi_plan_cache {
    /* A hint is the index of the slot at which the last lookup of a problem of these sizes ended. A
     * repeated call then needs no hash. */
    _Atomic uint16_t hints[TGI_PLAN_CACHE_HINTS];
    tgi_plan_slot slots[TGI_PLAN_CACHE_SETS * TGI_PLAN_CACHE_WAYS];
    unsigned char oldest[TGI_PLAN_CACHE_SETS]; /* way of each set's oldest plan; under the lock */
    tgi_lock lock;                             /* taken by writers */
} tgi_plan_cache;

void tgi_plan_cache_open(tgi_plan_cache *cache);
void tgi_plan_cache_close(tgi_plan_cache *cache);

/* Ends the use of a plan that was pinned. */
static inline void tgi_plan_cache_unpin(tgi_plan_slot *slot)
{
    atomic_fetch_sub_explicit(&slot->pin_count, 1, memory_order_release);
}

/* Pins the slot if its plan is the problem's. Returns 1 if it is pinned. */
static inline int tgi_plan_cache_try(tgi_plan_slot *slot, const tg_problem *problem)
{
    const unsigned pin_count = atomic_fetch_add_explicit(&slot->pin_count, 1, memory_order_acquire);
    if (pin_count < TGI_PLAN_REPLACING && slot->plan &&
        tgi_plan_key_matches(&slot->plan->key, problem))
        return 1;
    tgi_plan_cache_unpin(slot);
    return 0;
}

/* Returns the hint for problems of these sizes. */
static inline _Atomic uint16_t *tgi_plan_cache_find_hint(tgi_plan_cache *cache,
                                                         const tg_problem *problem)
{
    const uint64_t sizes = (uint64_t)problem->d.row_count + 5 * (uint64_t)problem->d.col_count +
                           25 * ((uint64_t)problem->a.row_count + (uint64_t)problem->a.col_count);
    return &cache->hints[sizes % TGI_PLAN_CACHE_HINTS];
}

/* Finds the plan by the hash of the problem, pins its slot and leaves a hint; NULL if there is
 * none. */
tgi_plan_slot *tgi_plan_cache_search(tgi_plan_cache *cache, const tg_problem *problem,
                                     unsigned operand_alignment);

/* Finds the plan whose key the problem matches and pins its slot; NULL if there is none. */
static inline tgi_plan_slot *tgi_plan_cache_pin(tgi_plan_cache *cache, const tg_problem *problem,
                                                unsigned operand_alignment)
{
    tgi_plan_slot *slot = &cache->slots[atomic_load_explicit(
        tgi_plan_cache_find_hint(cache, problem), memory_order_relaxed)];
    return tgi_plan_cache_try(slot, problem)
               ? slot
               : tgi_plan_cache_search(cache, problem, operand_alignment);
}

/* Adds a plan, of which the cache becomes a user, unless the cache has one of that key or all plans
 * of its set are in use. */
void tgi_plan_cache_add(tgi_plan_cache *cache, tg_plan *plan, unsigned operand_alignment);

#endif
