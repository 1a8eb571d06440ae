/*
 * The epilogue turns sums into D over rows of a block. This file is included once for each
 * instruction set and accumulator type (ACC_NAME), see names.h. The compiler vectorizes the loops.
 */
#include "core/epilogue.h"
#include "cpu/names.h"

#define FINISH_COLS 64 /* columns that are finished at once, in a local row */

/* Reads `cols` elements of a type that D may have, `stride` elements apart. */
static TARGET void ACC_LOCAL(read_row)(ACC(elem) * row, const void *source, int64_t cols,
                                       int64_t stride, tg_type type)
{
    const uint16_t *bits = source;
    const uint8_t *fp8 = source;
    switch (type) {
    case TG_TYPE_BF16:
        for (int64_t j = 0; j < cols; j++)
            row[j] = tgi_fp32_from_bf16(bits[j * stride]);
        break;
    case TG_TYPE_FP16:
        for (int64_t j = 0; j < cols; j++)
            row[j] = tgi_fp32_from_fp16(bits[j * stride]);
        break;
    case TG_TYPE_FP8_E4M3:
        for (int64_t j = 0; j < cols; j++)
            row[j] = tgi_fp32_from_e4m3(fp8[j * stride]);
        break;
    case TG_TYPE_FP8_E5M2:
        for (int64_t j = 0; j < cols; j++)
            row[j] = tgi_fp32_from_e5m2(fp8[j * stride]);
        break;
    default: /* the accumulator's own type */
        for (int64_t j = 0; j < cols; j++)
            row[j] = ((const ACC(elem) *)source)[j * stride];
    }
}

/* Stores a row of accumulators as `type`. It is a macro, because the element type and its names
 * change. */
#define WRITE_ROW(type, element)                                                                   \
    do {                                                                                           \
        element *values = target;                                                                  \
        int64_t j = 0;                                                                             \
        for (; stride == 1 && j + VECTOR_ELEMS <= cols; j += VECTOR_ELEMS)                         \
            type##_store(values + j, ACC(load)(row + j));                                          \
        if (stride == 1 && j < cols)                                                               \
            type##_store_some(values + j, ACC(load_some)(row + j, (int)(cols - j)),                \
                              (int)(cols - j));                                                    \
        for (j = 0; stride != 1 && j < cols; j++)                                                  \
            type##_store_some(values + j * stride, ACC(set)(row[j]), 1);                           \
    } while (0)

/* Writes `cols` elements of a row. */
static TARGET void ACC_LOCAL(write_row)(void *target, const ACC(elem) * row, int64_t cols,
                                        int64_t stride, tg_type type)
{
#if ACC_IS_FP32
    if (type == TG_TYPE_BF16) {
        WRITE_ROW(bf16, uint16_t);
        return;
    }
    if (type == TG_TYPE_FP16) {
        WRITE_ROW(fp16, uint16_t);
        return;
    }
    uint8_t *fp8 = target;
    if (type == TG_TYPE_FP8_E4M3) {
        for (int64_t j = 0; j < cols; j++)
            fp8[j * stride] = tgi_e4m3_from_fp32(row[j]);
        return;
    }
    if (type == TG_TYPE_FP8_E5M2) {
        for (int64_t j = 0; j < cols; j++)
            fp8[j * stride] = tgi_e5m2_from_fp32(row[j]);
        return;
    }
#else
    (void)type;
#endif
    /* Elements that lie apart are stored one by one, because a masked store takes longer. */
    if (stride != 1) {
        for (int64_t j = 0; j < cols; j++)
            ((ACC(elem) *)target)[j * stride] = row[j];
        return;
    }
#if ACC_IS_FP32
    WRITE_ROW(fp32, float);
#else
    WRITE_ROW(fp64, double);
#endif
}

#undef WRITE_ROW

/* Each call below has a constant `kind` and a constant `is_narrow`, which says that D has 16 or 8
 * bits, so that each loop is vectorized for its activation. The last columns of a row are computed
 * as a whole vector. FP64 calls the functions of libm, element by element. */
