/*
 * Tests that every kernel ends a sum as epilogue.h says. If k is 1, a sum is one product and so the
 * same in any order. D then has the bits of tgi_epilogue_fp32 or _fp64 compiled for the kernel's
 * instruction set, for every bias, activation, alpha and beta. No bound is needed: if an
 * instruction set has fused multiply-adds, both sides fuse beta c + t, and nothing else outside the
 * activations; if it has none, neither side does. Wrong orders show that the bits tell.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "activation_loops.h"
#include "check/check.h"

#define M 7
#define N 83 /* is more than is finished at once, and no multiple of a vector */

/* Returns the loops compiled for a row's instruction set. */
static const activation_loops *find_loops(const char *isa)
{
#ifdef TEST_X86_LOOPS
    if (strcmp(isa, "avx2") == 0)
        return &loops_avx2;
    if (strncmp(isa, "avx512", strlen("avx512")) == 0)
        return &loops_avx512;
#endif
    assert_string_equal(isa, "generic");
    return &loops_generic;
}

/* Computes element (i, j) of D from the operands, in FP32. */
static double finish_in_fp32(const activation_loops *loops, const tg_problem *p, int64_t i,
                             int64_t j)
{
    const tg_type type = p->a.type, d_type = p->d.type;
    volatile float sum =
        (float)check_get_element(type, p->a.data, i) * (float)check_get_element(type, p->b.data, j);
    float c = p->beta != 0 ? (float)check_get_element(d_type, p->c.data, i * N + j) : 0;
    int has_bias = p->bias != TG_BIAS_NONE;
    float bias =
        has_bias ? (float)check_get_element(d_type, p->bias_data, p->bias == TG_BIAS_ROW ? i : j)
                 : 0;
    return (double)loops->finish_fp32(sum, (float)p->alpha, (float)p->beta, c, has_bias, bias,
                                      p->activation, tg_get_type_bytes(d_type) < 4);
}

static double finish_in_fp64(const activation_loops *loops, const tg_problem *p, int64_t i,
                             int64_t j)
{
    const double *a = p->a.data, *b = p->b.data, *c = p->c.data, *bias = p->bias_data;
    volatile double sum = a[i] * b[j];
    int has_bias = p->bias != TG_BIAS_NONE;
    return loops->finish_fp64(sum, p->alpha, p->beta, p->beta != 0 ? c[i * N + j] : 0, has_bias,
                              has_bias ? bias[p->bias == TG_BIAS_ROW ? i : j] : 0, p->activation);
}

/* Counts the elements of D whose bits are not those of the epilogue. */
static int count_differences(const activation_loops *loops, const tg_problem *p)
{
    const size_t elem_bytes = (size_t)tg_get_type_bytes(p->d.type);
    int count = 0;
    for (int64_t i = 0; i < M; i++) {
        for (int64_t j = 0; j < N; j++) {
            uint64_t expected = 0;
            check_set_element(p->d.type, &expected, 0,
                              p->a.type == TG_TYPE_FP64 ? finish_in_fp64(loops, p, i, j)
                                                        : finish_in_fp32(loops, p, i, j));
            const char *element = (const char *)p->d.data + (size_t)(i * N + j) * elem_bytes;
            count += memcmp(element, &expected, elem_bytes) != 0;
        }
    }
    return count;
}

static tg_problem make_problem(tg_type type, tg_type d_type, int index)
{
    static const double alphas[] = {1, -0.3}, betas[] = {0, 1, -1.7};
    tg_problem problem =
        tg_make_problem(tg_make_matrix(type, NULL, M, 1), tg_make_matrix(type, NULL, 1, N),
                        tg_make_matrix(d_type, NULL, M, N));
    problem.alpha = alphas[index % 2];
    problem.beta = betas[index / 2 % 3];
    problem.bias = (tg_bias)(index / 6 % 3);
    problem.activation = (tg_activation)(index / 18);
    return problem;
}

enum { problem_count = 2 * 3 * 3 * (TG_ACTIVATION_SILU + 1) };

