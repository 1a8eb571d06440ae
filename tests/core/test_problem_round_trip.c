/*
 * Tests problems written as text: the shortest text, the space it takes, and that it means the same
 * when it is read again.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fenv.h>
#include <locale.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "core/problem_texts.h"
#include "harness/problems.h"

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
    check_format("8x8x8:b=fp8_e5m2:sb=vector:sa=none:fp8_e4m3:batch_invariant:d=bf16:sd=none",
                 "8x8x8:fp8_e4m3:b=fp8_e5m2:d=bf16:sb=vector:batch_invariant");
    check_format("8x8x8:prec=tf32:b=fp32", "8x8x8:prec=tf32");
}

/* Returns a random number in 0 .. limit - 1. */
static int64_t pick(uint64_t *state, int64_t limit)
{
    return (int64_t)(check_next_random(state) % (uint64_t)limit);
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
    return ldexp((double)(int64_t)check_next_random(state), (int)pick(state, 100) - 120);
}

/* Returns a problem with random fields, most of them legal. */
static tg_problem random_problem(uint64_t *state)
{
    int64_t m = pick(state, 9), n = pick(state, 9), k = pick(state, 9);
    int is_a_transposed = (int)pick(state, 2), is_b_transposed = (int)pick(state, 2);
    tg_type type = (tg_type)pick(state, 6);
    tg_type b_type = type >= TG_TYPE_FP8_E4M3 ? (tg_type)(4 + pick(state, 2)) : type;
    tg_type d_type = pick(state, 2) ? (tg_type)pick(state, 6) : type;
    tg_problem p = tg_make_problem(
        tg_make_matrix(type, NULL, is_a_transposed ? k : m, is_a_transposed ? m : k),
        tg_make_matrix(b_type, NULL, is_b_transposed ? n : k, is_b_transposed ? k : n),
        tg_make_matrix(d_type, NULL, m, n));
    p.op_a = is_a_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.op_b = is_b_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.batch_count = pick(state, 4);
    p.alpha = random_factor(state);
    p.beta = random_factor(state);
    p.precision = (tg_precision)pick(state, 8);
    p.bias = (tg_bias)pick(state, 3);
    p.activation = (tg_activation)pick(state, 5);
    if (type >= TG_TYPE_FP8_E4M3) {
        p.a_scale = (tg_scale)pick(state, 3);
        p.b_scale = (tg_scale)pick(state, 3);
        p.d_scale = (tg_scale)pick(state, 2);
    }
    p.is_batch_invariant = (int)pick(state, 2);
    randomize_strides(state, &p.a, p.batch_count);
    randomize_strides(state, &p.b, p.batch_count);
    randomize_strides(state, &p.d, p.batch_count);
    p.c = p.d;
    if (pick(state, 2))
        randomize_strides(state, &p.c, p.batch_count);
    return p;
}

/* Writes a legal problem, reads it, compares, and writes it again. */
static void go_round(const tg_problem *problem, char text[TEXT_BYTES])
{
    char again[TEXT_BYTES];
    tg_problem read = parse(text);
    const char *field = find_problem_difference(problem, &read);
    if (field)
        fail_msg("%s: %s differs", text, field);
    if (problem->beta == 0 && !is_same_view(&read.c, &read.d))
        fail_msg("%s: C is not laid out as D", text);
    assert_int_equal(tg_format_problem(&read, again, sizeof again), TG_STATUS_OK);
    assert_string_equal(again, text);
}

static void test_random_problems(void **state)
{
    (void)state;
    uint64_t random = 42;
    int legal_count = 0;
    for (int i = 0; i < 200000; i++) {
        char text[TEXT_BYTES];
        tg_problem p = random_problem(&random);
        if (tg_format_problem(&p, text, sizeof text) != TG_STATUS_OK)
            continue; /* is not legal */
        legal_count++;
        go_round(&p, text);
    }
    assert_true(legal_count > 20000);
}

/* Parses random texts of the format's own words. A text that parses goes round, or it is no legal
 * problem and is refused as planning refuses it. */
