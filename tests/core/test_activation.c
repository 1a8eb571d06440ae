/*
 * Tests the activations against libm in a wider format, with the bounds of activation.h, on every
 * instruction set that this processor has.
 *
 *     test_activation [KIND]     with KIND: that activation alone, of all bit patterns of FP32
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
#include "core/activation.h"
#include "core/activation_fp64.h"

#define PATTERN_STRIDE 4099u /* gives a million bit patterns of FP32, of every exponent */
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

/* Finite numbers, what an activation of them is, and room for what the loops compute. */
typedef struct samples {
    int64_t count;
    float *x, *y;
    double *exact;
    double *inverse_bounds[2]; /* for FP32 and for narrow types */
} samples;

static samples open_samples(int64_t count_max)
{
    samples of = {.x = malloc((size_t)count_max * sizeof *of.x),
                  .y = malloc((size_t)count_max * sizeof *of.y),
                  .exact = malloc((size_t)count_max * sizeof *of.exact)};
    assert_true(of.x && of.y && of.exact);
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        of.inverse_bounds[is_narrow] = malloc((size_t)count_max * sizeof *of.exact);
        assert_non_null(of.inverse_bounds[is_narrow]);
    }
    return of;
}

static void close_samples(samples *of)
{
    free(of->x);
    free(of->y);
    free(of->exact);
    free(of->inverse_bounds[0]);
    free(of->inverse_bounds[1]);
}

/* Makes finite samples of every exponent, then dense ones where the functions bend and in their
 * tails. */
static samples make_samples_fp32(void)
{
    samples of = open_samples(0xffffffffu / PATTERN_STRIDE + 2u * DENSE_COUNT + 1u);
    float *x = of.x;
    int64_t count = 0;
    uint64_t state = 1;
    for (uint64_t bits = 0; bits <= 0xffffffffu; bits += PATTERN_STRIDE) {
        float value = tgi_fp32_from_bits((uint32_t)bits);
        if (isfinite(value))
            x[count++] = value;
    }
    for (int i = 0; i < DENSE_COUNT; i++)
        x[count++] = (float)uniform(&state, -15.0, 15.0);
    for (int i = 0; i < DENSE_COUNT; i++)
        x[count++] = (float)uniform(&state, -112.0, 0.0);
    of.count = count;
    return of;
}

/* Relative and absolute bounds of activation.h. */
typedef struct accuracy {
    double relative, absolute;
} accuracy;

static accuracy get_accuracy(tg_activation kind, int is_narrow)
{
    const int is_erf = kind == TG_ACTIVATION_GELU_ERF;
    if (is_narrow)
        return (accuracy){(is_erf ? 1.6 : 1.3) * 0x1p-14, 0x1p-119};
    return (accuracy){(is_erf ? 20 : 14) * 0x1p-24, 0x1p-149};
}

/* Sets the bounds of the exact activations. */
static void set_bounds(tg_activation kind, const samples *of)
{
    for (int is_narrow = 0; is_narrow < 2; is_narrow++) {
        const accuracy bound = get_accuracy(kind, is_narrow);
        for (int64_t i = 0; i < of->count; i++)
            of->inverse_bounds[is_narrow][i] =
                1 / (bound.relative * fabs(of->exact[i]) + bound.absolute);
    }
}

/* Runs one set of loops and returns the largest error as a share of the bound. Sets *worst_at. */
static double find_worst(const activation_loops *loops, tg_activation kind, int is_narrow,
                         const samples *of, float *worst_at)
{
    const double *inverse_bounds = of->inverse_bounds[is_narrow];
    double worst = 0;
    (is_narrow ? loops->narrow : loops->fp32)[kind](of->x, of->y, of->count);
    for (int64_t i = 0; i < of->count; i++) {
        const double share = fabs((double)of->y[i] - of->exact[i]) * inverse_bounds[i];
        if (!(share <= worst)) { /* NaN counts as worst */
            worst = share;
            *worst_at = of->x[i];
            if (isnan(share))
                break;
        }
    }
    return worst;
}

