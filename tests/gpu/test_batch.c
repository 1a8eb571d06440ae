/*
 * test_batch tests batch-invariant products on a GPU. Row i of D has the same bits for every m and
 * position, of every type, whether k is whole, split by n and k, or left to family small. BF16 and
 * FP32 of lines that begin anywhere have the same bits by each kernel that takes them. FP32 by
 * slices has the same bits panel by panel, with a limited workspace, as in one call.
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

/* The most rows of D, and its n and k. With a bias, of one value a column, D has the type of A, or
 * BF16 for FP8. */
typedef struct product_size {
    int64_t rows, cols, depth;
    tg_precision fp32_precision;
    int bias; /* 1: a bias; 2: a bias of sums whose large halves of k cancel */
} product_size;

static const tg_type types[] = {TG_TYPE_FP32, TG_TYPE_FP64,     TG_TYPE_BF16,
                                TG_TYPE_FP16, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2};
typedef struct device_matrix {
    void *memory;
    int64_t size_bytes;
} device_matrix;

/* Returns random numbers, or lines of `depth` equal ones if it is not 0, whose second half has the
 * other sign if is_signed is 1. */
static device_matrix make_lines(const tg_context *context, tg_type type, int64_t count,
                                uint64_t seed, int64_t depth, int is_signed)
{
    device_matrix made = {NULL, count * tg_get_type_bytes(type)};
    void *host = malloc((size_t)made.size_bytes);
    assert_non_null(host);
    for (int64_t i = 0; i < count; i++) {
        const double value = depth ? 32.0 * (1 + i / depth % 3) : check_next_uniform(&seed);
        const int is_negative = depth && is_signed && i % depth >= depth / 2;
        check_set_element(type, host, i, is_negative ? -value : value);
    }
    assert_int_equal(tg_allocate_memory(context, made.size_bytes, &made.memory), 0);
    assert_int_equal(tg_copy_to_device(context, made.memory, host, made.size_bytes), 0);
    free(host);
    return made;
}

static tg_type find_d_type(tg_type type, const product_size *size)
{
    if (size->bias)
        return tg_get_type_bytes(type) == 1 ? TG_TYPE_BF16 : type;
    return type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

/* Returns two biases with the same values, of which the second begins an odd number of elements
 * behind the first. */
static device_matrix make_biases(const tg_context *context, tg_type d_type, int64_t cols)
{
    const int64_t type_bytes = tg_get_type_bytes(d_type), apart = cols + 1 - cols % 2;
    const device_matrix made = make_lines(context, d_type, apart + cols, 4, 0, 0);
    void *host = malloc((size_t)(cols * type_bytes));
    assert_non_null(host);
    assert_int_equal(tg_copy_from_device(context, host, made.memory, cols * type_bytes), 0);
    assert_int_equal(tg_copy_to_device(context, (char *)made.memory + apart * type_bytes, host,
                                       cols * type_bytes),
                     0);
    free(host);
    return made;
}

/* Computes m rows of A from `first` on times B. Copies the result to the host. The operands are A,
 * B, D and two biases, of which an odd m has the second. */
static void compute(tg_context *context, tg_type type, const product_size *size,
                    const device_matrix operands[4], int64_t first, int64_t m, int is_invariant,
                    char *d)
{
    const tg_type d_type = find_d_type(type, size);
    char *a = (char *)operands[0].memory + first * size->depth * tg_get_type_bytes(type);
    tg_problem problem =
        tg_make_problem(tg_make_matrix(type, a, m, size->depth),
                        tg_make_matrix(type, operands[1].memory, size->cols, size->depth),
                        tg_make_matrix(d_type, operands[2].memory, m, size->cols));
    problem.op_b = TG_OPERATION_TRANSPOSE;
    problem.is_batch_invariant = is_invariant;
    problem.precision = type == TG_TYPE_FP32 ? size->fp32_precision : TG_PRECISION_DEFAULT;
    if (size->bias) {
        const int64_t apart = size->cols + 1 - size->cols % 2;
        problem.bias = TG_BIAS_COL;
        problem.bias_data = (char *)operands[3].memory + m % 2 * apart * tg_get_type_bytes(d_type);
    }
    if (tg_multiply(context, &problem) != TG_STATUS_OK)
        fail_msg("%s: %s", tg_get_type_name(type), tg_get_error_detail());
    assert_int_equal(tg_copy_from_device(context, d, operands[2].memory,
                                         m * size->cols * tg_get_type_bytes(d_type)),
                     0);
}

/* Counts the products of 1, 1 + stride, ... rows whose bits differ from the whole. Where `growth`
 * is above 1, each has that many times the rows of the one before and a stride more. */
static int count_differences(tg_context *context, tg_type type, const product_size *size,
                             int is_invariant, int64_t stride, int64_t growth)
{
    const tg_type d_type = find_d_type(type, size);
    const int64_t row_bytes = size->cols * tg_get_type_bytes(d_type);
    const int64_t line = size->bias == 2 ? size->depth : 0;
    const device_matrix operands[4] = {
        make_lines(context, type, size->rows * size->depth, 1, line, 1),
        make_lines(context, type, size->cols * size->depth, 2, line, 0),
        make_lines(context, d_type, size->rows * size->cols, 3, 0, 0),
        make_biases(context, d_type, size->cols)};
    char *whole = malloc((size_t)(size->rows * row_bytes)),
         *part = malloc((size_t)(size->rows * row_bytes));
    assert_true(whole && part);
    int difference_count = 0;
    compute(context, type, size, operands, 0, size->rows, is_invariant, whole);
    for (int64_t m = 1; m <= size->rows; m = m * growth + stride) {
        const int64_t first = (size->rows - m) / 2;
        compute(context, type, size, operands, first, m, is_invariant, part);
        difference_count += memcmp(part, whole + first * row_bytes, (size_t)(m * row_bytes)) != 0;
    }
    free(whole);
    free(part);
    for (int i = 0; i < 4; i++)
        tg_release_memory(context, operands[i].memory);
    return difference_count;
}

/* Compares products of all types and sizes with parts of them. */
static void compare_parts(const product_size *sizes, size_t size_count, int64_t stride,
                          int64_t free_stride, int64_t growth)
{
    tg_context *context = gpu_open_context();
    int free_difference_count = 0;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        for (size_t j = 0; j < size_count; j++) {
            int count = count_differences(context, types[i], &sizes[j], 1, stride, growth);
            if (count)
                fail_msg("%s, size %d: %d parts differ", tg_get_type_name(types[i]), (int)j, count);
            free_difference_count +=
                count_differences(context, types[i], &sizes[j], 0, free_stride, growth);
        }
    }
    /* Without the option some products differ, or this test could not fail. */
    assert_true(free_difference_count > 0);
    tg_destroy_context(context);
}

