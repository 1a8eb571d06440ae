/*
 * CUDA C for a C++ compiler of the host: it stands for the CUDA headers and for the wrappers of
 * src/kernels/ptx that family mma uses. Each thread of a block is a fiber. A barrier, and an
 * instruction of a warp, lets the other fibers run until all have come to it.
 *
 * Shared memory is addressed from 0. Copies from global memory arrive when a thread waits for them,
 * as late as the instruction allows. Reads and copies of units of 16 bytes are counted, and so are
 * those of a quarter of a warp that meet in the banks.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_HOST_CUDA_H
#define TEST_HOST_CUDA_H

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define threadIdx host_thread_index
#define blockIdx host_block_index
#define gridDim host_grid_size
#define __syncthreads host_wait_for_block
#define __syncwarp host_wait_for_warp

struct host_index {
    unsigned x, y, z;
};
struct uint2 {
    uint32_t x, y;
};
struct uint4 {
    uint32_t x, y, z, w;
};
struct float2 {
    float x, y;
};
struct float4 {
    float x, y, z, w;
};

extern host_index host_thread_index, host_block_index, host_grid_size;

/* Counts of a run: units read by ldmatrix, units copied, and what meets in a bank. */
extern long host_read_count, host_copy_count, host_conflict_count;

/* Runs a block of thread_count threads with shared_bytes of shared memory. */
void host_run_block(void (*body)(void), int thread_count, int shared_bytes);

void host_wait_for_block(void);
void host_wait_for_warp(void);

/* Returns the host address of `bytes` of shared memory, which must exist and be aligned. */
char *host_find_shared(uint32_t address, int bytes);

/* Aborts unless a copy reads inside an operand. The test defines it. */
void host_check_global(const void *global, int bytes);

/* Puts 8 words of this lane where the warp's others can read them, and waits for theirs. Returns
 * those of lane 0, 8 a lane. They stay until the warp waits again. */
const uint32_t *host_exchange(const uint32_t (&words)[8]);

/* Copies, as cp.async does; the first byte_count bytes are global memory's, the others are zero. */
void host_copy(uint32_t shared, const void *global, int bytes, int byte_count);
void host_skip_copy(void);
void host_commit_copies(void);
void host_wait_for_copies(int pending_count);

template <typename T> static inline T min(T a, T b)
{
    return a < b ? a : b;
}

template <typename T> static inline T max(T a, T b)
{
    return a > b ? a : b;
}

static inline float4 make_float4(float x, float y, float z, float w)
{
    return {x, y, z, w};
}

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    return {x, y, z, w};
}

static inline int __clz(int value)
{
    return value ? __builtin_clz(static_cast<unsigned>(value)) : 32;
}

static inline uint32_t __byte_perm(uint32_t low, uint32_t high, uint32_t order)
{
    const uint64_t bytes = low | static_cast<uint64_t>(high) << 32;
    uint32_t result = 0;
    for (int i = 0; i < 4; i++)
        result |= static_cast<uint32_t>(bytes >> (order >> 4 * i & 7) * 8 & 255) << 8 * i;
    return result;
}

static inline uint32_t __funnelshift_r(uint32_t low, uint32_t high, int shift)
{
    return shift % 32 ? low >> shift % 32 | high << (32 - shift % 32) : low;
}

