/*
 * test_invariant_slices tests batch-invariant FP32 by slices on a GPU: a row of D has the same bits
 * for every m, wherever B is sliced, however k is split, in every layout of B and D. Some rows have
 * elements that slices cannot hold, whose sums are repaired. The same holds for FP64 and for FP32
 * operations, whose tiles belong to several rows of the kernel table.
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

enum { rows = 1500, depth = 3100, cols_max = 1100 };

typedef struct layout {
    int64_t cols;
    int is_b_across, is_d_by_columns; /* 1: B is stored by rows, D by columns */
} layout;

typedef struct device_operands {
    void *a, *b, *d;
} device_operands;

static void *copy_random(const tg_context *context, int64_t count, uint64_t seed, int has_specials)
{
    float *host = malloc((size_t)count * sizeof *host);
    void *device;
    assert_non_null(host);
    for (int64_t i = 0; i < count; i++)
        host[i] = (float)check_next_uniform(&seed);
    for (int64_t row = 5; has_specials && row < rows; row += 11)
        host[row * depth + row] = row % 3 == 0 ? 1e-36f : row % 3 == 1 ? 3e38f : -1e-41f;
    assert_int_equal(tg_allocate_memory(context, count * (int64_t)sizeof *host, &device), 0);
    assert_int_equal(tg_copy_to_device(context, device, host, count * (int64_t)sizeof *host), 0);
    free(host);
    return device;
}

/* The families that multiply slices on Hopper. */
static const char *const families[] = {"bf16x", "bf16r", "bf16d"};
enum { FAMILY_COUNT = sizeof families / sizeof families[0] };

/* Returns the number of a kernel's family, or 0 if it is none of Hopper's. */
static int find_family(const char *kernel)
{
    int found = 0;
    for (int i = 0; i < FAMILY_COUNT; i++)
        if (strncmp(kernel + strlen("cuda_"), families[i], strlen(families[i])) == 0)
            found = i;
    return found;
}

/* Computes m rows from `first` on and copies them, row by row, to d. Returns the number of the
 * kernel's family. */
static int compute(tg_context *context, const device_operands *operands, const layout *by,
                   int is_invariant, int64_t first, int64_t m, float *d)
{
    const float *a = (const float *)operands->a + first * depth;
    const int64_t cols = by->cols;
    tg_problem p =
        tg_make_problem(tg_make_matrix(TG_TYPE_FP32, (void *)(uintptr_t)a, m, depth),
                        by->is_b_across ? tg_make_matrix(TG_TYPE_FP32, operands->b, depth, cols)
                                        : tg_make_matrix(TG_TYPE_FP32, operands->b, cols, depth),
                        tg_make_matrix(TG_TYPE_FP32, operands->d, m, cols));
    p.op_b = by->is_b_across ? TG_OPERATION_NONE : TG_OPERATION_TRANSPOSE;
    p.is_batch_invariant = is_invariant;
    p.precision = TG_PRECISION_BF16X6; /* by default multiply-adds take few columns */
    if (by->is_d_by_columns) {
        p.d.row_stride = 1;
        p.d.col_stride = m;
    }
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = p.a.data, .b = p.b.data, .d = p.d.data};
    float *host = malloc((size_t)(m * cols) * sizeof *host);
    tg_plan *plan;
    tg_plan_info info;
    assert_non_null(host);
    if (tg_create_plan(context, &p, NULL, &plan) != TG_STATUS_OK ||
        tg_get_plan_info(plan, &info, sizeof info) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%lld rows: %s", (long long)m, tg_get_error_detail());
    const int family = find_family(info.kernel);
    tg_destroy_plan(plan);
    assert_int_equal(tg_copy_from_device(context, host, p.d.data, m * cols * (int64_t)sizeof *host),
                     0);
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < cols; j++)
            d[i * cols + j] = host[by->is_d_by_columns ? j * m + i : i * cols + j];
    free(host);
    return family;
}

/* Counts the rows whose bits differ from those of all rows at once. Sets has_family of the families
 * that computed some. */