static void check_fp32(const activation_loops *loops, tg_activation kind, int is_narrow,
                       const samples *of)
{
    float worst_at = 0;
    double worst = find_worst(loops, kind, is_narrow, of, &worst_at);
    printf("%s %s %s: %.2f of the bound, at %a\n", loops->isa, tg_get_activation_name(kind),
           is_narrow ? "narrow" : "fp32", worst, (double)worst_at);
    if (!(worst <= 1.0))
        fail_msg("%s exceeds the bound", tg_get_activation_name(kind));
}

static void test_fp32_accuracy(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    samples of = make_samples_fp32();
    for (size_t k = 0; k < sizeof smooth_kinds / sizeof smooth_kinds[0]; k++) {
        for (int64_t i = 0; i < of.count; i++)
            of.exact[i] = (double)activate_exactly(smooth_kinds[k], (long double)of.x[i]);
        set_bounds(smooth_kinds[k], &of);
        for (int i = 0; i < loops_count; i++)
            for (int is_narrow = 0; is_narrow < 2; is_narrow++)
                check_fp32(loops[i], smooth_kinds[k], is_narrow, &of);
    }
    close_samples(&of);
}

/* Computes the activations of a finite FP32 number x >= 0 and of -x in FP64, within 2^-42 of them.
 * The function of libm, which takes most of the time, serves both. */
static void activate_closely(tg_activation kind, double x, double *of_x, double *of_minus_x)
{
    if (x > 0x1p7) {
        *of_x = x;
        *of_minus_x = -0.0;
    } else if (x < 0x1p-30) {
        *of_x = 0.5 * x;
        *of_minus_x = -0.5 * x;
    } else if (kind == TG_ACTIVATION_GELU_ERF) {
        const double tail = erfc(x * 0.70710678118654752440);
        *of_x = 0.5 * x * (2.0 - tail);
        *of_minus_x = -0.5 * x * tail;
    } else {
        const double slope = 1.5957691216057307118 * (1.0 + 0.044715 * x * x);
        const double power = exp(-x * (kind == TG_ACTIVATION_GELU_TANH ? slope : 1.0));
        *of_x = x / (1.0 + power);
        *of_minus_x = -x * power / (1.0 + power);
    }
}

/* Tests all bit patterns of FP32 from 2^-31 to 2^7, where the functions bend, and one block of 16
 * of those beyond, where they are x / 2, x or -0. */
static void test_all_fp32(tg_activation kind)
{
    enum { COUNT = 1 << 13, BLOCKS_BEYOND = 16 };
    samples of = open_samples(2 * COUNT);
    const activation_loops *loops[3];
    const int loops_count = list_loops(loops);
    double worst[3][2] = {{0}};
    float worst_at[3][2] = {{0}};
    for (uint32_t first = 0; first <= 0x7fffffffu; first += COUNT) {
        const float magnitude = tgi_fp32_from_bits(first);
        if (!(magnitude >= 0x1p-31f && magnitude <= 0x1p7f) && first / COUNT % BLOCKS_BEYOND != 0)
            continue;
        of.count = 0;
        for (uint32_t bits = first; bits < first + COUNT; bits++) {
            const float value = tgi_fp32_from_bits(bits);
            if (isfinite(value)) {
                const int64_t i = of.count;
                of.x[i] = value;
                of.x[i + 1] = -value;
                activate_closely(kind, (double)value, &of.exact[i], &of.exact[i + 1]);
                of.count += 2;
            }
        }
        set_bounds(kind, &of);
        for (int i = 0; i < 2 * loops_count; i++) {
            float at = 0;
            double share = find_worst(loops[i / 2], kind, i % 2, &of, &at);
            if (!(share <= worst[i / 2][i % 2])) {
                worst[i / 2][i % 2] = share;
                worst_at[i / 2][i % 2] = at;
            }
        }
    }
    for (int i = 0; i < 2 * loops_count; i++) {
        const double relative = worst[i / 2][i % 2] * get_accuracy(kind, i % 2).relative;
        printf("%s %s %s: %.2f of the bound, 2^%.2f, at %a\n", loops[i / 2]->isa,
               tg_get_activation_name(kind), i % 2 ? "narrow" : "fp32", worst[i / 2][i % 2],
               log2(relative), (double)worst_at[i / 2][i % 2]);
        assert_true(worst[i / 2][i % 2] <= 1.0);
    }
    close_samples(&of);
}

