/*
 * Multiplies BF16 and FP16 as slices of BF16 on AMX tiles, for attention. The including file has
 * included the vectors of AVX-512, cpu/attention_body.h for FP32 and cpu/amx_tile_body.h, and
 * defines ISA_NAME, TARGET and the operations on tile registers.
 */
#include "cpu/attention_isa.h"

#define SLICES(name) EXPAND2(name, ISA_NAME)
#define SLICE_HALF 0x8000     /* half a unit of BF16's last place */
#define SLICE_BITS 0xffff0000 /* BF16 in the upper half of FP32 */

/* Stores the slices of two vectors as pairs: those of `low` in the lower halves. */
INLINE void SLICES(store_slices)(fp32_vec low, fp32_vec high, uint32_t *target, int64_t slice,
                                 const int count)
{
    const __m512i half = _mm512_set1_epi32(SLICE_HALF), bits = _mm512_set1_epi32((int)SLICE_BITS);
#pragma GCC unroll 2
    for (int s = 0; s < count; s++) {
        const __m512i x = _mm512_add_epi32(_mm512_castps_si512(low), half);
        const __m512i y = _mm512_add_epi32(_mm512_castps_si512(high), half);
        /* y under the mask, the rest of x moved down */
        _mm512_storeu_si512(target + s * slice,
                            _mm512_ternarylogic_epi32(bits, y, _mm512_srli_epi32(x, 16), 0xca));
        low = low - _mm512_castsi512_ps(_mm512_and_si512(x, bits));
        high = high - _mm512_castsi512_ps(_mm512_and_si512(y, bits));
    }
}

INLINE void SLICES(store_counted)(fp32_vec low, fp32_vec high, uint32_t *target, int64_t slice,
                                  int count)
{
    if (count == 1)
        SLICES(store_slices)(low, high, target, slice, 1);
    else
        SLICES(store_slices)(low, high, target, slice, 2);
}

/* Returns the lanes whose numbers are not sliced. */
INLINE __mmask16 SLICES(find_odd)(fp32_vec x)
{
    const __m512i size = _mm512_and_si512(_mm512_castps_si512(x), _mm512_set1_epi32(0x7fffffff));
    return _mm512_cmpge_epu32_mask(size, _mm512_set1_epi32(TGI_SLICES_LEAST_ODD));
}

static TARGET uint32_t SLICES(slice_right)(const float *rows, int64_t k, const tgi_slices *target)
{
    uint32_t odd = 0;
    for (int64_t col = 0; col < TGI_SLICES_COLS; col += TGI_SLICES_SIDE) {
        __mmask16 is_odd = 0;
        for (int64_t p = 0; p < k; p++)
            is_odd |= SLICES(find_odd)(fp32_load(rows + p * TGI_SLICES_COLS + col));
        odd |= (uint32_t)is_odd << col;
        /* A pair has numbers k that are TGI_SLICES_SIDE apart, as in slice_rows. */
        for (int64_t p = 0; p < k; p += 2 * TGI_SLICES_SIDE)
            for (int64_t q = p; q < p + TGI_SLICES_SIDE; q++) {
                const int64_t next = q + TGI_SLICES_SIDE;
                const float *at = rows + q * TGI_SLICES_COLS + col;
                const float *after = rows + next * TGI_SLICES_COLS + col;
                SLICES(store_counted)
                (_mm512_maskz_loadu_ps(q < k ? (__mmask16)~is_odd : 0, at),
                 _mm512_maskz_loadu_ps(next < k ? (__mmask16)~is_odd : 0, after),
                 tgi_slices_find_pair(target, p / 2 + q - p, col), target->slice, target->count);
            }
    }
    return odd;
}

