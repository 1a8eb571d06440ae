/*
 * The comparator passes what is right and catches each way of being wrong.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>

#include <cmocka.h>

#include "check/products.h"

#define ALL_FLOPS 1e9

static const tg_type types[][2] = {
    {TG_TYPE_FP32, TG_TYPE_FP32},    {TG_TYPE_FP64, TG_TYPE_FP64},
    {TG_TYPE_BF16, TG_TYPE_FP32},    {TG_TYPE_BF16, TG_TYPE_BF16},
    {TG_TYPE_FP16, TG_TYPE_FP32},    {TG_TYPE_FP16, TG_TYPE_FP16},
    {TG_TYPE_FP16, TG_TYPE_BF16},    {TG_TYPE_FP8_E4M3, TG_TYPE_FP32},
    {TG_TYPE_FP8_E5M2, TG_TYPE_FP16}};
#define TYPE_COUNT (sizeof types / sizeof *types)

static check_result compare(const known_product *product)
{
    check_result result;
    check_compare(&product->problem, ALL_FLOPS, &result);
    assert_int_equal(result.checked_count, PRODUCT_ROWS * PRODUCT_COLS);
    return result;
}

static void assert_bad_at(const known_product *product, int64_t row, int64_t col)
{
    check_result result = compare(product);
    assert_false(result.is_ok);
    assert_true(result.max_bound_share > 1);
    assert_int_equal(result.bad_batch, 0);
    assert_int_equal(result.bad_row, row);
    assert_int_equal(result.bad_col, col);
}

static void test_right_result(void **state)
{
    known_product *product = *state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        make_product(product, types[i][0], types[i][1]);
        check_result result = compare(product);
        assert_true(result.is_ok);
        assert_true(result.max_error == 0);
        assert_int_equal(result.bad_row, -1);
    }
}

static void test_one_wrong_element(void **state)
{
    known_product *product = *state;
    static const double wrong[] = {NAN, INFINITY, -INFINITY, 1000, 0.5};
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        for (size_t j = 0; j < sizeof wrong / sizeof *wrong; j++) {
            make_product(product, types[i][0], types[i][1]);
            set_d(product, 17, 3, wrong[j]);
            assert_bad_at(product, 17, 3);
        }
        make_product(product, types[i][0], types[i][1]);
        set_d(product, PRODUCT_ROWS - 1, PRODUCT_COLS - 1, -77);
        assert_bad_at(product, PRODUCT_ROWS - 1, PRODUCT_COLS - 1);
    }
}

/* Whole numbers as scales keep the product exact. A scale at a wrong place is found. */
static void test_scales(void **state)
{
    known_product *product = *state;
    float a_scale[PRODUCT_ROWS], b_scale[PRODUCT_COLS];
    make_scaled_product(product, a_scale, b_scale);
    check_result result = compare(product);
    assert_true(result.is_ok && result.max_error == 0);
    a_scale[5] = 4;
    assert_bad_at(product, 5, 0);
    make_scaled_product(product, a_scale, b_scale);
    b_scale[7] = 5;
    assert_bad_at(product, 0, 7);
    make_scaled_product(product, a_scale, b_scale);
    product->problem.b_scale = TG_SCALE_TENSOR; /* all columns take the scale of the first */
    assert_false(compare(product).is_ok);
}

/* D's scale multiplies what is stored. Too large a value becomes the largest number, not Inf. */
static void test_fp8_output(void **state)
{
    known_product *product = *state;
    const float d_scale = 64;
    make_product(product, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E4M3);
    check_result small = compare(product);
    assert_true(small.is_ok);
    product->problem.d_scale = TG_SCALE_TENSOR;
    product->problem.d_scale_data = &d_scale;
    assert_false(compare(product).is_ok);
    int saturated_count = 0;
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        for (int64_t j = 0; j < PRODUCT_COLS; j++) {
            double value = 64 * get_product_d(i, j);
            set_d(product, i, j, value);
            saturated_count += fabs(value) > 448;
        }
    }
    assert_true(compare(product).is_ok);
    assert_true(saturated_count > 0);
    set_d(product, 3, 3, NAN);
    assert_bad_at(product, 3, 3);
}

/* TF32 rounds inputs to nearest. Cutting them off, which is nearly twice as far here, is found. */
static void test_tf32(void **state)
{
    (void)state;
    check_result result;
    const float cut = 1, nearest = 1 + 0x1p-10f, exact = 1 + 0x1.ffp-11f;
    const struct {
        float factor; /* scales the products */
        int is_ok;
    } cases[] = {{exact, 1}, {nearest, 1}, {cut, 0}};
    float a[4] = {exact, exact, exact, exact}, b[4] = {exact, exact, exact, exact}, d;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 1, 4),
                                         tg_make_matrix(TG_TYPE_FP32, b, 4, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &d, 1, 1));
    for (int i = 0; i < 3; i++) {
        d = 4 * cases[i].factor * cases[i].factor;
        problem.precision = TG_PRECISION_TF32;
        check_compare(&problem, ALL_FLOPS, &result);
        assert_int_equal(result.is_ok, cases[i].is_ok);
        problem.precision = TG_PRECISION_DEFAULT;
        check_compare(&problem, ALL_FLOPS, &result);
        assert_int_equal(result.is_ok, i == 0);
    }
}

