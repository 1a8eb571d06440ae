/*
 * Tests the activations against libm in a wider format, with the bounds of activation.h, on every
 * instruction set that this processor has. Then tests the order of operations of the epilogue.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "activation_loops.h"
#include "core/epilogue.h"

#define PATTERN_STEP 4099u /* gives a million bit patterns of FP32, of every exponent */
#define DENSE_COUNT 200000

static const tg_activation smooth_kinds[] = {TG_ACTIVATION_GELU_ERF, TG_ACTIVATION_GELU_TANH,
                                             TG_ACTIVATION_SILU};

/* Lists the sets of loops that this processor can run; returns how many. */
static int list_loops(const activation_loops *loops[3])
{
    int count = 0;
    loops[count++] = &loops_generic;
#ifdef TEST_X86_LOOPS
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        loops[count++] = &loops_avx2;
    }
    if (__builtin_cpu_supports("avx512f"))
        loops[count++] = &loops_avx512;
#endif
    return count;
}

static double uniform(uint64_t *state, double low, double high)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return low + (high - low) * ((double)(*state >> 11) * 0x1p-53);
}

/* Computes the activation in long double, in the form that does not cancel. */
static long double activate_exactly(tg_activation kind, long double x)
{
    long double slope = 1.0L;
    if (kind == TG_ACTIVATION_GELU_ERF) {
        return 0.5L * x * erfcl(-x * 0.707106781186547524400844362104849039L);
    }
    if (kind == TG_ACTIVATION_GELU_TANH) {
        slope = 1.595769121605730711759784239737486L * (1.0L + 0.044715L * x * x);
    }
    long double z = x * slope;
    return z < 0.0L ? x * (expl(z) / (1.0L + expl(z))) : x / (1.0L + expl(-z));
}

/* Makes finite samples of every exponent, then dense ones where the functions bend and in their
 * tails. */
static int64_t make_samples_fp32(float **samples)
{
    float *x = malloc((0xffffffffu / PATTERN_STEP + 2u * DENSE_COUNT + 1u) * sizeof *x);
    int64_t count = 0;
    uint64_t state = 1;
    assert_non_null(x);
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += PATTERN_STEP) {
        float value = tgi_fp32_from_bits((uint32_t)bits);
        if (isfinite(value))
            x[count++] = value;
    }
    for (int i = 0; i < DENSE_COUNT; i++)
        x[count++] = (float)uniform(&state, -15.0, 15.0);
    for (int i = 0; i < DENSE_COUNT; i++)
        x[count++] = (float)uniform(&state, -112.0, 0.0);
    *samples = x;
    return count;
}

static void check_fp32(const char *isa, tg_activation kind, const float *x, const float *y,
                       int64_t count)
{
    double units = kind == TG_ACTIVATION_GELU_ERF ? 10.0 : 5.0, worst = 0.0;
    int64_t worst_at = 0;
    for (int64_t i = 0; i < count; i++) {
        long double exact = activate_exactly(kind, (long double)x[i]);
        long double bound = units * 0x1p-24L * fabsl(exact) + 0x1p-149L;
        double share = (double)(fabsl((long double)y[i] - exact) / bound);
        if (!(share <= worst)) { /* NaN counts as worst */
            worst = share;
            worst_at = i;
            if (isnan(share))
                break;
        }
    }
    printf("%s %s fp32: %.2f of the bound, at %a\n", isa, tg_get_activation_name(kind), worst,
           (double)x[worst_at]);
    if (!(worst <= 1.0))
        fail_msg("%s exceeds the bound", tg_get_activation_name(kind));
}

static void test_fp32_accuracy(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    float *x;
    int64_t count = make_samples_fp32(&x);
    float *y = malloc((size_t)count * sizeof *y);
    assert_non_null(y);
    for (size_t k = 0; k < sizeof smooth_kinds / sizeof smooth_kinds[0]; k++) {
        for (int i = 0; i < loops_count; i++) {
            loops[i]->fp32[smooth_kinds[k]](x, y, count);
            check_fp32(loops[i]->isa, smooth_kinds[k], x, y, count);
        }
    }
    free(x);
    free(y);
}

static void test_fp64_accuracy(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    uint64_t random = 2;
    for (int i = 0; i < 3 * DENSE_COUNT; i++) {
        double x = i % 3 == 0   ? uniform(&random, -40.0, 40.0)
                   : i % 3 == 1 ? uniform(&random, -800.0, 10.0)
                                : ldexp(uniform(&random, -2.0, 2.0), i % 2000 - 1050);
        for (size_t k = 0; k < sizeof smooth_kinds / sizeof smooth_kinds[0]; k++) {
            tg_activation kind = smooth_kinds[k];
            long double exact = activate_exactly(kind, (long double)x);
            long double bound = 8.0L * 0x1p-53L * fabsl(exact) + 32.0L * 0x1p-1074L;
            for (int j = 0; j < loops_count; j++) {
                double y;
                loops[j]->fp64[kind](&x, &y, 1);
                if (!(fabsl((long double)y - exact) <= bound)) {
                    fail_msg("%s %s(%a) = %a exceeds the bound around %La", loops[j]->isa,
                             tg_get_activation_name(kind), x, y, exact);
                }
            }
        }
    }
}

