/*
 * Tests plans: reuse with other buffers, workspaces of the caller and of the context.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"

#define ALL_FLOPS 1e9
#define BAND_BYTES 64

/* A plan that needs a workspace, with its problem and operands, and the buffers to run it. */
typedef struct planned {
    tg_problem problem;
    check_operands operands;
    tg_plan *plan;
    tg_plan_info info;
    tg_buffers buffers;
} planned;

static void make_planned(planned *made, const char *kernel, tg_type type, int64_t m, int64_t n,
                         int64_t k)
{
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    made->problem =
        tg_make_problem(tg_make_matrix(type, NULL, m, k), tg_make_matrix(type, NULL, k, n),
                        tg_make_matrix(type, NULL, m, n));
    assert_int_equal(tg_create_plan(NULL, &made->problem, &options, &made->plan), TG_STATUS_OK);
    assert_int_equal(tg_get_plan_info(made->plan, &made->info, sizeof made->info), TG_STATUS_OK);
    assert_true(check_make_operands(&made->problem, 11, &made->operands));
    made->buffers = (tg_buffers){.struct_bytes = sizeof(tg_buffers),
                                 .a = made->problem.a.data,
                                 .b = made->problem.b.data,
                                 .d = made->problem.d.data};
}

static void free_planned(planned *made)
{
    tg_destroy_plan(made->plan);
    check_free_operands(&made->operands);
}

static void assert_right(const tg_problem *problem)
{
    check_result result;
    check_compare(problem, ALL_FLOPS, &result);
    assert_true(result.is_ok);
}

static void poison_output(planned *made)
{
    for (int64_t i = 0; i < made->problem.d.row_count * made->problem.d.col_count; i++)
        check_set_element(made->problem.d.type, made->problem.d.data, i, NAN);
}

static void assert_poisoned(const planned *made)
{
    for (int64_t i = 0; i < made->problem.d.row_count * made->problem.d.col_count; i++)
        assert_true(isnan(check_get_element(made->problem.d.type, made->problem.d.data, i)));
}

/* Runs in the caller's workspace: exact, larger, and with bands that must stay as they are. */
static void check_callers_workspace(planned *made)
{
    int64_t bytes = made->info.workspace_bytes;
    char *block = aligned_alloc(64, (size_t)(bytes + 2 * BAND_BYTES + 63) / 64 * 64);
    assert_non_null(block);
    memset(block, 0x5a, (size_t)(bytes + 2 * BAND_BYTES));
    made->buffers.workspace = block + BAND_BYTES;
    made->buffers.workspace_bytes = bytes;
    poison_output(made);
    assert_int_equal(tg_execute_plan(made->plan, &made->buffers), TG_STATUS_OK);
    assert_right(&made->problem);
    for (int64_t i = 0; i < BAND_BYTES; i++) {
        assert_int_equal(block[i], 0x5a);
        assert_int_equal(block[BAND_BYTES + bytes + i], 0x5a);
    }
    poison_output(made);
    made->buffers.workspace_bytes = bytes - 1;
    assert_int_equal(tg_execute_plan(made->plan, &made->buffers), TG_STATUS_WORKSPACE_TOO_SMALL);
    assert_non_null(strstr(tg_get_error_detail(), "workspace"));
    made->buffers.workspace_bytes = -1;
    assert_int_equal(tg_execute_plan(made->plan, &made->buffers), TG_STATUS_WORKSPACE_TOO_SMALL);
    made->buffers.workspace = block + BAND_BYTES + 8;
    made->buffers.workspace_bytes = bytes;
    assert_int_equal(tg_execute_plan(made->plan, &made->buffers), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "aligned"));
    assert_poisoned(made);
    free(block);
}

