/*
 * Packs BF16 pairs along k for instructions that multiply pairs. This file is included after the
 * vectors of AVX-512. A vector has 16 pairs. Squares of 16 x 16 pairs are transposed in registers.
 */
#define PAIRS 16

/* Transposes a square of 16 vectors. */
INLINE void transpose_pairs(__m512i *rows)
{
    __m512i halves[PAIRS], quarters[PAIRS];
#pragma GCC unroll 8
    for (int i = 0; i < PAIRS; i += 2) {
        halves[i] = _mm512_unpacklo_epi32(rows[i], rows[i + 1]);
        halves[i + 1] = _mm512_unpackhi_epi32(rows[i], rows[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < PAIRS; i += 4)
#pragma GCC unroll 2
        for (int h = 0; h < 2; h++) {
            quarters[i + 2 * h] = _mm512_unpacklo_epi64(halves[i + h], halves[i + 2 + h]);
            quarters[i + 2 * h + 1] = _mm512_unpackhi_epi64(halves[i + h], halves[i + 2 + h]);
        }
        /* Lane l of quarters[4 q + c] has column 4 l + c of rows 4 q to 4 q + 3. */
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        const __m512i even01 = _mm512_shuffle_i32x4(quarters[c], quarters[4 + c], 0x88);
        const __m512i odd01 = _mm512_shuffle_i32x4(quarters[c], quarters[4 + c], 0xdd);
        const __m512i even23 = _mm512_shuffle_i32x4(quarters[8 + c], quarters[12 + c], 0x88);
        const __m512i odd23 = _mm512_shuffle_i32x4(quarters[8 + c], quarters[12 + c], 0xdd);
        rows[c] = _mm512_shuffle_i32x4(even01, even23, 0x88);
        rows[4 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0x88);
        rows[8 + c] = _mm512_shuffle_i32x4(even01, even23, 0xdd);
        rows[12 + c] = _mm512_shuffle_i32x4(odd01, odd23, 0xdd);
    }
}

/* Loads `count` inputs that lie side by side, at most 16 pairs, and zeros behind them. */
INLINE __m512i load_pairs(const uint16_t *source, int64_t count)
{
    if (count >= 2 * PAIRS)
        return _mm512_loadu_si512(source);
    return _mm512_maskz_loadu_epi16((1u << count) - 1, source);
}

/* Returns the pairs that 16 inputs of two rows form. */
INLINE __m512i join_rows(const uint16_t *first, const uint16_t *second)
{
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)first));
    const __m512i high = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)second));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Loads the pairs that two rows of `count` inputs form. Behind an odd k there is no second row, and
 * its inputs are zero. */
INLINE __m512i load_two_rows(const uint16_t *first, int64_t stride, int64_t count, int has_second)
{
    const __mmask16 mask = mask16(count < PAIRS ? (int)count : PAIRS);
    const __mmask16 second_mask = has_second ? mask : 0;
    const __m512i low = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask, first));
    const __m512i high =
        _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(second_mask, first + stride));
    return _mm512_or_si512(low, _mm512_slli_epi32(high, 16));
}

/* Packs rows of pairs that lie side by side. */
static TARGET void pack_contiguous_rows(const tgi_copy *copy)
{
    for (int64_t o = 0; o < copy->outer; o++) {
        const uint16_t *source = (const uint16_t *)copy->source + o * copy->outer_stride;
        uint16_t *target = (uint16_t *)copy->target + 2 * o * copy->target_stride;
        for (int64_t i = 0; i < copy->inner; i += 2 * PAIRS)
            _mm512_storeu_si512(target + i, load_pairs(source + i, copy->inner - i));
    }
}

/* Packs rows whose neighbours lie side by side: it transposes squares of 16 rows and 16 pairs, and
 * prefetches the k of the next squares. */
static TARGET void pack_transposed_rows(const tgi_copy *copy)
{
    __m512i square[PAIRS];
    for (int64_t i = 0; i < copy->inner; i += 2 * PAIRS) {
        for (int64_t o = 0; o < copy->outer; o += PAIRS) {
            const uint16_t *source = (const uint16_t *)copy->source + o;
            uint16_t *target = (uint16_t *)copy->target + 2 * o * copy->target_stride + i;
            const int64_t rows = copy->outer - o < PAIRS ? copy->outer - o : PAIRS;
            for (int64_t k = i + 2 * PAIRS; o % (2 * PAIRS) == 0 && k < i + 4 * PAIRS; k++)
                if (k < copy->inner) /* a line of 32 rows */
                    __builtin_prefetch(source + k * copy->inner_stride);
#pragma GCC unroll 16
            for (int q = 0; q < PAIRS; q++) {
                const int64_t k = i + 2 * q;
                square[q] = k < copy->inner
                                ? load_two_rows(source + k * copy->inner_stride, copy->inner_stride,
                                                rows, k + 1 < copy->inner)
                                : _mm512_setzero_si512();
            }
            transpose_pairs(square);
#pragma GCC unroll 16
            for (int r = 0; r < PAIRS; r++)
                if (r < rows)
                    _mm512_storeu_si512(target + 2 * r * copy->target_stride, square[r]);
        }
    }
}

