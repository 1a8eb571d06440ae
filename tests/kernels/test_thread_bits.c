/*
 * Tests that the bits of D do not depend on the thread count: every row and the library's choice
 * run shapes of every family on 1, 2, 3, 8 and 64 threads. The bits of one thread are checked
 * against the oracle. A NaN stays a NaN, whose sign and payload alone may differ.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "harness/stride.h"

#define SAMPLE_FLOPS 1e6
#define ROWS_MAX 400 /* counts the kernel table and the choice for each type */

typedef struct bits_shape {
    int64_t m, n, k, batch_count;
    tg_operation op_a, op_b;
    int is_for_all; /* 0: too large for slow rows, left to the library's choice */
} bits_shape;

#define N TG_OPERATION_NONE
#define T TG_OPERATION_TRANSPOSE
static const bits_shape shapes[] = {
    {1, 1, 1, 1, N, N, 1},      {5, 7, 3, 1, N, T, 1},        {64, 64, 64, 1, N, N, 1},
    {61, 129, 70, 1, T, N, 1},  {1, 700, 300, 1, N, N, 1},    {1, 300, 700, 1, N, T, 1},
    {700, 1, 300, 1, N, N, 1},  {16, 900, 60, 1, N, N, 1},    {900, 13, 60, 1, T, T, 1},
    {300, 310, 7, 1, N, N, 1},  {12, 20, 5000, 1, T, N, 1},   {40, 40, 3000, 1, N, N, 0},
    {70, 260, 270, 1, N, N, 1}, {130, 1100, 520, 1, N, T, 0}, {1100, 130, 520, 1, T, N, 0},
    {33, 20, 10, 9, N, N, 1},   {100, 90, 80, 5, N, T, 1},    {20, 12, 5000, 1, T, N, 1},
};
#undef N
#undef T
#define SHAPE_COUNT (int)(sizeof shapes / sizeof *shapes)

static uint64_t expected_bits[ROWS_MAX][SHAPE_COUNT]; /* bits of one thread; 0 if refused */

static tg_matrix make_view(tg_type type, int64_t row_count, int64_t col_count, int is_transposed)
{
    tg_matrix view = is_transposed ? tg_make_matrix(type, NULL, col_count, row_count)
                                   : tg_make_matrix(type, NULL, row_count, col_count);
    view.batch_stride = row_count * col_count;
    return view;
}

static tg_problem make_problem(const bits_shape *shape, tg_type type)
{
    tg_problem problem = tg_make_problem(make_view(type, shape->m, shape->k, shape->op_a),
                                         make_view(type, shape->k, shape->n, shape->op_b),
                                         make_view(type, shape->m, shape->n, 0));
    problem.op_a = shape->op_a;
    problem.op_b = shape->op_b;
    problem.batch_count = shape->batch_count;
    problem.alpha = 1.5;
    problem.bias = TG_BIAS_COL;
    problem.activation = TG_ACTIVATION_SILU;
    return problem;
}

/* Returns the FNV-1a hash of D. */
static uint64_t hash_output(const tg_problem *problem)
{
    const unsigned char *bytes = problem->d.data;
    int64_t count = problem->d.row_count * problem->d.col_count * problem->batch_count *
                    tg_get_type_bytes(problem->d.type);
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (int64_t i = 0; i < count; i++)
        hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* Returns a hash of D's bits, or 0 if the row refuses the problem. */
static uint64_t compute_bits(tg_context *context, const char *kernel, const tg_problem *problem)
{
    tg_plan *plan;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_status status = tg_create_plan(context, problem, &options, &plan);
    if (kernel && status == TG_STATUS_UNSUPPORTED)
        return 0;
    assert_int_equal(status, TG_STATUS_OK);
    tg_buffers buffers = {.struct_bytes = sizeof buffers,
                          .a = problem->a.data,
                          .b = problem->b.data,
                          .d = problem->d.data,
                          .bias = problem->bias_data};
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    tg_destroy_plan(plan);
    return hash_output(problem);
}

static void check_shape(tg_context *context, int thread_count, const char *kernel, int row,
                        int shape_index, tg_type type)
{
    check_operands operands;
    check_result result;
    tg_problem problem = make_problem(&shapes[shape_index], type);
    assert_true(check_make_operands(&problem, 1 + (uint64_t)shape_index, &operands));
    uint64_t bits = compute_bits(context, kernel, &problem);
    if (thread_count == 1) {
        expected_bits[row][shape_index] = bits;
        if (bits) {
            check_compare(&problem, SAMPLE_FLOPS, &result);
            assert_true(result.is_ok);
        }
    } else if (bits != expected_bits[row][shape_index]) {
        fail_msg("%s: %d threads give other bits than one for %lldx%lldx%lld",
                 kernel ? kernel : "(choice)", thread_count, (long long)shapes[shape_index].m,
                 (long long)shapes[shape_index].n, (long long)shapes[shape_index].k);
    }
    check_free_operands(&operands);
}

static void check_rows(tg_context *context, int thread_count)
{
    int row_count = tg_get_kernel_count();
    assert_true(row_count <= ROWS_MAX);
    for (int row = stride_get_first(); row < row_count; row += stride_get()) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, row, &info), TG_STATUS_OK);
        for (int i = 0; info.is_available && i < SHAPE_COUNT; i++) {
            if (shapes[i].is_for_all)
                check_shape(context, thread_count, info.name, row, i, info.type);
        }
    }
}

static void check_choice(tg_context *context, int thread_count)
{
    const int case_count = (TG_TYPE_FP8_E5M2 + 1) * SHAPE_COUNT;
    for (int i = stride_get_first(); i < case_count; i += stride_get()) {
        const int type = i / SHAPE_COUNT;
        check_shape(context, thread_count, NULL, type, i % SHAPE_COUNT, (tg_type)type);
    }
}