static TARGET int SLICES(slice_rows)(const float *rows, int64_t stride, int64_t count, int64_t size,
                                     const tgi_slices *target, unsigned char *is_odd)
{
    int has_odd = 0;
    for (int64_t j = 0; j < count; j++) {
        const float *row = rows + j * stride;
        __mmask16 odd = 0;
        for (int64_t e = 0; e < size; e += 2 * TGI_SLICES_SIDE) {
            const int64_t left = size - e, after = left - TGI_SLICES_SIDE;
            const fp32_vec low =
                left >= TGI_SLICES_SIDE ? fp32_load(row + e) : fp32_load_some(row + e, (int)left);
            const fp32_vec high = after >= TGI_SLICES_SIDE ? fp32_load(row + e + TGI_SLICES_SIDE)
                                  : after > 0
                                      ? fp32_load_some(row + e + TGI_SLICES_SIDE, (int)after)
                                      : fp32_zero();
            odd |= SLICES(find_odd)(low) | SLICES(find_odd)(high);
            uint32_t *pairs = tgi_slices_find_row(target, j, e / (2 * TGI_SLICES_SIDE));
            SLICES(store_counted)(low, high, pairs, target->slice, target->count);
        }
        is_odd[j] = odd != 0;
        has_odd |= odd != 0;
        for (int64_t e = 0; e < size && odd; e += 2 * TGI_SLICES_SIDE)
            SLICES(store_counted)
        (fp32_zero(), fp32_zero(), tgi_slices_find_row(target, j, e / (2 * TGI_SLICES_SIDE)),
         target->slice, target->count);
    }
    return has_odd;
}

/* Slices the transpose of 32 rows, or fewer, of at most 16 columns. */
INLINE int SLICES(slice_square)(const float *rows, int64_t stride, int64_t count, int cols,
                                const tgi_slices *target, uint32_t *at, const int slices)
{
    __m512i square[2][TGI_SLICES_SIDE];
    __mmask16 odd = 0;
    const __mmask16 mask = mask16(cols);
    for (int q = 0; q < TGI_SLICES_SIDE; q++) {
        const float *row = rows + 2 * q * stride;
        const fp32_vec low = _mm512_maskz_loadu_ps(2 * q < count ? mask : 0, row);
        const fp32_vec high = _mm512_maskz_loadu_ps(2 * q + 1 < count ? mask : 0, row + stride);
        const __mmask16 low_odd = SLICES(find_odd)(low), high_odd = SLICES(find_odd)(high);
        odd |= low_odd | high_odd;
        SLICES(store_slices)
        (_mm512_maskz_mov_ps((__mmask16)~low_odd, low),
         _mm512_maskz_mov_ps((__mmask16)~high_odd, high), (uint32_t *)&square[0][q],
         TGI_SLICES_SIDE * TGI_SLICES_SIDE, slices);
    }
#pragma GCC unroll 2
    for (int s = 0; s < slices; s++) {
        transpose_pairs(square[s]);
        for (int e = 0; e < cols; e++)
            _mm512_storeu_si512(at + s * target->slice + e * TGI_SLICES_SIDE, square[s][e]);
    }
    return odd != 0;
}

static TARGET int SLICES(slice_transpose)(const float *rows, int64_t stride, int64_t count,
                                          int64_t size, const tgi_slices *target)
{
    int has_odd = 0;
    for (int64_t j = 0; j < count; j += 2 * TGI_SLICES_SIDE)
        for (int64_t e = 0; e < size; e += TGI_SLICES_SIDE) {
            const float *from = rows + j * stride + e;
            uint32_t *at = tgi_slices_find_row(target, e, j / (2 * TGI_SLICES_SIDE));
            const int cols = size - e < TGI_SLICES_SIDE ? (int)(size - e) : TGI_SLICES_SIDE;
            if (target->count == 1)
                has_odd |= SLICES(slice_square)(from, stride, count - j, cols, target, at, 1);
            else
                has_odd |= SLICES(slice_square)(from, stride, count - j, cols, target, at, 2);
        }
    return has_odd;
}

/* Returns the halves of pairs that are BF16 numbers that are not sliced. */
INLINE __mmask32 SLICES(find_odd_halves)(__m512i pairs)
{
    const __m512i size = _mm512_and_si512(pairs, _mm512_set1_epi16(0x7fff));
    return _mm512_cmpge_epu16_mask(size, _mm512_set1_epi16(TGI_SLICES_LEAST_ODD >> 16));
}

/* Returns pairs of BF16 numbers, the first `low_count` of `low` and the first `high_count` of
 * `high`; zeros follow. */
