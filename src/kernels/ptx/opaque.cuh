/*
 * Makes values opaque to the compiler, by PTX that executes no instruction. An opaque value keeps
 * the compiler from computing derived values again, from moving them or from keeping them in
 * registers; each use says which.
 */
#ifndef TGI_PTX_OPAQUE_CUH
#define TGI_PTX_OPAQUE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

static __device__ __forceinline__ int tgi_make_opaque(int value)
{
    asm volatile("" : "+r"(value));
    return value;
}

static __device__ __forceinline__ uint32_t tgi_make_opaque(uint32_t value)
{
    asm volatile("" : "+r"(value));
    return value;
}

static __device__ __forceinline__ float tgi_make_opaque(float value)
{
    asm volatile("" : "+f"(value));
    return value;
}

/* Copies the sums to registers that the compiler does not take for the same values. */
template <int Count>
static __device__ __forceinline__ void tgi_copy_opaque(const float (&from)[Count],
                                                       float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        sum[i] = tgi_make_opaque(from[i]);
}

/* Keeps the compiler from moving reads and writes of the sums past this point. */
template <int Count> static __device__ __forceinline__ void tgi_pin_sums(float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        asm volatile("" : "+f"(sum[i])::"memory");
}

#endif
