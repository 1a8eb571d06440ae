/*
 * Applies the epilogue of wide tiles, for cpu/tile_body.h: in registers where its operations are
 * few, else through memory.
 */

/* Elements from row to row of sums in memory. Tiles of pairs and of AMX share these functions. */
#if HAS_BF16_D
#include <math.h>
#define SUMS_ROW(t) ((t)->sums_row)
#else
#define SUMS_ROW(t) (TILE_VECTORS * VECTOR_ELEMS)
#endif

/* Loads the vector v of a row of a tile; the last one may be partial. */
#define LOAD_VECTOR(pointer, v)                                                                    \
    ((v) == vectors - 1 && !is_whole ? ACC(load_some)((pointer), last_cols) : ACC(load)(pointer))

/* Finishes one vector of each row, of `cols` columns. The pointers are those of the first row. */
static inline __attribute__((always_inline)) TARGET void
TILE(finish_vectors)(const tgi_tile *t, ACC(elem) * d, const ACC(elem) * c, const ACC(elem) * sums,
                     const ACC(elem) * bias, int rows, int cols, double alpha_value,
                     double beta_value, const int is_whole)
{
    const ACC(vec) one = ACC(set)(1);
    const ACC(vec) alpha = ACC(set)((ACC(elem))alpha_value);
    const ACC(vec) beta = ACC(set)((ACC(elem))beta_value);
    const int has_c = beta_value != 0.0, has_bias = t->bias != TG_BIAS_NONE;
    const int is_streamed = t->is_streamed, is_by_row = t->bias == TG_BIAS_ROW;
    ACC(vec) added = ACC(zero)();
    if (has_bias && !is_by_row)
        added = is_whole ? ACC(load)(bias) : ACC(load_some)(bias, cols);
    for (int i = 0; i < rows; i++) {
        ACC(vec) sum;
        /* Behind the columns of AMX are any bits, whose sums could raise flags of the processor. */
        const ACC(vec) product = is_whole ? ACC(load)(sums) : ACC(load_some)(sums, cols);
        TGI_COMBINE(sum, ACC(mul), ACC(fma), alpha, product, has_c, beta,
                    is_whole ? ACC(load)(c) : ACC(load_some)(c, cols));
        if (has_bias && is_by_row)
            added = ACC(set)(bias[i]);
        if (has_bias) /* the sum is rounded once, as of an addition */
            sum = ACC(fma)(one, added, sum);
        if (!is_whole)
            ACC(store_some)(d, sum, cols);
        else if (is_streamed)
            ACC(stream)(d, sum);
        else
            ACC(store)(d, sum);
        sums += SUMS_ROW(t);
        c += t->c_row;
        d += t->d_row;
    }
}

#if HAS_BF16_D
/* Rounds sums in memory to BF16, with at most ReLU before, two vectors at once where a row has
 * them. */
static inline TARGET void TILE(round_sums)(const tgi_tile *t, uint16_t *d, const ACC(elem) * sums,
                                           int rows)
{
    /* A sum that is NaN or equals the least one is the second operand, and stays. */
    const ACC(vec) least = ACC(set)(t->activation == TG_ACTIVATION_RELU ? 0.0F : -INFINITY);
    const int64_t d_row = t->d_row, sums_row = SUMS_ROW(t);
    const int cols = t->cols, pair = 2 * VECTOR_ELEMS;
    int j = 0;
    for (; j + pair <= cols; j += pair)
        for (int i = 0; i < rows; i++) {
            const ACC(elem) *from = sums + i * sums_row + j;
            const ACC(vec) first = ACC(max)(least, ACC(load)(from));
            const ACC(vec) second = ACC(max)(least, ACC(load)(from + VECTOR_ELEMS));
            IN(round_two)(d + i * d_row + j, first, second);
        }
    for (; j < cols; j += VECTOR_ELEMS) {
        const int left = cols - j < VECTOR_ELEMS ? cols - j : VECTOR_ELEMS;
        for (int i = 0; i < rows; i++) {
            const ACC(vec) sum = ACC(load_some)(sums + i * sums_row + j, left);
            IN(round_some)(d + i * d_row + j, ACC(max)(least, sum), left);
        }
    }
}

/* Takes the steps of a vector of each row before D is rounded, on sums in memory. The pointers are
 * those of the first row, of which `cols` columns count. Returns 1 if results are subnormal. */
static inline TARGET int TILE(take_bf16_steps)(const tgi_tile *t, const uint16_t *c,
                                               ACC(elem) * sums, const uint16_t *bias, int rows,
                                               int cols, double alpha_value, double beta_value)
{
    const ACC(vec) alpha = ACC(set)((ACC(elem))alpha_value);
    const ACC(vec) beta = ACC(set)((ACC(elem))beta_value);
    /* To add -0 changes no sum but the sign of a zero where the caller rounds down. */
    const ACC(vec) added = t->bias != TG_BIAS_NONE ? bf16_load_some(bias, cols) : ACC(set)(-0.0F);
    const int has_c = beta_value != 0.0;
    int subnormal_lanes = 0;
    for (; rows > 0; rows--, sums += SUMS_ROW(t), c += t->c_row) {
        ACC(vec) sum;
        TGI_COMBINE(sum, ACC(mul), ACC(fma), alpha, ACC(load_some)(sums, cols), has_c, beta,
                    bf16_load_some(c, cols));
        sum = sum + added;
        subnormal_lanes |= IN(find_subnormal)(sum);
        ACC(store)(sums, sum);
    }
    return (subnormal_lanes & ((1 << cols) - 1)) != 0;
}

