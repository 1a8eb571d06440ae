/*
 * Declares the functions that a simulated kernel calls. The compiler's thread-sanitizer
 * instrumentation reports every load and store by calls named __tsan_*, which sites.awk renames;
 * cuda_on_host.h makes the other calls. Compiles as C11 and C++17.
 */
#ifndef TGI_SIM_HOOKS_H
#define TGI_SIM_HOOKS_H

#include <stddef.h>
#include <stdint.h>

#include "tilegemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Waits as __syncthreads does. */
void tgi_sim_barrier(void);

/* Keeps this thread's vote; returns 1 if any thread of the block has voted other than 0. */
void tgi_sim_vote(int vote);
int tgi_sim_has_vote(void);

/* Count one multiplication (or difference) or addition of FP32 numbers; `sum` is the address of the
 * sum. */
void tgi_sim_count_multiply(void);
void tgi_sim_count_add(const void *sum, float value);

/* Moves a float or a float4: one access on either side. */
void tgi_sim_move(void *to, const void *from, size_t size_bytes);

/* Notes the variable from which the numbers that are stored next have been rounded: as with moves,
 * those of different elements of an array are different instructions. */
void tgi_sim_note_rounded(const void *number);

/* These are cp.async as src/kernels/ptx/async_copy.cuh describes it. `shared` comes from
 * tgi_sim_shared_address. */
uint32_t tgi_sim_shared_address(const void *pointer);
void tgi_sim_copy_async(uint32_t shared, const void *global, int size_bytes, int byte_count);
void tgi_sim_skip_copy(void); /* this lane leaves out a copy that others may make */
void tgi_sim_copy_commit(void);
void tgi_sim_copy_wait(int pending_count);

/* These are ldmatrix.x4, with .trans if is_transposed, and mma.m16n8 for types of 8, 16 and 32
 * bits, as src/kernels/ptx/shared_memory.cuh and warp_mma.cuh describe them. FP32 numbers count as
 * TF32. All lanes of a warp call them, and each waits for the others. */
void tgi_sim_read_matrices(uint32_t fragment[4], uint32_t shared, int is_transposed);
void tgi_sim_multiply_matrices(float sum[4], const uint32_t a[4], uint32_t b_0, uint32_t b_1,
                               tg_type a_type, tg_type b_type);

/* Stands for mma.m16n8k4 of FP64 (warp_mma.cuh). */
void tgi_sim_multiply_fp64(double sum[4], const double a[2], double b);

/* These are stmatrix.x4, __shfl_sync of a word and __syncwarp, which all lanes call too. */
void tgi_sim_write_matrices(uint32_t shared, const uint32_t fragment[4]);
uint32_t tgi_sim_shuffle(uint32_t word, int lane);
void tgi_sim_sync_warp(void);

/* These are ld.shared and st.shared of 1, 2, 4, 8 or 16 bytes. */
void tgi_sim_load_shared(void *value, uint32_t shared, int size_bytes);
void tgi_sim_store_shared(uint32_t shared, const void *value, int size_bytes);

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
