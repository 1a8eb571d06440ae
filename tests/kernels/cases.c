/* SPDX-License-Identifier: MIT */
#include "kernels/cases.h"

#include <stdio.h>

#define COUNT_OF(array) (int64_t)(sizeof(array) / sizeof *(array))

/* Returns a random number in 0 .. limit - 1. */
static int64_t draw(uint64_t *random, int64_t limit)
{
    return (int64_t)(check_next_random(random) % (uint64_t)limit);
}

static int happens(uint64_t *random, int64_t one_in)
{
    return draw(random, one_in) == 0;
}

static int64_t draw_edge(uint64_t *random, int64_t tile)
{
    static const int64_t fixed[] = {1, 2, 3, 4, 5, 7, 8, 11, 13, 16, 17, 31, 37, 61};
    const int64_t edges[] = {tile - 1, tile, tile + 1, 2 * tile, 2 * tile + 1, 3 * tile - 1};
    int64_t i = draw(random, COUNT_OF(fixed) + 2 * COUNT_OF(edges));
    int64_t size = i < COUNT_OF(fixed) ? fixed[i] : edges[(i - COUNT_OF(fixed)) / 2];
    return size < 1 ? 1 : size;
}

static int64_t draw_depth(uint64_t *random)
{
    static const int64_t depths[] = {1,  2,  3,  4,  5,  6,  7,  8,  9,  15,  16,  17, 23,
                                     31, 32, 33, 47, 48, 63, 64, 65, 97, 127, 128, 129};
    return depths[draw(random, COUNT_OF(depths))];
}

/* Draws m, n, k of one of the classes edge, tall, wide, deep, empty. */
static void draw_shape(const case_domain *domain, uint64_t *random, int64_t shape[3])
{
    /* The library may compute D^T, in which case a tile's rows lie along D's columns. */
    int is_transposed = happens(random, 4);
    int64_t rows = domain->tile_rows > 1 ? domain->tile_rows : 8;
    int64_t cols = domain->tile_cols > 1 ? domain->tile_cols : 8;
    shape[0] = draw_edge(random, is_transposed ? cols : rows);
    shape[1] = draw_edge(random, is_transposed ? rows : cols);
    shape[2] = draw_depth(random);
    int64_t size_class = draw(random, 24);
    if (size_class < 2) { /* tall or wide shapes */
        shape[size_class] = 100 + draw(random, 1400);
        shape[1 - size_class] = 1 + draw(random, 18);
        shape[2] = 1 + draw(random, 5);
    } else if (size_class == 2) { /* deep shapes */
        shape[0] = 1 + draw(random, 6);
        shape[1] = 1 + draw(random, 6);
        shape[2] = 200 + draw(random, 2500);
    } else if (size_class == 3) { /* shapes with a vector on one side */
        shape[draw(random, 2)] = 1;
    } else if (size_class == 4) {
        shape[draw(random, 3)] = 0;
    }
}

static int64_t absolute(int64_t x)
{
    return x < 0 ? -x : x;
}

/* Draws the strides of an operand. D's elements stay apart; A, B and C may also have strides of
 * 0. */
static void draw_layout(tg_matrix *view, int64_t batch_count, int is_output, uint64_t *random)
{
    int64_t style = draw(random, 16);
    int is_col_major = style % 2;
    int64_t inner = style < 10 ? 1 : 1 + draw(random, 3);
    int64_t padding = style < 4 ? 0 : draw(random, 9);
    int64_t interleaved = style == 15 ? batch_count : 1; /* entries alternate by element */
    int64_t inner_count = is_col_major ? view->row_count : view->col_count;
    int64_t outer_count = is_col_major ? view->col_count : view->row_count;
    int64_t inner_stride = inner * (interleaved < 1 ? 1 : interleaved);
    int64_t outer_stride = inner_stride * (inner_count < 1 ? 1 : inner_count) + padding;
    view->batch_stride = outer_stride * (outer_count < 1 ? 1 : outer_count) + padding;
    if (style == 15)
        view->batch_stride = 1;
    if (style == 12 || style == 13) {
        if (happens(random, 2))
            inner_stride = -inner_stride;
        if (happens(random, 2))
            outer_stride = -outer_stride;
        if (happens(random, 2))
            view->batch_stride = -view->batch_stride;
    }
    if (style == 14 && !is_output) {
        if (happens(random, 2))
            inner_stride = 0;
        if (happens(random, 2))
            outer_stride = 0;
    }
    if (!is_output && happens(random, 8))
        view->batch_stride = 0;
    view->row_stride = is_col_major ? inner_stride : outer_stride;
    view->col_stride = is_col_major ? outer_stride : inner_stride;
}

