/*
 * This file compares D with the reference. It bounds the error of each element, not a norm of the
 * matrix.
 *
 * The bound is that of tilegemm.h, with x the exact value before the activation, and y the exact
 * value after it and after D's scale s (1 without a scale):
 *     |s| (slope (g magnitude + e |alpha| |A||B| + underflow) + v |y / s| + floor)
 *         + u_D |y| + underflow_D
 * e is the error of FP8 and TF32 instructions. For an FP8 D, y is at most the largest FP8 number.
 * slope bounds |activation'|: 1 for ReLU, 1.13 for GELU (both forms), 1.10 for SiLU. v |y| + floor
 * is the error of evaluating GELU and SiLU, and 0 for the others.
 *
 * SPDX-License-Identifier: MIT
 */
#include "reference.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

#define BATCH_SAMPLE_MAX 8
#define FLUSH_LIMIT 0x1p-126 /* smallest normal BF16: below it BF16 instructions give zero */

/* The errors of rounding a value to a type. */
typedef struct rounding {
    long double unit;      /* u: relative error of a normal result */
    long double underflow; /* absolute error of a subnormal result */
    long double overflow;  /* magnitude from which rounding gives Inf */
    long double largest;   /* magnitude at which the type saturates; 0 if it gives Inf */
} rounding;

/* The numbers of a comparison that do not depend on the element. */
typedef struct comparison {
    const tg_problem *problem;
    check_result *result;
    int64_t batch;
    rounding accumulator, output;
    long double gamma;         /* s u / (1 - s u) for s roundings */
    long double product_error; /* relative to |A||B| */
    long double k;
    int may_flush; /* subnormal inputs and sums may be zero */
    /* slope, v and floor of the activation */
    long double slope, activation_unit, activation_floor;
    long double scale_d; /* 1 if there is none */
} comparison;

static rounding get_rounding(tg_type type)
{
    switch (type) {
    case TG_TYPE_FP64:
        return (rounding){0x1p-53L, 0x1p-1075L, 0x1p1024L - 0x1p970L, 0};
    case TG_TYPE_BF16:
        return (rounding){0x1p-8L, 0x1p-134L, 0x1p128L - 0x1p119L, 0};
    case TG_TYPE_FP16:
        return (rounding){0x1p-11L, 0x1p-25L, 65520.0L, 0};
    case TG_TYPE_FP8_E4M3:
        return (rounding){0x1p-4L, 0x1p-10L, HUGE_VALL, 448.0L};
    case TG_TYPE_FP8_E5M2:
        return (rounding){0x1p-3L, 0x1p-17L, HUGE_VALL, 57344.0L};
    case TG_TYPE_FP32:
        break;
    }
    return (rounding){0x1p-24L, 0x1p-150L, 0x1p128L - 0x1p103L, 0};
}

static int64_t get_k(const tg_problem *problem)
{
    return problem->op_a == TG_OPERATION_TRANSPOSE ? problem->a.row_count : problem->a.col_count;
}

static comparison start_comparison(const tg_problem *problem, check_result *result)
{
    comparison run = {.problem = problem, .result = result};
    run.accumulator = get_rounding(problem->a.type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32);
    run.output = get_rounding(problem->d.type);
    long double share = check_get_rounding_count(problem, get_k(problem)) * run.accumulator.unit;
    run.gamma = share < 1 ? share / (1 - share) : HUGE_VALL;
    run.product_error = check_get_product_error(problem);
    run.k = (long double)get_k(problem);
    run.scale_d = check_get_d_scale(problem);
    run.may_flush = check_may_flush(problem);
    if (run.may_flush && problem->d.type == TG_TYPE_BF16)
        run.output.underflow = FLUSH_LIMIT;
    run.slope = check_get_slope(problem->activation);
    const int is_narrow = tg_get_type_bytes(problem->d.type) < 4;
    const int units = problem->d.type == TG_TYPE_FP64 ? 8 : 20;
    run.activation_unit = is_narrow ? 1.6L * 0x1p-14L : units * run.accumulator.unit;
    run.activation_floor = is_narrow ? 0x1p-119L : 64 * run.accumulator.underflow;
    return run;
}

