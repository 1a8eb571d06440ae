/* VALIDATE: from the caller's problem to the canonical one, or an error that names the argument. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"
#include "core/status.h"

typedef long long ll; /* for printf */

/* Columns from which a problem with few rows (or the reverse) counts as skinny. */
#define SKINNY_LENGTH 64
#define SKINNY_DEPTH 256

static tg_status check_enums(const tg_problem *p)
{
    const struct {
        const char *name;
        const char *text; /* NULL: outside its enum */
        int value;
    } checks[] = {
        {"a.type", tg_get_type_name(p->a.type), (int)p->a.type},
        {"b.type", tg_get_type_name(p->b.type), (int)p->b.type},
        {"d.type", tg_get_type_name(p->d.type), (int)p->d.type},
        {"precision", tg_get_precision_name(p->precision), (int)p->precision},
        {"bias", tg_get_bias_name(p->bias), (int)p->bias},
        {"activation", tg_get_activation_name(p->activation), (int)p->activation},
        {"a_scale", tg_get_scale_name(p->a_scale), (int)p->a_scale},
        {"b_scale", tg_get_scale_name(p->b_scale), (int)p->b_scale},
        {"d_scale", tg_get_scale_name(p->d_scale), (int)p->d_scale},
    };
    for (size_t i = 0; i < sizeof checks / sizeof checks[0]; i++) {
        if (!checks[i].text) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s = %d is not a value of its enum; pass one of tilegemm.h",
                                   checks[i].name, checks[i].value);
        }
    }
    if ((unsigned)p->op_a > TG_OPERATION_TRANSPOSE || (unsigned)p->op_b > TG_OPERATION_TRANSPOSE) {
        int is_a = (unsigned)p->op_a > TG_OPERATION_TRANSPOSE;
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %d; pass TG_OPERATION_NONE or TG_OPERATION_TRANSPOSE",
                               is_a ? "op_a" : "op_b", (int)(is_a ? p->op_a : p->op_b));
    }
    return TG_STATUS_OK;
}

/* Writes the names of a set of types, "fp32, bf16 or fp16". */
static void write_type_names(unsigned types, char *text, size_t text_bytes)
{
    size_t length = 0;
    text[0] = '\0';
    for (unsigned type = 0; types; types &= ~(1u << type++)) {
        if (!(types >> type & 1u))
            continue;
        const int is_last = types == 1u << type;
        const char *joint = length == 0 ? "" : is_last ? " or " : ", ";
        length += (size_t)snprintf(text + length, text_bytes - length, "%s%s", joint,
                                   tgi_type_table[type].name);
        if (length >= text_bytes)
            return;
    }
}

static tg_status check_precision(const tg_problem *p)
{
    const tg_type type = p->a.type;
    const unsigned types = tgi_precision_table[p->precision].types;
    char names[80];
    if (p->precision == TG_PRECISION_IEEE_FP32 && type == TG_TYPE_FP64) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "precision = ieee_fp32 would round fp64 inputs; pass default or "
                               "ieee_fp64, or convert the matrices");
    }
    if (!tgi_type_is_in(type, types)) {
        write_type_names(types, names, sizeof names);
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "precision = %s needs %s inputs, these are %s; convert them or pass default",
            tg_get_precision_name(p->precision), names, tg_get_type_name(type));
    }
    return TG_STATUS_OK;
}

static tg_status check_scales(const tg_problem *p)
{
    const char *name = p->a_scale ? "a_scale" : "b_scale";
    if ((p->a_scale || p->b_scale) && !tgi_type_is_fp8(p->a.type)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %s with %s inputs; only fp8 has scales: pass none, and a "
                               "factor as alpha",
                               name, tg_get_scale_name(p->a_scale ? p->a_scale : p->b_scale),
                               tg_get_type_name(p->a.type));
    }
    if (p->d_scale && (!tgi_type_is_fp8(p->d.type) || p->d_scale == TG_SCALE_VECTOR)) {
        int is_fp8 = tgi_type_is_fp8(p->d.type);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "d_scale = %s with %s = %s; pass %s",
                               tg_get_scale_name(p->d_scale), "d.type", tg_get_type_name(p->d.type),
                               is_fp8 ? "tensor or none" : "none, and a factor as alpha");
    }
    return TG_STATUS_OK;
}

