/*
 * Tests texts of problems: what each part sets, and every error with what it names.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "core/problem_texts.h"
#include "harness/problems.h"

static void assert_strides(const tg_matrix *matrix, int64_t row, int64_t col, int64_t batch)
{
    assert_int_equal(matrix->row_stride, row);
    assert_int_equal(matrix->col_stride, col);
    assert_int_equal(matrix->batch_stride, batch);
}

static void test_plain(void **state)
{
    (void)state;
    tg_problem expected = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, 1000, 800),
                                          tg_make_matrix(TG_TYPE_FP32, NULL, 800, 1200),
                                          tg_make_matrix(TG_TYPE_FP32, NULL, 1000, 1200));
    tg_problem problem = parse("1000x1200x800");
    assert_null(find_problem_difference(&expected, &problem));
    assert_int_equal(problem.c.type, TG_TYPE_FP32);
    assert_int_equal(problem.c.row_count, 1000);
    assert_int_equal(problem.c.col_count, 1200);
    assert_strides(&problem.c, 1200, 1, 0);
}

static void test_layouts_and_types(void **state)
{
    (void)state;
    tg_problem p = parse("5x7x3:tt:bf16:d=fp32");
    assert_true(p.op_a == TG_OPERATION_TRANSPOSE && p.op_b == TG_OPERATION_TRANSPOSE);
    assert_true(p.a.row_count == 3 && p.a.col_count == 5 && p.a.row_stride == 5);
    assert_true(p.b.row_count == 7 && p.b.col_count == 3 && p.b.row_stride == 3);
    assert_true(p.a.type == TG_TYPE_BF16 && p.b.type == TG_TYPE_BF16);
    assert_true(p.c.type == TG_TYPE_FP32 && p.d.type == TG_TYPE_FP32);
    p = parse("5x7x3:nt");
    assert_true(p.op_a == TG_OPERATION_NONE && p.op_b == TG_OPERATION_TRANSPOSE);
    p = parse("5x7x3:fp16:tn");
    assert_true(p.op_a == TG_OPERATION_TRANSPOSE && p.op_b == TG_OPERATION_NONE);
    assert_true(p.d.type == TG_TYPE_FP16);
}

static void test_keys(void **state)
{
    (void)state;
    tg_problem p = parse("8x8x8:batch=4:alpha=2:beta=-1e-3:bias=col:act=gelu_erf:prec=ieee_fp32");
    assert_true(p.batch_count == 4 && p.alpha == 2.0 && p.beta == -1e-3);
    assert_true(p.bias == TG_BIAS_COL && p.activation == TG_ACTIVATION_GELU_ERF);
    assert_int_equal(p.precision, TG_PRECISION_IEEE_FP32);
    assert_strides(&p.a, 8, 1, 64);
    p = parse("4x4x4:fp8_e4m3:b=fp8_e5m2:d=fp16:sa=vector:sb=tensor:sd=none:batch_invariant");
    assert_true(p.a.type == TG_TYPE_FP8_E4M3 && p.b.type == TG_TYPE_FP8_E5M2);
    assert_true(p.c.type == TG_TYPE_FP16 && p.d.type == TG_TYPE_FP16);
    assert_true(p.a_scale == TG_SCALE_VECTOR && p.b_scale == TG_SCALE_TENSOR);
    assert_true(p.d_scale == TG_SCALE_NONE && p.is_batch_invariant == 1);
    p = parse("2x2x2:alpha=inf:beta=nan");
    assert_true(p.alpha == INFINITY && isnan(p.beta));
}

static void test_strides(void **state)
{
    (void)state;
    tg_problem p = parse("8x8x8:lda=10:ldb=12:ldc=9:ldd=11");
    assert_strides(&p.a, 10, 1, 0);
    assert_strides(&p.b, 12, 1, 0);
    assert_strides(&p.c, 9, 1, 0);
    assert_strides(&p.d, 11, 1, 0);
    p = parse("6x7x8:dcol");
    assert_strides(&p.c, 1, 6, 0);
    assert_strides(&p.d, 1, 6, 0);
    p = parse("6x7x8:dcol:ldd=9:csc=20:batch=2");
    assert_strides(&p.d, 1, 9, 63);
    assert_strides(&p.c, 1, 20, 140);
    p = parse("8x8x8:rsa=1:csa=-8:bsa=64");
    assert_strides(&p.a, 1, -8, 64);
    p = parse("8x8x8:batch=2:rsd=2:csd=16");
    assert_strides(&p.d, 2, 16, 128);
    p = parse("6x7x8:batch=3:lda=10:bsd=100");
    assert_strides(&p.a, 10, 1, 60);
    assert_strides(&p.b, 7, 1, 56);
    assert_strides(&p.d, 7, 1, 100);
    assert_strides(&p.c, 7, 1, 100);
}

static void test_errors(void **state)
{
    (void)state;
    const struct {
        const char *text;
        const char *named; /* a part of the detail */
    } cases[] = {
        {"", "empty part"},
        {"8x8", "\"8x8\""},
        {"8", "\"8\""},
        {"8x", "n is not"},
        {"nan", "m is not"},
        {"8,8,8", "\"8,8,8\""},
        {"8X8X8", "\"8X8X8\""},
        {"8x8x8 ", "\"8x8x8 \""},
        {"8x8x8\n", "8x8x8"},
        {"8x8x", "k is not"},
        {"x8x8", "m is not"},
        {"8x8x8x8", "\"8x8x8x8\""},
        {"-8x8x8", "m is not"},
        {"8x+8x8", "n is not"},
        {"8x 8x8", "n is not"},
        {"8x8x9223372036854775808", "9223372036854775807"},
        {"8x8x8:", "empty part"},
        {"8x8x8::nt", "empty part"},
        {"8x8x8:xx", "\"xx\" is unknown"},
        {"8x8x8:NT", "\"NT\" is unknown"},
        {"8x8x8:fp8", "fp32"},
        {"8x8x8:foo=1", "key \"foo\" is unknown"},
        {"8x8x8:lde=9", "key \"lde\" is unknown"},
        {"8x8x8:ldaa=9", "key \"ldaa\" is unknown"},
        {"8x8x8:=9", "key \"\" is unknown"},
        {"8x8x8:nt=1", "key \"nt\" is unknown"},
        {"8x8x8:rse=1", "key \"rse\" is unknown"},
        {"8x8x8:batch 2", "\"batch 2\" is unknown"},
        {"8x8x8:nt:", "empty part"},
        {"8x8x8:lda=a", "\"lda=a\""},
        {"8x8x8:lda=9223372036854775808", "9223372036854775807"},
        {"8x8x8:alpha=1x", "is not a number"},
        {"8x8x8:nt:nn", "\"nn\""},
        {"8x8x8:fp32:bf16", "\"bf16\""},
        {"8x8x8:dcol:dcol", "keep one"},
        {"8x8x8:alpha=2:alpha=2", "\"alpha=2\""},
        {"8x8x8:lda=9:lda=9", "\"lda=9\""},
        {"8x8x8:batch=-1", "\"-1\""},
        {"8x8x8:batch=", "\"batch=\""},
        {"8x8x8:batch=1e3", "\"1e3\""},
        {"8x8x8:rsa=-9223372036854775809", "-9223372036854775808"},
        {"8x8x8:alpha=", "is not a number"},
        {"8x8x8:alpha= 1", "is not a number"},
        {"8x8x8:alpha=1,5", "is not a number"},
        {"8x8x8:beta=1e999", "1.797e308"},
        {"8x8x8:d=half", "fp32, fp64, bf16, fp16, fp8_e4m3, fp8_e5m2"},
        {"8x8x8:bias=both", "none, row, col"},
        {"8x8x8:act=tanh", "none, relu, gelu_erf, gelu_tanh, silu"},
        {"8x8x8:prec=high", "default, ieee_fp32, ieee_fp64, tf32"},
        {"8x8x8:sa=row", "none, tensor, vector"},
        {"8x9x10:lda=9", "less than k = 10; pass lda >= 10"},
        {"8x9x10:tn:lda=7", "less than m = 8"},
        {"8x9x10:nt:ldb=9", "less than k = 10"},
        {"8x9x10:ldd=8", "less than n = 9"},
        {"8x9x10:dcol:ldd=7", "less than m = 8"},
        {"8x9x10:lda=-10", "\"-10\""},
        {"8x9x10:lda=10:csa=1", "csa = 1"},
        {"8x4000000000x4000000000:batch=2", "bsb"},
        {"8x8x8:alpha=0.0000000000000000000000000000000000000000000000000000000001", "shorten"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_problem p, before;
        memset(&p, 0xee, sizeof p);
        before = p;
        if (tg_parse_problem(cases[i].text, &p, sizeof p) != TG_STATUS_INVALID_ARGUMENT) {
            fail_msg("\"%s\" was taken", cases[i].text);
        }
        if (!strstr(tg_get_error_detail(), cases[i].named)) {
            fail_msg("\"%s\": \"%s\" lacks \"%s\"", cases[i].text, tg_get_error_detail(),
                     cases[i].named);
        }
        assert_memory_equal(&p, &before, sizeof p);
    }
}

static void test_null(void **state)
{
    (void)state;
    tg_problem p;
    assert_int_equal(tg_parse_problem(NULL, &p, sizeof p), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_parse_problem("8x8x8", NULL, sizeof(tg_problem)),
                     TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),  cmocka_unit_test(test_layouts_and_types),
        cmocka_unit_test(test_keys),   cmocka_unit_test(test_strides),
        cmocka_unit_test(test_errors), cmocka_unit_test(test_null),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
