/*
 * Tests that a D that shares memory with an input or with itself is refused and left alone. A D
 * that only lies close is computed.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "tilegemm.h"

#define SIZE 8 /* all matrices are SIZE x SIZE */

static float memory[8 * SIZE * SIZE];

static tg_matrix view_at(int64_t offset)
{
    return tg_make_matrix(TG_TYPE_FP32, memory + offset, SIZE, SIZE);
}

static tg_problem make_apart(void)
{
    tg_problem problem =
        tg_make_problem(view_at(0), view_at(SIZE * SIZE), view_at(2 * SIZE * SIZE));
    problem.c = view_at(3 * SIZE * SIZE);
    problem.beta = 1;
    return problem;
}

static void fill_memory(void)
{
    for (size_t i = 0; i < sizeof memory / sizeof *memory; i++)
        memory[i] = (float)(i % 13);
}

static void assert_overlap(const tg_problem *problem, const char *part)
{
    static float before[8 * SIZE * SIZE];
    fill_memory();
    memcpy(before, memory, sizeof before);
    tg_status status = tg_multiply(NULL, problem);
    if (status != TG_STATUS_OVERLAP)
        fail_msg("D over %s gives %s", part, tg_get_status_name(status));
    assert_non_null(strstr(tg_get_error_detail(), part));
    assert_memory_equal(before, memory, sizeof before);
}

static void assert_computed(const tg_problem *problem)
{
    fill_memory();
    if (tg_multiply(NULL, problem) != TG_STATUS_OK)
        fail_msg("refused: %s", tg_get_error_detail());
}

static void test_inputs(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    assert_computed(&problem);
    problem.d = problem.a;
    assert_overlap(&problem, "A");
    problem.d = problem.b;
    assert_overlap(&problem, "B");
    problem = make_apart();
    problem.a = view_at(SIZE * SIZE + 1); /* its last element is D's first */
    assert_overlap(&problem, "A");
    problem = make_apart();
    problem.b = view_at(3 * SIZE * SIZE - 1); /* its first element is D's last */
    problem.c = view_at(4 * SIZE * SIZE);
    assert_overlap(&problem, "B");
    problem = make_apart();
    problem.a.data = (char *)problem.d.data + 2; /* half an element */
    assert_overlap(&problem, "A");
    problem = make_apart();
    problem.bias = TG_BIAS_COL;
    problem.bias_data = (float *)problem.d.data + SIZE;
    assert_overlap(&problem, "bias");
}

static void test_negative_strides(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.a.data = (float *)problem.d.data + 1; /* runs down from D's second element */
    problem.a.row_stride = -SIZE;
    problem.a.col_stride = -1;
    assert_overlap(&problem, "A");
}

static void test_c(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.c = problem.d; /* D in place */
    assert_computed(&problem);
    problem.c = view_at(2 * SIZE * SIZE + 1);
    assert_overlap(&problem, "C");
    problem.c = problem.d;
    problem.c.row_stride = 1; /* C is D transposed */
    problem.c.col_stride = SIZE;
    assert_overlap(&problem, "C");
    problem.c = problem.d;
    problem.c.row_stride = 0;
    assert_overlap(&problem, "C");
    problem.beta = 0; /* then C is ignored */
    assert_computed(&problem);
}

static void test_c_batch_strides(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.batch_count = 2;
    problem.d.batch_stride = 2 * SIZE * SIZE;
    problem.c = problem.d;
    assert_computed(&problem);
    problem.c.batch_stride = 0; /* entry 1 reads what entry 0 wrote */
    assert_overlap(&problem, "C");
}

static void test_itself(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.beta = 0;
    problem.d.row_stride = SIZE - 1;
    assert_overlap(&problem, "D overlaps itself");
    problem.d.row_stride = 0;
    assert_overlap(&problem, "D overlaps itself");
    problem = make_apart();
    problem.beta = 0;
    problem.d.col_stride = 0;
    assert_overlap(&problem, "D overlaps itself");
    problem = make_apart();
    problem.beta = 0;
    problem.batch_count = 2;
    problem.d.batch_stride = SIZE * SIZE - 1;
    assert_overlap(&problem, "D overlaps itself");
    problem.d.batch_stride = SIZE * SIZE;
    assert_computed(&problem);
}

