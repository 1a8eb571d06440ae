/* Operations that AVX2 and AVX-512 share. Their vectors include this file after TARGET and
 * INLINE. */
#ifndef TGI_SIMD_X86_H
#define TGI_SIMD_X86_H

/* Makes the compiler forget what it knows of a vector's value, without moving it. */
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
