/*
 * Tests the report of Freivalds' check: right results of every shape and type pass, a wrong element
 * anywhere is named by its row, and NaN and Inf that belong in D are told from those that do not. D
 * comes from a plain loop in the accumulator's type.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "check/freivalds.h"

#define ROUNDS 20

static double get(const tg_matrix *view, int64_t batch, int64_t row, int64_t col)
{
    return check_get_element(view->type, view->data,
                             batch * view->batch_stride + row * view->row_stride +
                                 col * view->col_stride);
}

static void set(const tg_matrix *view, int64_t row, int64_t col, double value)
{
    check_set_element(view->type, view->data, row * view->row_stride + col * view->col_stride,
                      value);
}

/* Rounds as the accumulator does. */
static double narrow(const tg_problem *problem, double value)
{
    return problem->a.type == TG_TYPE_FP64 ? value : (double)(float)value;
}

static double compute_element(const tg_problem *p, int64_t batch, int64_t row, int64_t col)
{
    int is_a_transposed = p->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = p->op_b == TG_OPERATION_TRANSPOSE;
    int64_t k = is_a_transposed ? p->a.row_count : p->a.col_count;
    double sum = 0;
    for (int64_t l = 0; p->alpha != 0 && l < k; l++) {
        double a = is_a_transposed ? get(&p->a, batch, l, row) : get(&p->a, batch, row, l);
        double b = is_b_transposed ? get(&p->b, batch, col, l) : get(&p->b, batch, l, col);
        sum = narrow(p, sum + narrow(p, a * b));
    }
    double value = p->alpha != 0 ? narrow(p, narrow(p, p->alpha) * sum) : 0;
    if (p->beta != 0)
        value = narrow(p, value + narrow(p, p->beta) * get(&p->c, batch, row, col));
    if (p->bias != TG_BIAS_NONE)
        value = narrow(p, value + check_get_element(p->d.type, p->bias_data,
                                                    p->bias == TG_BIAS_ROW ? row : col));
    return value;
}

static void compute(const tg_problem *p)
{
    for (int64_t batch = 0; batch < p->batch_count; batch++)
        for (int64_t i = 0; i < p->d.row_count; i++)
            for (int64_t j = 0; j < p->d.col_count; j++)
                check_set_element(p->d.type, p->d.data,
                                  batch * p->d.batch_stride + i * p->d.row_stride +
                                      j * p->d.col_stride,
                                  compute_element(p, batch, i, j));
}

static check_freivalds_report check(const tg_problem *problem)
{
    check_freivalds_report report;
    assert_int_equal(check_report_freivalds(problem, ROUNDS, 1, &report), 1);
    return report;
}

static tg_problem make(const char *text, check_operands *operands)
{
    tg_problem problem;
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(check_make_operands(&problem, 5, operands), 1);
    return problem;
}

static void test_right_passes(void **state)
{
    (void)state;
    static const char *texts[] = {
        "17x19x23",
        "17x19x23:tt:fp64",
        "9x40x300:bf16",
        "9x40x300:nt:bf16:d=fp32",
        "30x9x200:tn:fp16",
        "8x8x8:batch=4:alpha=2:beta=-1:bias=col",
        "5x7x3:fp64:alpha=-0.3:beta=0.1:bias=row",
        "8x8x8:lda=10:ldb=12:ldc=9:ldd=9:beta=1",
        "6x5x4:dcol:bias=row",
        "1x1x1",
        "4x4x0:beta=2",
        "0x5x5",
        "5x0x5",
        "7x7x7:alpha=0:beta=1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_operands operands;
        tg_problem problem = make(texts[i], &operands);
        compute(&problem);
        check_freivalds_report report = check(&problem);
        if (!report.is_ok)
            fail_msg("%s: row %d fails at %g", texts[i], (int)report.bad_row, report.worst_share);
        assert_true(report.worst_share <= 1);
        assert_int_equal(report.bad_row, -1);
        int64_t rows = problem.d.col_count ? problem.d.row_count : 0; /* with elements */
        assert_int_equal(report.compared_row_count, rows * problem.batch_count);
        check_free_operands(&operands);
    }
}

