/* SPDX-License-Identifier: MIT */
#include "kernels/mutants.h"

#include <float.h>
#include <math.h>

#include "check/check.h"

#define TILE 4

/* A problem with its transposes folded in, and the defect of the mutant. */
typedef struct mutant_run {
    const tg_problem *problem;
    mutant_defect defect;
    int64_t m, n, k;
    int64_t a_row, a_col, b_row, b_col; /* strides of op(A) and op(B) */
    int is_double;
} mutant_run;

static mutant_run start_run(const tg_problem *problem, mutant_defect defect)
{
    mutant_run run = {.problem = problem, .defect = defect};
    int is_a_transposed = problem->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = problem->op_b == TG_OPERATION_TRANSPOSE;
    run.m = problem->d.row_count;
    run.n = problem->d.col_count;
    run.k = is_a_transposed ? problem->a.row_count : problem->a.col_count;
    run.a_row = is_a_transposed ? problem->a.col_stride : problem->a.row_stride;
    run.a_col = is_a_transposed ? problem->a.row_stride : problem->a.col_stride;
    run.b_row = is_b_transposed ? problem->b.col_stride : problem->b.row_stride;
    run.b_col = is_b_transposed ? problem->b.row_stride : problem->b.col_stride;
    run.is_double = problem->a.type == TG_TYPE_FP64;
    return run;
}

/* Rounds to the type in which products are summed. */
static double to_sum(const mutant_run *run, double x)
{
    tg_type type = run->problem->a.type;
    if (run->defect == DEFECT_SUMS_IN_INPUT_TYPE && !run->is_double) {
        uint64_t stored;
        check_set_element(type, &stored, 0, x);
        return check_get_element(type, &stored, 0);
    }
    return run->is_double ? x : (double)(float)x;
}

static double load(const mutant_run *run, const tg_matrix *view, int64_t offset)
{
    static const double smallest_normal[] = {0x1p-126, 0x1p-1022, 0x1p-126, 0x1p-14};
    double value = check_get_element(view->type, view->data, offset);
    if (run->defect == DEFECT_FLUSHES_SUBNORMALS && fabs(value) < smallest_normal[view->type])
        return 0;
    if (run->defect == DEFECT_ROUNDS_INPUTS && isfinite(value)) {
        int exponent;
        double fraction = frexp(value, &exponent);
        return ldexp(nearbyint(ldexp(fraction, 11)), exponent - 11);
    }
    return value;
}

static double multiply_one(const mutant_run *run, int64_t p, int64_t i, int64_t j)
{
    const tg_problem *problem = run->problem;
    int64_t k = run->k, b_batch = p;
    double sum = 0;
    if (problem->alpha == 0 && run->defect != DEFECT_READS_A_AT_ALPHA_0)
        return 0;
    if (run->defect == DEFECT_DROPS_LAST_K)
        k--;
    if (run->defect == DEFECT_READS_PAST_K)
        k++;
    if (run->defect == DEFECT_SAME_BATCH_ENTRY)
        b_batch = 0;
    if (run->defect == DEFECT_WRONG_EDGE_ROW && i > 0 && i == run->m - 1)
        i--;
    for (int64_t l = 0; l < k; l++) {
        double a =
            load(run, &problem->a, p * problem->a.batch_stride + i * run->a_row + l * run->a_col);
        double b = load(run, &problem->b,
                        b_batch * problem->b.batch_stride + l * run->b_row + j * run->b_col);
        if (run->defect == DEFECT_SKIPS_ZEROS && a == 0)
            continue;
        if (run->defect == DEFECT_READS_PAST_K && l == run->k)
            b *= 0;
        sum = to_sum(run, sum + to_sum(run, a * b));
    }
    return to_sum(run, to_sum(run, problem->alpha) * sum);
}

static double add_c(const mutant_run *run, double x, int64_t p, int64_t i, int64_t j)
{
    const tg_problem *problem = run->problem;
    const tg_matrix *c = &problem->c;
    double beta = to_sum(run, problem->beta);
    if (run->defect == DEFECT_IGNORES_BETA)
        beta = beta != 0;
    if (run->defect == DEFECT_SCALES_C_BY_ALPHA)
        beta *= problem->alpha;
    if (problem->beta == 0 && run->defect != DEFECT_READS_C_AT_BETA_0)
        return x;
    int64_t offset = p * c->batch_stride + i * c->row_stride + j * c->col_stride;
    return to_sum(run, x + to_sum(run, beta * check_get_element(c->type, c->data, offset)));
}