static inline float __uint_as_float(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t __float_as_uint(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

template <typename T> static inline T __shfl_sync(unsigned, T value, int lane)
{
    uint32_t words[8] = {};
    memcpy(words, &value, sizeof value);
    memcpy(&value, host_exchange(words) + lane % 32 * 8, sizeof value);
    host_wait_for_warp();
    return value;
}

static inline uint32_t __reduce_max_sync(unsigned mask, uint32_t value)
{
    for (int lane = 0; lane < 32; lane++)
        value = max(value, __shfl_sync(mask, value, lane));
    return value;
}

static inline uint32_t __reduce_min_sync(unsigned mask, uint32_t value)
{
    return ~__reduce_max_sync(mask, ~value);
}

static inline int __any_sync(unsigned mask, int is_on)
{
    return __reduce_max_sync(mask, is_on != 0) != 0;
}

/* These replace ptx/shared_memory.cuh. */
#define TGI_PTX_SHARED_MEMORY_CUH

#define HOST_READ(name, type, bytes)                                                               \
    static inline type name(uint32_t shared)                                                       \
    {                                                                                              \
        type value = {};                                                                           \
        memcpy(&value, host_find_shared(shared, bytes), bytes);                                    \
        return value;                                                                              \
    }
HOST_READ(on_host_read_shared_1, uint16_t, 1)
HOST_READ(on_host_read_shared_2, uint16_t, 2)
HOST_READ(on_host_read_shared_4, float, 4)
HOST_READ(on_host_read_shared_unit, uint4, 16)
#undef HOST_READ

static inline void on_host_read_shared_8(uint32_t shared, float (&value)[2])
{
    memcpy(value, host_find_shared(shared, 8), 8);
}

static inline void on_host_write_shared_1(uint32_t shared, uint8_t value)
{
    memcpy(host_find_shared(shared, 1), &value, 1);
}

static inline void on_host_write_shared_2(uint32_t shared, uint16_t value)
{
    memcpy(host_find_shared(shared, 2), &value, 2);
}

static inline void on_host_write_shared_4(uint32_t shared, float value)
{
    memcpy(host_find_shared(shared, 4), &value, 4);
}

static inline void on_host_write_shared_8(uint32_t shared, float first, float second)
{
    const float pair[2] = {first, second};
    memcpy(host_find_shared(shared, 8), pair, 8);
}

/* Reads a word of each lane at once, as ld.shared does, and counts conflicts. */
uint32_t host_read_word(uint32_t shared);

void host_read_matrices(uint32_t (&part)[4], uint32_t shared, int is_transposed);

static inline void on_host_read_matrices(uint32_t (&part)[4], uint32_t shared)
{
    host_read_matrices(part, shared, 0);
}

static inline void on_host_read_matrices_transposed(uint32_t (&part)[4], uint32_t shared)
{
    host_read_matrices(part, shared, 1);
}

static inline void on_host_store_matrices(uint32_t shared, const uint32_t (&pair)[4])
{
    const int lane = static_cast<int>(host_thread_index.x) % 32;
    for (int i = 0; i < 4; i++) {
        const uint32_t row = __shfl_sync(~0u, shared, 8 * i + lane / 4);
        memcpy(host_find_shared(row + lane % 4 * 4, 4), &pair[i], 4);
    }
}

/* D of family mma has no lines that are staged transposed. */
static inline void on_host_store_matrices_transposed(uint32_t, const uint32_t (&)[4])
{
    abort();
}

/* These replace ptx/async_copy.cuh. */
#define TGI_PTX_ASYNC_COPY_CUH

template <int Bytes>
static inline void on_host_copy_async(uint32_t shared, const void *global, int byte_count)
{
    host_copy(shared, global, Bytes, byte_count);
}

template <int Bytes>
static inline void on_host_copy_async_if(uint32_t shared, const void *global, int is_on)
{
    if (is_on)
        host_copy(shared, global, Bytes, Bytes);
    else if (Bytes == 16)
        host_skip_copy();
}

static inline void on_host_copy_async_commit(void)
{
    host_commit_copies();
}

template <int Pending> static inline void on_host_copy_async_wait(void)
{
    host_wait_for_copies(Pending);
}

/* These replace ptx/convert.cuh, launch.cuh, global_memory.cuh and cluster.cuh. */
#define TGI_PTX_CONVERT_CUH
#define TGI_PTX_LAUNCH_CUH
#define TGI_PTX_GLOBAL_MEMORY_CUH
#define TGI_PTX_CLUSTER_CUH

#include "core/dtype.h"
#include "core/types.h"
#include "tilegemm.h"

#define tgi_decode_fp16 tgi_fp32_from_fp16
#define tgi_encode_fp16 tgi_fp16_from_fp32
#define tgi_encode_bf16 tgi_bf16_from_fp32

static inline uint32_t on_host_encode_pair(tg_type type, float low, float high)
{
    const uint32_t first = type == TG_TYPE_BF16 ? tgi_bf16_from_fp32(low) : tgi_fp16_from_fp32(low);
    const uint32_t second =
        type == TG_TYPE_BF16 ? tgi_bf16_from_fp32(high) : tgi_fp16_from_fp32(high);
    return first | second << 16;
}

static inline uint16_t on_host_encode_fp8_pair(int is_e4m3, float low, float high)
{
    return static_cast<uint16_t>(is_e4m3 ? tgi_e4m3_from_fp32(low) | tgi_e4m3_from_fp32(high) << 8
                                         : tgi_e5m2_from_fp32(low) | tgi_e5m2_from_fp32(high) << 8);
}

static inline int on_host_thread(void)
{
    return static_cast<int>(host_thread_index.x);
}

static inline void on_host_wait_for_stream(void)
{
}

static inline int on_host_make_uniform(int value)
{
    return value;
}

static inline int on_host_cluster_index(void)
{
    return 0;
}

static inline int on_host_cluster_count(void)
{
    return 1;
}

static inline void on_host_prefetch(const void *)
{
}

static inline uint32_t on_host_decode_e4m3_pair(uint32_t pair)
{
    return tgi_fp16_from_fp32(tgi_fp32_from_e4m3(static_cast<uint8_t>(pair))) |
           static_cast<uint32_t>(
               tgi_fp16_from_fp32(tgi_fp32_from_e4m3(static_cast<uint8_t>(pair >> 8))))
               << 16;
}

static inline uint32_t on_host_round_tf32(uint32_t bits)
{
    return bits + 0x1000u;
}

/* These replace ptx/warp_mma.cuh. */
#define TGI_PTX_WARP_MMA_CUH

void host_multiply(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_0, uint32_t b_1,
                   tg_type a_type, tg_type b_type);

template <tg_type Type>
static inline void on_host_multiply_16x8x16(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_0,
                                            uint32_t b_1)
{
    host_multiply(sum, a, b_0, b_1, Type, Type);
}

static inline void on_host_multiply_tf32(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_0,
                                         uint32_t b_1)
{
    host_multiply(sum, a, b_0, b_1, TG_TYPE_FP32, TG_TYPE_FP32);
}

template <tg_type Type, tg_type B_type>
static inline void on_host_multiply_fp8(float (&sum)[4], const uint32_t (&a)[4], uint32_t b_0,
                                        uint32_t b_1)
{
    host_multiply(sum, a, b_0, b_1, Type, B_type);
}

/* The kernels call these functions by the names of those that they replace. */
#define tgi_read_shared_8 on_host_read_shared_8
#define tgi_decode_e4m3_pair on_host_decode_e4m3_pair
#define tgi_round_tf32 on_host_round_tf32
#define tgi_multiply_tf32 on_host_multiply_tf32
#define tgi_multiply_fp8 on_host_multiply_fp8
#define tgi_read_shared_word host_read_word
#define tgi_write_shared_1 on_host_write_shared_1
#define tgi_write_shared_2 on_host_write_shared_2
#define tgi_write_shared_4 on_host_write_shared_4
#define tgi_write_shared_8 on_host_write_shared_8
#define tgi_read_matrices on_host_read_matrices
#define tgi_read_matrices_transposed on_host_read_matrices_transposed
#define tgi_store_matrices on_host_store_matrices
#define tgi_store_matrices_transposed on_host_store_matrices_transposed
#define tgi_copy_async on_host_copy_async
#define tgi_copy_async_if on_host_copy_async_if
#define tgi_copy_async_commit on_host_copy_async_commit
#define tgi_encode_pair on_host_encode_pair
#define tgi_encode_fp8_pair on_host_encode_fp8_pair
#define tgi_thread on_host_thread
#define tgi_reread_thread on_host_thread
#define tgi_make_uniform on_host_make_uniform
#define tgi_wait_for_stream on_host_wait_for_stream
#define tgi_cluster_index on_host_cluster_index
#define tgi_cluster_count on_host_cluster_count
#define tgi_prefetch on_host_prefetch
#define tgi_multiply_16x8x16 on_host_multiply_16x8x16
#define tgi_read_shared_1 on_host_read_shared_1
#define tgi_read_shared_2 on_host_read_shared_2
#define tgi_read_shared_4 on_host_read_shared_4
#define tgi_read_shared_unit on_host_read_shared_unit
#define tgi_copy_async_wait on_host_copy_async_wait

#endif /* TEST_HOST_CUDA_H */
