/*
 * Finds the largest and the least number of a warp, in every lane: CUDA C++ Programming Guide,
 * "Warp Reduce Functions". A chip before sm_80 has no such instruction: the same functions then
 * exchange numbers between lanes.
 */
#ifndef TGI_PTX_WARP_REDUCE_CUH
#define TGI_PTX_WARP_REDUCE_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
static __device__ __forceinline__ uint32_t __reduce_max_sync(unsigned lanes, uint32_t value)
{
#pragma unroll
    for (int apart = 16; apart > 0; apart /= 2)
        value = max(value, __shfl_xor_sync(lanes, value, apart));
    return value;
}

static __device__ __forceinline__ uint32_t __reduce_min_sync(unsigned lanes, uint32_t value)
{
    return ~__reduce_max_sync(lanes, ~value);
}
#endif

#endif
