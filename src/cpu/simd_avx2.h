/* These are the vectors of AVX2 with FMA and F16C. simd_avx512.h explains the names. */
#ifndef TGI_SIMD_AVX2_H
#define TGI_SIMD_AVX2_H

#include <immintrin.h>
#include <stdint.h>
#include <string.h>

#include "core/dtype.h"

#define ISA_NAME avx2
#define TARGET __attribute__((target("avx2,fma,f16c")))
#define INLINE static inline __attribute__((always_inline, unused)) TARGET

#include "cpu/simd_x86.h"

typedef float fp32_elem;
typedef double fp64_elem;
typedef uint16_t bf16_elem, fp16_elem;
typedef __m256 fp32_vec;
typedef __m256d fp64_vec;

/* Returns a mask whose first n lanes have all bits set. */
INLINE __m256i mask32(int n)
{
    return _mm256_cmpgt_epi32(_mm256_set1_epi32(n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
INLINE __m256i mask64(int n)
{
    return _mm256_cmpgt_epi64(_mm256_set1_epi64x(n), _mm256_setr_epi64x(0, 1, 2, 3));
}

/* clang-format off: a table of operations. */
INLINE fp32_vec fp32_zero(void)
{
    return _mm256_setzero_ps();
}
INLINE fp32_vec fp32_set(float x)
{
    return _mm256_set1_ps(x);
}
INLINE fp32_vec fp32_broadcast(const float *p)
{
    return _mm256_broadcast_ss(p);
}
INLINE fp32_vec fp32_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
INLINE fp32_vec fp32_load_some(const float *p, int n)
{
    return _mm256_maskload_ps(p, mask32(n));
}
INLINE void fp32_store(float *p, fp32_vec x)
{
    _mm256_storeu_ps(p, x);
}
INLINE void fp32_store_some(float *p, fp32_vec x, int n)
{
    _mm256_maskstore_ps(p, mask32(n), x);
}
INLINE void fp32_stream(float *p, fp32_vec x)
{
    _mm256_stream_ps(p, x);
}
INLINE fp32_vec fp32_mul(fp32_vec x, fp32_vec y)
{
    return _mm256_mul_ps(x, y);
}
INLINE fp32_vec fp32_max(fp32_vec x, fp32_vec y)
{
    return _mm256_max_ps(x, y);
}
INLINE fp32_vec fp32_fma(fp32_vec x, fp32_vec y, fp32_vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}
INLINE fp32_vec fp32_dot(fp32_vec x, fp32_vec y, fp32_vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}
INLINE float fp32_sum(fp32_vec x)
{
    __m128 half = _mm_add_ps(_mm256_castps256_ps128(x), _mm256_extractf128_ps(x, 1));
    half = _mm_add_ps(half, _mm_movehl_ps(half, half));
    return _mm_cvtss_f32(_mm_add_ss(half, _mm_movehdup_ps(half)));
}
INLINE float fp32_scalar(float x)
{
    return x;
}

INLINE fp64_vec fp64_zero(void)
{
    return _mm256_setzero_pd();
}
INLINE fp64_vec fp64_set(double x)
{
    return _mm256_set1_pd(x);
}
INLINE fp64_vec fp64_broadcast(const double *p)
{
    return _mm256_broadcast_sd(p);
}
INLINE fp64_vec fp64_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
INLINE fp64_vec fp64_load_some(const double *p, int n)
{
    return _mm256_maskload_pd(p, mask64(n));
}
INLINE void fp64_store(double *p, fp64_vec x)
{
    _mm256_storeu_pd(p, x);
}
INLINE void fp64_store_some(double *p, fp64_vec x, int n)
{
    _mm256_maskstore_pd(p, mask64(n), x);
}
INLINE void fp64_stream(double *p, fp64_vec x)
{
    _mm256_stream_pd(p, x);
}
INLINE fp64_vec fp64_mul(fp64_vec x, fp64_vec y)
{
    return _mm256_mul_pd(x, y);
}
INLINE fp64_vec fp64_max(fp64_vec x, fp64_vec y)
{
    return _mm256_max_pd(x, y);
}
INLINE fp64_vec fp64_fma(fp64_vec x, fp64_vec y, fp64_vec z)
{
    return _mm256_fmadd_pd(x, y, z);
}
INLINE fp64_vec fp64_dot(fp64_vec x, fp64_vec y, fp64_vec z)
{
    return _mm256_fmadd_pd(x, y, z);
}
INLINE double fp64_sum(fp64_vec x)
{
    __m128d half = _mm_add_pd(_mm256_castpd256_pd128(x), _mm256_extractf128_pd(x, 1));
    return _mm_cvtsd_f64(_mm_add_sd(half, _mm_unpackhi_pd(half, half)));
}
INLINE double fp64_scalar(double x)
{
    return x;
}

/* Loads the first n lanes by way of memory, because AVX2 has no masked load of 16-bit lanes. */
INLINE __m128i load_some_16bit(const uint16_t *p, int n)
{
    uint16_t lanes[8] = {0};
    memcpy(lanes, p, (size_t)n * sizeof lanes[0]);
    return _mm_loadu_si128((const __m128i *)lanes);
}
INLINE fp32_vec fp32_from_bf16_bits(__m128i bits)
{
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
}
INLINE fp32_vec bf16_load(const uint16_t *p)
{
    return fp32_from_bf16_bits(_mm_loadu_si128((const __m128i *)p));
}
INLINE fp32_vec bf16_load_some(const uint16_t *p, int n)
{
    return fp32_from_bf16_bits(load_some_16bit(p, n));
}
/* Stores the upper halves, rounded to nearest even. A NaN becomes quiet instead of rounding to
 * infinity. */
INLINE void bf16_store(uint16_t *p, fp32_vec x)
{
    __m256i bits = _mm256_castps_si256(x), high = _mm256_srli_epi32(bits, 16);
    __m256i half =
        _mm256_add_epi32(_mm256_and_si256(high, _mm256_set1_epi32(1)), _mm256_set1_epi32(0x7fff));
    __m256i rounded = _mm256_srli_epi32(_mm256_add_epi32(bits, half), 16);
    __m256i quiet = _mm256_or_si256(high, _mm256_set1_epi32(0x40));
    __m256i is_nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
    __m256i words = _mm256_blendv_epi8(rounded, quiet, is_nan);
    _mm_storeu_si128((__m128i *)p, _mm_packus_epi32(_mm256_castsi256_si128(words),
                                                    _mm256_extracti128_si256(words, 1)));
}
INLINE void bf16_store_some(uint16_t *p, fp32_vec x, int n)
{
    uint16_t lanes[8];
    bf16_store(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof lanes[0]);
}
INLINE float bf16_scalar(uint16_t x)
{
    return tgi_fp32_from_bf16(x);
}

INLINE fp32_vec fp16_load(const uint16_t *p)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)p));
}
INLINE fp32_vec fp16_load_some(const uint16_t *p, int n)
{
    return _mm256_cvtph_ps(load_some_16bit(p, n));
}
INLINE void fp16_store(uint16_t *p, fp32_vec x)
{
    _mm_storeu_si128((__m128i *)p, _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT));
}
INLINE void fp16_store_some(uint16_t *p, fp32_vec x, int n)
{
    uint16_t lanes[8];
    fp16_store(lanes, x);
    memcpy(p, lanes, (size_t)n * sizeof lanes[0]);
}
INLINE float fp16_scalar(uint16_t x)
{
    return _cvtsh_ss(x);
}

/* clang-format on */

#endif
