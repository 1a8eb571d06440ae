/*
 * Problems as text: what each part sets, round trips, texts that are refused.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "kernels/runner.h"

#define TEXT_BYTES 512
#define RANDOM_TEXT_COUNT 20000
#define RANDOM_PROBLEMS 4000

static tg_problem parse(const char *text)
{
    tg_problem problem;
    memset(&problem, 0xa5, sizeof problem);
    if (tg_parse_problem(text, &problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    assert_null(problem.a.data);
    assert_null(problem.b.data);
    assert_null(problem.c.data);
    assert_null(problem.d.data);
    assert_null(problem.bias_data);
    return problem;
}

static void assert_view(const tg_matrix *view, int64_t row_count, int64_t col_count,
                        int64_t row_stride, int64_t col_stride)
{
    assert_int_equal(view->row_count, row_count);
    assert_int_equal(view->col_count, col_count);
    assert_int_equal(view->row_stride, row_stride);
    assert_int_equal(view->col_stride, col_stride);
}

static void test_defaults(void **state)
{
    (void)state;
    tg_problem problem = parse("1000x1200x800");
    assert_view(&problem.a, 1000, 800, 800, 1);
    assert_view(&problem.b, 800, 1200, 1200, 1);
    assert_view(&problem.c, 1000, 1200, 1200, 1);
    assert_view(&problem.d, 1000, 1200, 1200, 1);
    assert_int_equal(problem.a.type, TG_TYPE_FP32);
    assert_int_equal(problem.d.type, TG_TYPE_FP32);
    assert_int_equal(problem.op_a, TG_OPERATION_NONE);
    assert_int_equal(problem.op_b, TG_OPERATION_NONE);
    assert_int_equal(problem.batch_count, 1);
    assert_true(problem.alpha == 1 && problem.beta == 0);
    assert_int_equal(problem.precision, TG_PRECISION_DEFAULT);
    assert_int_equal(problem.bias, TG_BIAS_NONE);
    assert_int_equal(problem.activation, TG_ACTIVATION_NONE);
}

static void test_parts(void **state)
{
    (void)state;
    tg_problem problem = parse("512x384x64:nt:bf16:d=fp32");
    assert_int_equal(problem.a.type, TG_TYPE_BF16);
    assert_int_equal(problem.b.type, TG_TYPE_BF16);
    assert_int_equal(problem.c.type, TG_TYPE_FP32);
    assert_int_equal(problem.d.type, TG_TYPE_FP32);
    assert_int_equal(problem.op_a, TG_OPERATION_NONE);
    assert_int_equal(problem.op_b, TG_OPERATION_TRANSPOSE);
    assert_view(&problem.a, 512, 64, 64, 1);
    assert_view(&problem.b, 384, 64, 64, 1);

    problem = parse("6x7x8:tn:fp64");
    assert_int_equal(problem.op_a, TG_OPERATION_TRANSPOSE);
    assert_view(&problem.a, 8, 6, 6, 1);
    assert_view(&problem.b, 8, 7, 7, 1);
    assert_int_equal(problem.d.type, TG_TYPE_FP64);

    problem = parse("8x8x8:batch=4:alpha=2:beta=1:bias=col:act=gelu_erf:prec=ieee_fp32");
    assert_int_equal(problem.batch_count, 4);
    assert_int_equal(problem.a.batch_stride, 64);
    assert_int_equal(problem.d.batch_stride, 64);
    assert_true(problem.alpha == 2 && problem.beta == 1);
    assert_int_equal(problem.bias, TG_BIAS_COL);
    assert_int_equal(problem.activation, TG_ACTIVATION_GELU_ERF);
    assert_int_equal(problem.precision, TG_PRECISION_IEEE_FP32);

    problem = parse("5x6x7:lda=10:ldb=12:ldc=9:ldd=8");
    assert_view(&problem.a, 5, 7, 10, 1);
    assert_view(&problem.b, 7, 6, 12, 1);
    assert_view(&problem.c, 5, 6, 9, 1);
    assert_view(&problem.d, 5, 6, 8, 1);

    problem = parse("5x6x7:dcol");
    assert_view(&problem.d, 5, 6, 1, 5);
    assert_view(&problem.c, 5, 6, 1, 5);

    problem = parse("8x8x8:rsa=1:csa=-8:bsa=64:batch=2:rsd=2:csd=16");
    assert_view(&problem.a, 8, 8, 1, -8);
    assert_int_equal(problem.a.batch_stride, 64);
    assert_view(&problem.d, 8, 8, 2, 16);
    problem = parse("0x0x0:fp16:alpha=-0.125:beta=1e-3");
    assert_true(problem.alpha == -0.125 && problem.beta == 1e-3);
}

static void assert_same_view(const char *text, const tg_matrix *one, const tg_matrix *other,
                             int64_t batch_count)
{
    if (one->type != other->type || one->row_count != other->row_count ||
        one->col_count != other->col_count || one->row_stride != other->row_stride ||
        one->col_stride != other->col_stride ||
        (batch_count > 1 && one->batch_stride != other->batch_stride))
        fail_msg("the text %s gives another view", text);
}

static void check_round_trip(const tg_problem *problem)
{
    char text[TEXT_BYTES], again[TEXT_BYTES];
    assert_int_equal(tg_format_problem(problem, text, sizeof text), TG_STATUS_OK);
    tg_problem parsed = parse(text);
    assert_same_view(text, &problem->a, &parsed.a, problem->batch_count);
    assert_same_view(text, &problem->b, &parsed.b, problem->batch_count);
    assert_same_view(text, &problem->d, &parsed.d, problem->batch_count);
    if (problem->beta != 0)
        assert_same_view(text, &problem->c, &parsed.c, problem->batch_count);
    assert_true(problem->alpha == parsed.alpha && problem->beta == parsed.beta);
    assert_int_equal(problem->op_a, parsed.op_a);
    assert_int_equal(problem->op_b, parsed.op_b);
    assert_int_equal(problem->batch_count, parsed.batch_count);
    assert_int_equal(problem->precision, parsed.precision);
    assert_int_equal(problem->bias, parsed.bias);
    assert_int_equal(problem->activation, parsed.activation);
    assert_int_equal(tg_format_problem(&parsed, again, sizeof again), TG_STATUS_OK);
    assert_string_equal(text, again);
}

static void test_round_trips(void **state)
{
    (void)state;
    uint64_t random = runner_get_seed();
    for (int i = 0; i < RANDOM_PROBLEMS; i++) {
        operand_spec spec;
        case_domain domain = {(tg_type)(i % 4), 6, 16, 100000};
        case_draw(&domain, check_next_random(&random), &spec);
        spec.problem.alpha *= check_next_uniform(&random);
        check_round_trip(&spec.problem);
    }
}

static void test_shortest_and_space(void **state)
{
    (void)state;
    static const char *const texts[] = {"8x8x8", "512x512x64:nt:bf16:d=fp32", "5x6x7:dcol",
                                        "4x4x4:batch=3", "8x8x8:lda=10:ldb=12"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        char text[TEXT_BYTES];
        tg_problem problem = parse(texts[i]);
        size_t need = strlen(texts[i]) + 1;
        for (size_t bytes = 0; bytes < need; bytes++) {
            memset(text, '#', sizeof text);
            assert_int_equal(tg_format_problem(&problem, text, bytes), TG_STATUS_INVALID_ARGUMENT);
            assert_true(text[bytes] == '#');
        }
        assert_int_equal(tg_format_problem(&problem, text, need), TG_STATUS_OK);
        assert_string_equal(text, texts[i]);
    }
}

static void test_bad_texts(void **state)
{
    (void)state;
    static const char *const texts[] = {"",
                                        "8",
                                        "8x",
                                        "8x8",
                                        "8x8x",
                                        "x8x8",
                                        "8x8x8x8",
                                        "8x8x8:",
                                        "8x8x8::nt",
                                        "-1x8x8",
                                        "8x-8x8",
                                        "8 x8x8",
                                        " 8x8x8",
                                        "8x8x8 ",
                                        "+8x8x8",
                                        "0x10",
                                        "8x8x8:xx",
                                        "8x8x8:fp8",
                                        "8x8x8:d=int8",
                                        "8x8x8:batch=",
                                        "8x8x8:batch=-1",
                                        "8x8x8:batch=1.5",
                                        "8x8x8:alpha=",
                                        "8x8x8:alpha=two",
                                        "8x8x8:alpha=1x",
                                        "8x8x8:lda=",
                                        "8x8x8:lda=a",
                                        "8x8x8:bias=both",
                                        "8x8x8:act=tanh",
                                        "8x8x8:prec=tf32",
                                        "8x8x8:rsa=",
                                        "8x8x8:rse=1",
                                        "8x8x8:nt:",
                                        "8x8x8:NT",
                                        "8X8X8",
                                        "8,8,8",
                                        "9223372036854775808x1x1",
                                        "1x1x99999999999999999999",
                                        "8x8x8:lda=9223372036854775808",
                                        "8x8x8:csa=-9223372036854775809",
                                        "nan",
                                        "8x8x8:nt=1",
                                        "8x8x8\n",
                                        "8x8x8:batch 2"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        tg_problem problem;
        tg_status status = tg_parse_problem(texts[i], &problem);
        if (status != TG_STATUS_INVALID_ARGUMENT)
            fail_msg("\"%s\" gives %s", texts[i], tg_get_status_name(status));
        assert_true(tg_get_error_detail()[0] != 0);
    }
    tg_problem problem;
    char text[8];
    assert_int_equal(tg_parse_problem(NULL, &problem), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_parse_problem("8x8x8", NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(NULL, text, sizeof text), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_parse_problem("8x8x8:fp8", &problem), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "fp8"));
}

/* Random texts of the format's own words: what parses survives a round trip, or is no legal problem
 * and is refused as planning refuses it. */
