/*
 * The epilogue turns sums into D over rows of a block. This file is included once for each
 * instruction set and accumulator type (ACC_NAME), see names.h. The compiler vectorizes the loops.
 */
#include "core/epilogue.h"
#include "cpu/names.h"

#define FINISH_COLS 32 /* columns that are finished at once, in a local row; stacks are small */
#define LATE_ROWS (512 / FINISH_COLS / (int)sizeof(ACC(elem))) /* rows of them, if there are more */

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

/* Steps between a sum and D that vectors take on their way, where the elements of D and of C lie
 * side by side. */
typedef struct ACC_LOCAL(light_steps) {
    ACC(elem) alpha, beta;
    const void *c;          /* C has D's type; it is not read if beta is 0 */
    const ACC(elem) * bias; /* a value for each column, to whole vectors; NULL: none */
    int64_t c_row;
    int is_relu, is_none; /* is_none: D is the sums */
} ACC_LOCAL(light_steps);

INLINE ACC(vec)
    ACC_LOCAL(take_steps)(ACC(vec) sum, ACC(vec) c, const ACC_LOCAL(light_steps) * steps, int64_t j)
{
    TGI_COMBINE(sum, ACC(mul), ACC(fma), ACC(set)(steps->alpha), sum, steps->beta != 0,
                ACC(set)(steps->beta), c);
    if (steps->bias)
        sum = sum + ACC(load)(steps->bias + j);
    if (steps->is_relu)
        sum = ACC(max)(ACC(zero)(), sum); /* the second one if it is NaN or -0 */
    return sum;
}

/* Stores rows of accumulators as `type`. STEPS(sum, c, j) are those of column j, where D's elements
 * lie side by side; NO_STEPS leaves the sum. These are macros, because the element type and its
 * names change. */
