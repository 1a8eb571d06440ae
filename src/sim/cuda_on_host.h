/*
 * CUDA C for a C++ compiler of the host: it replaces the CUDA headers and the functions of
 * src/kernels/ptx that the kernels call. The compiler reads it before the kernel's source, which
 * stays unchanged (-include). In the ladder, float becomes a class of the same four bytes whose
 * operators count; with TGI_SIM_PLAIN, for production kernels, it stays.
 *
 * Functions between the source and the simulator are not inlined. Their accesses belong to the line
 * of the source that calls them, which the simulator finds as the last call (hooks.h, func_entry).
 */
#ifndef TGI_CUDA_ON_HOST_H
#define TGI_CUDA_ON_HOST_H

#include <float.h>
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "core/dtype.h"
#include "core/types.h"
#include "sim/hooks.h"
#include "sim/thread_index.h"

/* These instruction sets select the rows of src/core/kernels.def that the simulator runs. */
#define TGI_HAS_sm75 TGI_CHOSEN
#define TGI_HAS_sm80 TGI_CHOSEN
#define TGI_HAS_sm89 TGI_CHOSEN

#define __global__
#define __device__
#define __forceinline__ inline
#define __grid_constant__
#define __noinline__ __attribute__((noinline))
#define __launch_bounds__(...)
/* Blocks run one after another, so all share one copy, which starts at bank 0. */
#define __shared__ static __attribute__((aligned(128)))
#define __syncthreads tgi_sim_barrier
#define __syncwarp tgi_sim_sync_warp
#define threadIdx tgi_sim_thread_index
#define blockIdx tgi_sim_block_index
#define blockDim tgi_sim_block_size
#define gridDim tgi_sim_grid_size

#define TGI_NOT_INLINED __attribute__((noinline))

/* FP32 as the hooks take it, whatever float is. */
typedef float tgi_sim_number;

#ifndef TGI_SIM_PLAIN
/* Operands come by reference: they are read in one place and results are written in one place,
 * however many calls lead there. */
struct tgi_sim_float {
    float value;
    constexpr tgi_sim_float() : value(0.0f)
    {
    }
    constexpr tgi_sim_float(float number) : value(number)
    {
    }
    constexpr tgi_sim_float(const tgi_sim_float &) = default;
    TGI_NOT_INLINED tgi_sim_float &operator=(const tgi_sim_float &other)
    {
        tgi_sim_move(this, &other, sizeof value);
        return *this;
    }
    TGI_NOT_INLINED tgi_sim_float &operator+=(const tgi_sim_float &term)
    {
        value += term.value;
        tgi_sim_count_add(this, value);
        return *this;
    }
};
TGI_NOT_INLINED static inline tgi_sim_float operator*(const tgi_sim_float &a,
                                                      const tgi_sim_float &b)
{
    tgi_sim_count_multiply();
    return a.value * b.value;
}
TGI_NOT_INLINED static inline tgi_sim_float operator-(const tgi_sim_float &a,
                                                      const tgi_sim_float &b)
{
    tgi_sim_count_multiply();
    return a.value - b.value;
}
/* Quotients, comparisons and these functions are no additions or multiplications. */
TGI_NOT_INLINED static inline tgi_sim_float operator/(const tgi_sim_float &a,
                                                      const tgi_sim_float &b)
{
    return a.value / b.value;
}
static inline bool operator==(const tgi_sim_float &a, const tgi_sim_float &b)
{
    return a.value == b.value;
}
TGI_NOT_INLINED static inline tgi_sim_float fmaxf(const tgi_sim_float &a, const tgi_sim_float &b)
{
    return fmaxf(a.value, b.value);
}
static inline tgi_sim_float exp2f(const tgi_sim_float &power)
{
    return exp2f(power.value);
}
#define float tgi_sim_float
#endif

struct alignas(16) float4 {
    float x, y, z, w;
    float4(float x0, float y0, float z0, float w0) : x(x0), y(y0), z(z0), w(w0)
    {
    }
    TGI_NOT_INLINED float4(const float4 &other)
    {
        tgi_sim_move(this, &other, sizeof *this);
    }
    TGI_NOT_INLINED float4 &operator=(const float4 &other)
    {
        tgi_sim_move(this, &other, sizeof *this);
        return *this;
    }
};
static inline float4 make_float4(float x, float y, float z, float w)
{
    return float4(x, y, z, w);
}