static double add_bias(const mutant_run *run, double x, int64_t i, int64_t j)
{
    const tg_problem *problem = run->problem;
    if (problem->bias == TG_BIAS_NONE)
        return x;
    int64_t index = problem->bias == TG_BIAS_ROW ? i : j;
    if (run->defect == DEFECT_SWAPS_BIAS && problem->bias == TG_BIAS_COL)
        index = i < run->n ? i : run->n - 1;
    return to_sum(run, x + check_get_element(problem->d.type, problem->bias_data, index));
}

static double activate(const mutant_run *run, double x)
{
    tg_activation activation = run->problem->activation;
    if (run->defect == DEFECT_NO_ACTIVATION || activation == TG_ACTIVATION_NONE)
        return x;
    if (isinf(x) && x < 0)
        return -0.0;
    if (run->defect == DEFECT_WRONG_GELU && activation == TG_ACTIVATION_GELU_ERF)
        activation = TG_ACTIVATION_GELU_TANH;
    switch (activation) {
    case TG_ACTIVATION_NONE:
        return x;
    case TG_ACTIVATION_RELU:
        return x < 0 ? 0 : x;
    case TG_ACTIVATION_GELU_ERF:
        return x / 2 * (1 + erf(x * 0.70710678118654752));
    case TG_ACTIVATION_GELU_TANH:
        return x / 2 * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
    case TG_ACTIVATION_SILU:
        return x / (1 + exp(-x));
    }
    return NAN;
}

static double compute_one(const mutant_run *run, int64_t p, int64_t i, int64_t j)
{
    const tg_problem *problem = run->problem;
    if (run->defect == DEFECT_SWAPS_TILES && run->n >= 2 * TILE && j < 2 * TILE)
        j = j < TILE ? j + TILE : j - TILE;
    if (run->defect == DEFECT_ZEROES_TILE && i >= run->m - TILE && j >= run->n - TILE)
        return 0;
    double x = multiply_one(run, p, i, j);
    x = activate(run, add_bias(run, add_c(run, x, p, i, j), i, j));
    if (run->defect == DEFECT_CLEARS_NAN && problem->activation == TG_ACTIVATION_RELU && isnan(x))
        return 0;
    if (run->defect == DEFECT_SATURATES && isinf(x))
        return copysign(FLT_MAX / 2, x);
    return x;
}

static void compute_entry(const mutant_run *run, int64_t p)
{
    const tg_matrix *d = &run->problem->d;
    for (int64_t i = 0; i < run->m; i++) {
        for (int64_t j = 0; j < run->n; j++) {
            int64_t offset = p * d->batch_stride + i * d->row_stride + j * d->col_stride;
            if (run->defect == DEFECT_LEAVES_LAST_COL && j == run->n - 1)
                continue;
            check_set_element(d->type, d->data, offset, compute_one(run, p, i, j));
            if (run->defect == DEFECT_WRITES_PAST_ROW && j == run->n - 1)
                check_set_element(d->type, d->data, offset + d->col_stride, 0);
        }
    }
}

tg_status mutant_compute(void *state, const tg_problem *problem)
{
    mutant_run run = start_run(problem, *(const mutant_defect *)state);
    int has_inputs = problem->alpha != 0 && run.m > 0 && run.k > 0 && problem->batch_count > 0;
    if (run.defect == DEFECT_REFUSES_ALL)
        return TG_STATUS_UNSUPPORTED;
    for (int64_t p = 0; p < problem->batch_count; p++)
        compute_entry(&run, p);
    if (run.defect == DEFECT_WRITES_INPUT && has_inputs)
        check_set_element(problem->a.type, problem->a.data, 0, 3);
    return run.defect == DEFECT_WRITES_AND_REFUSES ? TG_STATUS_UNSUPPORTED : TG_STATUS_OK;
}
