/*
 * Tests the bound of bf16x6 against its arithmetic, on the processor: six products of slices keep
 * it, and five, whichever is left out, do not.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "check.h"
#include "core/dtype.h"

enum { side = 4, depth = 8, product_count = 6 };

/* The slices are 1, 2^-8 and -2^-17: the last two are as large as slices of a number near 1 can
 * be. */
static const float element = 0x1.00ff8p0f;

/* Each product multiplies these slices of A and of B. */
static const int pairs[product_count][2] = {{2, 0}, {1, 1}, {0, 2}, {1, 0}, {0, 1}, {0, 0}};

static void cut(float value, float slice[3])
{
    for (int i = 0; i < 3; i++) {
        slice[i] = tgi_fp32_from_bf16(tgi_bf16_from_fp32(value));
        value -= slice[i];
    }
}

/* Returns 1 if D keeps the bound of the precision with all products but number `left_out`. */
static int is_within(tg_precision precision, int left_out)
{
    float a[side * depth], b[depth * side], d[side * side], slice[3], sum = 0;
    for (int i = 0; i < side * depth; i++)
        a[i] = b[i] = element;
    cut(element, slice);
    for (int i = 0; i < product_count; i++)
        if (i != left_out)
            sum += (float)depth * slice[pairs[i][0]] * slice[pairs[i][1]];
    for (int i = 0; i < side * side; i++)
        d[i] = sum;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, side, depth),
                                         tg_make_matrix(TG_TYPE_FP32, b, depth, side),
                                         tg_make_matrix(TG_TYPE_FP32, d, side, side));
    problem.precision = precision;
    check_result result;
    assert_true(check_compare(&problem, 1e9, &result));
    return result.is_ok;
}

static void test_six_products(void **state)
{
    (void)state;
    float slice[3];
    cut(element, slice);
    assert_true(slice[0] == 1.0f && slice[1] == 0x1p-8f && slice[2] == -0x1p-17f);
    assert_true(is_within(TG_PRECISION_BF16X6, -1));
    assert_true(is_within(TG_PRECISION_DEFAULT, -1));
}

static void test_five_products(void **state)
{
    (void)state;
    for (int i = 0; i < product_count; i++) {
        assert_false(is_within(TG_PRECISION_BF16X6, i));
        assert_false(is_within(TG_PRECISION_BF16X9, i));
    }
    assert_true(is_within(TG_PRECISION_BF16X3, 0));
    assert_false(is_within(TG_PRECISION_BF16X3, 3)); /* leaves out a product of 2^-8 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_six_products),
        cmocka_unit_test(test_five_products),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
