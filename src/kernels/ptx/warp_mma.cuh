/*
 * Wraps the PTX instructions for matrix products of a warp: PTX ISA, "Warp-level Matrix
 * Instructions: mma". Lane 4 g + c holds parts of rows g of A, columns g of B and sums of columns
 * 2 c and 2 c + 1.
 */
#ifndef TGI_PTX_WARP_MMA_CUH
#define TGI_PTX_WARP_MMA_CUH

#include <cuda_runtime.h>
#include <stdint.h>

#include "tilegemm.h"

/* mma.m16n8k4 .f64: sum += A B for A 16 x 4 and B 4 x 8. Lane 4 g + c holds rows g and g + 8 of A
 * at k = c, column g of B at the same k, and sums of columns 2 c and 2 c + 1, first for row g, then
 * for row g + 8. A chip before sm_90 takes mma.m8n8k4 twice, one before sm_80 multiply-adds. */
static __device__ __forceinline__ void tgi_multiply_fp64_16x8x4(double (&sum)[4],
                                                                const double (&a)[2], double b)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    const int lane = static_cast<int>(threadIdx.x) % 32;
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int i = 0; i < 4; i++)
            sum[i] = fma(__shfl_sync(~0u, a[i / 2], lane / 4 * 4 + k),
                         __shfl_sync(~0u, b, (lane % 4 * 2 + i % 2) * 4 + k), sum[i]);
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
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

/* Sums are FP32. Lane 4 g + c holds words of A and B, whose elements are neighbours along k: of A
 * row g, then row g + 8, at word c of k, then both at word c + 4; of B column g at the same words.
 * Its sums are of columns 2 c and 2 c + 1, first of row g, then of row g + 8. */
#define TGI_MULTIPLY_WORDS(instruction)                                                            \
    asm("mma.sync.aligned." instruction " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "          \
        "{%0, %1, %2, %3};"                                                                        \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                   \
        : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b_0), "r"(b_1))

/* mma.m16n8k16: sum += A B for A 16 x 16 and B 16 x 8 of BF16 or FP16. A chip before sm_80 has FP16
 * alone, and takes mma.m16n8k8 twice. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_multiply_16x8x16(float (&sum)[4], const uint32_t (&a)[4],
                                                            uint32_t b_0, uint32_t b_1)
{
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
    static_assert(Type == TG_TYPE_FP16, "the chip has no instruction for the type");
#pragma unroll
    for (int h = 0; h < 2; h++)
        asm("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
            "{%0, %1, %2, %3};"
            : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
            : "r"(a[2 * h]), "r"(a[2 * h + 1]), "r"(h ? b_1 : b_0));
#else
    if constexpr (Type == TG_TYPE_BF16)
        TGI_MULTIPLY_WORDS("m16n8k16.row.col.f32.bf16.bf16.f32");
    else
        TGI_MULTIPLY_WORDS("m16n8k16.row.col.f32.f16.f16.f32");
#endif
}

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
/* mma.m16n8k8: sum += A B for A 16 x 8 and B 8 x 8 of TF32. */
static __device__ __forceinline__ void tgi_multiply_tf32(float (&sum)[4], const uint32_t (&a)[4],
                                                         uint32_t b_0, uint32_t b_1)
{
    TGI_MULTIPLY_WORDS("m16n8k8.row.col.f32.tf32.tf32.f32");
}
#endif

#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 890
/* mma.m16n8k32: sum += A B for A 16 x 32 and B 32 x 8 of FP8. */
template <tg_type Type, tg_type B_type>
static __device__ __forceinline__ void tgi_multiply_fp8(float (&sum)[4], const uint32_t (&a)[4],
                                                        uint32_t b_0, uint32_t b_1)
{
    if constexpr (Type == TG_TYPE_FP8_E4M3 && B_type == TG_TYPE_FP8_E4M3)
        TGI_MULTIPLY_WORDS("m16n8k32.row.col.f32.e4m3.e4m3.f32");
    else if constexpr (Type == TG_TYPE_FP8_E4M3)
        TGI_MULTIPLY_WORDS("m16n8k32.row.col.f32.e4m3.e5m2.f32");
    else if constexpr (B_type == TG_TYPE_FP8_E4M3)
        TGI_MULTIPLY_WORDS("m16n8k32.row.col.f32.e5m2.e4m3.f32");
    else
        TGI_MULTIPLY_WORDS("m16n8k32.row.col.f32.e5m2.e5m2.f32");
}
#endif
#undef TGI_MULTIPLY_WORDS

#endif