static tg_status check_types(const tg_problem *p)
{
    tg_type type = p->a.type, d_type = p->d.type;
    const unsigned d_types = tgi_type_table[type].d_types;
    char names[80];
    if (p->b.type != type && !(tgi_type_is_fp8(type) && tgi_type_is_fp8(p->b.type))) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "b.type = %s differs from a.type = %s; convert one of them",
                               tg_get_type_name(p->b.type), tg_get_type_name(type));
    }
    if (!tgi_type_is_in(d_type, d_types)) {
        write_type_names(d_types, names, sizeof names);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "d.type = %s with %s inputs; pass d.type %s",
                               tg_get_type_name(d_type), tg_get_type_name(type), names);
    }
    if (p->beta != 0.0 && p->c.type != d_type) {
        const char *name = tg_get_type_name(p->c.type);
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "c.type = %s differs from d.type = %s; convert C or pass beta = 0",
                               name ? name : "(unknown)", tg_get_type_name(d_type));
    }
    if (p->is_batch_invariant != 0 && p->is_batch_invariant != 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "is_batch_invariant = %d; pass 0 or 1",
                               p->is_batch_invariant);
    }
    return TG_STATUS_OK;
}

static tg_status check_counts(const char *name, const tg_matrix *matrix)
{
    if (matrix->row_count < 0 || matrix->col_count < 0) {
        int is_row = matrix->row_count < 0;
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s.%s_count = %lld; pass 0 or more",
                               name, is_row ? "row" : "col",
                               (ll)(is_row ? matrix->row_count : matrix->col_count));
    }
    return TG_STATUS_OK;
}

static tg_status check_shapes(const tg_problem *p, const tgi_problem *q, int64_t b_rows)
{
    if (q->batch_count < 0) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "batch_count = %lld; pass 0 or more",
                               (ll)q->batch_count);
    }
    if (b_rows != q->k) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "op(A) has %lld columns, op(B) has %lld rows; they must be equal (k): "
            "check the shapes and op_a, op_b",
            (ll)q->k, (ll)b_rows);
    }
    const tg_matrix *outputs[] = {&p->d, &p->c};
    for (int i = 0; i < (p->beta != 0.0 ? 2 : 1); i++) {
        if (outputs[i]->row_count != q->m || outputs[i]->col_count != q->n) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s is %lld x %lld, op(A) op(B) is %lld x %lld; pass %s of that "
                                   "shape",
                                   i ? "C" : "D", (ll)outputs[i]->row_count,
                                   (ll)outputs[i]->col_count, (ll)q->m, (ll)q->n, i ? "C" : "D");
        }
    }
    return TG_STATUS_OK;
}

/* Refuses a matrix whose span in bytes does not fit in int64_t. */
static tg_status check_span(const char *name, const tgi_layout *layout, int64_t row_count,
                            int64_t col_count, int64_t batch_count, int64_t element_bytes)
{
    const int64_t counts[] = {row_count, col_count, batch_count};
    const int64_t strides[] = {layout->row, layout->col, layout->batch};
    static const char *const parts[] = {"row_stride", "col_stride", "batch_stride"};
    int64_t span = 1;
    for (int i = 0; i < 3; i++) {
        if (counts[i] == 0)
            return TG_STATUS_OK;
    }
    for (int i = 0; i < 3; i++) {
        int64_t stride = strides[i], step, bytes;
        if (stride == INT64_MIN ||
            __builtin_mul_overflow(counts[i] - 1, stride < 0 ? -stride : stride, &step) ||
            __builtin_add_overflow(span, step, &span) ||
            __builtin_mul_overflow(span, element_bytes, &bytes)) {
            return tgi_status_fail(
                TG_STATUS_SIZE_OVERFLOW,
                "%s: %lld entries with %s = %lld do not fit in 63 bits of bytes; "
                "pass smaller counts or strides",
                name, (ll)counts[i], parts[i], (ll)stride);
        }
    }
    return TG_STATUS_OK;
}