static void test_random_texts(void **state)
{
    (void)state;
    static const char *const pieces[] = {"8",
                                         "x",
                                         "8x9x7",
                                         ":",
                                         "nt",
                                         "bf16",
                                         "d=fp32",
                                         "=",
                                         "batch",
                                         "3",
                                         "-",
                                         "alpha",
                                         "1e9",
                                         "fp8_e4m3",
                                         "b=fp8_e5m2",
                                         "sa=vector",
                                         "batch_invariant",
                                         "lda",
                                         "dcol",
                                         "rsa=1",
                                         "csd=-9",
                                         "act=silu",
                                         "99999999999",
                                         "."};
    uint64_t random = 7;
    int parsed_count = 0;
    for (int i = 0; i < 20000; i++) {
        char text[128] = "", written[TEXT_BYTES];
        if (pick(&random, 2))
            strcat(text, "8x9x7:");
        for (int64_t left = 1 + pick(&random, 8); left > 0; left--)
            strcat(text, pieces[pick(&random, sizeof pieces / sizeof *pieces)]);
        tg_problem problem;
        tg_plan *plan;
        if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
            continue;
        tg_status status = tg_create_plan(NULL, &problem, NULL, &plan);
        tg_destroy_plan(plan);
        assert_int_equal(tg_format_problem(&problem, written, sizeof written), status);
        if (status == TG_STATUS_OK) {
            go_round(&problem, written);
            parsed_count++;
        }
    }
    assert_true(parsed_count > 0);
}

/* Writes the longest legal problem: without elements, any stride is legal, and sides are 2^48 at
 * most. */
static void test_longest(void **state)
{
    (void)state;
    char text[TEXT_BYTES], again[TEXT_BYTES];
    tg_matrix *matrices[4];
    const int64_t most = INT64_C(1) << 48;
    tg_problem p = tg_make_problem(tg_make_matrix(TG_TYPE_FP8_E4M3, NULL, most, 0),
                                   tg_make_matrix(TG_TYPE_FP8_E5M2, NULL, most, most),
                                   tg_make_matrix(TG_TYPE_FP8_E5M2, NULL, 0, most));
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
    p.a_scale = p.b_scale = TG_SCALE_VECTOR;
    p.d_scale = TG_SCALE_TENSOR;
    p.is_batch_invariant = 1;
    if (tg_format_problem(&p, text, sizeof text))
        fail_msg("%s", tg_get_error_detail());
    tg_problem q = parse(text);
    assert_null(find_problem_difference(&p, &q));
    size_t length = strlen(text);
    assert_int_equal(tg_format_problem(&p, again, length + 1), TG_STATUS_OK);
    memset(again, 'x', sizeof again);
    assert_int_equal(tg_format_problem(&p, again, length), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "text_bytes"));
    assert_int_equal(again[0], 'x');
}

/* Every space that is too small is refused and left alone. */
static void test_space(void **state)
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
            assert_true(text[0] == '#' && text[bytes] == '#');
        }
        assert_int_equal(tg_format_problem(&problem, text, need), TG_STATUS_OK);
        assert_string_equal(text, texts[i]);
    }
}

static void test_other_locale(void **state)
{
    (void)state;
    if (!setlocale(LC_ALL, "de_DE.UTF-8") && !setlocale(LC_ALL, "fr_FR.UTF-8"))
        skip();
    check_format("8x8x8:alpha=2.5", "8x8x8:alpha=2.5");
    setlocale(LC_ALL, "C");
}

static void test_other_rounding(void **state)
{
    (void)state;
    static const char text[] = "8x8x8:fp64:alpha=1.4054347954785206e+104:beta=0.30000000000000004";
    static const int modes[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        assert_int_equal(fesetround(modes[i]), 0);
        check_format(text, text);
        assert_int_equal(fegetround(), modes[i]);
        assert_int_equal(fesetround(FE_TONEAREST), 0);
    }
}

static void test_null_and_illegal(void **state)
{
    (void)state;
    char text[TEXT_BYTES];
    tg_problem p = parse("8x8x8");
    assert_int_equal(tg_format_problem(NULL, text, sizeof text), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_format_problem(&p, NULL, 0), TG_STATUS_INVALID_ARGUMENT);
    p.b.row_count = 9; /* k of A stays 8 */
    assert_int_equal(tg_format_problem(&p, text, sizeof text), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shortest),       cmocka_unit_test(test_random_problems),
        cmocka_unit_test(test_random_texts),   cmocka_unit_test(test_longest),
        cmocka_unit_test(test_space),          cmocka_unit_test(test_other_locale),
        cmocka_unit_test(test_other_rounding), cmocka_unit_test(test_null_and_illegal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
