/*
 * Forms sums += A B for few rows of A. B is read once. This file is included once for each
 * instruction set and input type (IN_NAME, ACC_NAME, DOT_COLS), see names.h.
 */
#include "cpu/names.h"

#define RANK_DEPTH TGI_RANK_DEPTH
#define DOT_ROWS 4
#define LINE_BYTES 64 /* a cache line */
#define OWN_AHEAD 40  /* vectors of its own columns that `dot` prefetches early, if they are long */

/* Adds `depth` rows of B to `rows` rows of sums. rows x RANK_DEPTH elements of A stay in registers
 * while a row of sums passes. depth is less than RANK_DEPTH at the end of k. The function also
 * prefetches `ahead` rows of B of the next update, from its row `ahead_row` on, to L2 if is_far
 * is set: more lines can be on their way there than to L1. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(rank_rows)(const tgi_skinny *s, int64_t i, int64_t p, const int rows, const int depth,
                 const int ahead, int64_t ahead_row, const int is_far)
{
    const ACC(elem) *a = (const ACC(elem) *)s->a + i * s->a_row + p;
    const int64_t n = s->n, b_stride = s->b_stride, sums_row = s->sums_row; /* kept in registers */
    const IN(elem) *b = (const IN(elem) *)s->b + p * b_stride;
    const IN(elem) *next = b + (RANK_DEPTH + ahead_row) * b_stride;
    ACC(elem) *sums = (ACC(elem) *)s->sums + i * sums_row;
    ACC(vec) left[2][RANK_DEPTH];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 8
        for (int q = 0; q < depth; q++)
            left[r][q] = ACC(broadcast)(a + r * s->a_row + q);
    int64_t j = 0;
    for (; j + VECTOR_ELEMS <= n; j += VECTOR_ELEMS) {
        ACC(vec) sum[2];
#pragma GCC unroll 8
        for (int q = 0; q < ahead; q++) {
            if (is_far)
                __builtin_prefetch(next + q * b_stride + j, 0, 2);
            else
                __builtin_prefetch(next + q * b_stride + j);
        }
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            sum[r] = ACC(load)(sums + r * sums_row + j);
#pragma GCC unroll 8
        for (int q = 0; q < depth; q++) {
            ACC(vec) right = IN(load)(b + q * b_stride + j);
            KEEP_IN_REGISTER(right); /* one load for both rows, not an operand of each FMA */
#pragma GCC unroll 2
            for (int r = 0; r < rows; r++)
                sum[r] = ACC(dot)(left[r][q], right, sum[r]);
        }
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            ACC(store)(sums + r * sums_row + j, sum[r]);
    }
    int rest = (int)(n - j);
    if (rest == 0)
        return;
    ACC(vec) sum[2];
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        sum[r] = ACC(load_some)(sums + r * sums_row + j, rest);
#pragma GCC unroll 8
    for (int q = 0; q < depth; q++) {
        ACC(vec) right = IN(load_some)(b + q * b_stride + j, rest);
#pragma GCC unroll 2
        for (int r = 0; r < rows; r++)
            sum[r] = ACC(dot)(left[r][q], right, sum[r]);
    }
#pragma GCC unroll 2
    for (int r = 0; r < rows; r++)
        ACC(store_some)(sums + r * sums_row + j, sum[r], rest);
}

