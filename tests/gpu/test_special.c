/*
 * test_special tests that products by slices of 16 bits make of special numbers what FP32 makes of
 * them, and products by instructions of FP64 what sums of FP64 make of them. The numbers are
 * infinities, NaN, zeros of both signs, and numbers near the largest and near the least. Every
 * element of D is of the class (NaN, Inf, zero, and of what sign) that the triple loop of
 * multiply-adds in the type of the sums gives, and within the bound of the precision. The library's
 * choice may give either.
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
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

/* These sizes give tiles of 64 and 128 with an edge, and several chunks of k with a rest. */
enum { rows = 150, cols = 140, depth = 200 };
/* There are so many copies of the problem, all with the same operands, that no kernel uses split-K,
 * whose parts would be summed in another order than the loop's. The last copy is looked at. */
enum { copies = 64 };
/* A case puts its numbers at this row and column of D and at these k. */
enum { special_row = 70, special_col = 131, first_k = 3, second_k = 199 };

static const float values[] = {INFINITY,
                               -INFINITY,
                               NAN,
                               0.0f,
                               -0.0f,
                               1.0f,
                               FLT_MAX,
                               -FLT_MAX,
                               0x1.ffp127f,
                               0x1p100f,
                               -0x1p64f,
                               0x1.fffffep62f,
                               0x1p-126f,
                               -0x1p-149f,
                               0x1.8p-140f,
                               0x1.fffffep-63f,
                               -0x1.555556p-90f,
                               0x1.234568p-110f};

/* The types of sums that a kernel may have, as bits. */
enum { fp32_sums = 1, fp64_sums = 2 };

/* The context may lack some. NULL is the library's choice. */
static const struct {
    const char *name;
    int sums;
} kernels[] = {{"cuda_bf16x_sm90a_fp32_128x256x32", fp32_sums},
               {"cuda_bf16x_sm90a_fp32_64x64x32", fp32_sums},
               {"cuda_bf16r_sm90a_fp32_128x64x32", fp32_sums},
               {"cuda_bf16d_sm90a_fp32_16x16x256", fp32_sums},
               {"cuda_mma_bf16x_sm80_fp32_64x128x32", fp32_sums},
               {"cuda_small_sm90a_fp32w_64x64x16", fp64_sums},
               {NULL, fp32_sums | fp64_sums}};

typedef struct special_case {
    tg_context *context;
    tg_problem problem;
    float *a, *b, *d, *loop, *fp64_loop;
    void *device[3];
} special_case;

/* Computes D by the triple loop, with sums of FP32 and of FP64, which are rounded once. */
static void multiply_by_loop(special_case *c)
{
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < cols; j++) {
            float sum = 0.0f;
            double fp64_sum = 0.0;
            for (int l = 0; l < depth; l++) {
                const float a = c->a[i * depth + l], b = c->b[l * cols + j];
                sum = fmaf(a, b, sum);
                fp64_sum += (double)a * b;
            }
            c->loop[i * cols + j] = sum;
            c->fp64_loop[i * cols + j] = (float)fp64_sum;
        }
}

static const char *name_class(float x)
{
    if (isnan(x))
        return "NaN";
    if (isinf(x))
        return x > 0 ? "Inf" : "-Inf";
    return x == 0.0f ? signbit(x) ? "-0" : "0" : x > 0 ? "positive" : "negative";
}

/* Returns 1 if every product of element i of D is a zero: the sum is a zero of a known sign. */
static int is_zero(const special_case *c, int i)
{
    for (int l = 0; l < depth; l++)
        if (c->a[i / cols * depth + l] != 0.0f && c->b[l * cols + i % cols] != 0.0f)
            return 0;
    return 1;
}

/* Returns 1 if element i is of the class that the loop gives. The bound judges finite sums, because
 * they depend on the order of summation, down to their signs if they cancel. */
static int is_alike(const special_case *c, const float *loop, int i)
{
    if (isfinite(c->d[i]) && isfinite(loop[i]) && !is_zero(c, i))
        return 1;
    return strcmp(name_class(c->d[i]), name_class(loop[i])) == 0;
}

static int is_right(const special_case *c, int sums, int i)
{
    return (sums & fp32_sums && is_alike(c, c->loop, i)) ||
           (sums & fp64_sums && is_alike(c, c->fp64_loop, i));
}

