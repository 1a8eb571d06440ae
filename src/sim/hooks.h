/*
 * The functions that a simulated kernel calls. The compiler's thread-sanitizer instrumentation
 * reports every load and store by calls named __tsan_*, which sites.awk renames; cuda_on_host.h
 * makes the other calls. Compiles as C11 and C++17.
 */
#ifndef TGI_SIM_HOOKS_H
#define TGI_SIM_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Waits as __syncthreads does. */
void tgi_sim_barrier(void);

/* Count one multiplication or addition of FP32 numbers; `sum` is the address of the sum. */
void tgi_sim_count_multiply(void);
void tgi_sim_count_add(const void *sum, float value);

/* Moves a float or a float4: one access on either side. */
void tgi_sim_move(void *to, const void *from, size_t size_bytes);

/* These are cp.async as src/kernels/ptx/async_copy.cuh describes it. `shared` comes from
 * tgi_sim_shared_address. */
uint32_t tgi_sim_shared_address(const void *pointer);
void tgi_sim_copy_async(uint32_t shared, const void *global, int size_bytes, int byte_count);
void tgi_sim_copy_commit(void);
void tgi_sim_copy_wait(int pending_count);

/* The compiler inserts the calls of these functions. */
void tgi_sim_init(void);
void tgi_sim_func_entry(const void *call_site);
void tgi_sim_func_exit(void);
#define TGI_SIM_ACCESS_HOOKS(bytes)                                                                \
    void tgi_sim_read##bytes(void *address);                                                       \
    void tgi_sim_write##bytes(void *address);                                                      \
    void tgi_sim_unaligned_read##bytes(void *address);                                             \
    void tgi_sim_unaligned_write##bytes(void *address);
TGI_SIM_ACCESS_HOOKS(1)
TGI_SIM_ACCESS_HOOKS(2)
TGI_SIM_ACCESS_HOOKS(4)
TGI_SIM_ACCESS_HOOKS(8)
TGI_SIM_ACCESS_HOOKS(16)
#undef TGI_SIM_ACCESS_HOOKS
void tgi_sim_read_range(void *address, size_t size_bytes);
void tgi_sim_write_range(void *address, size_t size_bytes);
void *tgi_sim_memcpy(void *to, const void *from, size_t size_bytes);
void *tgi_sim_memmove(void *to, const void *from, size_t size_bytes);
void *tgi_sim_memset(void *to, int value, size_t size_bytes);

#ifdef __cplusplus
}
#endif
#endif
