/*
 * Matrix products of a warp: PTX ISA, "Warp-level Matrix Instructions: mma". Lane 4 g + c holds
 * parts of rows g of A, columns g of B and sums of columns 2 c and 2 c + 1.
 */
#ifndef TGI_PTX_WARP_MMA_CUH
#define TGI_PTX_WARP_MMA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "tilegemm.h"

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* mma.m16n8k4 .f64: sum += A B for A 16 x 4 and B 4 x 8. Lane 4 g + c holds rows g and g + 8 of A
 * at k = c, column g of B at the same k, and sums of columns 2 c and 2 c + 1, first for row g, then
 * for row g + 8. A chip before sm_90 takes mma.m8n8k4 twice. */
static __device__ __forceinline__ void tgi_multiply_fp64_16x8x4(double (&sum)[4],
                                                                const double (&a)[2], double b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
        "{%0, %1, %2, %3};"
        : "+d"(sum[0]), "+d"(sum[1]), "+d"(sum[2]), "+d"(sum[3])
        : "d"(a[0]), "d"(a[1]), "d"(b));
#else
#pragma unroll
    for (int h = 0; h < 2; h++)
        asm("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
            : "+d"(sum[2 * h]), "+d"(sum[2 * h + 1])
            : "d"(a[h]), "d"(b));
#endif
}

/* mma.m16n8k16: sum += A B for A 16 x 16 and B 16 x 8 of BF16 or FP16. Lane 4 g + c holds pairs
 * along k: of A rows g and g + 8 at k = 2 c, then both at k = 2 c + 8; of B column g at the same k.
 * Its sums are of columns 2 c and 2 c + 1, first of row g, then of row g + 8. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_multiply_16x8x16(float (&sum)[4], const uint32_t (&a)[4],
                                                            uint32_t b_0, uint32_t b_1)
{
    if constexpr (Type == TG_TYPE_BF16)
        asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
    else
        asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, "
            "{%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1));
}
#endif

#endif