static int count_differences(tg_context *context, const device_operands *operands, const layout *by,
                             int is_invariant, int has_family[FAMILY_COUNT])
{
    static const int64_t counts[] = {1, 2, 7, 16, 17, 64, 65, 130, 300, 700, 1499};
    static float whole[rows * cols_max], part[rows * cols_max];
    int count = 0;
    has_family[compute(context, operands, by, is_invariant, 0, rows, whole)] = 1;
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        const int64_t m = counts[i], first = (rows - m) / 2;
        has_family[compute(context, operands, by, is_invariant, first, m, part)] = 1;
        for (int64_t j = 0; j < m; j++)
            count += memcmp(part + j * by->cols, whole + (first + j) * by->cols,
                            (size_t)by->cols * sizeof *part) != 0;
    }
    return count;
}

static int can_slice_in_registers(const tg_context *context)
{
    int count = 0;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), 0);
        count += info.is_available && strcmp(info.family, "bf16r") == 0;
    }
    return count > 0;
}

static void test_rows_of_every_m(void **state)
{
    (void)state;
    static const layout layouts[] = {{1100, 0, 0}, {1100, 1, 0}, {1100, 0, 1}, {1100, 1, 1},
                                     {128, 0, 0},  {127, 0, 0},  {60, 1, 0},   {60, 0, 1}};
    tg_context *context = gpu_open_context();
    device_operands operands = {copy_random(context, (int64_t)rows * depth, 1, 1),
                                copy_random(context, (int64_t)cols_max * depth, 2, 0),
                                copy_random(context, (int64_t)rows * cols_max, 3, 0)};
    int family_count[FAMILY_COUNT] = {0};
    const int layout_count = (int)(sizeof layouts / sizeof layouts[0]);
    for (int i = 0; i < layout_count; i++) {
        const layout *by = &layouts[i];
        int has_family[FAMILY_COUNT] = {0};
        const int count = count_differences(context, &operands, by, 1, has_family);
        if (count > 0)
            fail_msg("%lld columns, B by %s, D by %s: %d rows differ", (long long)by->cols,
                     by->is_b_across ? "rows" : "columns", by->is_d_by_columns ? "columns" : "rows",
                     count);
        for (int j = 0; j < FAMILY_COUNT; j++)
            family_count[j] += has_family[j];
    }
    /* Hopper has three families with one order of sums: each computed some layouts, and without the
     * option some rows differ, or this test would show little. Other chips have one family. */
    if (can_slice_in_registers(context)) {
        int has_family[FAMILY_COUNT] = {0};
        for (int i = 0; i < FAMILY_COUNT; i++)
            if (family_count[i] == 0)
                fail_msg("family %s computed nothing", families[i]);
        assert_true(count_differences(context, &operands, &layouts[0], 0, has_family) > 0);
    }
    tg_release_memory(context, operands.a);
    tg_release_memory(context, operands.b);
    tg_release_memory(context, operands.d);
    tg_destroy_context(context);
}

/* A product without slices: D = 1.5 A B + 0.5 C, with B by columns. */
typedef struct product {
    tg_type type;
    int64_t n, k;
} product;

/* Returns a kernel's name, which lives as long as the program. */
static const char *find_name(const tg_context *context, const char *name)
{
    tg_kernel_info info = {0};
    for (int i = 0; i < tg_get_kernel_count(); i++)
        if (tg_get_kernel_info(context, i, &info) == TG_STATUS_OK && strcmp(info.name, name) == 0)
            return info.name;
    fail_msg("no kernel is named %s", name);
    return NULL;
}