/* Refuses operands of more elements than any memory has, which strides of zero make possible, so
 * that no later count overflows. */
static tg_status check_products(const tgi_problem *q)
{
    const int64_t most = (int64_t)1 << 56;
    const int64_t pairs[2][2] = {{q->m, q->k}, {q->k, q->n}};
    for (int i = 0; i < 2; i++) {
        int64_t product;
        if (__builtin_mul_overflow(pairs[i][0], pairs[i][1], &product) || product > most) {
            return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                                   "op(%c) is %lld x %lld, more than 2^56 elements; pass smaller "
                                   "counts",
                                   i ? 'B' : 'A', (ll)pairs[i][0], (ll)pairs[i][1]);
        }
    }
    return TG_STATUS_OK;
}

/* Refuses a D in which two elements share an address: each stride must clear the span of the
 * smaller. */
static tg_status check_d_distinct(const tgi_problem *q)
{
    int64_t counts[] = {q->m, q->n, q->batch_count};
    int64_t strides[] = {llabs(q->d.row), llabs(q->d.col), llabs(q->d.batch)};
    static const char *const parts[] = {"row_stride", "col_stride", "batch_stride"};
    int order[] = {0, 1, 2};
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 2 - i; j++) {
            if (strides[order[j]] > strides[order[j + 1]]) {
                int swap = order[j];
                order[j] = order[j + 1];
                order[j + 1] = swap;
            }
        }
    }
    int64_t span = 0; /* largest offset that the dimensions so far reach */
    for (int i = 0; i < 3; i++) {
        int part = order[i];
        if (counts[part] <= 1)
            continue;
        if (strides[part] <= span) {
            return tgi_status_fail(
                TG_STATUS_OVERLAP,
                "D overlaps itself: |d.%s| = %lld is not above %lld, the reach of "
                "its smaller strides; pass a larger one",
                parts[part], (ll)strides[part], (ll)span);
        }
        span += strides[part] * (counts[part] - 1);
    }
    return TG_STATUS_OK;
}

static tgi_layout fold_layout(const tg_matrix *matrix, tg_operation operation)
{
    int is_transposed = operation == TG_OPERATION_TRANSPOSE;
    tgi_layout layout = {is_transposed ? matrix->col_stride : matrix->row_stride,
                         is_transposed ? matrix->row_stride : matrix->col_stride,
                         matrix->batch_stride};
    return layout;
}

static void transpose_layout(tgi_layout *layout)
{
    int64_t row = layout->row;
    layout->row = layout->col;
    layout->col = row;
}

void tgi_problem_transpose(tgi_problem *q)
{
    int64_t m = q->m;
    q->m = q->n;
    q->n = m;
    tgi_layout a = q->a;
    q->a = q->b;
    q->b = a;
    transpose_layout(&q->a);
    transpose_layout(&q->b);
    transpose_layout(&q->c);
    transpose_layout(&q->d);
    q->bias = q->bias == TG_BIAS_ROW   ? TG_BIAS_COL
              : q->bias == TG_BIAS_COL ? TG_BIAS_ROW
                                       : TG_BIAS_NONE;
    tg_type type = q->type;
    q->type = q->b_type;
    q->b_type = type;
    tg_scale scale = q->a_scale;
    q->a_scale = q->b_scale;
    q->b_scale = scale;
    int32_t is_offset = q->is_a_offset;
    q->is_a_offset = q->is_b_offset;
    q->is_b_offset = is_offset;
}

/* Skinny problems become low and wide; the others have D's shorter stride along its rows. */
static int must_swap(const tgi_problem *q)
{
    int64_t small = q->m < q->n ? q->m : q->n, large = q->m < q->n ? q->n : q->m;
    int64_t small_bytes = small * tgi_type_sum_bytes(q->type);
    /* Columns that fill half a vector of 64 bytes, or a quarter where k is short, are better done
     * by tiles one vector wide than by sums over lanes. */
    if (large > SKINNY_LENGTH && (small_bytes <= 16 || (small_bytes <= 32 && q->k >= SKINNY_DEPTH)))
        return q->n < q->m;
    if (q->m == 1 || q->n == 1)
        return q->n == 1 && q->m > 1;
    return llabs(q->d.row) < llabs(q->d.col);
}