static void test_batch_bits(void **state)
{
    static const product_size size = {4096, 328, 2112, TG_PRECISION_DEFAULT, 0};
    (void)state;
    compare_parts(&size, 1, 1, 97, 1);
}

/* Long k is split by n and k, with a bias too, which is lost if it is added to a part of sums that
 * cancel. Few columns are left to family small, which transposes D of more than a million rows. */
static void test_sizes(void **state)
{
    static const product_size sizes[] = {
        {2500, 104, 9001, TG_PRECISION_DEFAULT, 0}, {1500, 712, 12000, TG_PRECISION_IEEE_FP32, 0},
        {6000, 9, 3300, TG_PRECISION_DEFAULT, 0},   {9000, 2, 600, TG_PRECISION_IEEE_FP32, 0},
        {20000, 1, 130, TG_PRECISION_DEFAULT, 0},   {5000, 45, 50, TG_PRECISION_IEEE_FP32, 0},
        {1100000, 3, 12, TG_PRECISION_DEFAULT, 0},  {1000, 128, 16384, TG_PRECISION_DEFAULT, 1},
        {3000, 136, 96, TG_PRECISION_DEFAULT, 1},   {1000, 128, 16384, TG_PRECISION_DEFAULT, 2}};
    (void)state;
    compare_parts(sizes, sizeof sizes / sizeof *sizes, 5, 5, 3);
}

enum { odd_rows = 300, odd_cols = 1603, odd_depth = 2111, odd_kernels_max = 6 };

/* Kernels that give the same bits where the problem is batch invariant and k is above a limit, up
 * to which they need not serve it; NULL: no more. */
typedef struct odd_family {
    tg_type type;
    int64_t depth_above;
    const char *kernels[odd_kernels_max];
} odd_family;

static const odd_family odd_families[] = {
    {TG_TYPE_BF16,
     odd_depth - 1, /* lines of a shorter k may be aligned */
     {"cuda_wgmma_sm90a_bf16_64x16x64", "cuda_wgmma_sm90a_bf16_64x256x64",
      "cuda_wgmma_sm90a_bf16_128x128x64", "cuda_loose_sm90a_bf16_128x64x64",
      "cuda_loose_sm90a_bf16_128x128x64", "cuda_loose_sm90a_bf16_128x256x64"}},
    {TG_TYPE_FP32, /* in ieee_fp32, which takes no slices */
     80,
     {"cuda_small_sm75_fp32_16x16x32", "cuda_simt_sm75_fp32_64x64x32",
      "cuda_simt_sm75_fp32_32x64x32"}}};

