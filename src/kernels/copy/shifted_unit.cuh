/* Cuts units of 16 bytes that begin between two aligned units of memory. */
#ifndef TGI_UNITS_CUH
#define TGI_UNITS_CUH

#include <cuda_runtime.h>
#include <stdint.h>

/* Returns bytes shift .. shift + 15 of two consecutive units, for shift 0..15. */
static __device__ __forceinline__ uint4 tgi_cut_unit(const uint4 &first, const uint4 &second,
                                                     int shift)
{
    uint32_t word[8] = {first.x, first.y, first.z, first.w, second.x, second.y, second.z, second.w};
#pragma unroll
    for (int i = 0; i < 6; i++)
        word[i] = shift & 8 ? word[i + 2] : word[i];
#pragma unroll
    for (int i = 0; i < 5; i++)
        word[i] = shift & 4 ? word[i + 1] : word[i];
    const int bits = (shift & 3) * 8;
    return make_uint4(
        __funnelshift_r(word[0], word[1], bits), __funnelshift_r(word[1], word[2], bits),
        __funnelshift_r(word[2], word[3], bits), __funnelshift_r(word[3], word[4], bits));
}

#endif
