/*
 * Slices FP32 numbers to BF16 in registers (slice_args.h), and lists the pairs of slices whose
 * products are added.
 */
#ifndef TGI_SLICE_PAIRS_CUH
#define TGI_SLICE_PAIRS_CUH

#include "kernels/copy/slice_args.h"
#include "kernels/ptx/convert.cuh"

/* The slices of A and of B that a product multiplies. */
struct tgi_slice_pair {
    int a, b;
};

/* Returns the slices of product 0..8. */
static __device__ constexpr tgi_slice_pair tgi_find_pair(int product)
{
    constexpr tgi_slice_pair pairs[TGI_SLICE_PRODUCTS] = {{2, 2}, {2, 1}, {1, 2}, {2, 0}, {1, 1},
                                                          {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    return pairs[product];
}

/* Slices two neighbours along k, of which `word` then has the slices, the largest first. */
static __device__ __forceinline__ void tgi_take_slices(float (&value)[2], uint32_t (&word)[3])
{
#pragma unroll
    for (int slice = 0; slice < 3; slice++) {
        word[slice] = tgi_encode_pair(TG_TYPE_BF16, value[0], value[1]);
        value[0] -= __uint_as_float(word[slice] << 16);
        value[1] -= __uint_as_float(word[slice] & 0xffff0000u);
    }
}

#endif