/* Computes the product of the first `depth` of k by this kernel and copies it to the host. Lines of
 * A, B and D have odd numbers of elements. */
static void multiply_odd(tg_context *context, tg_type type, const char *kernel,
                         const device_matrix operands[3], int layout, int64_t depth,
                         int is_invariant, char *d)
{
    const int is_a_across = layout & 1, is_b_across = layout >> 1;
    tg_problem p =
        tg_make_problem(tg_make_matrix(type, operands[0].memory, is_a_across ? depth : odd_rows,
                                       is_a_across ? odd_rows + 1 : depth),
                        tg_make_matrix(type, operands[1].memory, is_b_across ? depth : odd_cols,
                                       is_b_across ? odd_cols : depth),
                        tg_make_matrix(TG_TYPE_FP32, operands[2].memory, odd_rows, odd_cols));
    if (is_a_across) /* lines of 300 would be whole words: each has an element more */
        p.a.col_count = odd_rows;
    p.op_a = is_a_across ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.op_b = is_b_across ? TG_OPERATION_NONE : TG_OPERATION_TRANSPOSE;
    p.is_batch_invariant = is_invariant;
    if (type == TG_TYPE_FP32)
        p.precision = TG_PRECISION_IEEE_FP32;
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = p.a.data, .b = p.b.data, .d = p.d.data};
    tg_plan *plan;
    if (tg_create_plan(context, &p, &options, &plan) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%s: %s", kernel, tg_get_error_detail());
    tg_destroy_plan(plan);
    assert_int_equal(tg_copy_from_device(context, d, p.d.data, operands[2].size_bytes), 0);
}

/* Counts the products whose bits differ from those of the family's first kernel, in all layouts,
 * with k short and long. */
static int count_odd_differences(tg_context *context, const odd_family *family,
                                 const device_matrix operands[3], int is_invariant)
{
    static const int64_t depths[] = {77, 100, 131, odd_depth};
    const size_t size_bytes = (size_t)operands[2].size_bytes;
    char *first = malloc(size_bytes), *other = malloc(size_bytes);
    assert_true(first && other);
    int difference_count = 0;
    for (int i = 0; i < 4 * (int)(sizeof depths / sizeof *depths); i++) {
        const int layout = i % 4;
        const int64_t depth = depths[i / 4];
        if (depth <= family->depth_above)
            continue;
        multiply_odd(context, family->type, family->kernels[0], operands, layout, depth,
                     is_invariant, first);
        for (int j = 1; j < odd_kernels_max && family->kernels[j]; j++) {
            multiply_odd(context, family->type, family->kernels[j], operands, layout, depth,
                         is_invariant, other);
            difference_count += memcmp(first, other, size_bytes) != 0;
        }
    }
    free(first);
    free(other);
    return difference_count;
}

static void test_bits_of_odd_lines(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    for (size_t i = 0; i < sizeof odd_families / sizeof *odd_families; i++) {
        const odd_family *family = &odd_families[i];
        const device_matrix operands[3] = {
            make_lines(context, family->type, (odd_rows + 1) * odd_depth, 8, 0, 0),
            make_lines(context, family->type, odd_cols * odd_depth, 9, 0, 0),
            make_lines(context, TG_TYPE_FP32, odd_rows * odd_cols, 10, 0, 0)};
        assert_int_equal(count_odd_differences(context, family, operands, 1), 0);
        /* Without the option some kernels split k, or this test could not fail. */
        assert_true(count_odd_differences(context, family, operands, 0) > 0);
        for (int j = 0; j < 3; j++)
            tg_release_memory(context, operands[j].memory);
    }
    tg_destroy_context(context);
}

enum { panel_rows = 700, panel_cols = 904, panel_batch = 2, panel_pad = 4 };

/* A batch-invariant problem whose workspace exceeds the limits from `most` down by strides. */
typedef struct limited_case {
    const char *kernel;
    tg_type type;
    tg_precision precision;
    int64_t depth, most_bytes, stride_bytes;
    int limit_count, is_d_by_columns;
} limited_case;

static tg_problem make_limited(const limited_case *given, const device_matrix operands[4])
{
    const tg_type type = given->type;
    tg_problem p =
        tg_make_problem(tg_make_matrix(type, operands[0].memory, panel_rows, given->depth),
                        tg_make_matrix(type, operands[1].memory, given->depth, panel_cols),
                        tg_make_matrix(type, operands[2].memory, panel_rows, panel_cols));
    p.batch_count = panel_batch;
    p.a.batch_stride = panel_rows * given->depth;
    p.d.row_stride = given->is_d_by_columns ? 1 : panel_cols + panel_pad;
    p.d.col_stride = given->is_d_by_columns ? panel_rows + panel_pad : 1;
    p.d.batch_stride = (panel_rows + panel_pad) * (panel_cols + panel_pad);
    p.c = p.d;
    p.beta = 0.5;
    p.bias = TG_BIAS_ROW;
    p.bias_data = operands[3].memory;
    p.is_batch_invariant = 1;
    p.precision = given->precision;
    return p;
}

