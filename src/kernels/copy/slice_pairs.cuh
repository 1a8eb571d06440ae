/* The products of slices (slice_args.h), in the order in which they are added. */
#ifndef TGI_SLICE_PAIRS_CUH
#define TGI_SLICE_PAIRS_CUH

#include "kernels/copy/slice_args.h"

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

#endif
