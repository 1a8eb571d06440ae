/*
 * test_all_activations tests the activations as kernels apply them, where nothing else rounds: k is
 * 1, B is ones, and A holds every number of 16 bits, every 65537th bit pattern of FP32, or as many
 * numbers of FP64, half of them from where activations bend. Bounds hold far into the negative
 * tail, where those of a product allow anything.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

enum { number_count = 1 << 16, cols_max = 64 };

/* Rounding to D, and the bound of the activations for such a D. */
typedef struct output {
    tg_type input, type;
    long double unit, underflow, largest;
    long double relative, absolute;
} output;

static const output outputs[] = {
    {TG_TYPE_FP32, TG_TYPE_FP32, 0x1p-24L, 0x1p-149L, 0x1p128L, 20 * 0x1p-24L, 0x1p-149L},
    {TG_TYPE_BF16, TG_TYPE_FP32, 0x1p-24L, 0x1p-149L, 0x1p128L, 20 * 0x1p-24L, 0x1p-149L},
    {TG_TYPE_BF16, TG_TYPE_BF16, 0x1p-8L, 0x1p-134L, 0x1p128L, 1.5L * 0x1p-14L, 0x1p-119L},
    {TG_TYPE_FP64, TG_TYPE_FP64, 0, 0, 0x1p1024L, 8 * 0x1p-53L, 32 * 0x1p-1074L},
    {TG_TYPE_FP16, TG_TYPE_FP16, 0x1p-11L, 0x1p-25L, 65520.0L, 1.5L * 0x1p-14L, 0x1p-119L},
};

static long double activate(tg_activation kind, long double x)
{
    if (kind == TG_ACTIVATION_RELU)
        return x < 0 ? 0 : x;
    if (kind == TG_ACTIVATION_GELU_ERF)
        return x / 2 * erfcl(-x * 0.70710678118654752440L);
    const long double slope = 1.5957691216057307118L * (1 + 0.044715L * x * x);
    const long double power = expl(-fabsl(kind == TG_ACTIVATION_GELU_TANH ? x * slope : x));
    return x * (x < 0 ? power : 1) / (1 + power);
}

/* Returns 1 if d is a right activation of x. */
static int is_right(const output *to, tg_activation kind, long double x, long double d)
{
    if (isnan(x))
        return isnan(d);
    if (isinf(x))
        return x > 0 ? d == x : d == 0;
    const long double y = activate(kind, x);
    long double error = to->unit * fabsl(y) + to->underflow;
    if (kind > TG_ACTIVATION_RELU)
        error += to->relative * fabsl(y) + to->absolute;
    if (to->input == TG_TYPE_BF16 && fabsl(x) < 0x1p-126L)
        error += 0x1p-126L; /* BF16 instructions may take x as zero */
    if (isinf(d))
        return d > 0 && y + error >= to->largest;
    return fabsl(d - y) <= error && (d == 0 || signbit(d) == signbit(y));
}

/* Returns number `i` of FP64: every other one is a bit pattern of its own exponent, the others lie
 * between -40 and 40. */
static double find_fp64(uint32_t i)
{
    const uint64_t bits = 0x1000100010001u * (uint64_t)i;
    double pattern;
    memcpy(&pattern, &bits, sizeof pattern);
    return i % 2 != 0 ? pattern : 40 * sin(2.3 * i);
}

static void fill_numbers(tg_type type, void *numbers)
{
    for (uint32_t i = 0; i < number_count; i++) {
        const uint32_t bits = 65537u * i;
        if (type == TG_TYPE_FP64)
            ((double *)numbers)[i] = find_fp64(i);
        else if (type == TG_TYPE_FP32)
            memcpy((uint32_t *)numbers + i, &bits, sizeof bits);
        else
            ((uint16_t *)numbers)[i] = (uint16_t)i;
    }
}

static void *allocate_copy(tg_context *context, const void *host, int64_t bytes)
{
    void *device;
    assert_int_equal(tg_allocate_memory(context, bytes, &device), TG_STATUS_OK);
    assert_int_equal(tg_copy_to_device(context, device, host, bytes), TG_STATUS_OK);
    return device;
}

/* D has this many columns, all alike. */
static void check_product(tg_context *context, const output *to, tg_activation kind, int64_t cols)
{
    static double numbers[number_count], ones[cols_max], d[number_count * cols_max];
    fill_numbers(to->input, numbers);
    for (int64_t i = 0; i < cols; i++)
        check_set_element(to->input, ones, i, 1.0);
    memset(d, 0xff, sizeof d);
    void *device[] = {allocate_copy(context, numbers, sizeof numbers),
                      allocate_copy(context, ones, sizeof ones),
                      allocate_copy(context, d, sizeof d)};
    tg_problem problem = tg_make_problem(tg_make_matrix(to->input, device[0], number_count, 1),
                                         tg_make_matrix(to->input, device[1], 1, cols),
                                         tg_make_matrix(to->type, device[2], number_count, cols));
    problem.activation = kind;
    if (tg_multiply(context, &problem) != TG_STATUS_OK)
        fail_msg("%s", tg_get_error_detail());
    assert_int_equal(tg_copy_from_device(context, d, device[2], sizeof d), TG_STATUS_OK);
    for (int64_t i = 0; i < number_count * cols; i++) {
        const double x = check_get_element(to->input, numbers, i / cols);
        const double value = check_get_element(to->type, d, i);
        if (!is_right(to, kind, (long double)x, (long double)value))
            fail_msg("%s of %a in %s, %lld columns, D in %s: %a exceeds the bound",
                     tg_get_activation_name(kind), x, tg_get_type_name(to->input), (long long)cols,
                     tg_get_type_name(to->type), value);
    }
    for (int i = 0; i < 3; i++)
        tg_release_memory(context, device[i]);
}

static void test_all_numbers(void **state)
{
    (void)state;
    tg_context *context = gpu_open_context();
    for (size_t i = 0; i < sizeof outputs / sizeof outputs[0]; i++)
        for (int kind = TG_ACTIVATION_RELU; kind <= TG_ACTIVATION_SILU; kind++) {
            check_product(context, &outputs[i], (tg_activation)kind, 1);
            check_product(context, &outputs[i], (tg_activation)kind, cols_max);
        }
    tg_destroy_context(context);
}

/* The judge knows the bound of each type. */
static void test_judge(void **state)
{
    (void)state;
    const output *fp32 = &outputs[0], *bf16 = &outputs[2];
    const long double y = activate(TG_ACTIVATION_SILU, -9.0L);
    assert_true(is_right(fp32, TG_ACTIVATION_SILU, -9.0L, y * (1 + 20 * 0x1p-24L)));
    assert_false(is_right(fp32, TG_ACTIVATION_SILU, -9.0L, y * (1 + 22 * 0x1p-24L)));
    assert_true(is_right(bf16, TG_ACTIVATION_SILU, -9.0L, y * (1 + 0x1p-8L)));
    assert_false(is_right(bf16, TG_ACTIVATION_SILU, -9.0L, y * (1 + 0x1.1p-8L)));
    assert_false(is_right(bf16, TG_ACTIVATION_SILU, -9.0L, 0.0L));
    assert_false(is_right(bf16, TG_ACTIVATION_SILU, NAN, 0.0L));
}

int main(void)
{
    const struct CMUnitTest judge[] = {cmocka_unit_test(test_judge)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_numbers)};
    if (cmocka_run_group_tests(judge, NULL, NULL) != 0)
        return 1;
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
