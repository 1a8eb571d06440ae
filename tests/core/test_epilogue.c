/*
 * Tests the order of operations of the epilogue, and which operands it does not read.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "core/epilogue.h"

static float finish_one_fp32(float sum, float alpha, float beta, float c, tg_bias bias_kind,
                             float bias, tg_activation activation)
{
    const tgi_epilogue epilogue = {
        .alpha = alpha, .beta = beta, .bias = bias_kind, .activation = activation};
    const tgi_terms_fp32 terms = {alpha, c, bias};
    return tgi_epilogue_fp32(&epilogue, &terms, 0, sum);
}

static double finish_one_fp64(double sum, double alpha, double beta, double c, tg_bias bias_kind,
                              double bias, tg_activation activation)
{
    const tgi_epilogue epilogue = {
        .alpha = alpha, .beta = beta, .bias = bias_kind, .activation = activation};
    const tgi_terms_fp64 terms = {alpha, c, bias};
    return tgi_epilogue_fp64(&epilogue, &terms, sum);
}

/* For these values any other order of the operations rounds to another result. */
static void test_order_of_operations(void **state)
{
    (void)state;
    const tg_activation none = TG_ACTIVATION_NONE;
    /* (3 * 0.1f) is rounded before 1 is taken from it. */
    volatile float product = 3.0f * 0.1f;
    assert_true(finish_one_fp32(0.1f, 3.0f, 0.0f, NAN, 1, -0.3f, none) == product + -0.3f);
    /* ((2^24 * 1) + 1) + 1 stays 2^24; 2^24 + (1 + 1) would not. */
    assert_true(finish_one_fp32(0x1p24f, 1.0f, 1.0f, 1.0f, 1, 1.0f, none) == 0x1p24f);
    assert_true(finish_one_fp64(0x1p53, 1.0, 1.0, 1.0, 1, 1.0, none) == 0x1p53);
    /* The activation comes last: -4 + 3 + 2 = 1. */
    assert_true(finish_one_fp32(-2.0f, 2.0f, 1.0f, 3.0f, 1, 2.0f, TG_ACTIVATION_RELU) == 1.0f);
    assert_true(finish_one_fp64(-2.0, 2.0, 1.0, 3.0, 1, 2.0, TG_ACTIVATION_RELU) == 1.0);
}

static void test_what_is_not_read(void **state)
{
    (void)state;
    const tg_activation none = TG_ACTIVATION_NONE;
    assert_true(finish_one_fp32(2.0f, 3.0f, 0.0f, NAN, 0, NAN, none) == 6.0f);
    assert_true(finish_one_fp64(2.0, 3.0, -0.0, NAN, 0, NAN, none) == 6.0);
    assert_true(isnan(finish_one_fp32(2.0f, 3.0f, 1.0f, NAN, 0, 0.0f, none)));
    assert_true(isnan(finish_one_fp32(2.0f, 3.0f, 0.0f, 0.0f, 1, NAN, none)));
    assert_true(isnan(finish_one_fp32(2.0f, 3.0f, NAN, 0.0f, 0, 0.0f, none)));
    assert_true(signbit(finish_one_fp32(-0.0f, 1.0f, 0.0f, 0.0f, 0, 0.0f, none)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_of_operations),
        cmocka_unit_test(test_what_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
