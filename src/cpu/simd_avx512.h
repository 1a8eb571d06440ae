/*
 * Defines the vectors of AVX-512 (F, BW, DQ, VL). The same names exist in simd_avx2.h and
 * simd_generic.h:
 *
 *   <type>_elem      element in memory; <type>_vec: a vector of it, ready for arithmetic
 *   fp32_*, fp64_*   load, load_some (the first n, the rest 0), store, store_some, stream (past the
 *                    caches, aligned), zero, set, broadcast (one element), mul,
 *                    max (x > y ? x : y), fma (x y + z), dot, sum, scalar, transpose
 *                    with HAS_FRACTION: fraction (x - n, n the integer below x), scale (x 2^n, 0 if
 *                    y < least)
 *   bf16_*, fp16_*   load, load_some, scalar: converted to FP32; store, store_some: from FP32
 */
#ifndef TGI_SIMD_AVX512_H
#define TGI_SIMD_AVX512_H

#include <immintrin.h>
#include <stdint.h>

#include "core/dtype.h"

#define ISA_NAME avx512
#define TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline, unused)) TARGET

#include "cpu/simd_x86.h"

typedef float fp32_elem;
typedef double fp64_elem;
typedef uint16_t bf16_elem, fp16_elem;
typedef __m512 fp32_vec;
typedef __m512d fp64_vec;

/* clang-format off: a table of operations. */
/* Returns the mask of the first n lanes. */
INLINE __mmask16 mask16(int n)
{
    return (__mmask16)((1u << n) - 1);
}
INLINE __mmask8 mask8(int n)
{
    return (__mmask8)((1u << n) - 1);
}

INLINE fp32_vec fp32_zero(void)
{
    return _mm512_setzero_ps();
}
INLINE fp32_vec fp32_set(float x)
{
    return _mm512_set1_ps(x);
}
INLINE fp32_vec fp32_broadcast(const float *p)
{
    return _mm512_set1_ps(*p);
}
INLINE fp32_vec fp32_load(const float *p)
{
    return _mm512_loadu_ps(p);
}
INLINE fp32_vec fp32_load_some(const float *p, int n)
{
    return _mm512_maskz_loadu_ps(mask16(n), p);
}
INLINE void fp32_store(float *p, fp32_vec x)
{
    _mm512_storeu_ps(p, x);
}
INLINE void fp32_store_some(float *p, fp32_vec x, int n)
{
    _mm512_mask_storeu_ps(p, mask16(n), x);
}
INLINE void fp32_stream(float *p, fp32_vec x)
{
    _mm512_stream_ps(p, x);
}
INLINE fp32_vec fp32_mul(fp32_vec x, fp32_vec y)
{
    return _mm512_mul_ps(x, y);
}
INLINE fp32_vec fp32_max(fp32_vec x, fp32_vec y)
{
    return _mm512_max_ps(x, y);
}
INLINE fp32_vec fp32_fma(fp32_vec x, fp32_vec y, fp32_vec z)
{
    return _mm512_fmadd_ps(x, y, z);
}
INLINE fp32_vec fp32_dot(fp32_vec x, fp32_vec y, fp32_vec z)
{
    return _mm512_fmadd_ps(x, y, z);
}
INLINE float fp32_sum(fp32_vec x)
{
    return _mm512_reduce_add_ps(x);
}
INLINE float fp32_scalar(float x)
{
    return x;
}