INLINE __m512i SLICES(load_pairs)(const uint16_t *low, int low_count, const uint16_t *high,
                                  int high_count)
{
    const __m512i x = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask16(low_count), low));
    const __m512i y = _mm512_cvtepu16_epi32(_mm256_maskz_loadu_epi16(mask16(high_count), high));
    return _mm512_or_si512(x, _mm512_slli_epi32(y, 16));
}

INLINE int SLICES(limit)(int64_t count)
{
    return count < 0 ? 0 : count < TGI_SLICES_SIDE ? (int)count : TGI_SLICES_SIDE;
}

static TARGET int SLICES(pair_rows)(const uint16_t *rows, int64_t stride, int64_t count,
                                    int64_t size, const tgi_slices *target)
{
    __mmask32 odd = 0;
    for (int64_t j = 0; j < count; j++)
        for (int64_t e = 0; e < size; e += 2 * TGI_SLICES_SIDE) {
            const uint16_t *at = rows + j * stride + e;
            const __m512i pairs =
                SLICES(load_pairs)(at, SLICES(limit)(size - e), at + TGI_SLICES_SIDE,
                                   SLICES(limit)(size - e - TGI_SLICES_SIDE));
            odd |= SLICES(find_odd_halves)(pairs);
            _mm512_storeu_si512(tgi_slices_find_row(target, j, e / (2 * TGI_SLICES_SIDE)), pairs);
        }
    return odd != 0;
}

static TARGET int SLICES(pair_columns)(const uint16_t *const *columns, int64_t size,
                                       const tgi_slices *target)
{
    __mmask32 odd = 0;
    for (int64_t e = 0; e < size; e += 2 * TGI_SLICES_SIDE)
        for (int col = 0; col < TGI_SLICES_COLS; col += TGI_SLICES_SIDE) {
            __m512i square[TGI_SLICES_SIDE];
            for (int q = 0; q < TGI_SLICES_SIDE; q++) {
                const uint16_t *at = columns[col + q];
                square[q] = _mm512_setzero_si512();
                if (at)
                    square[q] = SLICES(load_pairs)(at + e, SLICES(limit)(size - e),
                                                   at + e + TGI_SLICES_SIDE,
                                                   SLICES(limit)(size - e - TGI_SLICES_SIDE));
                odd |= SLICES(find_odd_halves)(square[q]);
            }
            transpose_pairs(square);
            for (int q = 0; q < TGI_SLICES_SIDE; q++)
                _mm512_storeu_si512(tgi_slices_find_pair(target, e / 2 + q, col), square[q]);
        }
    return odd != 0;
}

static TARGET int SLICES(pair_transpose)(const uint16_t *rows, int64_t stride, int64_t count,
                                         int64_t size, const tgi_slices *target)
{
    __mmask32 odd = 0;
    for (int64_t j = 0; j < count; j += 2 * TGI_SLICES_SIDE)
        for (int64_t e = 0; e < size; e += TGI_SLICES_SIDE) {
            const int cols = SLICES(limit)(size - e);
            uint32_t *at = tgi_slices_find_row(target, e, j / (2 * TGI_SLICES_SIDE));
            __m512i square[TGI_SLICES_SIDE];
            for (int q = 0; q < TGI_SLICES_SIDE; q++) {
                const uint16_t *from = rows + (j + 2 * q) * stride + e;
                square[q] = SLICES(load_pairs)(from, j + 2 * q < count ? cols : 0, from + stride,
                                               j + 2 * q + 1 < count ? cols : 0);
                odd |= SLICES(find_odd_halves)(square[q]);
            }
            transpose_pairs(square);
            for (int q = 0; q < cols; q++)
                _mm512_storeu_si512(at + q * TGI_SLICES_SIDE, square[q]);
        }
    return odd != 0;
}

