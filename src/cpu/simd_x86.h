/* Defines the operations that AVX2 and AVX-512 share. Their vectors include this file after TARGET
 * and INLINE. */
#ifndef TGI_SIMD_X86_H
#define TGI_SIMD_X86_H

/* Hides a vector's value from the compiler, without moving it. */
#define KEEP_IN_REGISTER(vector) __asm__ volatile("" : "+v"(vector))

/* Computes target[q][r] = source[r][q] for a 4 x 4 square. Strides are in elements or, for any
 * 32-bit elements, in bytes. */
INLINE void fp32_transpose_bytes(const void *source, int64_t source_bytes, void *target,
                                 int64_t target_bytes)
{
    const char *from = source;
    char *to = target;
    __m128 r0 = _mm_loadu_ps((const float *)from);
    __m128 r1 = _mm_loadu_ps((const float *)(from + source_bytes));
    __m128 r2 = _mm_loadu_ps((const float *)(from + 2 * source_bytes));
    __m128 r3 = _mm_loadu_ps((const float *)(from + 3 * source_bytes));
    _MM_TRANSPOSE4_PS(r0, r1, r2, r3);
    _mm_storeu_ps((float *)to, r0);
    _mm_storeu_ps((float *)(to + target_bytes), r1);
    _mm_storeu_ps((float *)(to + 2 * target_bytes), r2);
    _mm_storeu_ps((float *)(to + 3 * target_bytes), r3);
}
INLINE void fp32_transpose(const float *source, int64_t source_stride, float *target,
                           int64_t target_stride)
{
    fp32_transpose_bytes(source, source_stride * 4, target, target_stride * 4);
}

/* Computes the same for an 8 x 8 square of FP32. */
#define HAS_SQUARES_OF_8 1
INLINE void fp32_transpose_8(const float *source, int64_t source_stride, float *target,
                             int64_t target_stride)
{
    __m256 rows[8], pairs[8];
#pragma GCC unroll 4
    for (int r = 0; r < 4; r++)
#pragma GCC unroll 2
        for (int half = 0; half < 2; half++) { /* rows r and r + 4 of a half of the columns */
            const float *from = source + r * source_stride + 4 * half;
            rows[r + 4 * half] = _mm256_insertf128_ps(_mm256_castps128_ps256(_mm_loadu_ps(from)),
                                                      _mm_loadu_ps(from + 4 * source_stride), 1);
        }
#pragma GCC unroll 2
    for (int half = 0; half < 8; half += 4) {
        pairs[half] = _mm256_unpacklo_ps(rows[half], rows[half + 1]);
        pairs[half + 1] = _mm256_unpackhi_ps(rows[half], rows[half + 1]);
        pairs[half + 2] = _mm256_unpacklo_ps(rows[half + 2], rows[half + 3]);
        pairs[half + 3] = _mm256_unpackhi_ps(rows[half + 2], rows[half + 3]);
        float *to = target + half * target_stride;
        _mm256_storeu_ps(to, _mm256_shuffle_ps(pairs[half], pairs[half + 2], 0x44));
        _mm256_storeu_ps(to + target_stride, _mm256_shuffle_ps(pairs[half], pairs[half + 2], 0xee));
        _mm256_storeu_ps(to + 2 * target_stride,
                         _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0x44));
        _mm256_storeu_ps(to + 3 * target_stride,
                         _mm256_shuffle_ps(pairs[half + 1], pairs[half + 3], 0xee));
    }
}

/* Computes the same for a 4 x 4 square of FP64. */
INLINE void fp64_transpose(const double *source, int64_t source_stride, double *target,
                           int64_t target_stride)
{
    __m256d r0 = _mm256_loadu_pd(source), r1 = _mm256_loadu_pd(source + source_stride);
    __m256d r2 = _mm256_loadu_pd(source + 2 * source_stride);
    __m256d r3 = _mm256_loadu_pd(source + 3 * source_stride);
    __m256d low01 = _mm256_unpacklo_pd(r0, r1), high01 = _mm256_unpackhi_pd(r0, r1);
    __m256d low23 = _mm256_unpacklo_pd(r2, r3), high23 = _mm256_unpackhi_pd(r2, r3);
    _mm256_storeu_pd(target, _mm256_permute2f128_pd(low01, low23, 0x20));
    _mm256_storeu_pd(target + target_stride, _mm256_permute2f128_pd(high01, high23, 0x20));
    _mm256_storeu_pd(target + 2 * target_stride, _mm256_permute2f128_pd(low01, low23, 0x31));
    _mm256_storeu_pd(target + 3 * target_stride, _mm256_permute2f128_pd(high01, high23, 0x31));
}

#endif