static tg_matrix make_view(tg_type type, int64_t row_count, int64_t col_count)
{
    return tg_make_matrix(type, NULL, row_count, col_count);
}

static void draw_epilogue(tg_problem *problem, uint64_t *random)
{
    static const double alphas[] = {1, 1, 1, 1, 0, -1, 2.5, 0.1};
    static const double betas[] = {0, 0, 0, 0, 1, -1, 2.5, 0.1};
    problem->alpha = alphas[draw(random, COUNT_OF(alphas))];
    problem->beta = betas[draw(random, COUNT_OF(betas))];
    problem->bias = happens(random, 2) ? TG_BIAS_NONE : (tg_bias)draw(random, 3);
    problem->activation = happens(random, 2) ? TG_ACTIVATION_NONE : (tg_activation)draw(random, 5);
}

/* Draws any type of D that goes with the inputs. */
static tg_type draw_d_type(tg_type type, uint64_t *random)
{
    static const tg_type narrow[] = {TG_TYPE_FP32, TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP8_E4M3,
                                     TG_TYPE_FP8_E5M2};
    int64_t count = tg_get_type_bytes(type) == 1 ? 5 : 3;
    if (tg_get_type_bytes(type) > 2 || happens(random, 2))
        return type;
    return narrow[draw(random, count)];
}

static void draw_precision(tg_problem *problem, uint64_t *random)
{
    tg_type type = problem->a.type;
    if (happens(random, 4))
        problem->precision = type == TG_TYPE_FP64 ? TG_PRECISION_IEEE_FP64 : TG_PRECISION_IEEE_FP32;
    static const tg_precision of_fp32[] = {TG_PRECISION_TF32, TG_PRECISION_BF16X3,
                                           TG_PRECISION_BF16X6, TG_PRECISION_BF16X9,
                                           TG_PRECISION_FP16X3};
    if (type == TG_TYPE_FP32 && happens(random, 2))
        problem->precision = of_fp32[draw(random, COUNT_OF(of_fp32))];
    problem->is_batch_invariant = happens(random, 8);
}

/* If the inputs are FP8, draws scales and a B of the other FP8 type. */
static void draw_scales(tg_problem *problem, uint64_t *random)
{
    if (tg_get_type_bytes(problem->a.type) != 1)
        return;
    if (happens(random, 3))
        problem->b.type = problem->a.type == TG_TYPE_FP8_E4M3 ? TG_TYPE_FP8_E5M2 : TG_TYPE_FP8_E4M3;
    problem->a_scale = (tg_scale)draw(random, 3);
    problem->b_scale = (tg_scale)draw(random, 3);
    if (tg_get_type_bytes(problem->d.type) == 1 && happens(random, 2))
        problem->d_scale = TG_SCALE_TENSOR;
}

static void limit_work(const case_domain *domain, int64_t shape[3], uint64_t *random)
{
    int64_t limit = domain->work_limit * (happens(random, 64) ? 16 : 1);
    while (shape[0] * shape[1] * shape[2] > limit) {
        int largest = shape[0] >= shape[1] ? 0 : 1;
        if (shape[2] > shape[largest])
            largest = 2;
        shape[largest] = shape[largest] * 2 / 3;
    }
}

/* Makes the drawn case plain (case_domain.is_plain): its sizes, contents and places stay. */
static void make_plain(operand_spec *spec, const int64_t shape[3], uint64_t *random)
{
    const int64_t multiple = happens(random, 2) ? 8 << draw(random, 3) : 1;
    int64_t sizes[3];
    for (int i = 0; i < 3; i++)
        sizes[i] = (shape[i] + multiple - 1) / multiple * multiple;
    const tg_type type = spec->problem.a.type;
    spec->problem =
        tg_make_problem(make_view(type, sizes[0], sizes[2]), make_view(type, sizes[2], sizes[1]),
                        make_view(type, sizes[0], sizes[1]));
    spec->is_in_place = 0;
}

