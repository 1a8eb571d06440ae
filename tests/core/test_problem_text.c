/* Problems as text: known texts, a randomized round trip, and every error with what it names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tilegemm_lab.h"

#define TEXT_BYTES 512

static tg_problem parse(const char *text)
{
    tg_problem problem;
    memset(&problem, 0xee, sizeof problem);
    if (tg_parse_problem(text, &problem))
        fail_msg("%s: %s", text, tg_get_error_detail());
    return problem;
}

static void assert_matrix(const tg_matrix *x, const tg_matrix *y)
{
    assert_null(x->data);
    assert_int_equal(x->type, y->type);
    assert_true(x->row_count == y->row_count && x->col_count == y->col_count);
    assert_true(x->row_stride == y->row_stride && x->col_stride == y->col_stride);
    assert_true(x->batch_stride == y->batch_stride);
}

/* Every field of x is that of y; C counts where beta is not 0. */
static void assert_problem(const tg_problem *x, const tg_problem *y)
{
    assert_matrix(&x->a, &y->a);
    assert_matrix(&x->b, &y->b);
    assert_matrix(&x->d, &y->d);
    assert_matrix(&x->c, y->beta != 0.0 ? &y->c : &y->d);
    assert_int_equal(x->op_a, y->op_a);
    assert_int_equal(x->op_b, y->op_b);
    assert_true(x->batch_count == y->batch_count);
    assert_true(x->alpha == y->alpha || (isnan(x->alpha) && isnan(y->alpha)));
    assert_true(x->beta == y->beta || (isnan(x->beta) && isnan(y->beta)));
    assert_int_equal(x->precision, y->precision);
    assert_int_equal(x->bias, y->bias);
    assert_null(x->bias_data);
    assert_int_equal(x->activation, y->activation);
}

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
    assert_problem(&problem, &expected);
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
    p = parse("6x7x8:batch=3:lda=10:bsd=100");
    assert_strides(&p.a, 10, 1, 60);
    assert_strides(&p.b, 7, 1, 56);
    assert_strides(&p.d, 7, 1, 100);
    assert_strides(&p.c, 7, 1, 100);
}

static void check_format(const char *text, const char *expected)
{
    char written[TEXT_BYTES];
    tg_problem p = parse(text);
    if (tg_format_problem(&p, written, sizeof written))
        fail_msg("%s", tg_get_error_detail());
    assert_string_equal(written, expected);
}

static void test_shortest(void **state)
{
    (void)state;
    check_format("8x8x8:nn:fp32:d=fp32:batch=1:alpha=1.0:beta=0:bias=none:act=none:prec=default",
                 "8x8x8");
    check_format("512x512x64:d=fp32:bf16:nt", "512x512x64:nt:bf16:d=fp32");
    check_format("8x9x7:lda=7:rsb=9:csd=1:ldc=9:beta=1", "8x9x7:beta=1");
    check_format("8x8x8:rsa=10:rsd=1:csd=8", "8x8x8:lda=10:dcol");
    check_format("8x8x8:beta=1:rsd=1:csd=9:rsc=1:csc=10", "8x8x8:beta=1:dcol:ldd=9:ldc=10");
    check_format("8x8x8:ldc=20", "8x8x8"); /* beta is 0: C is not part of the problem */
    check_format("8x8x8:rsa=2", "8x8x8:rsa=2");
    check_format("8x8x8:batch=3:bsa=64:bsb=0", "8x8x8:batch=3:bsb=0");
    check_format("8x8x8:alpha=0.1:beta=100", "8x8x8:alpha=0.1:beta=100");
    check_format("8x8x8:fp64:alpha=0.30000000000000004", "8x8x8:fp64:alpha=0.30000000000000004");
    check_format("0x5x0", "0x5x0");
}

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 0..limit - 1 */
static int64_t pick(uint64_t *state, int64_t limit)
{
    return (int64_t)(next_random(state) % (uint64_t)limit);
}

static void randomize_strides(uint64_t *state, tg_matrix *x, int64_t batch_count)
{
    switch (pick(state, 5)) {
    case 0:
        x->row_stride = x->col_count + pick(state, 3);
        break;
    case 1:
        x->row_stride = 1;
        x->col_stride = x->row_count + pick(state, 3);
        break;
    case 2:
        x->row_stride = x->col_count * 3 + 1;
        x->col_stride = -2;
        break;
    case 3:
        x->row_stride = pick(state, 4);
        x->col_stride = pick(state, 9) - 4;
        break;
    default:
        break;
    }
    int64_t rows = x->row_count * llabs(x->row_stride), cols = x->col_count * llabs(x->col_stride);
    x->batch_stride = batch_count == 1 ? 0 : rows > cols ? rows : cols;
    if (pick(state, 4) == 0)
        x->batch_stride = pick(state, 1000000) - 1000;
}

static double random_factor(uint64_t *state)
{
    const double factors[] = {0.0, 1.0, -1.0, 0.1, 1e10, -2.5e-30};
    if (pick(state, 2))
        return factors[pick(state, 6)];
    return ldexp((double)(int64_t)next_random(state), (int)pick(state, 100) - 120);
}

