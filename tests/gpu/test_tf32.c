/*
 * test_tf32 tests that FP32 inputs become the nearest TF32 numbers, whichever way the kernel takes
 * them: if they lie along k or across it, and if their lines are such that they are repacked. Each
 * number is multiplied by one, k being 1, so that D tells what it became: within half a unit of its
 * last of 10 bits, NaN and infinities kept.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

enum { number_count = 4096, others = 64 };

static const char *const kernels[] = {
    "cuda_mma_sm80_tf32_64x64x32", "cuda_mma_sm80_tf32_128x128x16", "cuda_mma_sm80_tf32_128x256x32",
    "cuda_wgmma_sm90a_tf32_64x64x32", "cuda_wgmma_sm90a_tf32_128x128x32"};

/* Fills in numbers of every exponent, whose bits below the tenth are none, ties, next to ties, and
 * random. */
static void fill_numbers(float *numbers)
{
    static const uint32_t rests[] = {0, 0x1000, 0x0fff, 0x1001, 0x1fff, 1};
    static const float specials[] = {INFINITY, -INFINITY, NAN, FLT_MAX, -FLT_MAX, 0.0f};
    uint64_t random = 20260901;
    for (uint32_t i = 0; i < number_count; i++) {
        const uint32_t draw = (uint32_t)(check_next_random(&random) >> 32);
        const uint32_t rest = i % 7 < 6 ? rests[i % 7] : draw & 0x1fff;
        const uint32_t bits = (draw & 0x807fe000u) | i % 255 << 23 | rest;
        memcpy(&numbers[i], &bits, sizeof bits);
    }
    memcpy(numbers, specials, sizeof specials);
}

/* Returns 1 if `is` is a nearest TF32 number to `of`. Either of two equally near numbers will do. A
 * subnormal may become zero, and a number that rounds beyond the largest TF32 number may become
 * infinity. */
static int is_nearest(float is, float of)
{
    uint32_t bits;
    memcpy(&bits, &is, sizeof bits);
    if (isnan(of) || isinf(of))
        return isnan(of) ? isnan(is) : is == of;
    if (fabsf(of) < FLT_MIN && is == 0.0f)
        return 1;
    if (isinf(is))
        return fabsf(of) >= 0x1.ffep127f && signbit(is) == signbit(of);
    const int exponent = fabsf(of) < FLT_MIN ? -126 : ilogbf(of);
    return (bits & 0x1fff) == 0 && fabs((double)is - (double)of) <= ldexp(1.0, exponent - 11);
}

/* The numbers are A (a column) or B (a row). Each lies in a line along k of its own, `pitch`
 * elements from the last, or all lie in one line across it. */
typedef struct rounding_case {
    int is_b, is_transposed;
    int64_t pitch, first; /* elements in front of the first number */
} rounding_case;

static void check_case(tg_context *context, const rounding_case *c, const char *kernel,
                       const float *numbers)
{
    enum { room = number_count * 5 };
    static float host[room], d[number_count * others];
    const int64_t lines = number_count, span = c->is_transposed ? lines : c->pitch * lines;
    const int64_t pitch = c->is_transposed ? 1 : c->pitch;
    void *device[3];
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_plan *plan;
    assert_true(c->first + span <= room);
    for (int i = 0; i < room; i++)
        host[i] = NAN;
    for (int64_t i = 0; i < lines; i++)
        host[c->first + i * pitch] = numbers[i];
    for (int i = 0; i < 3; i++)
        assert_int_equal(tg_allocate_memory(
                             context, i < 2 ? (int64_t)sizeof host : (int64_t)sizeof d, &device[i]),
                         0);
    assert_int_equal(tg_copy_to_device(context, device[c->is_b], host, sizeof host), 0);
    for (int i = 0; i < room; i++)
        host[i] = 1.0f;
    assert_int_equal(tg_copy_to_device(context, device[!c->is_b], host, sizeof host), 0);
    float *a = (float *)device[0] + (c->is_b ? 0 : c->first);
    float *b = (float *)device[1] + (c->is_b ? c->first : 0);
    tg_matrix column = tg_make_matrix(TG_TYPE_FP32, a, c->is_b ? others : lines, 1);
    tg_matrix row = tg_make_matrix(TG_TYPE_FP32, b, 1, c->is_b ? lines : others);
    *(c->is_b ? &row.col_stride : &column.row_stride) = pitch;
    *(c->is_b ? &row.row_stride : &column.col_stride) = c->is_transposed ? c->pitch * lines : 1;
    tg_problem problem = tg_make_problem(
        column, row, tg_make_matrix(TG_TYPE_FP32, device[2], column.row_count, row.col_count));
    problem.precision = TG_PRECISION_TF32;
    const tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = device[2]};
    if (tg_create_plan(context, &problem, &options, &plan) != TG_STATUS_OK)
        fail_msg("%s: %s", kernel, tg_get_error_detail());
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    tg_destroy_plan(plan);
    assert_int_equal(tg_copy_from_device(context, d, device[2], sizeof d), 0);
    for (int64_t i = 0; i < lines * others; i++) {
        const float of = numbers[c->is_b ? i % lines : i / others];
        if (!is_nearest(d[i], of))
            fail_msg("%s, %s, %s, pitch %lld: %a became %a", kernel, c->is_b ? "B" : "A",
                     c->is_transposed ? "across k" : "along k", (long long)c->pitch, (double)of,
                     (double)d[i]);
    }
    for (int i = 0; i < 3; i++)
        tg_release_memory(context, device[i]);
}

static void test_rounding(void **state)
{
    (void)state;
    /* The cases lie along k in lines that TMA reads (a pitch of 16 bytes) and in lines that it does
     * not read, and across k from a multiple of 16 bytes on and not. */
    static const rounding_case cases[] = {{0, 0, 4, 0}, {1, 0, 4, 0}, {0, 0, 5, 0}, {1, 0, 5, 0},
                                          {0, 1, 1, 0}, {1, 1, 1, 0}, {0, 1, 1, 1}, {1, 1, 1, 1}};
    static float numbers[number_count];
    tg_context *context = gpu_open_context();
    int count = 0;
    fill_numbers(numbers);
    for (size_t kernel = 0; kernel < sizeof kernels / sizeof kernels[0]; kernel++) {
        if (!gpu_has_kernel(context, kernels[kernel]))
            continue;
        count++;
        for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
            check_case(context, &cases[i], kernels[kernel], numbers);
    }
    printf("%d kernels round to the nearest\n", count);
    tg_destroy_context(context);
}

/* The judge knows a number that was cut off from one that was rounded. */
static void test_judge(void **state)
{
    (void)state;
    assert_true(is_nearest(0x1.004p0f, 0x1.003p0f));
    assert_true(is_nearest(0x1.004p0f, 0x1.002p0f));
    assert_true(is_nearest(0x1.000p0f, 0x1.002p0f));
    assert_false(is_nearest(0x1.000p0f, 0x1.003p0f)); /* was cut off */
    assert_false(is_nearest(0x1.003p0f, 0x1.003p0f)); /* was not rounded at all */
    assert_false(is_nearest(INFINITY, 0x1p127f));
    assert_false(is_nearest(0.0f, NAN));
}

int main(void)
{
    const struct CMUnitTest judge[] = {cmocka_unit_test(test_judge)};
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rounding)};
    if (cmocka_run_group_tests(judge, NULL, NULL) != 0)
        return 1;
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