static void note_bad(comparison *run, int64_t row, int64_t col, long double value, long double want)
{
    check_result *result = run->result;
    if (result->is_ok) {
        result->bad_batch = run->batch;
        result->bad_row = row;
        result->bad_col = col;
        result->bad_value = (double)value;
        result->bad_expected = (double)want;
    }
    result->is_ok = 0;
}

/* An FP8 D holds no more than its largest number. */
static long double saturate(const comparison *run, long double y)
{
    long double largest = run->output.largest;
    return largest > 0 && fabsl(y) > largest ? copysignl(largest, y) : y;
}

/* Returns 1 if `value` is right for a y that is NaN or Inf. y is the activation of x. */
static int is_special_right(const comparison *run, long double value, long double x, long double y)
{
    /* The limit of GELU and SiLU at -Inf is 0, though their formulas give Inf times 0 there. */
    if (isinf(x) && x < 0 && run->problem->activation != TG_ACTIVATION_NONE)
        return value == 0;
    return isnan(y) ? isnan(value) : value == y;
}

/* Returns 1 if the sums may leave the accumulator's range on the way to a finite exact value. */
static int may_overflow_sum(const comparison *run, const check_expected *expected)
{
    long double limit = run->accumulator.overflow * (1 - run->gamma);
    return expected->product_size >= limit || expected->magnitude >= limit;
}

/* Returns 1 if `value`, outside the bound of a finite y, comes from an allowed overflow. Before D's
 * rounding the value may differ from y by `error`. */
static int is_overflow_right(const comparison *run, const check_expected *expected,
                             long double value, long double y, long double error)
{
    int is_finite = !isnan(value) && !isinf(value);
    int has_activation = run->problem->activation != TG_ACTIVATION_NONE;
    if (may_overflow_sum(run, expected)) /* activations map -Inf to 0 */
        return !is_finite || (has_activation && value == 0) ||
               (run->output.largest > 0 && fabsl(value) == run->output.largest);
    return isinf(value) && signbit(value) == signbit(y) && fabsl(y) + error >= run->output.overflow;
}

/* Returns the largest error of the value before D's scale and rounding. y is the exact D. */
static long double bound_activated(const comparison *run, const check_expected *expected,
                                   long double y)
{
    const rounding *sums = &run->accumulator;
    long double size = expected->scale * run->k;
    /* Each product and each operation of the epilogue may underflow once. */
    long double error = run->gamma * expected->magnitude + 2 * (size + 3) * sums->underflow;
    error += run->product_error * expected->scale * expected->product_size;
    if (run->problem->precision == TG_PRECISION_FP16X3)
        error += size * 0x1p-37L * expected->row_max_a * expected->col_max_b;
    if (run->may_flush)
        error += size * FLUSH_LIMIT * ((long double)expected->row_max_a + expected->col_max_b + 1);
    error += check_bound_alignment(run->problem, (double)run->gamma, (double)size,
                                   expected->row_max_a, expected->col_max_b);
    error *= run->slope;
    if (run->problem->activation > TG_ACTIVATION_RELU)
        error += run->activation_unit * fabsl(y / run->scale_d) + run->activation_floor;
    return error;
}

static void judge(void *state, int64_t row, int64_t col, const check_expected *expected)
{
    comparison *run = state;
    check_result *result = run->result;
    const tg_matrix *d = &run->problem->d;
    long double value =
        check_get_element(d->type, d->data, check_get_offset(d, run->batch, row, col));
    long double x = expected->exact, size_d = fabsl(run->scale_d);
    long double y = saturate(run, run->scale_d * check_activate(run->problem->activation, x));
    result->checked_count++;
    if (isnan(x) || isinf(x)) {
        if (!is_special_right(run, value, x, y)) {
            note_bad(run, row, col, value, y);
            result->max_error = result->max_bound_share = INFINITY;
        }
        return;
    }
    long double error = size_d * bound_activated(run, expected, y);
    long double bound = error + run->output.unit * fabsl(y) + run->output.underflow;
    long double difference = fabsl(value - y);
    /* If all values within the error round to Inf, a finite value is wrong. */
    int is_within = difference <= bound && fabsl(y) - error < run->output.overflow;
    if (!is_within && is_overflow_right(run, expected, value, y, error))
        return;
    if (!is_within)
        note_bad(run, row, col, value, y);
    if (isnan(value) || isinf(value))
        difference = INFINITY;
    if (difference > 0) {
        result->max_error =
            fmax(result->max_error, (double)(difference / (size_d * expected->magnitude)));
        result->max_bound_share = fmax(result->max_bound_share, (double)(difference / bound));
    }
}