/* A problem with fields at random, most of them legal. */
static tg_problem random_problem(uint64_t *state)
{
    int64_t m = pick(state, 9), n = pick(state, 9), k = pick(state, 9);
    int is_a_transposed = (int)pick(state, 2), is_b_transposed = (int)pick(state, 2);
    tg_type type = (tg_type)pick(state, 4);
    tg_type d_type = type >= TG_TYPE_BF16 && pick(state, 2) ? TG_TYPE_FP32 : type;
    tg_problem p = tg_make_problem(
        tg_make_matrix(type, NULL, is_a_transposed ? k : m, is_a_transposed ? m : k),
        tg_make_matrix(type, NULL, is_b_transposed ? n : k, is_b_transposed ? k : n),
        tg_make_matrix(d_type, NULL, m, n));
    p.op_a = is_a_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.op_b = is_b_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.batch_count = pick(state, 4);
    p.alpha = random_factor(state);
    p.beta = random_factor(state);
    p.precision = (tg_precision)pick(state, 3);
    p.bias = (tg_bias)pick(state, 3);
    p.activation = (tg_activation)pick(state, 5);
    randomize_strides(state, &p.a, p.batch_count);
    randomize_strides(state, &p.b, p.batch_count);
    randomize_strides(state, &p.d, p.batch_count);
    p.c = p.d;
    if (pick(state, 2))
        randomize_strides(state, &p.c, p.batch_count);
    return p;
}

static void test_random_round_trip(void **state)
{
    (void)state;
    uint64_t random = 42;
    int legal_count = 0;
    for (int i = 0; i < 200000; i++) {
        char text[TEXT_BYTES], again[TEXT_BYTES];
        tg_problem p = random_problem(&random);
        if (tg_format_problem(&p, text, sizeof text))
            continue; /* not legal */
        legal_count++;
        tg_problem q = parse(text);
        assert_problem(&q, &p);
        assert_int_equal(tg_format_problem(&q, again, sizeof again), TG_STATUS_OK);
        assert_string_equal(again, text);
    }
    assert_true(legal_count > 20000);
}

/* The longest problem that is legal: without elements any stride is. */
static void test_longest(void **state)
{
    (void)state;
    char text[TEXT_BYTES], again[TEXT_BYTES];
    tg_matrix *matrices[4];
    tg_problem p = tg_make_problem(tg_make_matrix(TG_TYPE_BF16, NULL, INT64_MAX, 0),
                                   tg_make_matrix(TG_TYPE_BF16, NULL, INT64_MAX, INT64_MAX),
                                   tg_make_matrix(TG_TYPE_FP32, NULL, 0, INT64_MAX));
    matrices[0] = &p.a, matrices[1] = &p.b, matrices[2] = &p.c, matrices[3] = &p.d;
    for (int i = 0; i < 4; i++) {
        matrices[i]->row_stride = INT64_MIN + i;
        matrices[i]->col_stride = INT64_MIN + 10 + i;
        matrices[i]->batch_stride = INT64_MIN + 20 + i;
    }
    p.op_a = p.op_b = TG_OPERATION_TRANSPOSE;
    p.batch_count = 0;
    p.alpha = -1.1754943508222875e-38;
    p.beta = -1.1754943508222875e-38;
    p.bias = TG_BIAS_ROW;
    p.activation = TG_ACTIVATION_GELU_TANH;
    p.precision = TG_PRECISION_IEEE_FP32;
    if (tg_format_problem(&p, text, sizeof text))
        fail_msg("%s", tg_get_error_detail());
    tg_problem q = parse(text);
    assert_problem(&q, &p);
    size_t length = strlen(text);
    assert_int_equal(tg_format_problem(&p, again, length + 1), TG_STATUS_OK);
    memset(again, 'x', sizeof again);
    assert_int_equal(tg_format_problem(&p, again, length), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "text_bytes"));
    assert_int_equal(again[0], 'x');
}

static void test_other_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        skip();
    check_format("8x8x8:alpha=2.5", "8x8x8:alpha=2.5");
    setlocale(LC_ALL, "C");
}

static void test_errors(void **state)
{
    (void)state;
    const struct {
        const char *text;
        const char *named; /* part of the detail */
    } cases[] = {
        {"", "empty part"},
        {"8x8", "\"8x8\""},
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
        {"8x8x8:d=half", "fp32, fp64, bf16, fp16"},
        {"8x8x8:bias=both", "none, row, col"},
        {"8x8x8:act=tanh", "none, relu, gelu_erf, gelu_tanh, silu"},
        {"8x8x8:prec=high", "default, ieee_fp32, ieee_fp64"},
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
        tg_problem problem, before;
        memset(&problem, 0xee, sizeof problem);
        before = problem;
        if (tg_parse_problem(cases[i].text, &problem) != TG_STATUS_INVALID_ARGUMENT) {
            fail_msg("\"%s\" was taken", cases[i].text);
        }
        if (!strstr(tg_get_error_detail(), cases[i].named)) {
            fail_msg("\"%s\": \"%s\" lacks \"%s\"", cases[i].text, tg_get_error_detail(),
                     cases[i].named);
        }
        assert_memory_equal(&problem, &before, sizeof problem);
    }
}

static void test_null_and_illegal(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    tg_problem p = parse("8x8x8");
    assert_int_equal(tg_parse_problem(NULL, &p), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_parse_problem("8x8x8", NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(NULL, text, sizeof text), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(&p, NULL, 0), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(&p, text, 5), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(&p, text, 6), TG_STATUS_OK);
    p.b.row_count = 9; /* k of A is 8 */
    assert_int_equal(tg_format_problem(&p, text, sizeof text), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),    cmocka_unit_test(test_layouts_and_types),
        cmocka_unit_test(test_keys),     cmocka_unit_test(test_strides),
        cmocka_unit_test(test_shortest), cmocka_unit_test(test_random_round_trip),
        cmocka_unit_test(test_longest),  cmocka_unit_test(test_other_locale),
        cmocka_unit_test(test_errors),   cmocka_unit_test(test_null_and_illegal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
