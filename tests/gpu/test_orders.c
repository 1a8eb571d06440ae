/*
 * test_orders tests the orders of sums of kernels.def on a GPU: all rows that a batch-invariant
 * problem may take have the same bits, for every m, in every layout, with ordinary elements, with
 * elements whose products are subnormal or zero, with subnormal elements, with Inf and NaN, and
 * with an epilogue.
 * Rows of another order have other bits, so that a row with a wrong order is found.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "core/kernels.h"
#include "gpu.h"
#include "tilegemm_lab.h"

enum { ROWS = 300, CANDIDATES_MAX = 512 };

/* TERMS are ordinary elements, whose sums pass through an epilogue. */
typedef enum values { ORDINARY, TINY, SUBNORMAL, SPECIAL, TERMS, VALUES_COUNT } values;

typedef struct product {
    tg_type type;
    tg_precision precision;
    int64_t n, k;
    int is_a_across, is_b_along; /* 1: A is stored by columns; B is */
    values values;
} product;

/* The operands on the device, and D of all rows. D of 16-bit types is FP32. */
typedef struct operands {
    void *a, *b, *d;
    char *whole, *part;
} operands;

static tg_type find_d_type(const product *by)
{
    return by->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

static int64_t count_d_bytes(const product *by)
{
    return tg_get_type_bytes(find_d_type(by));
}

/* Returns the factor by which elements of A are subnormal, and those of B as large as 1 over it. */
static double find_subnormal_scale(const product *by)
{
    return by->type == TG_TYPE_FP64 ? 1e-309 : by->type == TG_TYPE_FP16 ? 3e-6 : 5e-40;
}

/* Returns element number i of A or B. Exponents differ, so that sums depend on their order. */
static double make_value(const product *by, int64_t i, int is_a, uint64_t *seed)
{
    const double scale = by->type == TG_TYPE_FP64   ? 1e-162
                         : by->type == TG_TYPE_FP16 ? 1e-3
                                                    : 1e-23;
    const double value = check_next_uniform(seed) * (double)(1 << (i * 7 % 5));
    if (by->values == TINY)
        return value * scale;
    if (by->values == SUBNORMAL)
        return is_a                       ? value * find_subnormal_scale(by)
               : by->type == TG_TYPE_FP16 ? value
                                          : value * 0.1 / find_subnormal_scale(by);
    if (by->values == SPECIAL && is_a && i % 1009 == 17)
        return i % 3 == 0 ? (double)INFINITY : i % 3 == 1 ? -(double)INFINITY : (double)NAN;
    return value;
}

static void *copy_values(const tg_context *context, const product *by, int64_t count, int is_a)
{
    const int64_t bytes = count * tg_get_type_bytes(by->type);
    uint64_t seed = is_a ? 1 : 2;
    void *host = malloc((size_t)bytes), *device;
    assert_non_null(host);
    for (int64_t i = 0; i < count; i++)
        check_set_element(by->type, host, i, make_value(by, i, is_a, &seed));
    assert_int_equal(tg_allocate_memory(context, bytes, &device), 0);
    assert_int_equal(tg_copy_to_device(context, device, host, bytes), 0);
    free(host);
    return device;
}

/* Returns the problem of m rows from `first` on. */
static tg_problem make_problem(const product *by, const operands *o, int64_t first, int64_t m)
{
    const int64_t n = by->n, k = by->k;
    char *a = (char *)o->a + first * (by->is_a_across ? 1 : k) * tg_get_type_bytes(by->type);
    tg_problem p = tg_make_problem(
        tg_make_matrix(by->type, a, by->is_a_across ? k : m, by->is_a_across ? m : k),
        tg_make_matrix(by->type, o->b, by->is_b_along ? n : k, by->is_b_along ? k : n),
        tg_make_matrix(find_d_type(by), o->d, m, n));
    p.a.row_stride = by->is_a_across ? ROWS : k;
    p.op_a = by->is_a_across ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.op_b = by->is_b_along ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.precision = by->precision;
    if (by->values == TERMS) {
        p.alpha = 0.75;
        p.activation = TG_ACTIVATION_RELU;
    }
    return p;
}

/* Computes the problem by a row of the table, or by the choice if `kernel` is NULL. */
static void compute(tg_context *context, const tg_problem *p, const char *kernel, char *host)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = p->a.data, .b = p->b.data, .d = p->d.data};
    const int64_t bytes = p->d.row_count * p->d.col_count * tg_get_type_bytes(p->d.type);
    tg_plan *plan;
    if (tg_create_plan(context, p, &options, &plan) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK ||
        tg_copy_from_device(context, host, p->d.data, bytes) != TG_STATUS_OK)
        fail_msg("%s: %s", kernel ? kernel : "choice", tg_get_error_detail());
    tg_destroy_plan(plan);
}

