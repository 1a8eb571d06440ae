/*
 * Freivalds' check passes what is right and, in enough rounds, catches what is wrong.
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

#define ROUNDS 20

static int verify(const known_product *product, int64_t *bad_row)
{
    double worst_share;
    return check_freivalds(&product->problem, ROUNDS, 5, &worst_share, bad_row);
}

static void test_right_result(void **state)
{
    known_product *product = *state;
    int64_t bad_row;
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP16; type++) {
        make_product(product, (tg_type)type, (tg_type)type);
        assert_int_equal(verify(product, &bad_row), 1);
    }
}

static void test_wrong_results(void **state)
{
    known_product *product = *state;
    static const double wrong[] = {NAN, INFINITY, 1000};
    int64_t bad_row;
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP16; type++) {
        for (int i = 0; i < 3; i++) {
            make_product(product, (tg_type)type, (tg_type)type);
            set_d(product, 17, 3, wrong[i]);
            assert_int_equal(verify(product, &bad_row), 0);
            assert_int_equal(bad_row, 17);
        }
        make_product(product, (tg_type)type, (tg_type)type);
        swap_tiles(product);
        assert_int_equal(verify(product, &bad_row), 0);
        make_product(product, (tg_type)type, (tg_type)type);
        zero_tile(product);
        assert_int_equal(verify(product, &bad_row), 0);
    }
}

static void test_scales(void **state)
{
    known_product *product = *state;
    int64_t bad_row;
    float a_scale[PRODUCT_ROWS], b_scale[PRODUCT_COLS];
    make_scaled_product(product, a_scale, b_scale);
    assert_int_equal(verify(product, &bad_row), 1);
    a_scale[5] = 4;
    assert_int_equal(verify(product, &bad_row), 0);
    assert_int_equal(bad_row, 5);
    make_scaled_product(product, a_scale, b_scale);
    b_scale[7] = 5;
    assert_int_equal(verify(product, &bad_row), 0);
    make_product(product, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E4M3);
    assert_int_equal(verify(product, &bad_row), -1); /* D saturates */
}

static void test_activation_is_refused(void **state)
{
    known_product *product = *state;
    int64_t bad_row;
    make_product(product, TG_TYPE_FP32, TG_TYPE_FP32);
    product->problem.activation = TG_ACTIVATION_RELU;
    assert_int_equal(verify(product, &bad_row), -1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_result),
        cmocka_unit_test(test_wrong_results),
        cmocka_unit_test(test_scales),
        cmocka_unit_test(test_activation_is_refused),
    };
    return cmocka_run_group_tests(tests, make_product_state, free_product_state);
}