static void assert_right(special_case *c, const char *kernel, int sums, float a, float b)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = c->device[0], .b = c->device[1], .d = c->device[2]};
    tg_plan *plan;
    check_result result;
    assert_int_equal(tg_create_plan(c->context, &c->problem, &options, &plan), TG_STATUS_OK);
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    tg_destroy_plan(plan);
    assert_int_equal(tg_copy_from_device(c->context, c->d,
                                         (float *)c->device[2] + (copies - 1) * rows * cols,
                                         sizeof(float) * rows * cols),
                     0);
    for (int i = 0; i < rows * cols; i++)
        if (!is_right(c, sums, i))
            fail_msg(
                "%s, %g times %g: element (%d, %d) is %g, triple loops give %g and, in FP64, %g",
                kernel ? kernel : "(the library's choice)", (double)a, (double)b, i / cols,
                i % cols, (double)c->d[i], (double)c->loop[i], (double)c->fp64_loop[i]);
    tg_problem one = c->problem;
    one.batch_count = 1;
    check_compare(&one, INFINITY, &result);
    if (!result.is_ok)
        fail_msg("%s, %g times %g: element (%lld, %lld) is %g, not %g",
                 kernel ? kernel : "(the library's choice)", (double)a, (double)b,
                 (long long)result.bad_row, (long long)result.bad_col, result.bad_value,
                 result.bad_expected);
}

/* Places a so that it meets b, once alone and once beside a second product of the two, in a row and
 * a column that are otherwise zeros or random. */
static void place(special_case *c, float a, float b, int variant)
{
    uint64_t random = 7;
    for (int i = 0; i < rows * depth; i++)
        c->a[i] = (float)check_next_uniform(&random);
    for (int i = 0; i < depth * cols; i++)
        c->b[i] = (float)check_next_uniform(&random);
    for (int l = 0; l < depth; l++) {
        if (variant & 1)
            continue;
        c->a[special_row * depth + l] = 0.0f;
        c->b[l * cols + special_col] = 0.0f;
    }
    c->a[special_row * depth + first_k] = a;
    c->b[first_k * cols + special_col] = b;
    if (variant & 2) {
        c->a[special_row * depth + second_k] = -b;
        c->b[second_k * cols + special_col] = a;
    }
    for (int i = 0; i < 2; i++)
        assert_int_equal(
            tg_copy_to_device(c->context, c->device[i], i ? c->b : c->a,
                              (int64_t)sizeof(float) * (i ? depth * cols : rows * depth)),
            0);
    multiply_by_loop(c);
}

static void test_special(void **state)
{
    special_case *c = *state;
    const int count = (int)(sizeof values / sizeof values[0]);
    int case_count = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < count; j++, case_count++) {
            place(c, values[i], values[j], (i + j) % 4);
            for (size_t k = 0; k < sizeof kernels / sizeof kernels[0]; k++)
                if (!kernels[k].name || gpu_has_kernel(c->context, kernels[k].name))
                    assert_right(c, kernels[k].name, kernels[k].sums, values[i], values[j]);
        }
    printf("%d pairs of special values right\n", case_count);
}

static int open_case(void **state)
{
    static special_case c;
    const int64_t counts[3] = {rows * depth, depth * cols, copies * rows * cols};
    float **host[3] = {&c.a, &c.b, &c.d};
    c.context = gpu_open_context();
    c.loop = malloc(sizeof(float) * rows * cols);
    c.fp64_loop = malloc(sizeof(float) * rows * cols);
    for (int i = 0; i < 3; i++) {
        *host[i] = malloc(sizeof(float) * (size_t)counts[i]);
        if (tg_allocate_memory(c.context, (int64_t)sizeof(float) * counts[i], &c.device[i]) ||
            !*host[i] || !c.loop || !c.fp64_loop)
            return 1;
    }
    c.problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, c.a, rows, depth),
                                tg_make_matrix(TG_TYPE_FP32, c.b, depth, cols),
                                tg_make_matrix(TG_TYPE_FP32, c.d, rows, cols));
    c.problem.batch_count = copies;
    c.problem.d.batch_stride = rows * cols;
    *state = &c;
    return 0;
}

static int close_case(void **state)
{
    special_case *c = *state;
    for (int i = 0; i < 3; i++)
        tg_release_memory(c->context, c->device[i]);
    free(c->a);
    free(c->b);
    free(c->d);
    free(c->loop);
    free(c->fp64_loop);
    tg_destroy_context(c->context);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_special, open_case, close_case)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