/* Adds RANK_DEPTH rows of B. `ahead` is 0 or a divisor of RANK_DEPTH. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(rank_ahead)(const tgi_skinny *s, int64_t i, int64_t p, const int rows, int ahead,
                  int64_t ahead_row, const int is_far)
{
    switch (ahead) {
    case 1:
        LOCAL(rank_rows)(s, i, p, rows, RANK_DEPTH, 1, ahead_row, is_far);
        break;
    case 2:
        LOCAL(rank_rows)(s, i, p, rows, RANK_DEPTH, 2, ahead_row, is_far);
        break;
    case 4:
        LOCAL(rank_rows)(s, i, p, rows, RANK_DEPTH, 4, ahead_row, is_far);
        break;
    case RANK_DEPTH:
        LOCAL(rank_rows)(s, i, p, rows, RANK_DEPTH, RANK_DEPTH, ahead_row, is_far);
        break;
    default:
        LOCAL(rank_rows)(s, i, p, rows, RANK_DEPTH, 0, 0, 0);
        break;
    }
}

/* Multiplies all rows of A by RANK_DEPTH rows of B. Each pair of rows prefetches `ahead` of the
 * next rows of B, so that memory works while the core multiplies. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(rank_depth)(const tgi_skinny *s, int64_t p, int ahead, const int is_far)
{
    int64_t i = 0, ahead_row = 0;
    for (; i + 2 <= s->m; i += 2, ahead_row += ahead)
        LOCAL(rank_ahead)(s, i, p, 2, ahead_row < RANK_DEPTH ? ahead : 0, ahead_row, is_far);
    if (i == s->m)
        return;
    if (s->m == 1 && ahead) {
        LOCAL(rank_rows)(s, i, p, 1, RANK_DEPTH, RANK_DEPTH, 0, is_far);
    } else {
        LOCAL(rank_rows)(s, i, p, 1, RANK_DEPTH, 0, 0, 0);
    }
}

static TARGET void LOCAL(rank)(const tgi_skinny *s)
{
    const int ahead = s->m >= 16 ? 1 : s->m >= 8 ? 2 : s->m >= 4 ? 4 : RANK_DEPTH;
    /* Rows that are converted, or read by halves of lines, do not fill the way to L1. */
    const int is_far =
        sizeof(IN(elem)) == sizeof(ACC(elem)) && sizeof(ACC(vec)) == LINE_BYTES && s->is_far;
    int64_t p = 0;
    for (; is_far && p + RANK_DEPTH <= s->k; p += RANK_DEPTH)
        LOCAL(rank_depth)(s, p, p + 2 * RANK_DEPTH <= s->k ? ahead : 0, 1);
    for (; p + RANK_DEPTH <= s->k; p += RANK_DEPTH)
        LOCAL(rank_depth)(s, p, p + 2 * RANK_DEPTH <= s->k ? ahead : 0, 0);
    if (p + RANK_DEPTH / 2 <= s->k) {
        for (int64_t i = 0; i < s->m; i++)
            LOCAL(rank_rows)(s, i, p, 1, RANK_DEPTH / 2, 0, 0, 0);
        p += RANK_DEPTH / 2;
    }
    for (; p < s->k; p++)
        for (int64_t i = 0; i < s->m; i++)
            LOCAL(rank_rows)(s, i, p, 1, 1, 0, 0, 0);
}

/* Adds each vector of partial sums to an element of the sums. One function serves tiles of all
 * sizes: unrolled in each of them it would be most of their code. */
static __attribute__((noinline)) TARGET void LOCAL(dot_add)(const tgi_skinny *s, int64_t i,
                                                            int64_t j, int rows, int cols,
                                                            const ACC(elem) * partial)
{
    for (int r = 0; r < rows; r++) {
        ACC(elem) *sums = (ACC(elem) *)s->sums + (i + r) * s->sums_row + j;
        for (int c = 0; c < cols; c++, partial += VECTOR_ELEMS)
            sums[c] += ACC(sum)(ACC(load)(partial));
    }
}