#define HAS_FRACTION 1
INLINE fp32_vec fp32_fraction(fp32_vec x)
{
    return _mm512_reduce_ps(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
INLINE fp32_vec fp32_scale(fp32_vec x, fp32_vec y, float least)
{
    const __mmask16 is_large = _mm512_cmp_ps_mask(y, _mm512_set1_ps(least), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_ps(is_large, x, y);
}

INLINE fp64_vec fp64_fraction(fp64_vec x)
{
    return _mm512_reduce_pd(x, _MM_FROUND_TO_NEG_INF | _MM_FROUND_NO_EXC);
}
INLINE fp64_vec fp64_scale(fp64_vec x, fp64_vec y, double least)
{
    const __mmask8 is_large = _mm512_cmp_pd_mask(y, _mm512_set1_pd(least), _CMP_NLT_UQ);
    return _mm512_maskz_scalef_pd(is_large, x, y);
}

INLINE fp64_vec fp64_zero(void)
{
    return _mm512_setzero_pd();
}
INLINE fp64_vec fp64_set(double x)
{
    return _mm512_set1_pd(x);
}
INLINE fp64_vec fp64_broadcast(const double *p)
{
    return _mm512_set1_pd(*p);
}
INLINE fp64_vec fp64_load(const double *p)
{
    return _mm512_loadu_pd(p);
}
INLINE fp64_vec fp64_load_some(const double *p, int n)
{
    return _mm512_maskz_loadu_pd(mask8(n), p);
}
INLINE void fp64_store(double *p, fp64_vec x)
{
    _mm512_storeu_pd(p, x);
}
INLINE void fp64_store_some(double *p, fp64_vec x, int n)
{
    _mm512_mask_storeu_pd(p, mask8(n), x);
}
INLINE void fp64_stream(double *p, fp64_vec x)
{
    _mm512_stream_pd(p, x);
}
INLINE fp64_vec fp64_mul(fp64_vec x, fp64_vec y)
{
    return _mm512_mul_pd(x, y);
}
INLINE fp64_vec fp64_max(fp64_vec x, fp64_vec y)
{
    return _mm512_max_pd(x, y);
}
INLINE fp64_vec fp64_fma(fp64_vec x, fp64_vec y, fp64_vec z)
{
    return _mm512_fmadd_pd(x, y, z);
}
INLINE fp64_vec fp64_dot(fp64_vec x, fp64_vec y, fp64_vec z)
{
    return _mm512_fmadd_pd(x, y, z);
}
INLINE double fp64_sum(fp64_vec x)
{
    return _mm512_reduce_add_pd(x);
}
INLINE double fp64_scalar(double x)
{
    return x;
}

INLINE fp32_vec fp32_from_bf16_bits(__m256i bits)
{
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
}
INLINE fp32_vec bf16_load(const uint16_t *p)
{
    return fp32_from_bf16_bits(_mm256_loadu_si256((const __m256i *)p));
}
INLINE fp32_vec bf16_load_some(const uint16_t *p, int n)
{
    return fp32_from_bf16_bits(_mm256_maskz_loadu_epi16(mask16(n), p));
}
/* Returns the upper halves, rounded to nearest even. A NaN becomes quiet instead of rounding to
 * infinity. */
INLINE __m256i bf16_bits(fp32_vec x)
{
    __m512i bits = _mm512_castps_si512(x), high = _mm512_srli_epi32(bits, 16);
    __m512i half =
        _mm512_add_epi32(_mm512_and_si512(high, _mm512_set1_epi32(1)), _mm512_set1_epi32(0x7fff));
    __m512i rounded = _mm512_srli_epi32(_mm512_add_epi32(bits, half), 16);
    __m512i quiet = _mm512_or_si512(high, _mm512_set1_epi32(0x40));
    return _mm512_cvtepi32_epi16(
        _mm512_mask_mov_epi32(rounded, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), quiet));
}
INLINE void bf16_store(uint16_t *p, fp32_vec x)
{
    _mm256_storeu_si256((__m256i *)p, bf16_bits(x));
}
INLINE void bf16_store_some(uint16_t *p, fp32_vec x, int n)
{
    _mm256_mask_storeu_epi16(p, mask16(n), bf16_bits(x));
}
INLINE float bf16_scalar(uint16_t x)
{
    return tgi_fp32_from_bf16(x);
}

INLINE fp32_vec fp16_load(const uint16_t *p)
{
    return _mm512_cvtph_ps(_mm256_loadu_si256((const __m256i *)p));
}
INLINE fp32_vec fp16_load_some(const uint16_t *p, int n)
{
    return _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(mask16(n), p));
}
INLINE void fp16_store(uint16_t *p, fp32_vec x)
{
    _mm256_storeu_si256((__m256i *)p, _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE void fp16_store_some(uint16_t *p, fp32_vec x, int n)
{
    _mm256_mask_storeu_epi16(p, mask16(n), _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE float fp16_scalar(uint16_t x)
{
    return _cvtsh_ss(x);
}

/* clang-format on */

#endif
