#include "expected_epilogue.h"

#include <math.h>

int64_t check_get_offset(const tg_matrix *view, int64_t batch, int64_t row, int64_t col)
{
    return batch * view->batch_stride + row * view->row_stride + col * view->col_stride;
}

double check_round_scalar(const tg_problem *problem, double scalar)
{
    return problem->a.type == TG_TYPE_FP64 ? scalar : (double)(float)scalar;
}

static double get_scale(tg_scale scale, const float *data, int64_t index)
{
    return scale == TG_SCALE_NONE ? 1 : data[scale == TG_SCALE_VECTOR ? index : 0];
}

double check_get_row_scale(const tg_problem *problem, int64_t row)
{
    return get_scale(problem->a_scale, problem->a_scale_data, row);
}

double check_get_col_scale(const tg_problem *problem, int64_t col)
{
    return get_scale(problem->b_scale, problem->b_scale_data, col);
}

static void add(check_added *added, long double term)
{
    added->sum += term;
    added->size += fabsl(term);
}

static double read_bias(const tg_problem *problem, int64_t index)
{
    return check_get_element(problem->d.type, problem->bias_data, index);
}

check_added check_find_added(const tg_problem *problem, int64_t batch, int64_t row, int64_t col)
{
    check_added added = {0, 0};
    const long double beta = check_round_scalar(problem, problem->beta);
    if (beta != 0) {
        const int64_t offset = check_get_offset(&problem->c, batch, row, col);
        add(&added, beta * check_get_element(problem->c.type, problem->c.data, offset));
    }
    if (problem->bias != TG_BIAS_NONE)
        add(&added, read_bias(problem, problem->bias == TG_BIAS_ROW ? row : col));
    return added;
}

int check_is_col_special(const tg_problem *problem, int64_t col)
{
    return problem->bias == TG_BIAS_COL && !isfinite(read_bias(problem, col));
}

double check_get_rounding_count(const tg_problem *problem, int64_t k)
{
    int has_scale = problem->a_scale || problem->b_scale || problem->d_scale;
    return (double)k + (has_scale ? 6 : 3);
}

long double check_get_slope(tg_activation activation)
{
    switch (activation) {
    case TG_ACTIVATION_NONE:
    case TG_ACTIVATION_RELU:
        break;
    case TG_ACTIVATION_GELU_ERF:
    case TG_ACTIVATION_GELU_TANH:
        return 1.13L;
    case TG_ACTIVATION_SILU:
        return 1.10L;
    }
    return 1.0L;
}

long double check_activate(tg_activation activation, long double x)
{
    const long double root_half = 0.70710678118654752440L;
    const long double root_two_over_pi = 0.79788456080286535588L;
    if (activation == TG_ACTIVATION_NONE)
        return x;
    if (activation == TG_ACTIVATION_RELU)
        return x < 0 ? 0 : x;
    if (activation == TG_ACTIVATION_GELU_ERF)
        return x / 2 * erfcl(-x * root_half);
    if (activation == TG_ACTIVATION_GELU_TANH)
        return x / (1 + expl(-2 * root_two_over_pi * (x + 0.044715L * x * x * x)));
    return x / (1 + expl(-x));
}

long double check_get_d_scale(const tg_problem *problem)
{
    return problem->d_scale == TG_SCALE_NONE ? 1 : *problem->d_scale_data;
}
