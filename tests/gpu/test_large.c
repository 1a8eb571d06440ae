/*
 * Tests matrices of more than 2^32 elements (FP64: 2^31), as A, as B and as D, in every kernel that
 * takes them. It compares sampled elements with FP64, and ones, which give k exactly. It needs 18
 * GB.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check/check.h"
#include "gpu.h"

enum {
    /* Operands repeat after so many elements. The number is a prime, so that they differ at every
     * power of two further on. */
    period = 4000037,
    wide_rows = 66000, /* columns of the FP32 matrix; half of them in FP64 */
    wide_cols = 65536,
    narrow_elems = wide_cols * 64,
    sample_count = 40,
    candidate_capacity = 512
};
#define CALL_S_MAX 0.3 /* predicted time; slower kernels are left out */

typedef struct operands {
    tg_context *context;
    tg_type type;
    int64_t elem_bytes;
    char *values;       /* has `period` elements, in host memory */
    void *wide;         /* wide_rows x wide_cols elements of FP32, or half as many of FP64 */
    void *narrow, *out; /* have narrow_elems elements each */
} operands;

static void fill(const operands *o, void *device, int64_t count)
{
    for (int64_t i = 0; i < count; i += period) {
        int64_t part = count - i < period ? count - i : period;
        if (tg_copy_to_device(o->context, (char *)device + i * o->elem_bytes, o->values,
                              part * o->elem_bytes) != TG_STATUS_OK)
            fail_msg("%s", tg_get_error_detail());
    }
}

/* Opens the operands. Returns 0, and the test is skipped, if the GPU has too little memory. */
static int open_operands(operands *o, tg_type type, int is_ones)
{
    const int64_t wide_bytes = (int64_t)wide_rows * wide_cols * 4;
    uint64_t random = 7;
    *o = (operands){
        .context = gpu_open_context(), .type = type, .elem_bytes = tg_get_type_bytes(type)};
    if (tg_allocate_memory(o->context, wide_bytes, &o->wide) != TG_STATUS_OK) {
        printf("skipped: %s\n", tg_get_error_detail());
        tg_destroy_context(o->context);
        return 0;
    }
    assert_int_equal(tg_allocate_memory(o->context, narrow_elems * o->elem_bytes, &o->narrow), 0);
    assert_int_equal(tg_allocate_memory(o->context, narrow_elems * o->elem_bytes, &o->out), 0);
    o->values = malloc((size_t)(period * o->elem_bytes));
    assert_non_null(o->values);
    for (int64_t i = 0; i < period; i++)
        check_set_element(type, o->values, i, is_ones ? 1.0 : check_next_uniform(&random));
    fill(o, o->wide, wide_bytes / o->elem_bytes);
    fill(o, o->narrow, narrow_elems);
    return 1;
}

static void close_operands(operands *o)
{
    tg_release_memory(o->context, o->wide);
    tg_release_memory(o->context, o->narrow);
    tg_release_memory(o->context, o->out);
    tg_destroy_context(o->context);
    free(o->values);
}

typedef struct sample {
    int64_t row, col;
    double expected, bound;
} sample;

/* Draws samples, the corners first and then anywhere. */
static void draw_samples(const operands *o, const tg_problem *p, sample *samples)
{
    const int64_t m = p->d.row_count, n = p->d.col_count;
    const int is_a_transposed = p->op_a == TG_OPERATION_TRANSPOSE;
    const int is_b_transposed = p->op_b == TG_OPERATION_TRANSPOSE;
    const int64_t k = is_a_transposed ? p->a.row_count : p->a.col_count;
    const double unit = o->type == TG_TYPE_FP64 ? 0x1p-53 : 0x1p-24;
    uint64_t random = 11;
    for (int i = 0; i < sample_count; i++) {
        sample *s = &samples[i];
        s->row = i < 4 ? i / 2 * (m - 1) : (int64_t)(check_next_random(&random) % (uint64_t)m);
        s->col = i < 4 ? i % 2 * (n - 1) : (int64_t)(check_next_random(&random) % (uint64_t)n);
        double sum = 0.0, magnitude = 0.0;
        for (int64_t q = 0; q < k; q++) {
            int64_t a = is_a_transposed ? q * m + s->row : s->row * k + q;
            int64_t b = is_b_transposed ? s->col * k + q : q * n + s->col;
            double product = check_get_element(o->type, o->values, a % period) *
                             check_get_element(o->type, o->values, b % period);
            sum += product;
            magnitude += fabs(product);
        }
        s->expected = sum;
        s->bound = sum == (double)k ? 0.0 : 2.0 * (double)k * unit * magnitude;
    }
}

