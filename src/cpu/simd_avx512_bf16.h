/*
 * A pair of BF16 is one 32-bit element: the dot-product instruction adds both products of a pair to
 * an FP32 lane. It reads subnormals as zero and rounds to nearest even.
 */
#ifndef TGI_SIMD_AVX512_BF16_H
#define TGI_SIMD_AVX512_BF16_H

#include <string.h>

#include "cpu/simd_avx512.h"

#undef ISA_NAME
#undef TARGET
#define ISA_NAME avx512_bf16
#define TARGET                                                                                     \
    __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,avx512bf16")))

/* Sums are FP32, which AVX-512 finishes. */
#define activate_avx512_bf16_fp32 activate_avx512_fp32
#define write_rows_avx512_bf16_fp32 write_rows_avx512_fp32
#define light_steps_avx512_bf16_fp32 light_steps_avx512_fp32
#define take_steps_avx512_bf16_fp32 take_steps_avx512_fp32

typedef uint32_t bf16x2_elem;
typedef __m512i bf16x2_vec;

INLINE bf16x2_vec bf16x2_broadcast(const uint32_t *p)
{
    uint32_t pair;
    memcpy(&pair, p, sizeof pair); /* written as two BF16 */
    return _mm512_set1_epi32((int)pair);
}
INLINE bf16x2_vec bf16x2_load(const uint32_t *p)
{
    return _mm512_loadu_si512(p);
}
INLINE bf16x2_vec bf16x2_load_some(const uint32_t *p, int n)
{
    return _mm512_maskz_loadu_epi32(mask16(n), p);
}
/* Store n sums as BF16, one by a mask for any n. Subnormal sums become zero. */
INLINE void bf16x2_round_some(uint16_t *p, fp32_vec x, int n)
{
    _mm256_mask_storeu_epi16(p, mask16(n), (__m256i)_mm512_cvtneps_pbh(x));
}
INLINE void bf16x2_round(uint16_t *p, fp32_vec x, int n)
{
    if (n < 16)
        bf16x2_round_some(p, x, n);
    else
        _mm256_storeu_si256((__m256i *)p, (__m256i)_mm512_cvtneps_pbh(x));
}
/* Returns a bit for each lane whose number is subnormal. */
INLINE int bf16x2_find_subnormal(fp32_vec x)
{
    return _mm512_fpclass_ps_mask(x, 0x20);
}
/* Stores two vectors of sums as BF16. */
INLINE void bf16x2_round_two(uint16_t *p, fp32_vec x, fp32_vec y)
{
    _mm512_storeu_si512(p, (__m512i)_mm512_cvtne2ps_pbh(y, x));
}
INLINE fp32_vec bf16x2_dot(bf16x2_vec x, bf16x2_vec y, fp32_vec z)
{
    return _mm512_dpbf16_ps(z, (__m512bh)x, (__m512bh)y);
}

#endif
