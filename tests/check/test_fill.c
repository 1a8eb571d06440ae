/*
 * Tests random numbers, element access and operands.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"

static void test_random_stream(void **state)
{
    (void)state;
    /* These numbers come from the published reference implementation of splitmix64, with seed
     * 1234567. */
    static const uint64_t expected[] = {UINT64_C(6457827717110365317),
                                        UINT64_C(3203168211198807973),
                                        UINT64_C(9817491932198370423)};
    uint64_t random = 1234567;
    for (int i = 0; i < 3; i++)
        assert_true(check_next_random(&random) == expected[i]);
    double sum = 0, low = 1, high = -1;
    for (int i = 0; i < 100000; i++) {
        double value = check_next_uniform(&random);
        sum += value;
        low = fmin(low, value);
        high = fmax(high, value);
    }
    assert_true(low >= -1 && low < -0.999 && high < 1 && high > 0.999);
    assert_true(fabs(sum) < 1000);
}

static void test_elements(void **state)
{
    (void)state;
    static const double values[] = {0, 1, -1, 0.5, -2.5, 96, INFINITY, -INFINITY};
    uint64_t buffer[4];
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        memset(buffer, 0, sizeof buffer);
        for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
            check_set_element((tg_type)type, buffer, 2, values[i]);
            double largest = type == TG_TYPE_FP8_E4M3   ? 448
                             : type == TG_TYPE_FP8_E5M2 ? 57344
                                                        : INFINITY;
            double kept = fmax(fmin(values[i], largest), -largest);
            assert_true(check_get_element((tg_type)type, buffer, 2) == kept);
            assert_true(check_get_element((tg_type)type, buffer, 1) == 0);
            assert_true(check_get_element((tg_type)type, buffer, 3) == 0);
        }
        check_set_element((tg_type)type, buffer, 2, NAN);
        assert_true(isnan(check_get_element((tg_type)type, buffer, 2)));
    }
}

static tg_problem make_strided_problem(void)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, 5, 4),
                                         tg_make_matrix(TG_TYPE_FP32, NULL, 4, 3),
                                         tg_make_matrix(TG_TYPE_FP32, NULL, 5, 3));
    problem.batch_count = 3;
    problem.a.row_stride = -7;
    problem.a.col_stride = -1;
    problem.a.batch_stride = 40;
    problem.b.row_stride = 0;
    problem.b.batch_stride = -9;
    problem.d.batch_stride = 20;
    problem.bias = TG_BIAS_ROW;
    return problem;
}

/* Sums all elements. The address of each must lie in the allocation: a sanitizer sees one that does
 * not. */
static double sum_view(const tg_matrix *view, int64_t batch_count)
{
    double sum = 0;
    for (int64_t p = 0; p < batch_count; p++) {
        for (int64_t i = 0; i < view->row_count; i++) {
            for (int64_t j = 0; j < view->col_count; j++) {
                int64_t offset =
                    p * view->batch_stride + i * view->row_stride + j * view->col_stride;
                sum += check_get_element(view->type, view->data, offset);
            }
        }
    }
    return sum;
}

static void test_operands(void **state)
{
    (void)state;
    check_operands first_operands, second_operands;
    tg_problem first = make_strided_problem(), second = first;
    assert_true(check_make_operands(&first, 7, &first_operands));
    assert_true(check_make_operands(&second, 7, &second_operands));
    assert_true(isfinite(sum_view(&first.a, 3)) && isfinite(sum_view(&first.b, 3)));
    assert_true(sum_view(&first.a, 3) == sum_view(&second.a, 3));
    assert_true(sum_view(&first.b, 3) == sum_view(&second.b, 3));
    assert_true(isnan(sum_view(&first.d, 3)));
    assert_memory_equal(first.bias_data, second.bias_data, 5 * sizeof(float));
    assert_null(first_operands.allocation[TGI_OPERAND_c]); /* beta is 0 */
    check_free_operands(&first_operands);
    check_free_operands(&second_operands);

    first = make_strided_problem();
    first.beta = 1;
    first.bias = TG_BIAS_NONE;
    first.c.batch_stride = 15;
    assert_true(check_make_operands(&first, 8, &first_operands));
    assert_true(isfinite(sum_view(&first.c, 3)));
    assert_null(first_operands.allocation[TGI_OPERAND_bias]);
    second = first;
    assert_true(check_copy_operands(&second, &first_operands, &second_operands));
    assert_true(second.a.data != first.a.data && second.d.data != first.d.data);
    assert_true(sum_view(&first.a, 3) == sum_view(&second.a, 3));
    assert_true(sum_view(&first.c, 3) == sum_view(&second.c, 3));
    assert_null(second_operands.allocation[TGI_OPERAND_bias]);
    check_free_operands(&second_operands);
    check_free_operands(&first_operands);
    check_free_operands(&first_operands); /* a second time is harmless */
}

static void test_too_large_operands(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make_strided_problem();
    problem.b.row_stride = INT64_MAX / 2;
    assert_false(check_make_operands(&problem, 1, &operands));
    problem.b.row_stride = INT64_MAX / 16;
    assert_false(check_make_operands(&problem, 1, &operands));
    for (int i = 0; i < TGI_OPERAND_COUNT; i++)
        assert_null(operands.allocation[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random_stream),
        cmocka_unit_test(test_elements),
        cmocka_unit_test(test_operands),
        cmocka_unit_test(test_too_large_operands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