/* Returns 1 if the elements are the same. The bits of a NaN are not promised. */
static int has_same_bits(const product *by, const char *one, const char *other, int64_t count)
{
    const int64_t bytes = count_d_bytes(by);
    if (memcmp(one, other, (size_t)(count * bytes)) == 0)
        return 1;
    for (int64_t i = 0; i < count; i++) {
        const double x = check_get_element(find_d_type(by), one, i);
        const double y = check_get_element(find_d_type(by), other, i);
        if (memcmp(one + i * bytes, other + i * bytes, (size_t)bytes) != 0 && (x == x || y == y))
            return 0;
    }
    return 1;
}

/* Returns 1 if two rows that take a batch-invariant problem sum it in the same order: those of
 * ALONG only in one instruction set. Other rows have the problem's order, some by functions that
 * the table does not list. */
static int has_same_order(const tgi_kernel *one, const tgi_kernel *other)
{
    return one->sum_order == TGI_SUM_ALONG || other->sum_order == TGI_SUM_ALONG
               ? one->sum_order == other->sum_order && one->isa == other->isa
               : 1;
}

/* Computes m rows by every legal row of the order of the choice. Sets has_run of these. */
static void check_rows(tg_context *context, const product *by, const operands *o, int64_t m,
                       char *has_run)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    const int64_t first = (ROWS - m) / 2, row_bytes = by->n * count_d_bytes(by);
    tg_problem p = make_problem(by, o, first, m);
    int count = 0, chosen = -1;
    p.is_batch_invariant = 1;
    assert_int_equal(tg_list_candidates(context, &p, candidates, CANDIDATES_MAX, &count), 0);
    for (int i = 0; i < count; i++)
        if (candidates[i].is_chosen)
            chosen = i;
    assert_true(chosen >= 0);
    for (int i = 0; i < count; i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (!candidates[i].is_legal || !has_same_order(kernel, tgi_kernels_get(chosen)))
            continue;
        compute(context, &p, kernel->name, o->part);
        if (!has_same_bits(by, o->part, o->whole + first * row_bytes, m * by->n))
            fail_msg("%s, %lld x %lld x %lld, A by %s, B by %s, values %d: %s differs",
                     tg_get_type_name(by->type), (long long)m, (long long)by->n, (long long)by->k,
                     by->is_a_across ? "columns" : "rows", by->is_b_along ? "columns" : "rows",
                     (int)by->values, kernel->name);
        has_run[i] = 1;
    }
}

/* Counts the rows of other orders that have other bits. */
static int count_others(tg_context *context, const product *by, const operands *o, int64_t m,
                        const char *has_run)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    const int64_t first = (ROWS - m) / 2, row_bytes = by->n * count_d_bytes(by);
    const tg_problem p = make_problem(by, o, first, m);
    int count = 0, different = 0;
    assert_int_equal(tg_list_candidates(context, &p, candidates, CANDIDATES_MAX, &count), 0);
    for (int i = 0; i < count; i++) {
        if (!candidates[i].is_legal || has_run[i] ||
            tgi_kernels_rung(tgi_kernels_get(i)->family) >= 0)
            continue;
        compute(context, &p, candidates[i].kernel, o->part);
        different += !has_same_bits(by, o->part, o->whole + first * row_bytes, m * by->n);
    }
    return different;
}

