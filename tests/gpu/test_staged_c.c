/*
 * test_staged_c tests the operand C of family wgmma on a GPU. D has the same bits whether C comes
 * through the stages, because it begins at a multiple of 16 bytes, or is read by threads, because
 * it begins an element later, or lies in D's place. Some products also have a bias and an
 * activation.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "gpu.h"

#define KERNEL_START "cuda_wgmma_"
#define GUARD_BYTE 0x5a /* fills D's gaps, which stay as they are */

/* Lines of C and D lie `gap` elements apart. With is_c_across, C lies by columns and D by rows. */
typedef struct c_case {
    int64_t m, n, k, batch_count, gap;
    int is_c_across;
} c_case;

/* The cases have edges of tiles and of boxes, few rows, few columns, batches, and more tiles than
 * blocks, with one step of k or several. */
static const c_case cases[] = {
    {200, 328, 72, 1, 0, 0},  {13, 1000, 130, 1, 8, 0},   {1000, 24, 64, 1, 0, 0},
    {328, 520, 96, 3, 16, 0}, {2504, 2600, 40, 1, 0, 0},  {1500, 3000, 520, 1, 0, 0},
    {200, 328, 72, 2, 8, 1},  {1496, 1000, 200, 1, 0, 1}, {72, 1064, 208, 1, 0, 1},
    {1, 1000, 200, 2, 0, 0},  {1000, 1, 200, 2, 0, 0}};

/* Names the operations of the epilogue beside C. */
typedef struct operations {
    tg_bias bias;
    tg_activation activation;
} operations;

static const operations beside[] = {{TG_BIAS_NONE, TG_ACTIVATION_NONE},
                                    {TG_BIAS_COL, TG_ACTIVATION_RELU},
                                    {TG_BIAS_ROW, TG_ACTIVATION_GELU_TANH},
                                    {TG_BIAS_NONE, TG_ACTIVATION_SILU}};

enum { BESIDE_COUNT = sizeof beside / sizeof *beside, BUFFER_COUNT = 5 };

typedef struct buffers {
    char *a, *b, *c, *d, *bias, *initial; /* `initial` is D's memory before a product */
    char *device[BUFFER_COUNT];
    int64_t a_bytes, b_bytes, c_bytes, d_bytes, bias_bytes;
} buffers;

static tg_problem describe(const c_case *given, const operations *with, tg_type type,
                           tg_type d_type)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(type, NULL, given->m, given->k),
                                         tg_make_matrix(type, NULL, given->n, given->k),
                                         tg_make_matrix(d_type, NULL, given->m, given->n));
    const int64_t pitch = given->n + given->gap;
    problem.op_b = TG_OPERATION_TRANSPOSE;
    problem.alpha = 0.75;
    problem.beta = -1.25;
    problem.batch_count = given->batch_count;
    problem.a.batch_stride = given->m * given->k;
    problem.b.batch_stride = given->n * given->k;
    problem.d.row_stride = pitch;
    problem.d.batch_stride = given->m * pitch + given->gap;
    problem.c = problem.d;
    problem.bias = with->bias;
    problem.activation = with->activation;
    if (given->is_c_across) {
        problem.c.row_stride = 1;
        problem.c.col_stride = given->m + given->gap;
        problem.c.batch_stride = given->n * problem.c.col_stride;
    }
    return problem;
}

static char *make_random(tg_type type, int64_t size_bytes, uint64_t seed)
{
    char *made = malloc((size_t)size_bytes);
    assert_non_null(made);
    for (int64_t i = 0; i < size_bytes / tg_get_type_bytes(type); i++)
        check_set_element(type, made, i, check_next_uniform(&seed));
    return made;
}

static void open_buffers(const tg_context *context, const tg_problem *problem, buffers *all)
{
    const int64_t bytes = tg_get_type_bytes(problem->a.type), count = problem->batch_count;
    all->a_bytes = count * problem->a.batch_stride * bytes;
    all->b_bytes = count * problem->b.batch_stride * bytes;
    all->c_bytes = (count * problem->c.batch_stride + 1) * 2;
    all->d_bytes = count * problem->d.batch_stride * 2;
    all->bias_bytes = (problem->d.row_count + problem->d.col_count) * 2;
    all->a = make_random(problem->a.type, all->a_bytes, 1);
    all->b = make_random(problem->a.type, all->b_bytes, 2);
    all->c = make_random(problem->d.type, all->c_bytes, 3);
    all->bias = make_random(problem->d.type, all->bias_bytes, 4);
    all->d = malloc((size_t)all->d_bytes);
    all->initial = malloc((size_t)all->d_bytes);
    assert_true(all->d && all->initial);
    const int64_t size_bytes[BUFFER_COUNT] = {all->a_bytes, all->b_bytes, all->c_bytes,
                                              all->d_bytes, all->bias_bytes};
    for (int i = 0; i < BUFFER_COUNT; i++)
        assert_int_equal(tg_allocate_memory(context, size_bytes[i], (void **)&all->device[i]), 0);
    assert_int_equal(tg_copy_to_device(context, all->device[0], all->a, all->a_bytes), 0);
    assert_int_equal(tg_copy_to_device(context, all->device[1], all->b, all->b_bytes), 0);
    assert_int_equal(tg_copy_to_device(context, all->device[4], all->bias, all->bias_bytes), 0);
}