static void run_thread_counts(void (*check)(tg_context *context, int thread_count))
{
    static const int thread_counts[] = {1, 2, 3, 8, 64};
    for (size_t i = 0; i < sizeof thread_counts / sizeof *thread_counts; i++) {
        tg_context *context;
        tg_context_options options = {.struct_bytes = sizeof options,
                                      .thread_count = thread_counts[i]};
        assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
        check(context, thread_counts[i]);
        tg_destroy_context(context);
    }
}

static void test_rows(void **state)
{
    (void)state;
    run_thread_counts(check_rows);
}

static void test_choice(void **state)
{
    (void)state;
    run_thread_counts(check_choice);
}

/* Fills memory with ones of the type and, in one element of eight, with any bits. */
static void fill_with_nans(tg_type type, void *data, int64_t count)
{
    const int bytes = (int)tg_get_type_bytes(type);
    const float one = 1.0f;
    const double wide_one = 1.0;
    const uint16_t narrow_one = type >= TG_TYPE_BF16 ? tg_encode_bits(type, one) : 0;
    const void *ones = type == TG_TYPE_FP32   ? (const void *)&one
                       : type == TG_TYPE_FP64 ? (const void *)&wide_one
                                              : (const void *)&narrow_one;
    for (int64_t i = 0; i < count; i++) {
        unsigned char *element = (unsigned char *)data + i * bytes;
        memcpy(element, ones, (size_t)bytes);
        for (int byte = 0; i % 8 == 0 && byte < bytes; byte++)
            element[byte] = (unsigned char)(rand() % 3 ? 0xff : rand());
    }
}

static int is_nan(tg_type type, const void *element)
{
    float value;
    double wide_value;
    uint16_t bits = 0;
    switch (type) {
    case TG_TYPE_FP32:
        memcpy(&value, element, sizeof value);
        return isnan(value);
    case TG_TYPE_FP64:
        memcpy(&wide_value, element, sizeof wide_value);
        return isnan(wide_value);
    default:
        memcpy(&bits, element, (size_t)tg_get_type_bytes(type));
        return isnan(tg_decode_bits(type, bits));
    }
}

/* Computes the problem on 1, 2, 3 and 8 threads. Returns the NaNs of D. */
static int64_t compare_nans(tg_context *contexts[4], tg_problem *problem)
{
    const tg_type type = problem->d.type;
    const int64_t count = problem->d.row_count * problem->d.col_count;
    const size_t bytes = (size_t)tg_get_type_bytes(type);
    int64_t nan_count = 0;
    char *d[4];
    for (int i = 0; i < 4; i++) {
        d[i] = malloc((size_t)count * bytes);
        problem->d.data = d[i];
        assert_int_equal(tg_multiply(contexts[i], problem), TG_STATUS_OK);
    }
    for (size_t at = 0; at < (size_t)count * bytes; at += bytes) {
        const int is_first_nan = is_nan(type, d[0] + at);
        nan_count += is_first_nan;
        for (int i = 1; i < 4; i++) {
            if (is_nan(type, d[i] + at) != is_first_nan ||
                (!is_first_nan && memcmp(d[0] + at, d[i] + at, bytes) != 0))
                fail_msg("element %zu differs between 1 and other threads", at / bytes);
        }
    }
    for (int i = 0; i < 4; i++)
        free(d[i]);
    return nan_count;
}

/* The inputs and C hold NaNs of many payloads, thousands of them in each case on average. */
static void test_nans(void **state)
{
    (void)state;
    static const tg_type types[][2] = {
        {TG_TYPE_FP8_E5M2, TG_TYPE_BF16}, {TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2},
        {TG_TYPE_BF16, TG_TYPE_BF16},     {TG_TYPE_FP16, TG_TYPE_FP32},
        {TG_TYPE_FP32, TG_TYPE_FP32},     {TG_TYPE_FP64, TG_TYPE_FP64}};
    static const int thread_counts[] = {1, 2, 3, 8};
    tg_context *contexts[4];
    int64_t nan_count = 0;
    const int case_count = stride_count_cases(120);
    for (int i = 0; i < 4; i++) {
        const tg_context_options options = {
            .struct_bytes = sizeof options, .device = "cpu", .thread_count = thread_counts[i]};
        assert_int_equal(tg_create_context(&options, &contexts[i]), TG_STATUS_OK);
    }
    srand((unsigned)stride_choose_seed(1));
    for (int i = 0; i < case_count; i++) {
        const tg_type type = types[i % 6][0], d_type = types[i % 6][1];
        const int64_t m = 1 + rand() % 40, n = 1 + rand() % 2400, k = 1 + rand() % 90;
        const int64_t most = 2400 * 90 * 8;
        void *a = malloc(most), *b = malloc(most), *c = malloc(most);
        fill_with_nans(type, a, i % 4 ? m * k : 1);
        fill_with_nans(type, b, k * n);
        fill_with_nans(d_type, c, m * n);
        tg_problem problem =
            tg_make_problem(tg_make_matrix(type, a, m, k), tg_make_matrix(type, b, k, n),
                            tg_make_matrix(d_type, NULL, m, n));
        if (i % 4 == 0) /* few NaNs */
            problem.a.row_stride = problem.a.col_stride = 0;
        problem.c.data = c;
        problem.beta = 3;
        if (i % 3 == 1) {
            problem.d.row_stride = 1;
            problem.d.col_stride = m;
        }
        nan_count += compare_nans(contexts, &problem);
        free(a);
        free(b);
        free(c);
    }
    assert_true(nan_count > 1000 * case_count);
    for (int i = 0; i < 4; i++)
        tg_destroy_context(contexts[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_nans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