/* FP16 instructions align subnormal inputs as 2^-14: `cut` is what an H200 gave. */
static void test_subnormal_fp16(void **state)
{
    (void)state;
    check_result result;
    float d;
    uint16_t a[2] = {0x3831, 0x0148}, b[2] = {0x803e, 0x01b5}; /* all but the first subnormal */
    const double exact = 0x1.0c4p-1 * -62 * 0x1p-24 + 328 * 0x1p-24 * 437 * 0x1p-24;
    const double cut = -2128273 * 0x1p-40; /* each product cut off at 2^-40 */
    const struct {
        double sum;
        int is_ok, is_ieee_ok;
    } cases[] = {{exact, 1, 1}, {cut, 1, 0}, {exact + 40 * (cut - exact), 0, 0}};
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP16, a, 1, 2),
                                         tg_make_matrix(TG_TYPE_FP16, b, 2, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &d, 1, 1));
    for (int i = 0; i < 6; i++) {
        d = (float)cases[i / 2].sum;
        problem.precision = i % 2 ? TG_PRECISION_IEEE_FP32 : TG_PRECISION_DEFAULT;
        check_compare(&problem, ALL_FLOPS, &result);
        assert_int_equal(result.is_ok, i % 2 ? cases[i / 2].is_ieee_ok : cases[i / 2].is_ok);
    }
}

/* If k roundings bound nothing, no finite value is out of bounds. */
static void test_huge_k(void **state)
{
    (void)state;
    const int64_t k = (INT64_C(1) << 24) + 8;
    uint8_t one = 0x38; /* is read k times */
    float d = (float)k;
    check_result result;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP8_E4M3, &one, 1, k),
                                         tg_make_matrix(TG_TYPE_FP8_E4M3, &one, k, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &d, 1, 1));
    problem.a.col_stride = problem.b.row_stride = 0;
    assert_true(check_compare(&problem, ALL_FLOPS, &result) && result.is_ok);
}

static void test_wrong_tiles(void **state)
{
    known_product *product = *state;
    for (size_t i = 0; i < TYPE_COUNT; i++) {
        make_product(product, types[i][0], types[i][1]);
        swap_tiles(product);
        assert_false(compare(product).is_ok);
        make_product(product, types[i][0], types[i][1]);
        zero_tile(product);
        assert_false(compare(product).is_ok);
    }
}

static void test_transposed_result(void **state)
{
    known_product *product = *state;
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    for (int64_t i = 0; i < PRODUCT_COLS; i++) {
        for (int64_t j = 0; j < i; j++) {
            double kept = get_d(product, i, j);
            set_d(product, i, j, get_d(product, j, i));
            set_d(product, j, i, kept);
        }
    }
    assert_false(compare(product).is_ok);
}

/* A NaN or Inf of the inputs must arrive, in its row or column and nowhere else. */
static void test_special_inputs(void **state)
{
    known_product *product = *state;
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    check_set_element(TG_TYPE_FP32, product->a, 5 * PRODUCT_DEPTH + 2, NAN);
    assert_bad_at(product, 5, 0);
    for (int64_t j = 0; j < PRODUCT_COLS; j++)
        set_d(product, 5, j, NAN);
    assert_true(compare(product).is_ok);
    set_d(product, 6, 1, NAN);
    assert_bad_at(product, 6, 1);

    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    check_set_element(TG_TYPE_FP32, product->a, 5 * PRODUCT_DEPTH + 2, INFINITY);
    for (int64_t j = 0; j < PRODUCT_COLS; j++)
        set_d(product, 5, j, INFINITY * get_product_b(2, j)); /* 0 gives NaN */
    assert_true(compare(product).is_ok);
    set_d(product, 5, 0, -get_d(product, 5, 0));
    assert_false(compare(product).is_ok);
}