static TARGET void SLICES(multiply_slices)(int64_t rows, int64_t cols, int64_t steps,
                                           const tgi_slices *a, const tgi_slices *b, int most,
                                           float *d)
{
    amx_operand left = {.row_bytes = TGI_SLICES_SIDE * (int64_t)sizeof *left.pairs,
                        .other = TGI_SLICES_TILE,
                        .step = 2 * TGI_SLICES_TILE,
                        .slice = a->slice,
                        .count = a->count};
    const amx_operand right = {.pairs = b->pairs,
                               .row_bytes = TGI_SLICES_SIDE * (int64_t)sizeof *right.pairs,
                               .other = TGI_SLICES_TILE,
                               .step = 2 * TGI_SLICES_TILE,
                               .slice = b->slice,
                               .count = b->count};
    for (int64_t i = 0; i < rows; i += TGI_SLICES_ROWS, d += TGI_SLICES_ROWS * TGI_SLICES_COLS) {
        _Alignas(64) float sums[TGI_SLICES_ROWS * TGI_SLICES_COLS];
        const int64_t count = rows - i < TGI_SLICES_ROWS ? rows - i : TGI_SLICES_ROWS;
        const int is_whole = count % TGI_SLICES_SIDE == 0; /* registers are stored whole */
        left.pairs = tgi_slices_find_row(a, i, 0);
        TILE(choose_registers)
        (&left, &right, steps, most, is_whole ? d : sums, TGI_SLICES_COLS * (int64_t)sizeof *d,
         count, cols);
        for (int64_t r = 0; r < count && !is_whole; r++)
            memcpy(d + r * TGI_SLICES_COLS, sums + r * TGI_SLICES_COLS, (size_t)cols * sizeof *d);
    }
}

/* Converts the scores of `vectors` vectors of queries to two slices of weights. Weights without a
 * neighbor, and those behind the last key, are pairs with zero. */
INLINE void SLICES(weigh_vectors)(const tgi_attention_block *b, const tgi_attention_state *state,
                                  int64_t col, float factor, const tgi_slices *weights,
                                  int keeps_weights, const int vectors)
{
    const int64_t row = state->row;
    weighing_avx512_fp32 w = start_weighing_avx512_fp32(b, state, col, factor, vectors);
    int64_t pair = 0;
    for (; 2 * pair < b->keys; pair++) {
        float *at = w.scores + 2 * pair * row;
        const int has_next = 2 * pair + 1 < b->keys;
#pragma GCC unroll 2
        for (int v = 0; v < vectors; v++) {
            const int64_t to = col + v * TGI_SLICES_SIDE;
            const fp32_vec low =
                weigh_score_avx512_fp32(&w, fp32_load(at + v * TGI_SLICES_SIDE), v);
            fp32_vec high = fp32_zero();
            if (has_next)
                high = weigh_score_avx512_fp32(&w, fp32_load(at + row + v * TGI_SLICES_SIDE), v);
            if (keeps_weights) {
                fp32_store(at + v * TGI_SLICES_SIDE, low);
                if (has_next)
                    fp32_store(at + row + v * TGI_SLICES_SIDE, high);
            }
            SLICES(store_slices)
            (low, high, tgi_slices_find_pair(weights, pair, to), weights->slice, 2);
        }
    }
    for (; pair % TGI_SLICES_SIDE != 0; pair++)
        for (int v = 0; v < vectors; v++)
            SLICES(store_slices)
    (fp32_zero(), fp32_zero(), tgi_slices_find_pair(weights, pair, col + v * TGI_SLICES_SIDE),
     weights->slice, 2);
    end_weighing_avx512_fp32(&w, state, col, vectors);
}

static TARGET void SLICES(weigh_slices)(const tgi_attention_block *b,
                                        const tgi_attention_state *state, const tgi_slices *weights,
                                        int keeps_weights)
{
    const float factor = prepare_scores_avx512_fp32(b, state);
    if (state->cols > TGI_SLICES_SIDE)
        SLICES(weigh_vectors)(b, state, 0, factor, weights, keeps_weights, 2);
    else
        SLICES(weigh_vectors)(b, state, 0, factor, weights, keeps_weights, 1);
}

#define SLICES_FUNCTIONS                                                                           \
    {                                                                                              \
        TILE(open), TILE(close), SLICES(slice_right), SLICES(slice_rows), SLICES(slice_transpose), \
            SLICES(pair_rows), SLICES(pair_columns), SLICES(pair_transpose),                       \
            SLICES(multiply_slices), SLICES(weigh_slices)                                          \
    }
