/*
 * Tests batch-invariant products: row i of D has the same bits for every m, batch size and
 * position, of every type, although kernels of all families compete for them. Without the option it
 * has not, so the test can fail.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "harness/stride.h"

#define ROWS 300
#define BATCH 3

static const int64_t row_counts[] = {1, 2, 3, 4, 7, 8, 15, 16, 17, 31, 64, 100, ROWS};
#define ROW_COUNT_COUNT (int)(sizeof row_counts / sizeof *row_counts)

static const struct {
    int64_t n, k;
    tg_operation op_b;
} shapes[] = {{70, 40, TG_OPERATION_NONE},
              {200, 700, TG_OPERATION_TRANSPOSE},
              {33, 2500, TG_OPERATION_NONE},
              {1, 600, TG_OPERATION_TRANSPOSE},
              {24, 300, TG_OPERATION_NONE}};
#define SHAPE_COUNT (int)(sizeof shapes / sizeof *shapes)

static tg_problem make_problem(int shape, tg_type type)
{
    const int64_t n = shapes[shape].n, k = shapes[shape].k;
    int is_transposed = shapes[shape].op_b == TG_OPERATION_TRANSPOSE;
    tg_type d_type = tg_get_type_bytes(type) < 4 ? TG_TYPE_FP32 : type;
    tg_problem problem =
        tg_make_problem(tg_make_matrix(type, NULL, ROWS, k),
                        tg_make_matrix(type, NULL, is_transposed ? n : k, is_transposed ? k : n),
                        tg_make_matrix(d_type, NULL, ROWS, n));
    problem.op_b = shapes[shape].op_b;
    problem.batch_count = BATCH;
    problem.a.batch_stride = ROWS * k;
    problem.d.batch_stride = ROWS * n;
    problem.bias = TG_BIAS_COL;
    if (check_is_fp8(type))
        problem.a_scale = problem.b_scale = TG_SCALE_VECTOR;
    return problem;
}

static void compute(tg_context *context, const tg_problem *problem)
{
    if (tg_multiply(context, problem) != TG_STATUS_OK)
        fail_msg("%s", tg_get_error_detail());
}

/* Takes rows first .. first + m - 1 of batch entry `entry` alone, into `d`. */
static tg_problem take_rows(const tg_problem *whole, int64_t entry, int64_t first, int64_t m,
                            void *d)
{
    tg_problem part = *whole;
    int64_t offset = entry * part.a.batch_stride + first * part.a.row_stride;
    part.a.data = (char *)part.a.data + offset * tg_get_type_bytes(part.a.type);
    part.a.row_count = part.d.row_count = m;
    part.d.data = d;
    part.batch_count = 1;
    if (part.a_scale == TG_SCALE_VECTOR)
        part.a_scale_data += first;
    return part;
}

/* Counts the parts, of the heights of this run, whose bits differ from those of the whole batch. */
static int count_differences(tg_context *context, int shape, tg_type type, int is_invariant)
{
    check_operands operands;
    tg_problem whole = make_problem(shape, type);
    assert_true(check_make_operands(&whole, 7, &operands));
    whole.is_batch_invariant = is_invariant;
    compute(context, &whole);
    int64_t row_bytes = whole.d.row_stride * tg_get_type_bytes(whole.d.type);
    char *d = malloc((size_t)(ROWS * row_bytes));
    assert_non_null(d);
    int difference_count = 0;
    for (int i = stride_get_first(); i < ROW_COUNT_COUNT; i += stride_get()) {
        for (int64_t entry = 0; entry < BATCH; entry += BATCH - 1) {
            int64_t m = row_counts[i], first = (ROWS - m) / 2;
            tg_problem part = take_rows(&whole, entry, first, m, d);
            compute(context, &part);
            const char *expected = (char *)whole.d.data + (entry * ROWS + first) * row_bytes;
            difference_count += memcmp(d, expected, (size_t)(m * row_bytes)) != 0;
        }
    }
    free(d);
    check_free_operands(&operands);
    return difference_count;
}

static void test_bits(void **state)
{
    int free_difference_count = 0;
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        for (int shape = 0; shape < SHAPE_COUNT; shape++) {
            int difference_count = count_differences(*state, shape, (tg_type)type, 1);
            if (difference_count)
                fail_msg("%s, shape %d: %d parts differ", tg_get_type_name((tg_type)type), shape,
                         difference_count);
            free_difference_count += count_differences(*state, shape, (tg_type)type, 0);
        }
    }
    assert_true(free_difference_count > 0);
}

static int open_context(void **state)
{
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = 2};
    return tg_create_context(&options, (tg_context **)state) != TG_STATUS_OK;
}

static int close_context(void **state)
{
    tg_destroy_context(*state);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_bits)};
    return cmocka_run_group_tests(tests, open_context, close_context);
}