static void test_workspaces_of_every_row(void **state)
{
    (void)state;
    int with_workspace_count = 0;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info row;
        planned made;
        tg_plan *plan;
        assert_int_equal(tg_get_kernel_info(NULL, i, &row), TG_STATUS_OK);
        tg_plan_options options = {.struct_bytes = sizeof options, .kernel = row.name};
        tg_problem problem = tg_make_problem(tg_make_matrix(row.type, NULL, 75, 40),
                                             tg_make_matrix(row.type, NULL, 40, 90),
                                             tg_make_matrix(row.type, NULL, 75, 90));
        if (tg_create_plan(NULL, &problem, &options, &plan) != TG_STATUS_OK)
            continue;
        tg_destroy_plan(plan);
        make_planned(&made, row.name, row.type, 75, 90, 40);
        assert_string_equal(made.info.kernel, row.name);
        if (made.info.workspace_bytes > 0) {
            check_callers_workspace(&made);
            with_workspace_count++;
        }
        made.buffers.workspace = NULL;
        poison_output(&made);
        assert_int_equal(tg_execute_plan(made.plan, &made.buffers), TG_STATUS_OK);
        assert_right(&made.problem);
        free_planned(&made);
    }
    assert_true(with_workspace_count > 0);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    static const int64_t sizes[][3] = {
        {4096, 4096, 4096}, {64, 64, 65536}, {16, 4096, 4096}, {20000, 20000, 300}};
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        for (int i = 0; i < 4; i++) {
            const int64_t *size = sizes[i];
            tg_plan *plan;
            tg_plan_info info;
            tg_problem problem =
                tg_make_problem(tg_make_matrix((tg_type)type, NULL, size[0], size[2]),
                                tg_make_matrix((tg_type)type, NULL, size[2], size[1]),
                                tg_make_matrix((tg_type)type, NULL, size[0], size[1]));
            assert_int_equal(tg_create_plan(NULL, &problem, NULL, &plan), TG_STATUS_OK);
            assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
            assert_true(info.workspace_bytes < 32 << 20);
            assert_true(info.predicted_s > 0);
            tg_destroy_plan(plan);
        }
    }
}

static void test_reuse(void **state)
{
    (void)state;
    planned first, second;
    make_planned(&first, NULL, TG_TYPE_FP32, 50, 61, 70);
    make_planned(&second, NULL, TG_TYPE_FP32, 50, 61, 70);
    for (int i = 0; i < 3; i++) {
        poison_output(&first);
        assert_int_equal(tg_execute_plan(first.plan, &first.buffers), TG_STATUS_OK);
        assert_right(&first.problem);
        assert_int_equal(tg_execute_plan(first.plan, &second.buffers), TG_STATUS_OK);
        assert_right(&second.problem);
    }
    free_planned(&first); /* a plan of the same problem lives on */
    poison_output(&second);
    assert_int_equal(tg_execute_plan(second.plan, &second.buffers), TG_STATUS_OK);
    assert_right(&second.problem);
    free_planned(&second);
}

/* Plans more shapes than a cache of plans is likely to hold, twice over. */
static void test_many_shapes(void **state)
{
    (void)state;
    static float a[40 * 40], b[40 * 40], d[40 * 40];
    for (int i = 0; i < 1600; i++)
        a[i] = b[i] = 1;
    for (int64_t round = 0; round < 2; round++) {
        for (int64_t i = 0; i < 40 * 40; i++) {
            int64_t m = 1 + i % 40, n = 1 + i / 40, k = 1 + (i * 7) % 40;
            tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, m, k),
                                                 tg_make_matrix(TG_TYPE_FP32, b, k, n),
                                                 tg_make_matrix(TG_TYPE_FP32, d, m, n));
            problem.alpha = (double)(1 + i % 3);
            d[m * n - 1] = NAN;
            assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
            assert_true(d[0] == (float)(k * (1 + i % 3)) && d[m * n - 1] == d[0]);
        }
    }
}

static void test_null(void **state)
{
    (void)state;
    planned made;
    tg_plan_info info;
    make_planned(&made, NULL, TG_TYPE_FP64, 5, 6, 7);
    assert_int_equal(tg_execute_plan(NULL, &made.buffers), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_execute_plan(made.plan, NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_get_plan_info(NULL, &info, sizeof info), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_get_plan_info(made.plan, NULL, 0), TG_STATUS_INVALID_ARGUMENT);
    made.buffers.b = NULL;
    assert_int_equal(tg_execute_plan(made.plan, &made.buffers), TG_STATUS_INVALID_ARGUMENT);
    assert_poisoned(&made);
    made.buffers.b = made.problem.b.data;
    made.buffers.a = made.buffers.d;
    assert_int_equal(tg_execute_plan(made.plan, &made.buffers), TG_STATUS_OVERLAP);
    assert_poisoned(&made);
    free_planned(&made);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_workspaces_of_every_row),
        cmocka_unit_test(test_memory_is_bounded),
        cmocka_unit_test(test_reuse),
        cmocka_unit_test(test_many_shapes),
        cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