/* The worst case passes: every rounding error of a sum of equal numbers has the same sign for
 * long. */
static void test_biased_rounding_passes(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("3x4x30000", &operands);
    for (int64_t l = 0; l < 30000; l++) {
        for (int64_t i = 0; i < 3; i++)
            set(&problem.a, i, l, 0.1);
        for (int64_t j = 0; j < 4; j++)
            set(&problem.b, l, j, 0.7);
    }
    compute(&problem);
    assert_true(fabs(get(&problem.d, 0, 0, 0) - 2100) > 0.01); /* FP32 alone is so far off */
    assert_true(check(&problem).is_ok);
    check_free_operands(&operands);
}

static void test_one_wrong_element(void **state)
{
    (void)state;
    static const char *texts[] = {"6x7x8", "6x7x8:fp64:beta=1", "6x7x8:bf16:d=fp32", "6x7x8:fp16"};
    for (size_t t = 0; t < sizeof texts / sizeof texts[0]; t++) {
        check_operands operands;
        tg_problem problem = make(texts[t], &operands);
        compute(&problem);
        for (int64_t i = 0; i < 6; i++) {
            for (int64_t j = 0; j < 7; j++) {
                double right = get(&problem.d, 0, i, j);
                const double wrong[] = {right + 0.5, -right - 0.25, NAN, INFINITY};
                for (size_t w = 0; w < sizeof wrong / sizeof wrong[0]; w++) {
                    set(&problem.d, i, j, wrong[w]);
                    check_freivalds_report report = check(&problem);
                    assert_false(report.is_ok);
                    assert_int_equal(report.bad_row, i);
                    assert_true(report.worst_share > 1);
                }
                set(&problem.d, i, j, right);
            }
        }
        assert_true(check(&problem).is_ok);
        check_free_operands(&operands);
    }
}

/* Finds errors as kernels make them, at a size where the bound is wide. */
static void test_wrong_structure(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("96x96x96", &operands);
    compute(&problem);
    assert_true(check(&problem).is_ok);
    set(&problem.d, 40, 50, 0); /* is an element never written */
    assert_int_equal(check(&problem).bad_row, 40);
    compute(&problem);
    problem.b.row_count = problem.a.col_count = 95; /* sums too many values of k */
    assert_false(check(&problem).is_ok);
    problem.b.row_count = problem.a.col_count = 96;
    problem.op_b = TG_OPERATION_TRANSPOSE;
    assert_false(check(&problem).is_ok);
    problem.op_b = TG_OPERATION_NONE;
    problem.alpha = 1.001;
    assert_false(check(&problem).is_ok);
    check_free_operands(&operands);
}

static void test_special_values(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("6x7x8:beta=1", &operands);
    set(&problem.a, 2, 3, NAN);
    set(&problem.b, 4, 5, INFINITY);
    set(&problem.c, 1, 1, -INFINITY);
    compute(&problem);
    check_freivalds_report report = check(&problem);
    assert_true(report.is_ok);
    assert_int_equal(report.skipped_row_count, 2);
    assert_int_equal(report.compared_row_count, 4);
    assert_int_equal(report.class_elem_count, 7 + 5 + 1);
    const int64_t special[][2] = {{2, 0}, {2, 5}, {0, 5}, {1, 1}};
    for (size_t s = 0; s < sizeof special / sizeof special[0]; s++) {
        double right = get(&problem.d, 0, special[s][0], special[s][1]);
        set(&problem.d, special[s][0], special[s][1], 1); /* NaN or Inf belongs here */
        report = check(&problem);
        assert_false(report.is_ok);
        assert_int_equal(report.bad_row, special[s][0]);
        set(&problem.d, special[s][0], special[s][1], right);
    }
    set(&problem.d, 3, 0, get(&problem.d, 0, 3, 0) + 1); /* lies beside the masked column */
    assert_int_equal(check(&problem).bad_row, 3);
    check_free_operands(&operands);
}