#define WRITE_ROWS(type, element, has_c, STEPS)                                                    \
    const element *c = steps->c;                                                                   \
    for (element *values = target; rows > 0; rows--, values += target_row, sums += sums_row) {     \
        int64_t j = 0;                                                                             \
        for (; stride == 1 && j + VECTOR_ELEMS <= cols; j += VECTOR_ELEMS)                         \
            type##_store(values + j,                                                               \
                         STEPS(ACC(load)(sums + j), has_c ? type##_load(c + j) : ACC(zero)(), j)); \
        const int left = (int)(cols - j);                                                          \
        if (stride == 1 && left > 0)                                                               \
            type##_store_some(values + j,                                                          \
                              STEPS(ACC(load_some)(sums + j, left),                                \
                                    has_c ? type##_load_some(c + j, left) : ACC(zero)(), j),       \
                              left);                                                               \
        for (j = 0; stride != 1 && j < cols; j++)                                                  \
            type##_store_some(values + j * stride, ACC(set)(sums[j]), 1);                          \
        c = has_c ? c + steps->c_row : c;                                                          \
    }
#define NO_STEPS(sum, c, j) (sum)
#define SOME_STEPS(sum, c, j) ACC_LOCAL(take_steps)(sum, c, steps, j)
#define WRITE_TYPE(type, element)                                                                  \
    do {                                                                                           \
        if (steps->is_none) {                                                                      \
            WRITE_ROWS(type, element, 0, NO_STEPS)                                                 \
        } else {                                                                                   \
            WRITE_ROWS(type, element, steps->beta != 0, SOME_STEPS)                                \
        }                                                                                          \
    } while (0)

#if ACC_IS_FP32
/* Writes rows of FP8. The frame of this loop is large, and few calls need it. One conversion serves
 * both types, with the numbers of tgi_e4m3_from_fp32 and tgi_e5m2_from_fp32. */
static __attribute__((noinline)) TARGET void
ACC_LOCAL(write_fp8_rows)(uint8_t *target, int64_t target_row, const float *sums, int64_t sums_row,
                          int64_t rows, int64_t cols, int64_t stride, tg_type type)
{
    const int is_e4m3 = type == TG_TYPE_FP8_E4M3;
    const uint32_t fraction_bits = is_e4m3 ? 3u : 2u, bias = is_e4m3 ? 7u : 15u;
    const uint32_t largest = is_e4m3 ? 0x7eu : 0x7bu;
    for (; rows > 0; rows--, target += target_row, sums += sums_row)
        for (int64_t j = 0; j < cols; j++)
            target[j * stride] = tgi_fp8_from_fp32(sums[j], fraction_bits, bias, largest);
}
#endif

/* Writes `cols` elements, `stride` apart, of each row. */
static TARGET void ACC_LOCAL(write_rows)(void *target, int64_t target_row, const ACC(elem) * sums,
                                         int64_t sums_row, int64_t rows, int64_t cols,
                                         int64_t stride, tg_type type,
                                         const ACC_LOCAL(light_steps) * steps)
{
#if ACC_IS_FP32
    if (type == TG_TYPE_BF16) {
        WRITE_TYPE(bf16, uint16_t);
        return;
    }
    if (type == TG_TYPE_FP16) {
        WRITE_TYPE(fp16, uint16_t);
        return;
    }
    if (type == TG_TYPE_FP8_E4M3 || type == TG_TYPE_FP8_E5M2) {
        ACC_LOCAL(write_fp8_rows)(target, target_row, sums, sums_row, rows, cols, stride, type);
        return;
    }
#else
    (void)type;
#endif
    /* Elements that lie apart are stored one by one, because a masked store takes longer. */
    if (stride != 1) {
        for (ACC(elem) *values = target; rows > 0; rows--, values += target_row, sums += sums_row)
            for (int64_t j = 0; j < cols; j++)
                values[j * stride] = sums[j];
        return;
    }
#if ACC_IS_FP32
    WRITE_TYPE(fp32, float);
#else
    WRITE_TYPE(fp64, double);
#endif
}

static TARGET void ACC_LOCAL(write_row)(void *target, const ACC(elem) * row, int64_t cols,
                                        int64_t stride, tg_type type)
{
    const ACC_LOCAL(light_steps) none = {.is_none = 1};
    ACC_LOCAL(write_rows)(target, 0, row, 0, 1, cols, stride, type, &none);
}

#undef WRITE_ROWS
#undef WRITE_TYPE
#undef NO_STEPS
#undef SOME_STEPS

/* Each call below has a constant `kind` and a constant `is_narrow`, which says that D has 16 or 8
 * bits, so that each loop is vectorized for its activation. The last columns of a row are computed
 * as a whole vector. */
static inline __attribute__((always_inline)) TARGET void
ACC_LOCAL(activate_rows)(ACC(elem) * row, int64_t rows, int64_t cols, int64_t row_elems,
                         const tg_activation kind, const int is_narrow)
{
    (void)is_narrow;
    for (; rows > 0; rows--, row += row_elems)
        for (int64_t j = 0; j < cols; j += VECTOR_ELEMS) {
            const int is_whole = j + VECTOR_ELEMS <= cols;
            const int left = is_whole ? VECTOR_ELEMS : (int)(cols - j);
            ACC(elem) part[VECTOR_ELEMS];
            ACC(store)(part, is_whole ? ACC(load)(row + j) : ACC(load_some)(row + j, left));
            for (int i = 0; i < VECTOR_ELEMS; i++)
#if ACC_IS_FP32
                part[i] = is_narrow ? tgi_activate_narrow(part[i], kind)
                                    : tgi_activate_fp32(part[i], kind);
#else
                part[i] = tgi_activate_fp64(part[i], kind);
#endif
            if (is_whole)
                ACC(store)(row + j, ACC(load)(part));
            else
                ACC(store_some)(row + j, ACC(load)(part), left);
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

/* Reads the bias of `cols` columns from `col` on, or that of row i. */
static TARGET void ACC_LOCAL(read_bias)(ACC(elem) * values, const tgi_finish *f, int64_t i,
                                        int64_t col, int64_t cols)
{
    const tgi_problem *p = f->problem;
    const int is_by_row = p->epilogue.bias == TG_BIAS_ROW;
    const char *bias = (const char *)f->bias + (is_by_row ? i : col) * tgi_type_bytes(p->d_type);
    ACC_LOCAL(read_row)(values, bias, is_by_row ? 1 : cols, 1, p->d_type);
    for (int64_t j = 1; is_by_row && j < cols; j++)
        values[j] = values[0];
}

/* Finishes columns col .. col + cols - 1 of row i, at most FINISH_COLS. `bias` holds theirs. */
static TARGET void ACC_LOCAL(finish_row)(const tgi_finish *f, int64_t i, int64_t col, int64_t cols,
                                         const ACC(elem) * bias)
{
    const tgi_problem *p = f->problem;
    const tgi_epilogue *e = &p->epilogue;
    const int64_t bytes = tgi_type_bytes(p->d_type);
    const ACC(elem) factor = f->is_first ? (ACC(elem))e->beta : 1;
    const ACC(elem) *sums = (const ACC(elem) *)f->sums + i * f->sums_row + col;
    ACC(elem) *running = (ACC(elem) *)f->running + i * f->running_row + col;
    const int is_scaled = f->a_scale || f->b_scale;
    /* Vectors reach behind the last column, where no factor may raise an exception. */
    ACC(elem) row[FINISH_COLS] = {0}, c[FINISH_COLS] = {0}, alphas[FINISH_COLS] = {0};
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
    for (int64_t j = 0; e->bias != TG_BIAS_NONE && j < cols; j++)
        row[j] = ACC_EPILOGUE(add_bias)(row[j], bias[j]);
    if (e->activation != TG_ACTIVATION_NONE)
        ACC_LOCAL(activate)(row, 1, cols, 0, e->activation, p->d_type);
#if ACC_IS_FP32 /* D has a scale only if it is FP8 */
    for (int64_t j = 0; f->d_scale && j < cols; j++)
        row[j] = tgi_scale_d_fp32(row[j], *f->d_scale);
#endif
    char *target = (char *)f->d + (i * p->d.row + col * p->d.col) * bytes;
    ACC_LOCAL(write_row)(target, row, cols, p->d.col, p->d_type);
}

/* Returns 1 if no accumulators lie between the products and D: neither running sums nor those of an
 * activation other than RELU. */
static int ACC_LOCAL(is_direct)(const tgi_finish *f)
{
    return f->is_first && f->is_last && f->problem->epilogue.activation <= TG_ACTIVATION_RELU;
}

/* Returns 1 if vectors take all steps from sums to D on their way. */
static int ACC_LOCAL(is_light)(const tgi_finish *f)
{
    const tgi_problem *p = f->problem;
    const tgi_epilogue *e = &p->epilogue;
    const unsigned known = 1u << TGI_OPERAND_c | 1u << TGI_OPERAND_bias;
    const int is_direct = ACC_LOCAL(is_direct)(f);
    if (is_direct && tgi_epilogue_is_sum_alone(e))
        return 1;
    if (!is_direct && !ACC_IS_FP32)
        return 0; /* a D of FP64 has room for running sums */
    if (!is_direct && f->is_first && e->beta != 0.0 && p->d_type != ACC_TYPE)
        return 0; /* accumulators on the way would take C for accumulators */
    return p->d.col == 1 && (e->beta == 0.0 || p->c.col == 1) && e->bias != TG_BIAS_ROW &&
           (p->d_type == ACC_TYPE || p->d_type == TG_TYPE_BF16 || p->d_type == TG_TYPE_FP16) &&
           (tgi_epilogue_find_used(e) & TGI_OPERANDS_EPILOGUE & ~known) == 0;
}

/* Finishes columns col .. col + cols - 1 of all rows by vectors. Running sums and activations other
 * than ReLU go through accumulators, FINISH_COLS columns at most. `bias` holds that of the columns,
 * or is NULL. */
static TARGET void ACC_LOCAL(finish_light)(const tgi_finish *f, int64_t col, int64_t cols,
                                           const ACC(elem) * bias)
{
    const tgi_problem *p = f->problem;
    const tgi_epilogue *e = &p->epilogue;
    const int64_t bytes = tgi_type_bytes(p->d_type);
    const ACC(elem) *sums = (const ACC(elem) *)f->sums + col;
    ACC(elem) *running = (ACC(elem) *)f->running + col;
    char *d = (char *)f->d + col * p->d.col * bytes;
    const int is_late = e->activation > TG_ACTIVATION_RELU;
    ACC_LOCAL(light_steps)
    steps = {.alpha = (ACC(elem))e->alpha,
             .beta = f->is_first ? (ACC(elem))e->beta : 1,
             .bias = f->is_last ? bias : NULL,
             .c_row = f->is_first ? p->c.row : f->running_row,
             .is_relu = f->is_last && e->activation == TG_ACTIVATION_RELU};
    if (steps.beta != 0)
        steps.c = f->is_first ? (const char *)f->c + col * bytes : (const char *)running;
    steps.is_none = steps.alpha == 1 && steps.beta == 0 && !steps.bias && !steps.is_relu;
    if ((f->is_first && f->is_last && !is_late) || !ACC_IS_FP32) {
        ACC_LOCAL(write_rows)
        (d, p->d.row, sums, f->sums_row, f->rows, cols, p->d.col, p->d_type, &steps);
        return;
    }
    if (!f->is_last) {
        ACC_LOCAL(write_rows)
        (running, f->running_row, sums, f->sums_row, f->rows, cols, 1, ACC_TYPE, &steps);
        return;
    }
    ACC(elem) block[LATE_ROWS * FINISH_COLS];
    const ACC_LOCAL(light_steps) none = {.is_none = 1};
    for (int64_t i = 0; i < f->rows; i += LATE_ROWS) {
        const int64_t rows = f->rows - i < LATE_ROWS ? f->rows - i : LATE_ROWS;
        ACC_LOCAL(write_rows)
        (block, FINISH_COLS, sums + i * f->sums_row, f->sums_row, rows, cols, 1, ACC_TYPE, &steps);
        if (is_late)
            ACC_LOCAL(activate)(block, rows, cols, FINISH_COLS, e->activation, p->d_type);
        ACC_LOCAL(write_rows)
        (d + i * p->d.row * bytes, p->d.row, block, FINISH_COLS, rows, cols, 1, p->d_type, &none);
        if (steps.c)
            steps.c = (const ACC(elem) *)steps.c + rows * steps.c_row;
    }
}

static TARGET void ACC_LOCAL(finish)(const tgi_finish *f)
{
    const tgi_problem *p = f->problem;
    const tgi_epilogue *e = &p->epilogue;
    const int is_light = ACC_LOCAL(is_light)(f), has_bias = e->bias != TG_BIAS_NONE;
    ACC(elem) bias[FINISH_COLS] = {0};
    /* Some columns of all rows are finished before the next ones, so that the lines of a D along
     * its columns stay in L1. */
    const int64_t most =
        is_light && ACC_LOCAL(is_direct)(f) && p->d.col == 1 && !has_bias ? f->cols : FINISH_COLS;
    for (int64_t col = 0; col < f->cols; col += most) {
        int64_t cols = f->cols - col < most ? f->cols - col : most;
        if (e->bias == TG_BIAS_COL)
            ACC_LOCAL(read_bias)(bias, f, 0, col, cols);
        if (is_light)
            ACC_LOCAL(finish_light)(f, col, cols, has_bias ? bias : NULL);
        for (int64_t i = 0; i < f->rows && !is_light; i++) {
            if (e->bias == TG_BIAS_ROW)
                ACC_LOCAL(read_bias)(bias, f, i, col, cols);
            ACC_LOCAL(finish_row)(f, i, col, cols, bias);
        }
    }
}

#undef LATE_ROWS
#undef FINISH_COLS
