/*
 * Wraps a PTX instruction for matrix products of a warp in FP64: PTX ISA, "Warp-level Matrix
 * Instructions: mma".
 */
#ifndef TGI_PTX_WARP_MMA_FP64_CUH
#define TGI_PTX_WARP_MMA_FP64_CUH

#include "kernels/ptx/warp_mma.cuh"

/* mma.m16n8k8 .f64: sum += A B for A 16 x 8 and B 8 x 8. Lane 4 g + c holds of A rows g and g + 8
 * at two values of k, a[row][k], of B column g at the same two, and sums of columns 2 c and 2 c +
 * 1, first for row g, then for row g + 8. Lanes of one c agree on their two values of k. A chip
 * before sm_90 takes mma.m16n8k4 twice. */
static __device__ __forceinline__ void
tgi_multiply_fp64_16x8x8(double (&sum)[4], const double (&a)[2][2], const double (&b)[2])
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
        "{%8, %9}, {%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0][0]), "d"(a[1][0]), "d"(a[0][1]), "d"(a[1][1]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int k = 0; k < 2; k++) {
        const double pair[2] = {a[0][k], a[1][k]};
        tgi_multiply_fp64_16x8x4(sum, pair, b[k]);
    }
#endif
}

#endif
