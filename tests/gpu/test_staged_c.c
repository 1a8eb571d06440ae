/*
 * test_staged_c tests what comes through the stages of families wgmma and few behind the products,
 * on a GPU. D has the same bits whether C comes through the stages, because it begins at a multiple
 * of 16 bytes, or is read by threads, because it begins an element later, or lies in D's place.
 * Some products also have a bias and an activation, or are of integers whose k is split. A bias
 * that is added as a product, with zeros and ones beside it, may be Inf or NaN: its row or column
 * of D is then, and no other element changes.
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

#include <math.h>

#include "check/check.h"
#include "gpu.h"

#define GUARD_BYTE 0x5a /* fills D's gaps, which stay as they are */

/* Lines of C and D lie `gap` elements apart. With is_c_across, C lies by columns and D by rows. */
typedef struct c_case {
    int64_t m, n, k, batch_count, gap;
    int is_c_across;
} c_case;

/* The cases have edges of tiles and of boxes, few rows, few columns, batches, more tiles than
 * blocks, with one step of k or several, and rows of C that begin anywhere. */
static const c_case cases[] = {
    {200, 328, 72, 1, 0, 0},   {13, 1000, 130, 1, 8, 0},   {1000, 24, 64, 1, 0, 0},
    {328, 520, 96, 3, 16, 0},  {2504, 2600, 40, 1, 0, 0},  {1500, 3000, 520, 1, 0, 0},
    {200, 328, 72, 2, 8, 1},   {1496, 1000, 200, 1, 0, 1}, {72, 1064, 208, 1, 0, 1},
    {1, 1000, 200, 2, 0, 0},   {1000, 1, 200, 2, 0, 0},    {203, 331, 72, 1, 0, 0},
    {1500, 3001, 136, 1, 3, 0}};

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