/* Compares the elements in both a random row and a random column, as many as `flops` allow. */
static int compare_crossings(comparison *run, double flops, uint64_t *random)
{
    const tg_problem *problem = run->problem;
    const int64_t m = problem->d.row_count, n = problem->d.col_count;
    const double each = fmax((double)get_k(problem), 1), side = sqrt(flops / each);
    const int64_t row_count = check_count_sample(side, 1, m);
    const int64_t col_count = check_count_sample(flops / (double)row_count, each, n);
    check_indices rows = {check_sample_indices(m, row_count, random), row_count};
    check_indices cols = {check_sample_indices(n, col_count, random), col_count};
    const int is_done = rows.items && cols.items &&
                        check_visit_reference(problem, run->batch, rows, cols, judge, run);
    free((void *)rows.items);
    free((void *)cols.items);
    return is_done;
}

/* Compares some whole rows and some whole columns of one batch entry, for about `flops`
 * operations. */
static int compare_sample(comparison *run, double flops, uint64_t *random)
{
    const tg_problem *problem = run->problem;
    int64_t m = problem->d.row_count, n = problem->d.col_count;
    double k = fmax((double)get_k(problem), 1);
    int64_t row_count = check_count_sample(flops / 2, (double)n * k, m);
    int64_t col_count = check_count_sample(flops / 2, (double)m * k, n);
    check_indices rows = {check_sample_indices(m, row_count, random), row_count};
    check_indices cols = {check_sample_indices(n, col_count, random), col_count};
    int is_done =
        rows.items && cols.items &&
        check_visit_reference(problem, run->batch, rows, (check_indices){NULL, n}, judge, run) &&
        check_visit_reference(problem, run->batch, (check_indices){NULL, m}, cols, judge, run);
    free((void *)rows.items);
    free((void *)cols.items);
    return is_done;
}

typedef int compare_sample_fn(comparison *run, double flops, uint64_t *random);

/* Compares all of D if flop_limit allows, else samples of some batch entries. */
static int compare(const tg_problem *problem, double flop_limit, compare_sample_fn *compare_part,
                   check_result *result)
{
    *result = (check_result){.is_ok = 1, .bad_batch = -1, .bad_row = -1, .bad_col = -1};
    comparison run = start_comparison(problem, result);
    int64_t m = problem->d.row_count, n = problem->d.col_count;
    int64_t batch_count = problem->batch_count;
    int is_done = 1;
    if (m <= 0 || n <= 0 || batch_count <= 0)
        return 1;
    double flops_each = (double)m * (double)n * fmax((double)get_k(problem), 1);
    if (flops_each * (double)batch_count <= flop_limit) {
        check_indices rows = {NULL, m}, cols = {NULL, n};
        for (run.batch = 0; is_done && run.batch < batch_count; run.batch++)
            is_done = check_visit_reference(problem, run.batch, rows, cols, judge, &run);
    } else {
        uint64_t random = 1;
        int64_t sample_count = batch_count < BATCH_SAMPLE_MAX ? batch_count : BATCH_SAMPLE_MAX;
        int64_t *batches = check_sample_indices(batch_count, sample_count, &random);
        is_done = batches != NULL;
        for (int64_t i = 0; is_done && i < sample_count; i++) {
            run.batch = batches[i];
            is_done = compare_part(&run, flop_limit / (double)sample_count, &random);
        }
        free(batches);
    }
    if (!is_done) /* without a verdict D is not right */
        result->is_ok = 0;
    return is_done;
}

int check_compare(const tg_problem *problem, double flop_limit, check_result *result)
{
    return compare(problem, flop_limit, compare_sample, result);
}

int check_compare_crossings(const tg_problem *problem, double flop_limit, check_result *result)
{
    return compare(problem, flop_limit, compare_crossings, result);
}