static inline __attribute__((always_inline)) TARGET void
ACC_LOCAL(activate_rows)(ACC(elem) * row, int64_t rows, int64_t cols, int64_t row_elems,
                         const tg_activation kind, const int is_narrow)
{
    for (; rows > 0; rows--, row += row_elems) {
#if ACC_IS_FP32
        for (int64_t j = 0; j < cols; j += VECTOR_ELEMS) {
            const int is_whole = j + VECTOR_ELEMS <= cols;
            const int left = is_whole ? VECTOR_ELEMS : (int)(cols - j);
            float part[VECTOR_ELEMS];
            fp32_store(part, is_whole ? fp32_load(row + j) : fp32_load_some(row + j, left));
            for (int i = 0; i < VECTOR_ELEMS; i++)
                part[i] = is_narrow ? tgi_activate_narrow(part[i], kind)
                                    : tgi_activate_fp32(part[i], kind);
            if (is_whole)
                fp32_store(row + j, fp32_load(part));
            else
                fp32_store_some(row + j, fp32_load(part), left);
        }
#else
        (void)is_narrow;
        for (int64_t j = 0; j < cols; j++)
            row[j] = tgi_activate_fp64(row[j], kind);
#endif
    }
}

static inline __attribute__((always_inline)) TARGET void
ACC_LOCAL(activate_kind)(ACC(elem) * row, int64_t rows, int64_t cols, int64_t row_elems,
                         tg_activation kind, const int is_narrow)
{
    switch (kind) {
    case TG_ACTIVATION_NONE:
        break;
    case TG_ACTIVATION_RELU:
        ACC_LOCAL(activate_rows)(row, rows, cols, row_elems, TG_ACTIVATION_RELU, is_narrow);
        break;
    case TG_ACTIVATION_GELU_ERF:
        ACC_LOCAL(activate_rows)(row, rows, cols, row_elems, TG_ACTIVATION_GELU_ERF, is_narrow);
        break;
    case TG_ACTIVATION_GELU_TANH:
        ACC_LOCAL(activate_rows)(row, rows, cols, row_elems, TG_ACTIVATION_GELU_TANH, is_narrow);
        break;
    case TG_ACTIVATION_SILU:
        ACC_LOCAL(activate_rows)(row, rows, cols, row_elems, TG_ACTIVATION_SILU, is_narrow);
        break;
    }
}

/* Applies the activation to sums on their way to a D of `d_type`, see tgi_activate_fn. */
static TARGET void ACC_LOCAL(activate)(void *sums, int64_t rows, int64_t cols, int64_t row_elems,
                                       tg_activation kind, tg_type d_type)
{
    if (d_type == ACC_TYPE)
        ACC_LOCAL(activate_kind)(sums, rows, cols, row_elems, kind, 0);
    else
        ACC_LOCAL(activate_kind)(sums, rows, cols, row_elems, kind, 1);
}

/* Fills alphas with alpha times the scales of row i and of each column. */
static TARGET void ACC_LOCAL(scale_alpha)(ACC(elem) * alphas, const tgi_finish *f, int64_t i,
                                          int64_t col, int64_t cols)
{
    const tgi_epilogue *e = &f->problem->epilogue;
    const float alpha = (float)e->alpha;
    const float scale_a = f->a_scale ? f->a_scale[e->a_scale == TG_SCALE_VECTOR ? i : 0] : 1.0f;
    for (int64_t j = 0; j < cols; j++) {
        int64_t index = e->b_scale == TG_SCALE_VECTOR ? col + j : 0;
        alphas[j] = tgi_scale_alpha_fp32(alpha, scale_a, f->b_scale ? f->b_scale[index] : 1.0f);
    }
}

/* Applies the epilogue up to C to one row. `c` holds C or the running sum. `alphas` holds one value
 * a column, or is NULL if one alpha serves all. Row, alphas and c have FINISH_COLS elements, the
 * sums only cols. */
static TARGET void ACC_LOCAL(combine_row)(ACC(elem) * row, const ACC(elem) * sums, ACC(elem) alpha,
                                          const ACC(elem) * alphas, ACC(elem) factor,
                                          const ACC(elem) * c, int64_t cols)
{
    const ACC(vec) c_scale = ACC(set)(factor);
    for (int64_t j = 0; j < cols; j += VECTOR_ELEMS) {
        int is_whole = j + VECTOR_ELEMS <= cols;
        ACC(vec) sum = is_whole ? ACC(load)(sums + j) : ACC(load_some)(sums + j, (int)(cols - j));
        TGI_COMBINE(sum, ACC(mul), ACC(fma), alphas ? ACC(load)(alphas + j) : ACC(set)(alpha), sum,
                    factor != 0, c_scale, ACC(load)(c + j));
        ACC(store)(row + j, sum);
    }
}