/* Computes D in panels or bands, some of them cut short, with its lines apart, with C, a bias and a
 * batch. `d` has d_bytes. Returns the bytes of the workspace. */
static int64_t multiply_limited(const limited_case *given, int64_t limit_bytes,
                                const device_matrix operands[4], void *d, int64_t d_bytes)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = "cuda",
                                                .workspace_limit_bytes = limit_bytes};
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = given->kernel};
    const tg_problem p = make_limited(given, operands);
    tg_context *context;
    tg_plan *plan;
    tg_plan_info info;
    assert_int_equal(tg_create_context(&context_options, &context), 0);
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = p.a.data,
                                .b = p.b.data,
                                .c = p.c.data,
                                .d = p.d.data,
                                .bias = p.bias_data};
    if (tg_create_plan(context, &p, &options, &plan) != TG_STATUS_OK)
        fail_msg("%s: %s", given->kernel, tg_get_error_detail());
    assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), 0);
    assert_int_equal(tg_copy_to_device(context, p.d.data, d, d_bytes), 0);
    if (tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%s: %s", given->kernel, tg_get_error_detail());
    assert_int_equal(tg_copy_from_device(context, d, p.d.data, d_bytes), 0);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
    return info.workspace_bytes;
}

static void check_limits(tg_context *context, const limited_case *given)
{
    const int64_t count = panel_batch * (panel_rows + panel_pad) * (panel_cols + panel_pad);
    const int64_t d_bytes = count * (given->type == TG_TYPE_FP64   ? 8
                                     : given->type == TG_TYPE_FP32 ? 4
                                                                   : 2);
    const device_matrix operands[4] = {
        make_lines(context, given->type, panel_batch * panel_rows * given->depth, 4, 0, 0),
        make_lines(context, given->type, given->depth * panel_cols, 5, 0, 0),
        make_lines(context, given->type, count, 6, 0, 0),
        make_lines(context, given->type, panel_rows, 7, 0, 0)};
    void *before = malloc((size_t)d_bytes), *whole = malloc((size_t)d_bytes),
         *part = malloc((size_t)d_bytes);
    assert_true(before && whole && part);
    assert_int_equal(tg_copy_from_device(context, before, operands[2].memory, d_bytes), 0);
    memcpy(whole, before, (size_t)d_bytes);
    const int64_t all_bytes = multiply_limited(given, 0, operands, whole, d_bytes);
    for (int i = 0; i < given->limit_count; i++) {
        const int64_t limit_bytes = given->most_bytes - i * given->stride_bytes;
        memcpy(part, before, (size_t)d_bytes);
        /* Panels of slices leave room for any split. */
        assert_true(all_bytes > limit_bytes || given->precision == TG_PRECISION_BF16X6);
        assert_true(multiply_limited(given, limit_bytes, operands, part, d_bytes) <= limit_bytes);
        if (memcmp(part, whole, (size_t)d_bytes) != 0)
            fail_msg("%s: other bits with a limit of %lld", given->kernel, (long long)limit_bytes);
    }
    free(before);
    free(whole);
    free(part);
    for (int i = 0; i < 4; i++)
        tg_release_memory(context, operands[i].memory);
}

/* A limit of the workspace changes no bits: neither panels of slices, nor bands of rows of
 * splits. */
static void test_limits(void **state)
{
    static const limited_case cases[] = {{"cuda_bf16x_sm90a_fp32_128x128x32", TG_TYPE_FP32,
                                          TG_PRECISION_BF16X6, 3000, 98000000, 4000000, 3, 0},
                                         {"cuda_simt_sm75_fp32_64x64x32", TG_TYPE_FP32,
                                          TG_PRECISION_IEEE_FP32, 3000, 38000000, 10000000, 3, 0},
                                         {"cuda_dmma_sm80_fp64_64x64x32", TG_TYPE_FP64,
                                          TG_PRECISION_DEFAULT, 3000, 65000000, 17000000, 3, 1},
                                         {"cuda_wgmma_sm90a_bf16_128x128x64", TG_TYPE_BF16,
                                          TG_PRECISION_DEFAULT, 12000, 20000000, 8000000, 2, 0}};
    tg_context *context = gpu_open_context();
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        check_limits(context, &cases[i]);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_bits), cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_bits_of_odd_lines), cmocka_unit_test(test_limits)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
