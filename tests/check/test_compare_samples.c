/*
 * The comparator's samples of a D that is too large to compare all of it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "check/check.h"

/* If D is too large to compare all of it, the sample holds its corners. Its crossing lines meet
 * errors of a whole row, of a column or of the middle of a tile row. */
static void test_sample(void **state)
{
    (void)state;
    check_operands operands;
    check_result result;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, 200, 30),
                                         tg_make_matrix(TG_TYPE_FP32, NULL, 30, 300),
                                         tg_make_matrix(TG_TYPE_FP32, NULL, 200, 300));
    problem.batch_count = 20;
    problem.a.batch_stride = 200 * 30;
    problem.d.batch_stride = 200 * 300;
    assert_true(check_make_operands(&problem, 3, &operands));
    float *a = problem.a.data, *b = problem.b.data, *d = problem.d.data;
    for (int64_t p = 0; p < 20; p++) {
        for (int64_t i = 0; i < 200; i++) {
            for (int64_t j = 0; j < 300; j++) {
                double sum = 0;
                for (int64_t l = 0; l < 30; l++)
                    sum += (double)a[p * 6000 + i * 30 + l] * b[l * 300 + j];
                d[p * 60000 + i * 300 + j] = (float)sum;
            }
        }
    }
    check_compare(&problem, 1e6, &result);
    assert_true(result.is_ok);
    assert_true(result.checked_count > 10000 && result.checked_count < 20 * 60000 / 4);
    static const int64_t corners[] = {0, 299, 199 * 300, 199 * 300 + 299};
    for (int i = 0; i < 4; i++) {
        int64_t index = corners[i] + (i % 2 ? 19 * 60000 : 0);
        float kept = d[index];
        d[index] = kept + 1;
        check_compare(&problem, 1e6, &result);
        assert_false(result.is_ok);
        assert_int_equal(result.bad_batch, i % 2 ? 19 : 0);
        d[index] = kept;
    }
    for (int64_t j = 0; j < 300; j++)
        d[77 * 300 + j] += 1;
    check_compare(&problem, 1e6, &result);
    assert_false(result.is_ok);
    check_free_operands(&operands);
}

/* A sample of crossings keeps to its limit where a line is longer, and meets a wrong tile. */
static void test_crossings(void **state)
{
    (void)state;
    enum { m = 64, n = 96, k = 4000 };
    const double limit = 2e6;
    check_operands operands;
    check_result result;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP64, NULL, m, k),
                                         tg_make_matrix(TG_TYPE_FP64, NULL, k, n),
                                         tg_make_matrix(TG_TYPE_FP64, NULL, m, n));
    assert_true(check_make_operands(&problem, 3, &operands));
    const double *a = problem.a.data, *b = problem.b.data;
    double *d = problem.d.data;
    for (int64_t i = 0; i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            d[i * n + j] = 0;
            for (int64_t l = 0; l < k; l++)
                d[i * n + j] += a[i * k + l] * b[l * n + j];
        }
    }
    check_compare_crossings(&problem, limit, &result);
    assert_true(result.is_ok);
    assert_true(result.checked_count > 400 && (double)result.checked_count * k <= limit);
    for (int64_t i = 16; i < 32; i++)
        for (int64_t j = 32; j < 48; j++)
            d[i * n + j] += 1;
    check_compare_crossings(&problem, limit, &result);
    assert_false(result.is_ok);
    check_free_operands(&operands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sample),
        cmocka_unit_test(test_crossings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