static tg_activation kind_of_all; /* the activation that test_all_patterns takes */

static void test_all_patterns(void **state)
{
    (void)state;
    test_all_fp32(kind_of_all);
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
    for (int j = 0; j < 2 * loops_count; j++) {
        for (int kind = TG_ACTIVATION_NONE; kind <= TG_ACTIVATION_SILU; kind++) {
            activate_fp32 *activate = (j % 2 ? loops[j / 2]->narrow : loops[j / 2]->fp32)[kind];
            activate(x, y, COUNT);
            for (int i = 0; i < COUNT; i++) {
                float alone;
                activate(&x[i], &alone, 1);
                assert_memory_equal(&alone, &y[i], sizeof alone);
            }
        }
    }
}

/* Infinities, and numbers whose result is themselves or -0. */
static void check_special_fp32(activate_fp32 *activate, int kind)
{
    const float x[] = {NAN, -NAN, INFINITY, 1e4f, 1e30f, 3e38f, -INFINITY, -1e4f, -1e30f, -3e38f};
    const float zeros[] = {0.0f, -0.0f};
    const float below = kind == TG_ACTIVATION_RELU ? 0.0f : -0.0f;
    float y[10], y_zeros[2];
    activate(x, y, 10);
    activate(zeros, y_zeros, 2);
    assert_memory_equal(y_zeros, zeros, sizeof zeros);
    assert_true(isnan(y[0]) && isnan(y[1]));
    assert_memory_equal(y + 2, x + 2, 4 * sizeof y[0]);
    for (int i = 6; i < 10; i++)
        assert_memory_equal(y + i, kind == TG_ACTIVATION_NONE ? x + i : &below, sizeof y[0]);
}

static void check_special_fp64(activate_fp64 *activate, int kind)
{
    const double x[] = {NAN, INFINITY, 1e4, 1e30, 3e38, -INFINITY, -1e4, -1e30, -3e38};
    double y[9];
    activate(x, y, 9);
    assert_true(isnan(y[0]));
    for (int i = 1; i < 9; i++)
        assert_true(y[i] == (kind == TG_ACTIVATION_NONE || x[i] > 0 ? x[i] : 0.0));
}

static void test_special_values(void **state)
{
    (void)state;
    const activation_loops *loops[3];
    int loops_count = list_loops(loops);
    for (int i = 0; i < loops_count; i++) {
        for (int kind = TG_ACTIVATION_NONE; kind <= TG_ACTIVATION_SILU; kind++) {
            check_special_fp32(loops[i]->fp32[kind], kind);
            check_special_fp32(loops[i]->narrow[kind], kind);
            check_special_fp64(loops[i]->fp64[kind], kind);
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

int main(int argument_count, char **arguments)
{
    const struct CMUnitTest all[] = {cmocka_unit_test(test_all_patterns)};
    for (int kind = 0; argument_count > 1 && kind <= TG_ACTIVATION_SILU; kind++)
        if (strcmp(arguments[1], tg_get_activation_name((tg_activation)kind)) == 0) {
            kind_of_all = (tg_activation)kind;
            return cmocka_run_group_tests(all, NULL, NULL);
        }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32_accuracy),  cmocka_unit_test(test_fp64_accuracy),
        cmocka_unit_test(test_special_values), cmocka_unit_test(test_same_bits_at_any_position),
        cmocka_unit_test(test_relu),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