static void *find_element(const operands *o, const tg_problem *p, const sample *s)
{
    return (char *)p->d.data + (s->row * p->d.col_count + s->col) * o->elem_bytes;
}

static void judge_kernel(const operands *o, const tg_problem *p, const sample *samples,
                         const char *kernel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = p->a.data, .b = p->b.data, .d = p->d.data};
    const double poison = NAN;
    tg_plan *plan = NULL;
    double bits = 0.0;
    check_set_element(o->type, &bits, 0, poison);
    for (int i = 0; i < sample_count; i++)
        assert_int_equal(
            tg_copy_to_device(o->context, find_element(o, p, &samples[i]), &bits, o->elem_bytes),
            0);
    if (tg_create_plan(o->context, p, &options, &plan) != TG_STATUS_OK ||
        tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%s: %s", kernel, tg_get_error_detail());
    for (int i = 0; i < sample_count; i++) {
        if (tg_copy_from_device(o->context, &bits, find_element(o, p, &samples[i]),
                                o->elem_bytes) != TG_STATUS_OK)
            fail_msg("%s: %s", kernel, tg_get_error_detail());
        double value = check_get_element(o->type, &bits, 0);
        if (!(fabs(value - samples[i].expected) <= samples[i].bound))
            fail_msg("%s: element (%lld, %lld) is %.17g, not %.17g", kernel,
                     (long long)samples[i].row, (long long)samples[i].col, value,
                     samples[i].expected);
    }
    tg_destroy_plan(plan);
}

/* Judges every legal kernel on one shape. `layout` is that of A and B, such as "nt". */
static void judge_shape(const operands *o, int64_t m, int64_t n, int64_t k, const char *layout,
                        void *a, void *b, void *d)
{
    const int is_a_transposed = layout[0] == 't', is_b_transposed = layout[1] == 't';
    static tg_candidate candidates[candidate_capacity];
    sample samples[sample_count];
    int count = 0, run_count = 0;
    tg_problem p = tg_make_problem(
        tg_make_matrix(o->type, a, is_a_transposed ? k : m, is_a_transposed ? m : k),
        tg_make_matrix(o->type, b, is_b_transposed ? n : k, is_b_transposed ? k : n),
        tg_make_matrix(o->type, d, m, n));
    p.op_a = is_a_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    p.op_b = is_b_transposed ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    draw_samples(o, &p, samples);
    assert_int_equal(tg_list_candidates(o->context, &p, candidates, candidate_capacity, &count), 0);
    assert_true(count <= candidate_capacity);
    for (int i = 0; i < count; i++) {
        if (!candidates[i].is_legal || candidates[i].predicted_s > CALL_S_MAX)
            continue;
        judge_kernel(o, &p, samples, candidates[i].kernel);
        run_count++;
    }
    printf("%lldx%lldx%lld:%s: %d kernels\n", (long long)m, (long long)n, (long long)k, layout,
           run_count);
    assert_true(run_count > 0);
}

static void judge_type(tg_type type, int is_ones)
{
    const int64_t rows = type == TG_TYPE_FP64 ? wide_rows / 2 : wide_rows;
    operands o;
    if (!open_operands(&o, type, is_ones))
        skip();
    static const char *const layouts[] = {"nn", "nt", "tn"};
    for (size_t i = 0; i < sizeof layouts / sizeof layouts[0]; i++) {
        judge_shape(&o, rows, 20, wide_cols, layouts[i], o.wide, o.narrow, o.out);
        judge_shape(&o, 60, wide_cols, rows, layouts[i], o.narrow, o.wide, o.out);
        judge_shape(&o, 3, wide_cols, rows, layouts[i], o.narrow, o.wide, o.out);
    }
    /* This runs last, because D takes the place of the operand. */
    for (size_t i = 0; i < 2; i++)
        judge_shape(&o, rows, wide_cols, 24, layouts[i], o.narrow, o.narrow, o.wide);
    close_operands(&o);
}

static void test_fp32(void **state)
{
    (void)state;
    judge_type(TG_TYPE_FP32, 0);
}

static void test_fp32_ones(void **state)
{
    (void)state;
    judge_type(TG_TYPE_FP32, 1);
}

static void test_fp64(void **state)
{
    (void)state;
    judge_type(TG_TYPE_FP64, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fp32), cmocka_unit_test(test_fp32_ones), cmocka_unit_test(test_fp64)};
    if (!gpu_is_there((int)(sizeof tests / sizeof tests[0])))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
