/*
 * Few rows of A against all of B, which is read once: sums += A B. Included once for each
 * instruction set and input type (IN_NAME, ACC_NAME, DOT_COLS), see names.h.
 */
#include "cpu/names.h"

#define RANK_DEPTH 8 /* rows of B that one pass adds to the sums */
#define DOT_ROWS 4

/* rows x RANK_DEPTH elements of A stay in registers while a row of sums goes by. depth < RANK_DEPTH
 * at the end of k. is_ahead: also asks for the rows of B that the next pass will read. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(rank_rows)(const tgi_skinny *s, int64_t i, int64_t p, const int rows, const int depth,
                 const int is_ahead)
{
    const ACC(elem) *a = (const ACC(elem) *)s->a + i * s->a_row + p;
    const IN(elem) *b = (const IN(elem) *)s->b + p * s->b_stride;
    ACC(elem) *sums = (ACC(elem) *)s->sums + i * s->sums_row;
    ACC(vec) left[2][RANK_DEPTH];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int q = 0; q < depth; q++)
            left[r][q] = ACC(broadcast)(a + r * s->a_row + q);
    int64_t j = 0;
    for (; j + VECTOR_ELEMS <= s->n; j += VECTOR_ELEMS) {
        ACC(vec) sum[2];
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            sum[r] = ACC(load)(sums + r * s->sums_row + j);
#pragma GCC unroll 8
        for (int q = 0; q < depth; q++) {
            const IN(elem) *row = b + q * s->b_stride + j;
            if (is_ahead) __builtin_prefetch(row + RANK_DEPTH * s->b_stride);
            ACC(vec) right = IN(load)(row);
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++)
                sum[r] = ACC(dot)(left[r][q], right, sum[r]);
        }
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            ACC(store)(sums + r * s->sums_row + j, sum[r]);
    }
    int rest = (int)(s->n - j);
    if (rest == 0) return;
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++) {
        ACC(vec) sum = ACC(load_some)(sums + r * s->sums_row + j, rest);
#pragma GCC unroll 8
        for (int q = 0; q < depth; q++)
            sum = ACC(dot)(left[r][q], IN(load_some)(b + q * s->b_stride + j, rest), sum);
        ACC(store_some)(sums + r * s->sums_row + j, sum, rest);
    }
}

static TARGET void LOCAL(rank)(const tgi_skinny *s)
{
    int64_t p = 0;
    for (; p + RANK_DEPTH <= s->k; p += RANK_DEPTH) {
        int is_ahead = p + 2 * RANK_DEPTH <= s->k;
        int64_t i = 0;
        if (s->m == 1) {
            if (is_ahead) {
                LOCAL(rank_rows)(s, 0, p, 1, RANK_DEPTH, 1);
            } else {
                LOCAL(rank_rows)(s, 0, p, 1, RANK_DEPTH, 0);
            }
            continue;
        }
        if (is_ahead) {
            LOCAL(rank_rows)(s, 0, p, 2, RANK_DEPTH, 1);
            i = 2;
        }
        for (; i + 2 <= s->m; i += 2)
            LOCAL(rank_rows)(s, i, p, 2, RANK_DEPTH, 0);
        if (i < s->m) LOCAL(rank_rows)(s, i, p, 1, RANK_DEPTH, 0);
    }
    for (; p < s->k; p++)
        for (int64_t i = 0; i < s->m; i++)
            LOCAL(rank_rows)(s, i, p, 1, 1, 0);
}

/* Dot products of `rows` rows of A with `cols` columns of B: one vector of partial sums each. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(dot_tile)(const tgi_skinny *s, int64_t i, int64_t j, const int rows, const int cols)
{
    const ACC(elem) *a = (const ACC(elem) *)s->a + i * s->a_row;
    const IN(elem) *b = (const IN(elem) *)s->b + j * s->b_stride;
    ACC(vec) accum[DOT_ROWS][DOT_COLS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++)
            accum[r][c] = ACC(zero)();
    int64_t p = 0;
    for (; p + VECTOR_ELEMS <= s->k; p += VECTOR_ELEMS) {
        ACC(vec) left[DOT_ROWS];
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            left[r] = ACC(load)(a + r * s->a_row + p);
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++) {
            ACC(vec) right = IN(load)(b + c * s->b_stride + p);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                accum[r][c] = ACC(dot)(left[r], right, accum[r][c]);
        }
    }
    int rest = (int)(s->k - p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++) {
            if (rest)
                accum[r][c] = ACC(dot)(ACC(load_some)(a + r * s->a_row + p, rest),
                                       IN(load_some)(b + c * s->b_stride + p, rest), accum[r][c]);
            ((ACC(elem) *)s->sums)[(i + r) * s->sums_row + j + c] += ACC(sum)(accum[r][c]);
        }
    }
}

/* One switch for the rows, so that all tiles are compiled with constant sizes. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(dot_cols)(const tgi_skinny *s, int64_t j, const int cols)
{
    int64_t i = 0;
    for (; i + DOT_ROWS <= s->m; i += DOT_ROWS)
        LOCAL(dot_tile)(s, i, j, DOT_ROWS, cols);
    switch (s->m - i) {
    case 1:
        LOCAL(dot_tile)(s, i, j, 1, cols);
        break;
    case 2:
        LOCAL(dot_tile)(s, i, j, 2, cols);
        break;
    case 3:
        LOCAL(dot_tile)(s, i, j, 3, cols);
        break;
    default:
        break;
    }
}

static TARGET void LOCAL(dot)(const tgi_skinny *s)
{
    int64_t j = 0;
    for (; j + DOT_COLS <= s->n; j += DOT_COLS)
        LOCAL(dot_cols)(s, j, DOT_COLS);
    for (; j < s->n; j++)
        LOCAL(dot_cols)(s, j, 1);
}