struct int2 {
    int x, y;
};
static inline int2 make_int2(int x, int y)
{
    int2 pair = {x, y};
    return pair;
}

struct alignas(16) uint4 {
    uint32_t x, y, z, w;
    uint4() = default;
    uint4(const uint4 &) = default;
    TGI_NOT_INLINED uint4 &operator=(const uint4 &other)
    {
        tgi_sim_move(this, &other, sizeof *this);
        return *this;
    }
};

static inline uint4 make_uint4(uint32_t x, uint32_t y, uint32_t z, uint32_t w)
{
    uint4 unit;
    unit.x = x, unit.y = y, unit.z = z, unit.w = w;
    return unit;
}

/* T has words of 4 bytes, and the block one row of threads. */
template <typename T> TGI_NOT_INLINED static T __shfl_xor_sync(unsigned, T value, int lanes)
{
    uint32_t words[sizeof value / 4];
    memcpy(words, &value, sizeof value);
    for (size_t i = 0; i < sizeof value / 4; i++)
        words[i] = tgi_sim_shuffle(words[i], (int)threadIdx.x % 32 ^ lanes);
    memcpy(&value, words, sizeof value);
    return value;
}

/* These functions replace src/kernels/ptx/async_copy.cuh, whose instructions only a GPU has. */
#define TGI_PTX_ASYNC_COPY_CUH
#define tgi_shared_address tgi_sim_shared_address
#define tgi_copy_async_4(shared, global, is_inside)                                                \
    tgi_sim_copy_async(shared, global, 4, (is_inside) ? 4 : 0)
#define tgi_copy_async_16(shared, global, byte_count)                                              \
    tgi_sim_copy_async(shared, global, 16, byte_count)
#define tgi_copy_async_commit tgi_sim_copy_commit
template <int Bytes>
TGI_NOT_INLINED static void tgi_copy_async(uint32_t shared, const void *global, int byte_count)
{
    tgi_sim_copy_async(shared, global, Bytes, byte_count);
}
template <int Bytes>
TGI_NOT_INLINED static void tgi_copy_async_if(uint32_t shared, const void *global, int is_on)
{
    if (is_on)
        tgi_sim_copy_async(shared, global, Bytes, Bytes);
    else
        tgi_sim_skip_copy();
}
template <int Pending> static inline void tgi_copy_async_wait(void)
{
    tgi_sim_copy_wait(Pending);
}

/* These replace src/kernels/ptx/shared_memory.cuh. */
#define TGI_PTX_SHARED_MEMORY_CUH
#define tgi_read_matrices(words, shared) tgi_sim_read_matrices(words, shared, 0)
#define tgi_read_matrices_transposed(words, shared) tgi_sim_read_matrices(words, shared, 1)
#define tgi_store_matrices tgi_sim_write_matrices

#ifdef TGI_SIM_PLAIN
#include "sim/production_on_host.h"
#endif

/* These replace src/kernels/ptx/convert.cuh and warp_mma.cuh. */
#define TGI_PTX_CONVERT_CUH
#define TGI_PTX_WARP_MMA_CUH

static inline uint32_t tgi_encode_pair(tg_type type, const float &low, const float &high)
{
    const tgi_sim_number first = *(const tgi_sim_number *)&low;
    const tgi_sim_number second = *(const tgi_sim_number *)&high;
    tgi_sim_note_rounded(&low);
    return type == TG_TYPE_BF16
               ? tgi_bf16_from_fp32(first) | (uint32_t)tgi_bf16_from_fp32(second) << 16
               : tgi_fp16_from_fp32(first) | (uint32_t)tgi_fp16_from_fp32(second) << 16;
}

static inline uint32_t tgi_encode_relu_pair(tg_type type, const float &low, const float &high)
{
    const uint32_t first = *(const tgi_sim_number *)&low < 0 ? 0 : 0xffffu;
    const uint32_t second = *(const tgi_sim_number *)&high < 0 ? 0 : 0xffff0000u;
    return tgi_encode_pair(type, low, high) & (first | second);
}

template <tg_type Type>
TGI_NOT_INLINED static void tgi_multiply_16x8x16(float (&sum)[4], const uint32_t (&a)[4],
                                                 uint32_t b_0, uint32_t b_1)
{
    tgi_sim_multiply_matrices((tgi_sim_number *)sum, a, b_0, b_1, Type, Type);
}

#endif
