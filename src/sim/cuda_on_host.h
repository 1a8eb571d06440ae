/*
 * CUDA C for a C++ compiler of the host: it replaces the CUDA headers and
 * src/kernels/ptx/async_copy.cuh. The compiler reads it before the kernel's source (-include),
 * which stays unchanged. float becomes a class of the same four bytes whose operators count.
 *
 * Functions between the source and the simulator are not inlined. Their accesses belong to the line
 * of the source that calls them, which the simulator finds as the last call (hooks.h, func_entry).
 */
#ifndef TGI_CUDA_ON_HOST_H
#define TGI_CUDA_ON_HOST_H

#include <stddef.h>
#include <stdint.h>

#include "sim/hooks.h"
#include "sim/thread_index.h"

/* Selects the rows of src/core/kernels.def for the oldest chip: the whole ladder. */
#define __CUDA_ARCH__ 750

#define __global__
#define __device__
#define __forceinline__ inline
#define __launch_bounds__(threads)
/* Blocks run one after another, so all share one copy, which starts at bank 0. */
#define __shared__ static __attribute__((aligned(128)))
#define __syncthreads tgi_sim_barrier
#define threadIdx tgi_sim_thread_index
#define blockIdx tgi_sim_block_index

#define TGI_NOT_INLINED __attribute__((noinline))

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
#define float tgi_sim_float

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

/* These functions replace src/kernels/ptx/async_copy.cuh, whose instructions only a GPU has. */
#define TGI_PTX_ASYNC_COPY_CUH
#define tgi_shared_address tgi_sim_shared_address
#define tgi_copy_async_4(shared, global, is_inside)                                                \
    tgi_sim_copy_async(shared, global, 4, (is_inside) ? 4 : 0)
#define tgi_copy_async_16(shared, global, byte_count)                                              \
    tgi_sim_copy_async(shared, global, 16, byte_count)
#define tgi_copy_async_commit tgi_sim_copy_commit
template <int Pending> static inline void tgi_copy_async_wait(void)
{
    tgi_sim_copy_wait(Pending);
}

#endif