/* Forms the dot products of `rows` rows of A with `cols` columns of B, each in one vector of
 * partial sums. It prefetches `ahead` of the columns that follow, from `ahead_col` on. If `ahead`
 * is 0, it prefetches its own columns or, if they are short, those of one to six groups later. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(dot_tile)(const tgi_skinny *s, int64_t i, int64_t j, const int rows, const int cols,
                const int ahead, int64_t ahead_col)
{
    const int64_t k = s->k, a_row = s->a_row, b_stride = s->b_stride; /* kept in registers */
    const ACC(elem) *a = (const ACC(elem) *)s->a + i * a_row;
    const IN(elem) *b = (const IN(elem) *)s->b + j * b_stride;
    const IN(elem) *next = (const IN(elem) *)s->b + ahead_col * b_stride;
    /* Columns that are converted are read too slowly to wait for memory. */
    const int is_short = sizeof(IN(elem)) == sizeof(ACC(elem)) && k <= 2 * OWN_AHEAD * VECTOR_ELEMS;
    const int64_t col_bytes = k * (int64_t)sizeof(IN(elem));
    const int groups_ahead = col_bytes <= 256 ? 6 : col_bytes <= 1024 ? 3 : 1;
    const int64_t own_ahead = is_short ? groups_ahead * cols * b_stride : OWN_AHEAD * VECTOR_ELEMS;
    _Alignas(sizeof(ACC(vec))) ACC(elem) partial[DOT_ROWS * DOT_COLS * VECTOR_ELEMS];
    ACC(vec) accum[DOT_ROWS][DOT_COLS];
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++)
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++)
            accum[r][c] = ACC(zero)();
    int64_t p = 0;
    for (; p + VECTOR_ELEMS <= k; p += VECTOR_ELEMS) {
        ACC(vec) left[DOT_ROWS];
#pragma GCC unroll 6
        for (int c = 0; c < ahead; c++)
            __builtin_prefetch(next + c * b_stride + p, 0, 2);
#pragma GCC unroll 4
        for (int r = 0; r < rows; r++)
            left[r] = ACC(load)(a + r * a_row + p);
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++) {
            if (!ahead)
                __builtin_prefetch(b + c * b_stride + p + own_ahead, 0, 2);
            ACC(vec) right = IN(load)(b + c * b_stride + p);
#pragma GCC unroll 4
            for (int r = 0; r < rows; r++)
                accum[r][c] = ACC(dot)(left[r], right, accum[r][c]);
        }
    }
    const int rest = (int)(k - p);
#pragma GCC unroll 4
    for (int r = 0; r < rows; r++) {
        ACC(vec) left = ACC(zero)();
        if (rest)
            left = ACC(load_some)(a + r * a_row + p, rest);
#pragma GCC unroll 6
        for (int c = 0; c < cols; c++) {
            if (rest)
                accum[r][c] =
                    ACC(dot)(left, IN(load_some)(b + c * b_stride + p, rest), accum[r][c]);
            ACC(store)(partial + (r * cols + c) * VECTOR_ELEMS, accum[r][c]);
        }
    }
    LOCAL(dot_add)(s, i, j, rows, cols, partial);
}

/* Multiplies all rows of A by `cols` columns. If is_ahead is set, each group of rows prefetches its
 * share of the next columns, so that memory works while the core multiplies. No later column is
 * prefetched behind the last one; a tile that prefetches its own columns runs OWN_AHEAD vectors
 * past their ends. */
static inline __attribute__((always_inline)) TARGET void
LOCAL(dot_cols)(const tgi_skinny *s, int64_t j, const int cols, int is_ahead)
{
    const int ahead = cols / 3;
    int64_t i = 0, ahead_col = j + cols;
    for (; i + DOT_ROWS <= s->m; i += DOT_ROWS, ahead_col += ahead) {
        if (is_ahead && ahead_col + ahead <= s->n) {
            LOCAL(dot_tile)(s, i, j, DOT_ROWS, cols, ahead, ahead_col);
        } else {
            LOCAL(dot_tile)(s, i, j, DOT_ROWS, cols, 0, 0);
        }
    }
    switch (s->m - i) {
    case 1:
        LOCAL(dot_tile)(s, i, j, 1, cols, 0, 0);
        break;
    case 2:
        LOCAL(dot_tile)(s, i, j, 2, cols, 0, 0);
        break;
    case 3:
        LOCAL(dot_tile)(s, i, j, 3, cols, 0, 0);
        break;
    default:
        break;
    }
}

static TARGET void LOCAL(dot)(const tgi_skinny *s)
{
    /* Few rows leave no time to prefetch other columns than their own. */
    const int is_ahead = s->m > 2 * DOT_ROWS;
    int64_t j = 0, cols;
    for (; j + DOT_COLS <= s->n; j += DOT_COLS)
        LOCAL(dot_cols)(s, j, DOT_COLS, is_ahead);
    for (; j < s->n; j += cols) {
        const int64_t left = s->n - j;
        cols = left == 1 ? 1 : left % 2 ? 3 : 2;
        if (DOT_COLS > 3 && cols == 3) {
            LOCAL(dot_cols)(s, j, 3, 0);
        } else if (cols == 2) {
            LOCAL(dot_cols)(s, j, 2, 0);
        } else {
            LOCAL(dot_cols)(s, j, 1, 0);
        }
    }
}