/* Errors below the bound pass, errors above it do not. Each element has its own bound. */
static void test_bound(void **state)
{
    known_product *product = *state;
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    double right = get_d(product, 2, 2), size = 0;
    for (int64_t l = 0; l < PRODUCT_DEPTH; l++)
        size += fabs(get_product_a(2, l) * get_product_b(l, 2));
    double bound = (PRODUCT_DEPTH + 2) * 0x1p-24 * size + 0x1p-24 * fabs(right);
    set_d(product, 2, 2, right + 0.9 * bound);
    assert_true(compare(product).is_ok);
    set_d(product, 2, 2, right + 1.2 * bound);
    assert_bad_at(product, 2, 2);
    /* An element must not hide behind larger ones. */
    for (int64_t l = 0; l < PRODUCT_DEPTH; l++)
        check_set_element(TG_TYPE_FP32, product->a, l, 1e6 * get_product_a(0, l));
    for (int64_t j = 0; j < PRODUCT_COLS; j++)
        set_d(product, 0, j, 1e6 * get_d(product, 0, j));
    assert_bad_at(product, 2, 2);
}

static void test_epilogue(void **state)
{
    known_product *product = *state;
    float bias[PRODUCT_ROWS];
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    product->problem.alpha = 2.5;
    product->problem.beta = -0.5;
    product->problem.bias = TG_BIAS_ROW;
    product->problem.bias_data = bias;
    product->problem.activation = TG_ACTIVATION_RELU;
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        bias[i] = (float)i;
        for (int64_t j = 0; j < PRODUCT_COLS; j++) {
            check_set_element(TG_TYPE_FP32, product->c, i * PRODUCT_COLS + j, (double)(i - j));
            double value = 2.5 * get_d(product, i, j) - 0.5 * (double)(i - j) + (double)i;
            set_d(product, i, j, value < 0 ? 0 : value);
        }
    }
    assert_true(compare(product).is_ok);
    product->problem.bias = TG_BIAS_COL;
    assert_false(compare(product).is_ok);
    product->problem.bias = TG_BIAS_ROW;
    product->problem.beta = 0.5;
    assert_false(compare(product).is_ok);
    product->problem.beta = -0.5;
    product->problem.activation = TG_ACTIVATION_NONE;
    assert_false(compare(product).is_ok);
}

/* FP16 rounds to Inf from 65520 on: a finite value is wrong there, and Inf is wrong well below. */
static void test_output_overflow(void **state)
{
    known_product *product = *state;
    make_product(product, TG_TYPE_FP16, TG_TYPE_FP16);
    product->problem.alpha = 0;
    product->problem.beta = 2;
    for (int64_t i = 0; i < PRODUCT_ROWS; i++) {
        for (int64_t j = 0; j < PRODUCT_COLS; j++) {
            check_set_element(TG_TYPE_FP16, product->c, i * PRODUCT_COLS + j, 32752);
            set_d(product, i, j, 65504);
        }
    }
    assert_true(compare(product).is_ok);
    set_d(product, 1, 1, INFINITY);
    assert_bad_at(product, 1, 1);
    check_set_element(TG_TYPE_FP16, product->c, PRODUCT_COLS + 1, 40000);
    assert_true(compare(product).is_ok);
    set_d(product, 1, 1, 65504);
    assert_bad_at(product, 1, 1);
    set_d(product, 1, 1, -INFINITY);
    assert_bad_at(product, 1, 1);
}

/* alpha = 0 and k = 0 leave A and B unread, beta = 0 leaves C unread. */
static void test_unread_operands(void **state)
{
    known_product *product = *state;
    make_product(product, TG_TYPE_FP64, TG_TYPE_FP64);
    product->problem.c.data = NULL;
    assert_true(compare(product).is_ok);
    product->problem.a.data = product->problem.b.data = NULL;
    product->problem.alpha = 0;
    assert_false(compare(product).is_ok);
    for (int64_t i = 0; i < PRODUCT_ROWS * PRODUCT_COLS; i++)
        set_d(product, 0, i, 0);
    assert_true(compare(product).is_ok);
    product->problem.alpha = 1;
    product->problem.a.col_count = product->problem.b.row_count = 0;
    assert_true(compare(product).is_ok);
    set_d(product, 3, 3, NAN);
    assert_bad_at(product, 3, 3);
}

static void test_empty_output(void **state)
{
    known_product *product = *state;
    check_result result;
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    product->problem.batch_count = 0;
    check_compare(&product->problem, ALL_FLOPS, &result);
    assert_true(result.is_ok);
    assert_int_equal(result.checked_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_result),
        cmocka_unit_test(test_one_wrong_element),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_fp8_output),
        cmocka_unit_test(test_tf32),
        cmocka_unit_test(test_wrong_tiles),
        cmocka_unit_test(test_transposed_result),
        cmocka_unit_test(test_special_inputs),
        cmocka_unit_test(test_bound),
        cmocka_unit_test(test_epilogue),
        cmocka_unit_test(test_subnormal_fp16),
        cmocka_unit_test(test_huge_k),
        cmocka_unit_test(test_output_overflow),
        cmocka_unit_test(test_unread_operands),
        cmocka_unit_test(test_empty_output),
    };
    return cmocka_run_group_tests(tests, make_product_state, free_product_state);
}