void case_draw(const case_domain *domain, uint64_t seed, operand_spec *spec)
{
    uint64_t random = seed;
    int64_t shape[3];
    /* 700 entries are more than blocks that run at once, so that a block has several. */
    static const int64_t batch_counts[] = {1, 1, 1, 1, 1, 1, 2, 3, 5, 1, 1, 700};
    draw_shape(domain, &random, shape);
    limit_work(domain, shape, &random);
    int64_t batch_count = batch_counts[draw(&random, COUNT_OF(batch_counts))];
    if (happens(&random, 40))
        batch_count = 0;
    if (absolute(batch_count) * (shape[0] + 1) * (shape[1] + 1) * (shape[2] + 1) >
        16 * domain->work_limit)
        batch_count = 1;
    tg_type d_type = draw_d_type(domain->type, &random);
    int is_a_transposed = happens(&random, 2), is_b_transposed = happens(&random, 2);

    tg_problem *problem = &spec->problem;
    *problem = tg_make_problem(
        make_view(domain->type, shape[is_a_transposed ? 2 : 0], shape[is_a_transposed ? 0 : 2]),
        make_view(domain->type, shape[is_b_transposed ? 1 : 2], shape[is_b_transposed ? 2 : 1]),
        make_view(d_type, shape[0], shape[1]));
    problem->op_a = is_a_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem->op_b = is_b_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem->batch_count = batch_count;
    draw_layout(&problem->a, batch_count, 0, &random);
    draw_layout(&problem->b, batch_count, 0, &random);
    draw_layout(&problem->d, batch_count, 1, &random);
    draw_layout(&problem->c, batch_count, 0, &random);
    draw_epilogue(problem, &random);
    spec->is_in_place = problem->beta != 0 && happens(&random, 2);
    static const operand_fill fills[] = {FILL_ONES, FILL_SPECIAL, FILL_SPECIAL, FILL_TINY,
                                         FILL_LARGE};
    int64_t fill = draw(&random, 12);
    spec->fill = fill < COUNT_OF(fills) ? fills[fill] : FILL_UNIFORM;
    spec->placement = (operand_placement)draw(&random, PLACEMENT_COUNT);
    spec->seed = check_next_random(&random);
    draw_precision(problem, &random);
    draw_scales(problem, &random);
    if (domain->is_plain)
        make_plain(spec, shape, &random);
}

static int describe_view(const char *name, const tg_matrix *view, char *text, size_t text_bytes)
{
    return snprintf(text, text_bytes, " %s=%s:%lldx%lld:rs=%lld:cs=%lld:bs=%lld", name,
                    tg_get_type_name(view->type), (long long)view->row_count,
                    (long long)view->col_count, (long long)view->row_stride,
                    (long long)view->col_stride, (long long)view->batch_stride);
}

void case_describe(const operand_spec *spec, char *text, size_t text_bytes)
{
    static const char *const fills[] = {"uniform", "ones", "special", "tiny", "large"};
    static const char *const placements[] = {"at_end", "at_start", "odd"};
    const tg_problem *problem = &spec->problem;
    const tg_matrix *views[] = {&problem->a, &problem->b, &problem->c, &problem->d};
    static const char *const names[] = {"a", "b", "c", "d"};
    size_t used = 0;
    for (int i = 0; i < 4 && used < text_bytes; i++)
        used += (size_t)describe_view(names[i], views[i], text + used, text_bytes - used);
    if (used >= text_bytes)
        return;
    snprintf(text + used, text_bytes - used,
             " op=%d%d batch=%lld alpha=%g beta=%g c=%s bias=%s act=%s prec=%s%s scales=%s,%s,%s "
             "fill=%s %s",
             (int)problem->op_a, (int)problem->op_b, (long long)problem->batch_count,
             problem->alpha, problem->beta, spec->is_in_place ? "d" : "own",
             tg_get_bias_name(problem->bias), tg_get_activation_name(problem->activation),
             tg_get_precision_name(problem->precision),
             problem->is_batch_invariant ? " batch_invariant" : "",
             tg_get_scale_name(problem->a_scale), tg_get_scale_name(problem->b_scale),
             tg_get_scale_name(problem->d_scale), fills[spec->fill], placements[spec->placement]);
}