/* Within one instruction set, a vector's element has the same bits as the element alone. */
static void test_same_bits_at_any_position(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    enum { COUNT = 1000 };
    static float x[COUNT], y[COUNT];
    uint64_t random = 3;
    for (int i = 0; i < COUNT; i++)
        x[i] = (float)uniform(&random, -20.0, 20.0);
    for (int j = 0; j < loops_count; j++) {
        for (int kind = TG_ACTIVATION_NONE; kind <= TG_ACTIVATION_SILU; kind++) {
            loops[j]->fp32[kind](x, y, COUNT);
            for (int i = 0; i < COUNT; i++) {
                float alone;
                loops[j]->fp32[kind](&x[i], &alone, 1);
                assert_memory_equal(&alone, &y[i], sizeof alone);
            }
        }
    }
}

static void check_special(const activation_loops *loops, int kind)
{
    const double large[] = {1e4, 1e30, 3e38};
    float x32 = NAN, y32;
    double x64 = NAN, y64;
    loops->fp32[kind](&x32, &y32, 1);
    loops->fp64[kind](&x64, &y64, 1);
    assert_true(isnan(y32) && isnan(y64));
    x32 = -x32;
    loops->fp32[kind](&x32, &y32, 1);
    assert_true(isnan(y32));
    x32 = INFINITY, x64 = INFINITY;
    loops->fp32[kind](&x32, &y32, 1);
    loops->fp64[kind](&x64, &y64, 1);
    assert_true(y32 == INFINITY && y64 == INFINITY);
    x32 = -INFINITY, x64 = -INFINITY;
    loops->fp32[kind](&x32, &y32, 1);
    loops->fp64[kind](&x64, &y64, 1);
    if (kind == TG_ACTIVATION_NONE) {
        assert_true(y32 == -INFINITY && y64 == -INFINITY);
        return;
    }
    assert_true(y32 == 0.0f && y64 == 0.0);
    for (size_t i = 0; i < sizeof large / sizeof large[0]; i++) {
        x32 = (float)large[i], x64 = large[i];
        loops->fp32[kind](&x32, &y32, 1);
        loops->fp64[kind](&x64, &y64, 1);
        assert_true(y32 == x32 && y64 == x64);
        x32 = -x32, x64 = -x64;
        loops->fp32[kind](&x32, &y32, 1);
        loops->fp64[kind](&x64, &y64, 1);
        assert_true(y32 == 0.0f && y64 == 0.0);
    }
}

static void test_special_values(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    for (int i = 0; i < loops_count; i++) {
        for (int kind = TG_ACTIVATION_NONE; kind <= TG_ACTIVATION_SILU; kind++) {
            const float zeros[] = {0.0f, -0.0f};
            float y[2];
            check_special(loops[i], kind);
            loops[i]->fp32[kind](zeros, y, 2);
            assert_memory_equal(y, zeros, sizeof y);
        }
    }
}

static void test_relu(void **state)
{
    (void)state;
    assert_true(tgi_activate_fp32(-1e-45f, TG_ACTIVATION_RELU) == 0.0f);
    assert_true(tgi_activate_fp32(-3.5f, TG_ACTIVATION_RELU) == 0.0f);
    assert_true(tgi_activate_fp32(1e-45f, TG_ACTIVATION_RELU) == 1e-45f);
    assert_true(tgi_activate_fp64(-3.5, TG_ACTIVATION_RELU) == 0.0);
    assert_true(tgi_activate_fp64(3.5, TG_ACTIVATION_RELU) == 3.5);
}

static float finish_one_fp32(float sum, float alpha, float beta, float c, tg_bias bias_kind,
                             float bias, tg_activation activation)
{
    const tgi_epilogue epilogue = {
        .alpha = alpha, .beta = beta, .bias = bias_kind, .activation = activation};
    const tgi_terms_fp32 terms = {alpha, c, bias};
    return tgi_epilogue_fp32(&epilogue, &terms, sum);
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
        cmocka_unit_test(test_fp32_accuracy),
        cmocka_unit_test(test_fp64_accuracy),
        cmocka_unit_test(test_special_values),
        cmocka_unit_test(test_same_bits_at_any_position),
        cmocka_unit_test(test_relu),
        cmocka_unit_test(test_order_of_operations),
        cmocka_unit_test(test_what_is_not_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