/* Checks a product for some m. Returns the number of rows of other orders that have other bits. */
static int check_product(tg_context *context, const product *by, char *has_run)
{
    static const int64_t row_counts[] = {1, 3, 7, 16, 40, ROWS};
    const int64_t d_bytes = ROWS * by->n * count_d_bytes(by);
    operands o = {.a = copy_values(context, by, ROWS * by->k, 1),
                  .b = copy_values(context, by, by->k * by->n, 0),
                  .whole = malloc((size_t)d_bytes),
                  .part = malloc((size_t)d_bytes)};
    assert_true(o.whole && o.part);
    assert_int_equal(tg_allocate_memory(context, d_bytes, &o.d), 0);
    tg_problem p = make_problem(by, &o, 0, ROWS);
    p.is_batch_invariant = 1;
    compute(context, &p, NULL, o.whole);
    for (size_t i = 0; i < sizeof row_counts / sizeof row_counts[0]; i++)
        check_rows(context, by, &o, row_counts[i], has_run);
    const int different = count_others(context, by, &o, 16, has_run);
    tg_release_memory(context, o.a);
    tg_release_memory(context, o.b);
    tg_release_memory(context, o.d);
    free(o.whole);
    free(o.part);
    return different;
}

typedef struct type_case {
    tg_type type;
    tg_precision precision;
    int least; /* rows of the table that share an order on Hopper */
} type_case;

static type_case types[] = {{TG_TYPE_FP32, TG_PRECISION_IEEE_FP32, 7},
                            {TG_TYPE_FP32, TG_PRECISION_DEFAULT, 8},
                            {TG_TYPE_FP64, TG_PRECISION_DEFAULT, 8},
                            {TG_TYPE_BF16, TG_PRECISION_DEFAULT, 20},
                            {TG_TYPE_FP16, TG_PRECISION_DEFAULT, 20}};

/* The first sizes have a single step of most rows, and the last are split. */
static void test_rows_of_an_order(void **state)
{
    static const int64_t sizes[][2] = {{700, 5},  {48, 16},    {5, 64},    {1100, 40}, {1001, 203},
                                       {1001, 1}, {1000, 3},   {64, 1104}, {133, 333}, {48, 2600},
                                       {3, 700},  {256, 5000}, {1, 201},   {2, 1801},  {4, 96},
                                       {9, 1230}, {30, 50},    {20, 2560}};
    enum { SIZE_COUNT = sizeof sizes / sizeof sizes[0] };
    const type_case *one = *state;
    char has_run[CANDIDATES_MAX] = {0};
    int different = 0, run_count = 0;
    tg_context *context = gpu_open_context();
    for (int i = 0; i < SIZE_COUNT * 4 * VALUES_COUNT; i++) {
        /* Elements that are not ordinary come in one layout of each size. */
        if (i / SIZE_COUNT / 4 > 0 && i / SIZE_COUNT % 4 != i % 4)
            continue;
        const product by = {.type = one->type,
                            .precision = one->precision,
                            .n = sizes[i % SIZE_COUNT][0],
                            .k = sizes[i % SIZE_COUNT][1],
                            .is_a_across = i / SIZE_COUNT % 2,
                            .is_b_along = i / SIZE_COUNT / 2 % 2,
                            .values = (values)(i / SIZE_COUNT / 4)};
        different += check_product(context, &by, has_run);
    }
    for (int i = 0; i < CANDIDATES_MAX; i++)
        run_count += has_run[i];
    assert_true(different > 0);
    if (gpu_has_kernel(context, "cuda_wgmma_sm90a_bf16_64x64x64") && run_count < one->least)
        fail_msg("%s: %d rows ran", tg_get_type_name(one->type), run_count);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_prestate(test_rows_of_an_order, &types[0]),
        cmocka_unit_test_prestate(test_rows_of_an_order, &types[1]),
        cmocka_unit_test_prestate(test_rows_of_an_order, &types[2]),
        cmocka_unit_test_prestate(test_rows_of_an_order, &types[3]),
        cmocka_unit_test_prestate(test_rows_of_an_order, &types[4]),
    };
    if (!gpu_is_there(sizeof tests / sizeof tests[0]))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