/* Blocks of one large matrix lie between each other without sharing an element. */
static void test_interleaved(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.beta = 0;
    problem.a.row_stride = problem.b.row_stride = problem.d.row_stride = 3 * SIZE;
    problem.a.data = memory;
    problem.b.data = memory + SIZE;
    problem.d.data = memory + 2 * SIZE;
    assert_computed(&problem);
    problem.d.data = memory + 2 * SIZE - 1;
    assert_overlap(&problem, "B");
}

/* A has the upper rows of each entry of a batch, D the lower ones. */
static void test_batched_rows(void **state)
{
    (void)state;
    enum { HALF = SIZE / 2 };
    tg_problem problem = make_apart();
    problem.beta = 0;
    problem.batch_count = 3;
    problem.a = tg_make_matrix(TG_TYPE_FP32, memory, HALF, SIZE);
    problem.b = view_at(3 * SIZE * SIZE);
    problem.d = tg_make_matrix(TG_TYPE_FP32, memory + HALF * SIZE, HALF, SIZE);
    problem.a.batch_stride = problem.d.batch_stride = SIZE * SIZE;
    assert_computed(&problem);
    problem.a.row_count = problem.d.row_count = HALF - 1; /* with a gap of a row */
    assert_computed(&problem);
    problem.d.data = memory + (HALF - 2) * SIZE;
    assert_overlap(&problem, "A");
    problem.d.data = memory + HALF * SIZE;
    problem.d.batch_stride = SIZE * SIZE + SIZE; /* entry 2 reaches into rows of A's */
    problem.a.batch_stride = SIZE * SIZE - SIZE;
    assert_overlap(&problem, "A");
}

/* An operand that is neither read nor written cannot overlap. */
static void test_unread(void **state)
{
    (void)state;
    tg_problem problem = make_apart();
    problem.a = problem.b = problem.d;
    problem.alpha = 0;
    assert_computed(&problem);
    problem.alpha = 1;
    problem.a.col_count = problem.b.row_count = 0;
    assert_computed(&problem);
    problem = make_apart();
    problem.a = problem.d;
    problem.batch_count = 0;
    assert_computed(&problem);
}

/* Tests the scales of A and B, vectors at their last element, and D's scale. */
static void test_scales(void **state)
{
    (void)state;
    for (int is_d_column_major = 0; is_d_column_major <= 1; is_d_column_major++) {
        tg_problem fp8 = make_apart();
        fp8.beta = 0;
        fp8.a.type = fp8.b.type = TG_TYPE_FP8_E4M3;
        fp8.a_scale = fp8.b_scale = TG_SCALE_VECTOR;
        fp8.a_scale_data = fp8.b_scale_data = memory + 6 * SIZE * SIZE;
        if (is_d_column_major) {
            fp8.d.row_stride = 1;
            fp8.d.col_stride = SIZE;
        }
        assert_computed(&fp8);
        const float *first = fp8.d.data;
        tg_problem problem = fp8;
        problem.a_scale_data = first - SIZE;
        assert_computed(&problem);
        problem.a_scale_data = first - SIZE + 1;
        assert_overlap(&problem, "a_scale");
        problem.a_scale = TG_SCALE_TENSOR;
        assert_computed(&problem);
        problem = fp8;
        problem.b_scale_data = first + SIZE * SIZE - 1;
        assert_overlap(&problem, "b_scale");
        problem = fp8;
        problem.d.type = TG_TYPE_FP8_E4M3;
        problem.d_scale = TG_SCALE_TENSOR;
        problem.d_scale_data = first;
        assert_overlap(&problem, "d_scale");
        problem.d_scale_data = first - 1;
        assert_computed(&problem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scales),           cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_negative_strides), cmocka_unit_test(test_c),
        cmocka_unit_test(test_c_batch_strides),  cmocka_unit_test(test_itself),
        cmocka_unit_test(test_interleaved),      cmocka_unit_test(test_batched_rows),
        cmocka_unit_test(test_unread),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