/* Computes m rows from `first` on, and copies them to `host`. Returns the kernel. */
static const char *compute_rows(tg_context *context, const device_operands *operands, void *c,
                                const product *by, int64_t first, int64_t m, char *host)
{
    const int64_t elem_bytes = by->type == TG_TYPE_FP64 ? 8 : 4;
    char *a = (char *)operands->a + first * by->k * elem_bytes;
    tg_problem p = tg_make_problem(tg_make_matrix(by->type, a, m, by->k),
                                   tg_make_matrix(by->type, operands->b, by->n, by->k),
                                   tg_make_matrix(by->type, operands->d, m, by->n));
    p.op_b = TG_OPERATION_TRANSPOSE;
    p.c = tg_make_matrix(by->type, (char *)c + first * by->n * elem_bytes, m, by->n);
    p.alpha = 1.5;
    p.beta = 0.5;
    p.is_batch_invariant = 1;
    if (by->type == TG_TYPE_FP32)
        p.precision = TG_PRECISION_IEEE_FP32;
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = p.a.data, .b = p.b.data, .c = p.c.data, .d = p.d.data};
    tg_plan *plan;
    tg_plan_info info;
    if (tg_create_plan(context, &p, NULL, &plan) != TG_STATUS_OK ||
        tg_get_plan_info(plan, &info, sizeof info) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%lld rows: %s", (long long)m, tg_get_error_detail());
    const char *name = find_name(context, info.kernel);
    tg_destroy_plan(plan);
    assert_int_equal(tg_copy_from_device(context, host, p.d.data, m * by->n * elem_bytes), 0);
    return name;
}

/* Allocates random elements of a type, in [-1, 1). */
static void *copy_elements(const tg_context *context, tg_type type, int64_t count, uint64_t seed)
{
    const int64_t bytes = count * (type == TG_TYPE_FP64 ? 8 : 4);
    void *host = malloc((size_t)bytes), *device;
    assert_non_null(host);
    for (int64_t i = 0; i < count; i++) {
        const double value = check_next_uniform(&seed);
        if (type == TG_TYPE_FP64)
            ((double *)host)[i] = value;
        else
            ((float *)host)[i] = (float)value;
    }
    assert_int_equal(tg_allocate_memory(context, bytes, &device), 0);
    assert_int_equal(tg_copy_to_device(context, device, host, bytes), 0);
    free(host);
    return device;
}

static void test_products_of_every_m(void **state)
{
    (void)state;
    static const product products[] = {
        {TG_TYPE_FP64, 64, 1000},  {TG_TYPE_FP64, 200, 1344}, {TG_TYPE_FP64, 33, 3007},
        {TG_TYPE_FP64, 300, 2561}, {TG_TYPE_FP64, 48, 7000},  {TG_TYPE_FP64, 500, 640},
        {TG_TYPE_FP32, 40, 700},   {TG_TYPE_FP32, 33, 999},   {TG_TYPE_FP32, 300, 2000},
        {TG_TYPE_FP32, 96, 37},    {TG_TYPE_FP32, 200, 130}};
    static const int64_t counts[] = {1, 2, 15, 64, 65, 200, 700};
    static char whole[rows * 500 * 8], part[rows * 500 * 8];
    tg_context *context = gpu_open_context();
    int other_count = 0; /* plans of another kernel than that of all rows */
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        const product *by = &products[i];
        const int64_t row_bytes = by->n * (by->type == TG_TYPE_FP64 ? 8 : 4);
        const device_operands operands = {copy_elements(context, by->type, rows * by->k, 1),
                                          copy_elements(context, by->type, by->n * by->k, 2),
                                          copy_elements(context, by->type, rows * by->n, 3)};
        void *c = copy_elements(context, by->type, rows * by->n, 4);
        const char *name = compute_rows(context, &operands, c, by, 0, rows, whole);
        for (size_t j = 0; j < sizeof counts / sizeof counts[0]; j++) {
            const int64_t m = counts[j], first = (rows - m) / 2;
            other_count += compute_rows(context, &operands, c, by, first, m, part) != name;
            if (memcmp(part, whole + first * row_bytes, (size_t)(m * row_bytes)) != 0)
                fail_msg("%s, n = %lld, k = %lld: %lld rows differ from those of all",
                         tg_get_type_name(by->type), (long long)by->n, (long long)by->k,
                         (long long)m);
        }
        tg_release_memory(context, c);
        tg_release_memory(context, operands.a);
        tg_release_memory(context, operands.b);
        tg_release_memory(context, operands.d);
    }
    assert_true(other_count > 0);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_of_every_m),
                                       cmocka_unit_test(test_products_of_every_m)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