static void close_buffers(const tg_context *context, buffers *all)
{
    char *host[] = {all->a, all->b, all->c, all->d, all->bias, all->initial};
    for (int i = 0; i < 6; i++)
        free(host[i]);
    for (int i = 0; i < BUFFER_COUNT; i++)
        tg_release_memory(context, all->device[i]);
}

/* Puts C `shift` bytes into its memory, or in place of D, and computes D. */
static void multiply(const tg_context *context, tg_plan *plan, buffers *all, int64_t shift,
                     int is_in_place)
{
    const tg_buffers given = {.struct_bytes = sizeof given,
                              .a = all->device[0],
                              .b = all->device[1],
                              .c = is_in_place ? all->device[3] : all->device[2] + shift,
                              .d = all->device[3],
                              .bias = all->device[4]};
    if (is_in_place)
        memcpy(all->initial, all->c, (size_t)all->d_bytes);
    else
        memset(all->initial, GUARD_BYTE, (size_t)all->d_bytes);
    assert_int_equal(tg_copy_to_device(context, all->device[2] + shift, all->c, all->c_bytes - 2),
                     0);
    assert_int_equal(tg_copy_to_device(context, all->device[3], all->initial, all->d_bytes), 0);
    assert_int_equal(tg_execute_plan(plan, &given), TG_STATUS_OK);
    assert_int_equal(tg_copy_from_device(context, all->d, all->device[3], all->d_bytes), 0);
}

/* Fails unless D's elements are those of `wanted` and its gaps are as they were. */
static void assert_same(const tg_problem *problem, const buffers *all, const char *wanted,
                        const char *kernel, const char *what)
{
    const int64_t n = problem->d.col_count, row = problem->d.row_stride;
    for (int64_t i = 0; i < all->d_bytes / 2; i++) {
        const int64_t in_entry = i % problem->d.batch_stride;
        const int is_inside = in_entry % row < n && in_entry / row < problem->d.row_count;
        if (memcmp(all->d + 2 * i, (is_inside ? wanted : all->initial) + 2 * i, 2) != 0)
            fail_msg("%s, %lld x %lld, %s: element %lld differs", kernel,
                     (long long)problem->d.row_count, (long long)n, what, (long long)i);
    }
}

/* Tests a kernel with the operands of a case. */
static void test_kernel(tg_context *context, const char *kernel, const tg_problem *problem,
                        buffers *all, char *wanted)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_plan *plan;
    if (tg_create_plan(context, problem, &options, &plan) != TG_STATUS_OK)
        fail_msg("%s: %s", kernel, tg_get_error_detail());
    multiply(context, plan, all, 2, 0);
    memcpy(wanted, all->d, (size_t)all->d_bytes);
    assert_same(problem, all, wanted, kernel, "gaps of D");
    multiply(context, plan, all, 0, 0);
    assert_same(problem, all, wanted, kernel, "aligned C");
    if (problem->c.row_stride == problem->d.row_stride) {
        multiply(context, plan, all, 0, 1);
        assert_same(problem, all, wanted, kernel, "C in D's place");
    }
    tg_destroy_plan(plan);
}

/* Tests all kernels for A of this type. Returns how many there are. */
static int test_case(tg_context *context, const c_case *given, const operations *with, tg_type type,
                     tg_type d_type)
{
    const tg_problem problem = describe(given, with, type, d_type);
    buffers all;
    int kernel_count = 0;
    open_buffers(context, &problem, &all);
    char *wanted = malloc((size_t)all.d_bytes);
    assert_non_null(wanted);
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), 0);
        if (!info.is_available || info.type != type ||
            strncmp(info.name, KERNEL_START, strlen(KERNEL_START)) != 0)
            continue;
        kernel_count++;
        test_kernel(context, info.name, &problem, &all, wanted);
    }
    free(wanted);
    close_buffers(context, &all);
    return kernel_count;
}

static void test_staged_c(void **state)
{
    static const tg_type types[] = {TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2};
    tg_context *context = gpu_open_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int kernel_count = 0;
        for (int j = 0; j < 4; j++) {
            const operations *with = &beside[(i + (size_t)j) % BESIDE_COUNT];
            kernel_count += test_case(context, &cases[i], with, types[j], TG_TYPE_BF16);
            kernel_count += test_case(context, &cases[i], with, types[j], TG_TYPE_FP16);
        }
        print_message("%lld x %lld x %lld: %d kernels\n", (long long)cases[i].m,
                      (long long)cases[i].n, (long long)cases[i].k, kernel_count);
    }
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_staged_c)};
    if (!gpu_is_there(1))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
