/*
 * Half vectors of AVX-512 (VL): fp32x8 and fp64x4 take the place of fp32 and fp64 in the bodies of
 * tiles. They serve rows of at most half a vector on processors whose units have 256 bits.
 */
#ifndef TGI_SIMD_AVX512_HALF_H
#define TGI_SIMD_AVX512_HALF_H

#include "cpu/simd_avx512.h"

typedef float fp32x8_elem;
typedef double fp64x4_elem;
typedef __m256 fp32x8_vec;
typedef __m256d fp64x4_vec;

/* clang-format off: a table of operations. */
INLINE fp32x8_vec fp32x8_zero(void)
{
    return _mm256_setzero_ps();
}
INLINE fp32x8_vec fp32x8_set(float x)
{
    return _mm256_set1_ps(x);
}
INLINE fp32x8_vec fp32x8_broadcast(const float *p)
{
    return _mm256_set1_ps(*p);
}
INLINE fp32x8_vec fp32x8_load(const float *p)
{
    return _mm256_loadu_ps(p);
}
INLINE fp32x8_vec fp32x8_load_some(const float *p, int n)
{
    return _mm256_maskz_loadu_ps(mask8(n), p);
}
INLINE void fp32x8_store(float *p, fp32x8_vec x)
{
    _mm256_storeu_ps(p, x);
}
INLINE void fp32x8_store_some(float *p, fp32x8_vec x, int n)
{
    _mm256_mask_storeu_ps(p, mask8(n), x);
}
INLINE void fp32x8_stream(float *p, fp32x8_vec x)
{
    _mm256_stream_ps(p, x);
}
INLINE fp32x8_vec fp32x8_mul(fp32x8_vec x, fp32x8_vec y)
{
    return _mm256_mul_ps(x, y);
}
INLINE fp32x8_vec fp32x8_fma(fp32x8_vec x, fp32x8_vec y, fp32x8_vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}
INLINE fp32x8_vec fp32x8_dot(fp32x8_vec x, fp32x8_vec y, fp32x8_vec z)
{
    return _mm256_fmadd_ps(x, y, z);
}

INLINE fp64x4_vec fp64x4_zero(void)
{
    return _mm256_setzero_pd();
}
INLINE fp64x4_vec fp64x4_set(double x)
{
    return _mm256_set1_pd(x);
}
INLINE fp64x4_vec fp64x4_broadcast(const double *p)
{
    return _mm256_set1_pd(*p);
}
INLINE fp64x4_vec fp64x4_load(const double *p)
{
    return _mm256_loadu_pd(p);
}
INLINE fp64x4_vec fp64x4_load_some(const double *p, int n)
{
    return _mm256_maskz_loadu_pd(mask8(n), p);
}
INLINE void fp64x4_store(double *p, fp64x4_vec x)
{
    _mm256_storeu_pd(p, x);
}
INLINE void fp64x4_store_some(double *p, fp64x4_vec x, int n)
{
    _mm256_mask_storeu_pd(p, mask8(n), x);
}
INLINE void fp64x4_stream(double *p, fp64x4_vec x)
{
    _mm256_stream_pd(p, x);
}
INLINE fp64x4_vec fp64x4_mul(fp64x4_vec x, fp64x4_vec y)
{
    return _mm256_mul_pd(x, y);
}
INLINE fp64x4_vec fp64x4_fma(fp64x4_vec x, fp64x4_vec y, fp64x4_vec z)
{
    return _mm256_fmadd_pd(x, y, z);
}
INLINE fp64x4_vec fp64x4_dot(fp64x4_vec x, fp64x4_vec y, fp64x4_vec z)
{
    return _mm256_fmadd_pd(x, y, z);
}
/* clang-format on */

#endif