static void test_random_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "8", "x",     "8x9x7", ":",   "nt",   "bf16",  "d=fp32", "=",        "batch",       "3",
        "-", "alpha", "1e9",   "lda", "dcol", "rsa=1", "csd=-9", "act=silu", "99999999999", "."};
    uint64_t random = runner_get_seed();
    int parsed_count = 0;
    for (int i = 0; i < RANDOM_TEXT_COUNT; i++) {
        char text[128] = "";
        int piece_count = 1 + (int)(check_next_random(&random) % 8);
        if (check_next_random(&random) % 2)
            strcat(text, "8x9x7:");
        for (int j = 0; j < piece_count; j++)
            strcat(text, pieces[check_next_random(&random) % (sizeof pieces / sizeof *pieces)]);
        tg_problem problem;
        if (tg_parse_problem(text, &problem) != TG_STATUS_OK)
            continue;
        tg_plan *plan;
        tg_status status = tg_create_plan(NULL, &problem, NULL, &plan);
        if (status == TG_STATUS_OK) {
            tg_destroy_plan(plan);
            check_round_trip(&problem);
            parsed_count++;
        } else {
            char again[TEXT_BYTES];
            assert_int_equal(tg_format_problem(&problem, again, sizeof again), status);
        }
    }
    assert_true(parsed_count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_parts),
        cmocka_unit_test(test_round_trips), cmocka_unit_test(test_shortest_and_space),
        cmocka_unit_test(test_bad_texts),   cmocka_unit_test(test_random_texts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