/* beta = 0 never reads C, alpha = 0 neither A nor B. */
static void test_unread_operands(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("4x5x6:beta=1", &operands);
    void *a = problem.a.data, *b = problem.b.data;
    problem.alpha = 0;
    compute(&problem);
    problem.a.data = problem.b.data = NULL;
    assert_true(check(&problem).is_ok);
    problem.a.data = a;
    problem.b.data = b;
    problem.alpha = 1;
    problem.beta = 0;
    compute(&problem);
    problem.c.data = NULL;
    assert_true(check(&problem).is_ok);
    check_free_operands(&operands);
}

static void test_overflow(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("3x4x5:fp16", &operands);
    for (int64_t l = 0; l < 5; l++) {
        set(&problem.a, 1, l, 60000);
        set(&problem.b, l, 2, 2);
    }
    compute(&problem);
    assert_true(isinf(get(&problem.d, 0, 1, 2)));
    check_freivalds_report report = check(&problem);
    assert_true(report.is_ok);
    assert_int_equal(report.skipped_row_count, 1);
    set(&problem.d, 0, 0, INFINITY); /* the small sums of this row cannot */
    assert_int_equal(check(&problem).bad_row, 0);
    check_free_operands(&operands);
}

static void test_batch_and_refusals(void **state)
{
    (void)state;
    check_operands operands;
    check_freivalds_report report;
    tg_problem problem = make("5x5x5:batch=3", &operands);
    compute(&problem);
    assert_true(check(&problem).is_ok);
    ((float *)problem.d.data)[2 * problem.d.batch_stride + 3 * problem.d.row_stride] += 1;
    assert_int_equal(check(&problem).bad_batch, 2);
    assert_int_equal(check(&problem).bad_row, 3);
    assert_int_equal(check_report_freivalds(&problem, 0, 1, &report), -1);
    assert_int_equal(check_report_freivalds(&problem, CHECK_ROUND_COUNT_MAX + 1, 1, &report), -1);
    problem.activation = TG_ACTIVATION_RELU;
    assert_int_equal(check_report_freivalds(&problem, ROUNDS, 1, &report), -1);
    check_free_operands(&operands);
}

typedef struct seen_shares {
    int count;
    double last;
} seen_shares;

static void see_share(void *state, double share)
{
    seen_shares *seen = state;
    assert_true(share > seen->last && share <= 1);
    seen->last = share;
    seen->count++;
}

/* A watcher sees growing shares up to the end, and changes nothing. */
static void test_watcher(void **state)
{
    (void)state;
    check_operands operands;
    tg_problem problem = make("300x300x300", &operands);
    check_freivalds_report plain, watched;
    seen_shares seen = {.count = 0};
    const check_watcher watcher = {.show = see_share, .state = &seen};
    assert_int_equal(check_report_freivalds(&problem, ROUNDS, 1, &plain), 1);
    assert_int_equal(check_watch_freivalds(&problem, ROUNDS, 1, &watcher, &watched), 1);
    assert_true(plain.is_ok == watched.is_ok && plain.bad_row == watched.bad_row);
    assert_true(seen.count >= 5 && seen.last > 0.8);
    check_free_operands(&operands);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_passes),      cmocka_unit_test(test_biased_rounding_passes),
        cmocka_unit_test(test_one_wrong_element), cmocka_unit_test(test_wrong_structure),
        cmocka_unit_test(test_special_values),    cmocka_unit_test(test_unread_operands),
        cmocka_unit_test(test_overflow),          cmocka_unit_test(test_batch_and_refusals),
        cmocka_unit_test(test_watcher),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