static void normalize_strides(tgi_problem *q)
{
    if (q->m <= 1)
        q->a.row = q->c.row = q->d.row = 1;
    if (q->n <= 1)
        q->b.col = q->c.col = q->d.col = 1;
    if (q->k <= 1)
        q->a.col = q->b.row = 1;
    if (q->batch_count <= 1)
        q->a.batch = q->b.batch = q->c.batch = q->d.batch = 0;
    if (q->beta == 0.0)
        q->c = q->d;
    if (tgi_problem_is_scale_only(q))
        q->a_scale = q->b_scale = TG_SCALE_NONE; /* not read either */
}

static tg_status round_factor(const char *name, double value, tg_type type, double *rounded)
{
    *rounded = type == TG_TYPE_FP64 ? value : (double)(float)value;
    if (isinf(*rounded) && !isinf(value)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "%s = %g overflows FP32, in which %s products are scaled; pass at "
                               "most 3.4e38 or fp64 matrices",
                               name, value, tg_get_type_name(type));
    }
    return TG_STATUS_OK;
}

tg_status tgi_problem_validate(const tg_problem *problem, tgi_problem *q)
{
    tg_status status;
    memset(q, 0, sizeof *q);
    if ((status = check_enums(problem)) || (status = check_types(problem)) ||
        (status = check_precision(problem)) || (status = check_scales(problem)) ||
        (status = check_counts("a", &problem->a)) || (status = check_counts("b", &problem->b)) ||
        (status = check_counts("d", &problem->d)) ||
        (status = round_factor("alpha", problem->alpha, problem->a.type, &q->alpha)) ||
        (status = round_factor("beta", problem->beta, problem->a.type, &q->beta))) {
        return status;
    }
    int is_a_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    q->m = is_a_transposed ? problem->a.col_count : problem->a.row_count;
    q->k = is_a_transposed ? problem->a.row_count : problem->a.col_count;
    q->n = is_b_transposed ? problem->b.row_count : problem->b.col_count;
    q->batch_count = problem->batch_count;
    int64_t b_rows = is_b_transposed ? problem->b.col_count : problem->b.row_count;
    if ((status = check_shapes(problem, q, b_rows)))
        return status;

    q->a = fold_layout(&problem->a, problem->op_a);
    q->b = fold_layout(&problem->b, problem->op_b);
    q->d = fold_layout(&problem->d, TG_OPERATION_NONE);
    q->c = problem->beta != 0.0 ? fold_layout(&problem->c, TG_OPERATION_NONE) : q->d;
    q->type = problem->a.type;
    q->b_type = problem->b.type;
    q->d_type = problem->d.type;
    q->precision = problem->precision;
    q->bias = problem->bias;
    q->activation = problem->activation;
    q->a_scale = problem->a_scale;
    q->b_scale = problem->b_scale;
    q->d_scale = problem->d_scale;
    q->is_batch_invariant = problem->is_batch_invariant;
    int64_t in_bytes = tg_get_type_bytes(q->type), out_bytes = tg_get_type_bytes(q->d_type);
    if ((status = check_span("A", &q->a, q->m, q->k, q->batch_count, in_bytes)) ||
        (status = check_span("B", &q->b, q->k, q->n, q->batch_count, in_bytes)) ||
        (status = check_span("D", &q->d, q->m, q->n, q->batch_count, out_bytes)) ||
        (q->beta != 0.0 &&
         (status = check_span("C", &q->c, q->m, q->n, q->batch_count, out_bytes)))) {
        return status;
    }
    if (!tgi_problem_is_empty(q)) {
        if ((status = check_products(q)) || (status = check_d_distinct(q)))
            return status;
        q->is_swapped = must_swap(q);
        if (q->is_swapped)
            tgi_problem_transpose(q);
    }
    if (q->k == 0)
        q->alpha = 0.0; /* an empty sum is 0, whatever it is multiplied by */
    normalize_strides(q);
    return TG_STATUS_OK;
}