/* Does what finish_tile does, for a D, a C and a bias by columns of BF16. The sums are lost. The
 * instruction that rounds takes subnormal numbers as zero. Sums of products are never subnormal,
 * and after other steps a tile that has such numbers is rounded by other operations. */
static __attribute__((noinline)) TARGET void TILE(finish_bf16)(const tgi_tile *t, uint16_t *d,
                                                               const uint16_t *c, ACC(elem) * sums,
                                                               const uint16_t *bias, int rows,
                                                               double alpha, double beta)
{
    const int sums_row = SUMS_ROW(t);
    const ACC_LOCAL(light_steps) relu = {.alpha = 1, .is_relu = 1}, none = {.is_none = 1};
    int has_subnormal = 0;
    for (int j = 0; t->is_by_memory && j < t->cols; j += VECTOR_ELEMS) {
        const int left = t->cols - j, cols = left < VECTOR_ELEMS ? left : VECTOR_ELEMS;
        has_subnormal |=
            TILE(take_bf16_steps)(t, c + j, sums + j, bias + j, rows, cols, alpha, beta);
    }
    if (t->activation > TG_ACTIVATION_RELU) {
        ACC_LOCAL(activate)(sums, rows, t->cols, sums_row, t->activation, TG_TYPE_BF16);
        has_subnormal = 1;
    }
    if (has_subnormal)
        ACC_LOCAL(write_rows)
    (d, t->d_row, sums, sums_row, rows, t->cols, 1, TG_TYPE_BF16,
     t->activation == TG_ACTIVATION_RELU ? &relu : &none);
    else TILE(round_sums)(t, d, sums, rows);
}
#endif

/* Applies the whole epilogue to sums in memory, TILE_VECTORS vectors a row, and stores them to D.
 * One function serves tiles of all sizes: unrolled beside each of them it would be a third of the
 * code. */
static __attribute__((noinline)) TARGET void
TILE(finish_tile)(const tgi_tile *t, ACC(elem) * d, const ACC(elem) * c, ACC(elem) * sums,
                  const ACC(elem) * bias, int rows, double alpha, double beta)
{
    const tg_type type = sizeof(ACC(elem)) == 4 ? TG_TYPE_FP32 : TG_TYPE_FP64;
    const int bias_stride = t->bias == TG_BIAS_COL ? VECTOR_ELEMS : 0;
    ACC(elem) *first = d;
    int left = t->cols;
#if HAS_BF16_D
    if (t->is_bf16) {
        TILE(finish_bf16)
        (t, (void *)d, (const void *)c, sums, (const void *)bias, rows, alpha, beta);
        return;
    }
#endif
    for (; left >= VECTOR_ELEMS; left -= VECTOR_ELEMS) {
        TILE(finish_vectors)(t, d, c, sums, bias, rows, VECTOR_ELEMS, alpha, beta, 1);
        d += VECTOR_ELEMS;
        c += VECTOR_ELEMS;
        sums += VECTOR_ELEMS;
        bias += bias_stride;
    }
    if (left > 0)
        TILE(finish_vectors)(t, d, c, sums, bias, rows, left, alpha, beta, 0);
    if (t->activation != TG_ACTIVATION_NONE)
        ACC_LOCAL(activate)(first, rows, t->cols, t->d_row, t->activation, type);
}

/* Applies to sums in registers what most epilogues have: C, a bias by columns, ReLU. */
static inline __attribute__((always_inline)) TARGET void
TILE(finish_registers)(const tgi_tile *t, const ACC(elem) * c, const ACC(elem) * bias,
                       double beta_value, ACC(vec) (*accum)[TILE_VECTORS], const int rows,
                       const int vectors, const int is_whole)
{
    const int last_cols = t->cols - (vectors - 1) * VECTOR_ELEMS;
    const ACC(vec) one = ACC(set)(1), zero = ACC(zero)();
    if (beta_value != 0.0) {
        const ACC(vec) beta = ACC(set)((ACC(elem))beta_value);
        const int64_t c_row = t->c_row;
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                accum[i][v] =
                    ACC(fma)(beta, LOAD_VECTOR(c + i * c_row + v * VECTOR_ELEMS, v), accum[i][v]);
    }
    if (t->bias == TG_BIAS_COL) {
#pragma GCC unroll 3
        for (int v = 0; v < vectors; v++) {
            const ACC(vec) added = LOAD_VECTOR(bias + v * VECTOR_ELEMS, v);
#pragma GCC unroll 14
            for (int i = 0; i < rows; i++) /* the sum is rounded once, as of an addition */
                accum[i][v] = ACC(fma)(one, added, accum[i][v]);
        }
    }
    if (t->activation == TG_ACTIVATION_RELU) {
#pragma GCC unroll 14
        for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
            for (int v = 0; v < vectors; v++)
                accum[i][v] = ACC(max)(zero, accum[i][v]); /* the second one if it is NaN or -0 */
    }
}

/* Prefetches C of a tile. */
static __attribute__((noinline)) TARGET void TILE(prefetch_c)(const tgi_tile *t,
                                                              const ACC(elem) * c, int rows)
{
    KEEP_CALLS();
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < t->cols; j += VECTOR_ELEMS)
            __builtin_prefetch(D_AT(c, i * t->c_row + j));
}

#undef LOAD_VECTOR
#undef SUMS_ROW