/* Packs pairs that lie along the inner dimension. Each row is filled up with zeros to a multiple of
 * 16 pairs. */
static TARGET void pack_k_inner(const tgi_copy *copy)
{
    if (copy->inner_stride == 1) {
        pack_contiguous_rows(copy);
        return;
    }
    if (copy->outer_stride == 1) {
        pack_transposed_rows(copy);
        return;
    }
    for (int64_t o = 0; o < copy->outer; o++) {
        const uint16_t *source = (const uint16_t *)copy->source + o * copy->outer_stride;
        uint16_t *target = (uint16_t *)copy->target + 2 * o * copy->target_stride;
        for (int64_t i = 0; i < copy->inner; i++)
            target[i] = source[i * copy->inner_stride];
        for (int64_t i = copy->inner; i % (2 * PAIRS) != 0; i++)
            target[i] = 0;
    }
}

/* Packs columns whose pairs lie side by side: it transposes squares of 16 columns and
 * 16 pairs. */
static TARGET void pack_transposed_cols(const tgi_copy *copy)
{
    __m512i square[PAIRS];
    for (int64_t i = 0; i < copy->inner; i += PAIRS) {
        const int64_t cols = copy->inner - i < PAIRS ? copy->inner - i : PAIRS;
        const __mmask16 mask = mask16((int)cols);
        for (int64_t o = 0; o < copy->outer; o += 2 * PAIRS) {
            const uint16_t *source = (const uint16_t *)copy->source + i * copy->inner_stride + o;
            uint16_t *target = (uint16_t *)copy->target + o * copy->target_stride + 2 * i;
            const int64_t k = copy->outer - o;
#pragma GCC unroll 16
            for (int c = 0; c < PAIRS; c++)
                square[c] = c < cols ? load_pairs(source + c * copy->inner_stride, k)
                                     : _mm512_setzero_si512();
            transpose_pairs(square);
#pragma GCC unroll 16
            for (int q = 0; q < PAIRS; q++)
                if (2 * q < k)
                    _mm512_mask_storeu_epi32(target + 2 * q * copy->target_stride, mask, square[q]);
        }
    }
}

/* Packs pairs that lie along the outer dimension: it interleaves two rows. */
static TARGET void pack_k_outer(const tgi_copy *copy)
{
    const uint16_t *source = copy->source;
    if (copy->outer_stride == 1 && copy->inner_stride != 1) {
        pack_transposed_cols(copy);
        return;
    }
    for (int64_t o = 0; o < copy->outer; o += 2) {
        uint16_t *target = (uint16_t *)copy->target + o * copy->target_stride;
        const uint16_t *first = source + o * copy->outer_stride;
        const int has_second = o + 1 < copy->outer;
        for (int64_t i = 0; copy->ahead && i < copy->inner; i += 2 * PAIRS) {
            __builtin_prefetch(first + copy->ahead * copy->outer_stride + i, 0, 2);
            __builtin_prefetch(first + (copy->ahead + 1) * copy->outer_stride + i, 0, 2);
        }
        int64_t i = 0;
        for (; copy->inner_stride == 1 && has_second && i + PAIRS <= copy->inner; i += PAIRS)
            _mm512_storeu_si512(target + 2 * i,
                                join_rows(first + i, first + copy->outer_stride + i));
        for (; copy->inner_stride == 1 && i < copy->inner; i += PAIRS) {
            const int64_t left = copy->inner - i;
            const __m512i pairs = load_two_rows(first + i, copy->outer_stride, left, has_second);
            _mm512_mask_storeu_epi32(target + 2 * i, mask16(left < PAIRS ? (int)left : PAIRS),
                                     pairs);
        }
        for (; copy->inner_stride != 1 && i < copy->inner; i++) {
            target[2 * i] = first[i * copy->inner_stride];
            target[2 * i + 1] = has_second ? first[copy->outer_stride + i * copy->inner_stride] : 0;
        }
    }
}

#undef PAIRS