/* Runs one row on one problem. Returns 0 if it cannot. */
static int run_row(tg_context *context, const tg_kernel_info *info, const tg_problem *problem)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info->name};
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = problem->a.data,
                                .b = problem->b.data,
                                .c = problem->c.data,
                                .d = problem->d.data,
                                .bias = problem->bias_data};
    tg_plan *plan;
    tg_status status = tg_create_plan(context, problem, &options, &plan);
    if (status == TG_STATUS_UNSUPPORTED)
        return 0;
    assert_int_equal(status, TG_STATUS_OK);
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    tg_destroy_plan(plan);
    return 1;
}

static int check_row(tg_context *context, const tg_kernel_info *info, tg_type d_type)
{
    int run_count = 0;
    for (int index = 0; index < problem_count; index++) {
        check_operands operands;
        tg_problem problem = make_problem(info->type, d_type, index);
        assert_int_equal(check_make_operands(&problem, (uint64_t)index, &operands), 1);
        if (run_row(context, info, &problem)) {
            int count = count_differences(find_loops(info->isa), &problem);
            if (count > 0)
                fail_msg("%s, alpha %g, beta %g, bias %s, activation %s, D in %s: %d elements "
                         "differ from the epilogue",
                         info->name, problem.alpha, problem.beta, tg_get_bias_name(problem.bias),
                         tg_get_activation_name(problem.activation), tg_get_type_name(d_type),
                         count);
            run_count++;
        }
        check_free_operands(&operands);
    }
    return run_count;
}

static void test_every_row(void **state)
{
    (void)state;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    tg_context *context;
    int run_count = 0;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    for (int row = 0; row < tg_get_kernel_count(); row++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, row, &info), TG_STATUS_OK);
        if (!info.is_available)
            continue;
        run_count += check_row(context, &info, info.type);
        if (info.type == TG_TYPE_BF16 || info.type == TG_TYPE_FP16)
            run_count += check_row(context, &info, TG_TYPE_FP32);
    }
    tg_destroy_context(context);
    printf("%d products\n", run_count);
    assert_true(run_count >= 10 * problem_count);
}

static float add_bias_first(float sum, float alpha, float beta, float c, int has_bias, float bias,
                            tg_activation kind, int is_narrow)
{
    return loops_generic.finish_fp32(sum, alpha, has_bias, bias, beta != 0, beta * c, kind,
                                     is_narrow);
}

static float scale_last(float sum, float alpha, float beta, float c, int has_bias, float bias,
                        tg_activation kind, int is_narrow)
{
    return loops_generic.finish_fp32(sum + beta * c / alpha, alpha, 0, 0, has_bias, bias, kind,
                                     is_narrow);
}

static float activate_first(float sum, float alpha, float beta, float c, int has_bias, float bias,
                            tg_activation kind, int is_narrow)
{
    float t = loops_generic.finish_fp32(sum, alpha, beta, c, 0, 0, kind, is_narrow);
    return has_bias ? t + bias : t;
}

/* For each other order of operations, some problem tells it from the right one. */
static void test_other_orders_are_told(void **state)
{
    (void)state;
    static finish_fp32 *const wrong[] = {add_bias_first, scale_last, activate_first};
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    const tg_kernel_info info = {.name = "cpu_sequential_generic_fp32"};
    tg_context *context;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        activation_loops loops = loops_generic;
        loops.finish_fp32 = wrong[i];
        int count = 0;
        for (int index = 0; index < problem_count; index++) {
            check_operands operands;
            tg_problem problem = make_problem(TG_TYPE_FP32, TG_TYPE_FP32, index);
            assert_int_equal(check_make_operands(&problem, (uint64_t)index, &operands), 1);
            assert_int_equal(run_row(context, &info, &problem), 1);
            count += count_differences(&loops, &problem);
            check_free_operands(&operands);
        }
        assert_true(count > 100);
    }
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_row),
        cmocka_unit_test(test_other_orders_are_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
