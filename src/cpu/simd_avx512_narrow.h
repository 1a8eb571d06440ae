/*
 * Defines the vectors of narrow tiles, with the operations that cpu/narrow_tile_body.h uses: half
 * vectors, fp32x8 and fp64x4, which units of 256 bits finish in half the time, and whole ones,
 * fp32x16 and fp64x8.
 */
#ifndef TGI_SIMD_AVX512_NARROW_H
#define TGI_SIMD_AVX512_NARROW_H

#include "cpu/simd_avx512.h"

/* `intrinsic` and `suffix` are the two ends of an intrinsic's name. */
#define DEFINE_VECTORS(name, type, vector, intrinsic, suffix, mask)                                \
    typedef type name##_elem;                                                                      \
    typedef vector name##_vec;                                                                     \
    INLINE vector name##_zero(void)                                                                \
    {                                                                                              \
        return intrinsic##_setzero_##suffix();                                                     \
    }                                                                                              \
    INLINE vector name##_set(type x)                                                               \
    {                                                                                              \
        return intrinsic##_set1_##suffix(x);                                                       \
    }                                                                                              \
    INLINE vector name##_broadcast(const type *p)                                                  \
    {                                                                                              \
        return intrinsic##_set1_##suffix(*p);                                                      \
    }                                                                                              \
    INLINE vector name##_load_some(const type *p, int n)                                           \
    {                                                                                              \
        return intrinsic##_maskz_loadu_##suffix(mask(n), p);                                       \
    }                                                                                              \
    INLINE void name##_store_some(type *p, vector x, int n)                                        \
    {                                                                                              \
        intrinsic##_mask_storeu_##suffix(p, mask(n), x);                                           \
    }                                                                                              \
    INLINE vector name##_mul(vector x, vector y)                                                   \
    {                                                                                              \
        return intrinsic##_mul_##suffix(x, y);                                                     \
    }                                                                                              \
    INLINE vector name##_max(vector x, vector y)                                                   \
    {                                                                                              \
        return intrinsic##_max_##suffix(x, y);                                                     \
    }                                                                                              \
    INLINE vector name##_fma(vector x, vector y, vector z)                                         \
    {                                                                                              \
        return intrinsic##_fmadd_##suffix(x, y, z);                                                \
    }                                                                                              \
    INLINE vector name##_dot(vector x, vector y, vector z)                                         \
    {                                                                                              \
        return intrinsic##_fmadd_##suffix(x, y, z);                                                \
    }

DEFINE_VECTORS(fp32x8, float, __m256, _mm256, ps, mask8)
DEFINE_VECTORS(fp64x4, double, __m256d, _mm256, pd, mask8)
DEFINE_VECTORS(fp32x16, float, __m512, _mm512, ps, mask16)
DEFINE_VECTORS(fp64x8, double, __m512d, _mm512, pd, mask8)

#undef DEFINE_VECTORS

#endif
