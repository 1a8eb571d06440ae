/*
 * Tests the edges of BLAS: alpha = 0 never reads A or B, beta = 0 never reads C, k = 0, empty D.
 * Operands that must not be read are unreadable memory, or NULL.
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
#include <sys/mman.h>

#include <cmocka.h>

#include "check/check.h"

#define UNREADABLE_BYTES ((size_t)1 << 24)
#define SIZE_MAX_ELEMS (70 * 70)

/* Each family of kernels takes one of these sizes. */
static const int64_t sizes[][3] = {{3, 4, 5}, {70, 66, 33}, {1, 70, 40}, {70, 1, 40}, {16, 70, 9}};
#define SIZE_COUNT (sizeof sizes / sizeof *sizes)

static char *unreadable;

static tg_problem make_problem(tg_type type, const int64_t *size, void *d)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(type, unreadable, size[0], size[2]),
                                         tg_make_matrix(type, unreadable, size[2], size[1]),
                                         tg_make_matrix(type, d, size[0], size[1]));
    problem.c.data = unreadable;
    return problem;
}

static void fill(tg_type type, void *data, double value)
{
    for (int64_t i = 0; i < SIZE_MAX_ELEMS; i++)
        check_set_element(type, data, i, value);
}

/* Asserts that every element is `value`, rounded to D's type, and that the memory after the last is
 * as it was. */
static void assert_all(const tg_problem *problem, double value)
{
    uint64_t stored; /* has room for an element of any type */
    check_set_element(problem->d.type, &stored, 0, value);
    value = check_get_element(problem->d.type, &stored, 0);
    int64_t count = problem->d.row_count * problem->d.col_count;
    for (int64_t i = 0; i < count; i++)
        assert_true(check_get_element(problem->d.type, problem->d.data, i) == value);
    if (count < SIZE_MAX_ELEMS)
        assert_true(isnan(check_get_element(problem->d.type, problem->d.data, count)));
}

static void compute(const tg_problem *problem)
{
    if (tg_multiply(NULL, problem) != TG_STATUS_OK)
        fail_msg("%s", tg_get_error_detail());
}

static void test_alpha_0(void **state)
{
    (void)state;
    static double d[SIZE_MAX_ELEMS], c[SIZE_MAX_ELEMS], bias[SIZE_MAX_ELEMS];
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            tg_problem problem = make_problem((tg_type)type, sizes[i], d);
            problem.alpha = 0;
            fill((tg_type)type, d, NAN);
            compute(&problem);
            assert_all(&problem, 0);
            problem.a.data = problem.b.data = NULL;
            problem.c.data = NULL;
            fill((tg_type)type, d, NAN);
            compute(&problem);
            assert_all(&problem, 0);
            problem.beta = 3;
            problem.c.data = c;
            problem.bias = TG_BIAS_ROW;
            problem.bias_data = bias;
            problem.activation = TG_ACTIVATION_RELU;
            fill((tg_type)type, c, 2);
            fill((tg_type)type, bias, -1);
            compute(&problem);
            assert_all(&problem, 5);
            problem.beta = -3;
            compute(&problem);
            assert_all(&problem, 0);
        }
    }
}

static void test_beta_0(void **state)
{
    (void)state;
    static double a[SIZE_MAX_ELEMS], b[SIZE_MAX_ELEMS], d[SIZE_MAX_ELEMS];
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        fill((tg_type)type, a, 1);
        fill((tg_type)type, b, 1);
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            tg_problem problem = make_problem((tg_type)type, sizes[i], d);
            problem.a.data = a;
            problem.b.data = b;
            fill((tg_type)type, d, NAN); /* because C = D would be read */
            compute(&problem);
            assert_all(&problem, (double)sizes[i][2]);
            problem.c = problem.d;
            fill((tg_type)type, d, NAN);
            compute(&problem);
            assert_all(&problem, (double)sizes[i][2]);
            problem.c.data = NULL;
            problem.c.row_count = -1;
            problem.c.type = (tg_type)77;
            problem.c.row_stride = INT64_MIN;
            compute(&problem);
            assert_all(&problem, (double)sizes[i][2]);
            static const double zeros[] = {-0.0, 0x1p-200}; /* the latter is 0 in FP32 */
            for (int j = 0; j < (type == TG_TYPE_FP64 ? 1 : 2); j++) {
                problem.beta = zeros[j];
                problem.c = problem.d;
                fill((tg_type)type, d, NAN);
                compute(&problem);
                assert_all(&problem, (double)sizes[i][2]);
            }
        }
    }
}

static void test_k_0(void **state)
{
    (void)state;
    static double d[SIZE_MAX_ELEMS];
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        for (size_t i = 0; i < SIZE_COUNT; i++) {
            int64_t size[] = {sizes[i][0], sizes[i][1], 0};
            tg_problem problem = make_problem((tg_type)type, size, d);
            fill((tg_type)type, d, NAN);
            compute(&problem);
            assert_all(&problem, 0);
            problem.a.data = problem.b.data = NULL;
            problem.alpha = INFINITY; /* there is no product that it could scale */
            compute(&problem);
            assert_all(&problem, 0);
        }
    }
}

static void test_empty(void **state)
{
    (void)state;
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP8_E5M2; type++) {
        for (int i = 0; i < 3; i++) {
            int64_t size[] = {i == 0 ? 0 : 70, i == 1 ? 0 : 70, 30};
            tg_problem problem = make_problem((tg_type)type, size, unreadable);
            problem.batch_count = i == 2 ? 0 : 1;
            problem.bias = TG_BIAS_COL;
            problem.bias_data = unreadable;
            compute(&problem);
            problem.a.data = problem.b.data = problem.c.data = problem.d.data = NULL;
            problem.bias_data = NULL;
            problem.beta = 1;
            compute(&problem);
        }
    }
}

/* NaN * 0 is NaN: a zero in A, B or alpha hides nothing. */
static void test_nan_times_zero(void **state)
{
    (void)state;
    static float a[SIZE_MAX_ELEMS], b[SIZE_MAX_ELEMS], d[SIZE_MAX_ELEMS];
    for (size_t i = 0; i < SIZE_COUNT; i++) {
        tg_problem problem = make_problem(TG_TYPE_FP32, sizes[i], d);
        problem.a.data = a;
        problem.b.data = b;
        fill(TG_TYPE_FP32, a, 0);
        fill(TG_TYPE_FP32, b, NAN);
        fill(TG_TYPE_FP32, d, 0);
        compute(&problem);
        for (int64_t j = 0; j < sizes[i][0] * sizes[i][1]; j++)
            assert_true(isnan(d[j]));
        fill(TG_TYPE_FP32, a, INFINITY);
        fill(TG_TYPE_FP32, b, 0);
        fill(TG_TYPE_FP32, d, 0);
        compute(&problem);
        for (int64_t j = 0; j < sizes[i][0] * sizes[i][1]; j++)
            assert_true(isnan(d[j]));
    }
}

static int map_unreadable(void **state)
{
    (void)state;
    unreadable = mmap(NULL, UNREADABLE_BYTES, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return unreadable == MAP_FAILED;
}

static int unmap_unreadable(void **state)
{
    (void)state;
    return munmap(unreadable, UNREADABLE_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alpha_0),
        cmocka_unit_test(test_beta_0),
        cmocka_unit_test(test_k_0),
        cmocka_unit_test(test_empty),
        cmocka_unit_test(test_nan_times_zero),
    };
    return cmocka_run_group_tests(tests, map_unreadable, unmap_unreadable);
}