/* Tells whether number i is a kernel of the family for A of this type, and what it is called. */
static int is_kernel(const tg_context *context, int i, const char *family, tg_type type,
                     const char **name)
{
    tg_kernel_info info;
    assert_int_equal(tg_get_kernel_info(context, i, &info), 0);
    *name = info.name;
    return info.is_available && info.type == type && strcmp(info.family, family) == 0;
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
        const char *name;
        if (!is_kernel(context, i, "wgmma", type, &name))
            continue;
        kernel_count++;
        test_kernel(context, name, &problem, &all, wanted);
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

/* Fills an operand with small integers, whose sums are exact in any order. */
static void use_integers(const tg_context *context, tg_type type, char *host, char *device,
                         int64_t size_bytes)
{
    uint64_t seed = 5;
    for (int64_t i = 0; i < size_bytes / tg_get_type_bytes(type); i++)
        check_set_element(type, host, i, floor(2 * check_next_uniform(&seed)));
    assert_int_equal(tg_copy_to_device(context, device, host, size_bytes), 0);
}

/* Tests all kernels of families wgmma and few. Adds the plans that split k, and all plans, to
 * count[0] and count[1]. */
static void test_split_case(tg_context *context, const tg_problem *problem, int count[2])
{
    static tg_candidate candidates[1024];
    buffers all;
    int candidate_count;
    open_buffers(context, problem, &all);
    use_integers(context, problem->a.type, all.a, all.device[0], all.a_bytes);
    use_integers(context, problem->b.type, all.b, all.device[1], all.b_bytes);
    use_integers(context, problem->d.type, all.c, all.device[2], all.c_bytes);
    char *wanted = malloc((size_t)all.d_bytes);
    assert_non_null(wanted);
    assert_int_equal(tg_list_candidates(context, problem, candidates, 1024, &candidate_count), 0);
    for (int i = 0; i < candidate_count; i++) {
        const char *name;
        if (!candidates[i].is_legal || (!is_kernel(context, i, "wgmma", problem->a.type, &name) &&
                                        !is_kernel(context, i, "few", problem->a.type, &name)))
            continue;
        test_kernel(context, name, problem, &all, wanted);
        count[0] += candidates[i].split_count > 1;
        count[1]++;
    }
    free(wanted);
    close_buffers(context, &all);
}

static void test_c_of_splits(void **state)
{
    static const c_case sizes[] = {{136, 264, 4104, 1, 0, 0},
                                   {72, 331, 4104, 1, 1, 0},
                                   {136, 264, 4104, 1, 0, 1},
                                   {40, 1000, 2056, 2, 8, 0}};
    static const tg_type types[] = {TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP8_E4M3};
    tg_context *context = gpu_open_context();
    int count[2] = {0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int j = 0; j < 6; j++) {
            const tg_type type = types[j / 2];
            tg_problem problem = describe(&sizes[i], &beside[j % 2 * 3], type,
                                          type == TG_TYPE_FP16 ? type : TG_TYPE_BF16);
            problem.alpha = 1.0;
            problem.beta = -2.0;
            test_split_case(context, &problem, count);
        }
    print_message("C of %d plans right, of which %d split k\n", count[1], count[0]);
    assert_true(count[0] > 0 || count[1] == 0);
    tg_destroy_context(context);
}

/* Returns the bias that is not finite at place i of a row or column, or 0 where it is finite. */
static float find_special(int64_t i)
{
    static const float values[] = {INFINITY, NAN, -INFINITY};
    return i % 37 == 0 ? values[i / 37 % 3] : 0.0f;
}

/* Fails unless an element of D with a bias that is not finite is what the sum and RELU make of it,
 * and any other has the bits of `wanted`, which has a finite bias everywhere. */
static void assert_special(const tg_problem *problem, const buffers *all, const char *wanted,
                           const char *kernel)
{
    const int64_t n = problem->d.col_count;
    const float least = problem->activation == TG_ACTIVATION_RELU ? 0.0f : -INFINITY;
    for (int64_t i = 0; i < all->d_bytes / 2; i++) {
        const int64_t row = i / n % problem->d.row_count, col = i % n;
        const float special = find_special(problem->bias == TG_BIAS_ROW ? row : col);
        if (special == 0.0f && memcmp(all->d + 2 * i, wanted + 2 * i, 2) == 0)
            continue;
        const double given = check_get_element(problem->d.type, all->d, i);
        if (special == 0.0f || (isnan(special) ? !isnan(given) : given != fmaxf(special, least)))
            fail_msg("%s, %lld x %lld, bias %g: element (%lld, %lld) is %g", kernel,
                     (long long)problem->d.row_count, (long long)n, (double)special, (long long)row,
                     (long long)col, given);
    }
}

/* Tests all kernels of a family with biases that are not finite. Adds the plans that split k, and
 * all plans, to count[0] and count[1]. */
static void test_special_case(tg_context *context, const tg_problem *problem, const char *family,
                              int count[2])
{
    static tg_candidate candidates[1024];
    buffers all;
    int candidate_count;
    open_buffers(context, problem, &all);
    char *wanted = malloc((size_t)all.d_bytes), *special = malloc((size_t)all.bias_bytes);
    assert_true(wanted && special);
    memcpy(special, all.bias, (size_t)all.bias_bytes);
    for (int64_t i = 0; i < all.bias_bytes / 2; i++)
        if (find_special(i) != 0.0f)
            check_set_element(problem->d.type, special, i, find_special(i));
    assert_int_equal(tg_list_candidates(context, problem, candidates, 1024, &candidate_count), 0);
    for (int i = 0; i < candidate_count; i++) {
        tg_plan_options options = {.struct_bytes = sizeof options};
        tg_plan *plan;
        if (!candidates[i].is_legal ||
            !is_kernel(context, i, family, problem->a.type, &options.kernel))
            continue;
        assert_int_equal(tg_create_plan(context, problem, &options, &plan), TG_STATUS_OK);
        for (int is_special = 0; is_special < 2; is_special++) {
            assert_int_equal(tg_copy_to_device(context, all.device[4],
                                               is_special ? special : all.bias, all.bias_bytes),
                             0);
            multiply(context, plan, &all, 0, 0);
            if (!is_special)
                memcpy(wanted, all.d, (size_t)all.d_bytes);
        }
        assert_special(problem, &all, wanted, options.kernel);
        tg_destroy_plan(plan);
        count[0] += candidates[i].split_count > 1;
        count[1]++;
    }
    free(wanted);
    free(special);
    close_buffers(context, &all);
}

/* The sizes have edges of tiles, more tiles than blocks, few rows, and k that is split. */
static void test_special_bias(void **state)
{
    static const c_case sizes[] = {{200, 328, 72, 1, 0, 0},
                                   {1000, 1500, 40, 3, 0, 0},
                                   {40, 1000, 200, 1, 0, 0},
                                   {136, 264, 8200, 1, 0, 0}};
    static const tg_type types[][2] = {{TG_TYPE_BF16, TG_TYPE_BF16},
                                       {TG_TYPE_FP16, TG_TYPE_FP16},
                                       {TG_TYPE_FP8_E4M3, TG_TYPE_BF16},
                                       {TG_TYPE_FP8_E5M2, TG_TYPE_BF16}};
    tg_context *context = gpu_open_context();
    int count[2] = {0, 0};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
        for (int j = 0; j < 16; j++) {
            const operations with = {j & 1 ? TG_BIAS_ROW : TG_BIAS_COL,
                                     j & 2 ? TG_ACTIVATION_RELU : TG_ACTIVATION_NONE};
            tg_problem problem = describe(&sizes[i], &with, types[j / 4][0], types[j / 4][1]);
            problem.alpha = 1.0;
            problem.beta = 0.0;
            test_special_case(context, &problem, "wgmma", count);
            test_special_case(context, &problem, "few", count);
        }
    print_message("%d plans right, of which %d split k\n", count[1], count[0]);
    assert_true(count[0] > 0 || count[1] == 0);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_c_of_splits),
                                       cmocka_unit_test(test_staged_c),
                                       cmocka_unit_test(test_special_bias)};
    if (!gpu_is_there(2))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
