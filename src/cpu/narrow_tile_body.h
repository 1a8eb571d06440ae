/*
 * This micro-kernel forms narrow tiles, of at most one vector of columns, for cpu/tile_body.h. Tiny
 * products consist of it: it computes one tile, applies alpha, C, a bias and ReLU in registers, and
 * has no instruction that does not serve the tile. Masks cost nothing, so one body serves all
 * columns.
 */

/* The number of values of k in one iteration of the loop. */
#define NARROW_UNROLL 2

/* Adds the products of one value of k, `ahead` values beyond the pointers to A. */
static inline __attribute__((always_inline)) TARGET void
TILE(narrow_add_k)(const IN(elem) *const *a, int64_t a_stride, const IN(elem) * b, int cols,
                   ACC(vec) * accum, const int rows, const int order, const int ahead)
{
    const IN(vec) row = IN(load_some)(b, cols);
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++) {
        IN(vec)
        left = IN(broadcast)(order == TGI_A_ALONG_K ? A_ROW(a, a_stride, i) + ahead : a[0] + i);
        accum[i] = IN(dot)(left, row, accum[i]);
    }
}

/* Computes one tile. rows and order are constants after inlining. */
static inline __attribute__((always_inline)) TARGET void
TILE(narrow_tile)(const tgi_tile *t, const IN(elem) * a_start, const IN(elem) * b,
                  const ACC(elem) * c, ACC(elem) * d, const ACC(elem) * bias, double alpha_value,
                  double beta_value, const int rows, const int order)
{
    ACC(vec) accum[TILE_ROWS];
    const IN(elem) * a[A_POINTERS];
    const int64_t a_stride = t->a_stride, b_row = t->b_row, c_row = t->c_row, d_row = t->d_row;
    const int pointer_count = order == TGI_A_ALONG_K ? (rows + 2) / 3 : 1, cols = t->cols;
    const int64_t a_ahead = t->a_ahead, b_ahead = t->b_ahead;
    const IN(elem) *ahead = a_start + a_ahead;
    int ahead_row = 0;
    int64_t left = t->k;
#pragma GCC unroll 5
    for (int q = 0; q < pointer_count; q++)
        a[q] = a_start + 3 * q * a_stride;
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        accum[i] = ACC(zero)();
    if (t->is_d_far) {
        const ACC(elem) *far = d + t->d_ahead;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
            __builtin_prefetch(far + i * d_row, 0, 2);
    }
    for (; left >= NARROW_UNROLL; left -= NARROW_UNROLL) {
        if (order == TGI_A_ALONG_K)
            TILE(prefetch_rows)(&ahead, &ahead_row, a_stride, rows);
#pragma GCC unroll 2
        for (int u = 0; u < NARROW_UNROLL; u++) {
            TILE(narrow_add_k)(a, a_stride, b, cols, accum, rows, order, u);
            __builtin_prefetch(b + b_ahead, 0, 2);
            b += b_row;
            if (order == TGI_A_ALONG_ROWS) {
                __builtin_prefetch(a[0] + a_ahead, 0, 2);
                a[0] += a_stride;
            }
            HIDE_POINTER(b); /* the compiler would otherwise count turns and multiply by strides */
        }
#pragma GCC unroll 5
        for (int q = 0; q < pointer_count; q++) {
            if (order == TGI_A_ALONG_K)
                a[q] += NARROW_UNROLL;
            HIDE_POINTER(a[q]);
        }
    }
    for (; left > 0; left--) {
        TILE(narrow_add_k)(a, a_stride, b, cols, accum, rows, order, 0);
        b += b_row;
        HIDE_POINTER(b);
#pragma GCC unroll 5
        for (int q = 0; q < pointer_count; q++) {
            a[q] += order == TGI_A_ALONG_K ? 1 : a_stride;
            HIDE_POINTER(a[q]);
        }
    }
    if (!t->is_plain) {
        const ACC(vec) alpha = ACC(set)((ACC(elem))alpha_value);
        const ACC(vec) beta = ACC(set)((ACC(elem))beta_value);
        const int has_c = beta_value != 0.0;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
            TGI_COMBINE(accum[i], ACC(mul), ACC(fma), alpha, accum[i], has_c, beta,
                        ACC(load_some)(c + i * c_row, cols));
        if (t->bias != TG_BIAS_NONE) { /* the sum is rounded once, as of an addition */
            const ACC(vec) one = ACC(set)(1);
            const int is_by_row = t->bias == TG_BIAS_ROW;
            const ACC(vec) bias_row = ACC(load_some)(bias, is_by_row ? 0 : cols);
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++)
                accum[i] = ACC(fma)(one, is_by_row ? ACC(broadcast)(bias + i) : bias_row, accum[i]);
        }
        if (t->activation == TG_ACTIVATION_RELU) {
            const ACC(vec) zero = ACC(zero)();
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++)
                accum[i] = ACC(max)(zero, accum[i]); /* the second one if it is NaN or -0 */
        }
    }
#pragma GCC unroll 14
    for (int i = 0; i < rows; i++)
        ACC(store_some)(d + i * d_row, accum[i], cols);
}

#define CHOOSE_BODY(rows, order) TILE(narrow_tile)(t, a, b, c, d, bias, alpha, beta, rows, order)
