/*
 * Forms all rows of a D of at most one vector of columns, from pairs of BF16. Such a D has few
 * products for each of its bytes and of A's, so that rows are read where they lie, with any stride
 * and any k, in blocks of many rows and by one call.
 *
 * The including file has included tile_body.h for pairs. A tgi_tile here has all rows in its
 * tile_count. Its k and a_stride count numbers, and its bias_tile_stride is that of a row.
 */
#include <math.h>

#include "cpu/prefetch.h"

#define TALL_ROWS 16

/* Row i of a block is addressed from a pointer to every third row, as in tile_body.h. */
#define TALL_POINTERS ((TALL_ROWS + 2) / 3)
#define TALL_ROW(base, stride, i) ((base)[(i) / 3] + (i) % 3 * (stride))

/* Adds the products of one pair of each row, or of its last number if has_second is 0: the number
 * behind it may be NaN, which a zero of B would not hide. */
static inline __attribute__((always_inline)) TARGET void
TILE(add_pair)(const uint16_t *const *a, int64_t a_stride, const uint32_t *b, int cols,
               ACC(vec) * accum, const int rows, const int has_second)
{
    /* Behind the columns are any bits, whose products could raise flags of the processor. */
    const IN(vec) right = IN(load_some)(b, cols);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++) {
        uint32_t pair = 0;
        memcpy(&pair, TALL_ROW(a, a_stride, i), has_second ? sizeof pair : sizeof(uint16_t));
        accum[i] = IN(dot)(IN(broadcast)(&pair), right, accum[i]);
    }
}

/* Computes `rows` rows. */
static inline __attribute__((always_inline)) TARGET void
TILE(tall_block)(const tgi_tile *t, const void *a_start, const uint32_t *b, const void *c, void *d,
                 const void *bias, double alpha, double beta, const int rows)
{
    ACC(vec) accum[TALL_ROWS];
    const uint16_t *a[TALL_POINTERS];
    const int64_t a_stride = t->a_stride;
    const int cols = t->cols;
#pragma GCC unroll 6
    for (int q = 0; q < (rows + 2) / 3; q++) {
        a[q] = (const uint16_t *)a_start + 3 * q * a_stride;
        HIDE_POINTER(a[q]);
    }
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
        accum[i] = ACC(zero)();
    for (int64_t left = t->k; left > 0; left -= 2, b += VECTOR_ELEMS) {
        if (left == 1)
            TILE(add_pair)(a, a_stride, b, cols, accum, rows, 0);
        else
            TILE(add_pair)(a, a_stride, b, cols, accum, rows, 1);
#pragma GCC unroll 6
        for (int q = 0; q < (rows + 2) / 3; q++)
            a[q] += 2;
    }
    if (!t->is_bf16 || t->is_by_memory) {
        ACC(elem) sums[TALL_ROWS * TILE_VECTORS * VECTOR_ELEMS];
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++)
            ACC(store)(sums + i * TILE_VECTORS * VECTOR_ELEMS, accum[i]);
        TILE(finish_tile)(t, d, c, sums, bias, rows, alpha, beta);
        return;
    }
    /* A sum that is NaN or equals the least one is the second operand, and stays. */
    const ACC(vec) least = ACC(set)(t->activation == TG_ACTIVATION_RELU ? 0.0F : -INFINITY);
    const int64_t d_row = t->d_row;
    uint16_t *narrow = d;
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++, narrow += d_row)
        IN(round_some)(narrow, ACC(max)(least, accum[i]), cols);
}

static TARGET void TILE(tall)(tgi_tile *t, const void *a_start, const void *b, const void *c_start,
                              void *d_start, const void *bias_start, double alpha, double beta)
{
    const char *a = a_start, *c = c_start, *bias = bias_start;
    char *d = d_start;
    const int64_t d_bytes = t->is_bf16 ? 2 : 4;
    const int64_t a_row = t->a_stride * (int64_t)sizeof(uint16_t), c_row = t->c_row * d_bytes;
    const int64_t d_row = t->d_row * d_bytes, bias_row = t->bias_tile_stride * d_bytes;
    tgi_row_blocks blocks = {.row_bytes = a_row,
                             .used_bytes = t->k * (int64_t)sizeof(uint16_t),
                             .rows = TALL_ROWS,
                             .all_rows = t->tile_count,
                             .steps = 1,
                             .most_bytes = TALL_ROWS * a_row};
    const tgi_ahead of_a = tgi_cpu_find_row_ahead(&blocks);
    blocks.row_bytes = d_row;
    blocks.used_bytes = t->cols * d_bytes;
    blocks.most_bytes = TALL_ROWS * d_row;
    const tgi_ahead of_d = tgi_cpu_find_row_ahead(&blocks);
    for (int64_t left = t->tile_count, rows; left > 0; left -= rows) {
        rows = left >= TALL_ROWS ? TALL_ROWS : left >= 4 ? 4 : 1;
        if (left >= TALL_ROWS) {
            for (int i = 0; i < of_a.count; i++)
                __builtin_prefetch(a + of_a.bytes + i * of_a.stride);
            for (int i = 0; i < of_d.count; i++)
                __builtin_prefetch(d + of_d.bytes + i * of_d.stride);
            for (int i = 0; beta != 0.0 && i < TALL_ROWS; i++)
                __builtin_prefetch(c + (TALL_ROWS + i) * c_row);
            TILE(tall_block)(t, a, b, c, d, bias, alpha, beta, TALL_ROWS);
        } else if (left >= 4) {
            TILE(tall_block)(t, a, b, c, d, bias, alpha, beta, 4);
        } else {
            TILE(tall_block)(t, a, b, c, d, bias, alpha, beta, 1);
        }
        a += rows * a_row;
        c += rows * c_row;
        d += rows * d_row;
        bias += rows * bias_row;
    }
}

#undef TALL_ROWS
#undef TALL_POINTERS
#undef TALL_ROW