static TARGET void ACC_LOCAL(add_bias)(ACC(elem) * row, const tgi_finish *f, int64_t i, int64_t col,
                                       int64_t cols)
{
    const tgi_problem *p = f->problem;
    const char *bias = f->bias;
    int64_t bytes = tgi_type_bytes(p->d_type);
    ACC(elem) values[FINISH_COLS];
    if (p->epilogue.bias == TG_BIAS_ROW) {
        ACC_LOCAL(read_row)(values, bias + i * bytes, 1, 1, p->d_type);
        for (int64_t j = 0; j < cols; j++)
            row[j] = ACC_EPILOGUE(add_bias)(row[j], values[0]);
    } else {
        ACC_LOCAL(read_row)(values, bias + col * bytes, cols, 1, p->d_type);
        for (int64_t j = 0; j < cols; j++)
            row[j] = ACC_EPILOGUE(add_bias)(row[j], values[j]);
    }
}

/* Finishes columns col .. col + cols - 1 of row i, at most FINISH_COLS. */
static TARGET void ACC_LOCAL(finish_row)(const tgi_finish *f, int64_t i, int64_t col, int64_t cols)
{
    const tgi_problem *p = f->problem;
    const tgi_epilogue *e = &p->epilogue;
    const int64_t bytes = tgi_type_bytes(p->d_type);
    const ACC(elem) factor = f->is_first ? (ACC(elem))e->beta : 1;
    const ACC(elem) *sums = (const ACC(elem) *)f->sums + i * f->sums_row + col;
    ACC(elem) *running = (ACC(elem) *)f->running + i * f->running_row + col;
    const int is_scaled = f->a_scale || f->b_scale;
    ACC(elem) row[FINISH_COLS], c[FINISH_COLS], alphas[FINISH_COLS];
    if (f->is_first && factor != 0) {
        const char *source = (const char *)f->c + (i * p->c.row + col * p->c.col) * bytes;
        ACC_LOCAL(read_row)(c, source, cols, p->c.col, p->d_type);
    } else if (!f->is_first) {
        ACC_LOCAL(read_row)(c, running, cols, 1, ACC_TYPE);
    }
    if (is_scaled)
        ACC_LOCAL(scale_alpha)(alphas, f, i, col, cols);
    ACC_LOCAL(combine_row)
    (row, sums, (ACC(elem))e->alpha, is_scaled ? alphas : NULL, factor, c, cols);
    if (!f->is_last) {
        ACC_LOCAL(write_row)(running, row, cols, 1, ACC_TYPE);
        return;
    }
    if (e->bias != TG_BIAS_NONE)
        ACC_LOCAL(add_bias)(row, f, i, col, cols);
    if (e->activation != TG_ACTIVATION_NONE)
        ACC_LOCAL(activate)(row, 1, cols, 0, e->activation, p->d_type);
#if ACC_IS_FP32 /* D has a scale only if it is FP8 */
    for (int64_t j = 0; f->d_scale && j < cols; j++)
        row[j] = tgi_scale_d_fp32(row[j], *f->d_scale);
#endif
    char *target = (char *)f->d + (i * p->d.row + col * p->d.col) * bytes;
    ACC_LOCAL(write_row)(target, row, cols, p->d.col, p->d_type);
}

static TARGET void ACC_LOCAL(finish)(const tgi_finish *f)
{
    const tgi_problem *p = f->problem;
    const int64_t bytes = tgi_type_bytes(p->d_type);
    const int is_sum_alone = f->is_first && f->is_last && tgi_epilogue_is_sum_alone(&p->epilogue);
    /* Some columns of all rows are finished before the next ones, so that the lines of a D along
     * its columns stay in L1. */
    for (int64_t col = 0; col < f->cols; col += FINISH_COLS) {
        int64_t cols = f->cols - col < FINISH_COLS ? f->cols - col : FINISH_COLS;
        for (int64_t i = 0; i < f->rows; i++) {
            if (is_sum_alone)
                ACC_LOCAL(write_row)
            ((char *)f->d + (i * p->d.row + col * p->d.col) * bytes,
             (const ACC(elem) *)f->sums + i * f->sums_row + col, cols, p->d.col, p->d_type);
            else ACC_LOCAL(finish_row)(f, i, col, cols);
        }
    }
}

#undef FINISH_COLS
