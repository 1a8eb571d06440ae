/*
 * Puts every argument of a problem out of its range and tests the status and a detail that names
 * it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <string.h>

#include <cmocka.h>

#include "core/checked.h"
#include "tilegemm_lab.h"

#define M 4
#define N 5
#define K 6

static float a[M * K], b[K * N], c[M * N], d[M * N];

static tg_problem make_valid(void)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, M, K),
                                         tg_make_matrix(TG_TYPE_FP32, b, K, N),
                                         tg_make_matrix(TG_TYPE_FP32, d, M, N));
    problem.c = tg_make_matrix(TG_TYPE_FP32, c, M, N);
    problem.beta = 1;
    return problem;
}

/* Asserts that planning and the one-shot call agree, D stays as it was, and the detail says
 * `part`. */
static void assert_refused(const tg_problem *problem, tg_status expected, const char *part)
{
    tg_plan *plan = (tg_plan *)(uintptr_t)1;
    for (int i = 0; i < M * N; i++)
        d[i] = -7;
    tg_status status = tg_create_plan(NULL, problem, NULL, &plan);
    if (status != expected)
        fail_msg("%s: %s, not %s: %s", part, tg_get_status_name(status),
                 tg_get_status_name(expected), tg_get_error_detail());
    assert_null(plan);
    if (!strstr(tg_get_error_detail(), part))
        fail_msg("the detail does not name %s: %s", part, tg_get_error_detail());
    assert_int_equal(tg_multiply(NULL, problem), expected);
    for (int i = 0; i < M * N; i++)
        assert_true(d[i] == -7);
}

static void test_valid(void **state)
{
    (void)state;
    tg_problem problem = make_valid();
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
    problem.c.row_stride = -N; /* any stride is legal */
    problem.c.data = c + N * (M - 1);
    problem.b.row_stride = 0;
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
}

static void test_null(void **state)
{
    (void)state;
    tg_problem problem = make_valid();
    tg_plan *plan = NULL;
    int count;
    assert_int_equal(tg_create_plan(NULL, NULL, NULL, &plan), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_create_plan(NULL, &problem, NULL, NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_multiply(NULL, NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_list_candidates(NULL, &problem, NULL, 3, NULL), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_list_chip_candidates(NULL, &problem, NULL, 0, &count),
                     TG_STATUS_INVALID_ARGUMENT);
    tg_destroy_plan(NULL);
}

static void test_negative_counts(void **state)
{
    (void)state;
    tg_problem problem = make_valid();
    problem.a.row_count = problem.d.row_count = problem.c.row_count = -M;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "-4");
    problem = make_valid();
    problem.a.col_count = problem.b.row_count = -K;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "-6");
    problem = make_valid();
    problem.b.col_count = problem.d.col_count = problem.c.col_count = -N;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "-5");
    problem = make_valid();
    problem.batch_count = -1;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "batch_count = -1");
    problem = make_valid();
    problem.d.row_count = INT64_MIN;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d");
}

static void test_mismatched_shapes(void **state)
{
    (void)state;
    tg_problem problem = make_valid();
    problem.a.col_count = K - 1;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "5");
    problem = make_valid();
    problem.a.row_count = M - 1;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "D");
    problem = make_valid();
    problem.d.col_count = N - 1;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "D");
    problem = make_valid();
    problem.c.row_count = M + 1;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "C");
    problem.beta = 0; /* then C is ignored */
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
    problem = make_valid();
    problem.op_a = TG_OPERATION_TRANSPOSE;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "4");
}

static void test_bad_enums(void **state)
{
    (void)state;
    static const int values[] = {-1, 9, 1 << 30};
    for (int i = 0; i < 3; i++) {
        tg_problem problem = make_valid();
        problem.a.type = problem.b.type = (tg_type)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "type");
        problem = make_valid();
        problem.d.type = (tg_type)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d.type");
        problem = make_valid();
        problem.c.type = (tg_type)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "c.type");
        problem = make_valid();
        problem.op_a = (tg_operation)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "op_a");
        problem = make_valid();
        problem.op_b = (tg_operation)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "op_b");
        problem = make_valid();
        problem.precision = (tg_precision)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision");
        problem = make_valid();
        problem.bias = (tg_bias)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "bias");
        problem = make_valid();
        problem.activation = (tg_activation)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "activation");
        problem = make_valid();
        problem.a_scale = (tg_scale)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "a_scale");
        problem = make_valid();
        problem.d_scale = (tg_scale)values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d_scale");
        problem = make_valid();
        problem.is_batch_invariant = values[i];
        assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "is_batch_invariant");
    }
}

static void test_types_that_do_not_go_together(void **state)
{
    (void)state;
    /* These are D's types by the inputs' types, as rows of bits: fp32, fp64, bf16, fp16, e4m3,
     * e5m2. */
    static const unsigned d_types[] = {0x01, 0x02, 0x0d, 0x0d, 0x3d, 0x3d};
    for (int i = TG_TYPE_FP32; i <= TG_TYPE_FP8_E5M2; i++) {
        for (int j = TG_TYPE_FP32; j <= TG_TYPE_FP8_E5M2; j++) {
            static double wide[M * K];
            tg_problem problem = make_valid();
            problem.beta = 0;
            problem.a = tg_make_matrix((tg_type)i, wide, M, K);
            problem.b.type = (tg_type)i;
            problem.d.type = (tg_type)j;
            if (!(d_types[i] >> j & 1u))
                assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d.type");
            problem.d.type = (tg_type)i;
            problem.b.type = (tg_type)j;
            int are_fp8 = i >= TG_TYPE_FP8_E4M3 && j >= TG_TYPE_FP8_E4M3;
            if (i != j && !are_fp8)
                assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "b.type");
        }
    }
    tg_problem problem = make_valid();
    problem.c.type = TG_TYPE_BF16;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "c.type");
    problem = make_valid();
    problem.precision = TG_PRECISION_IEEE_FP64;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision");
    problem = make_valid();
    problem.a.type = problem.b.type = problem.c.type = problem.d.type = TG_TYPE_FP64;
    problem.precision = TG_PRECISION_IEEE_FP32;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision");
}

static void test_scales_and_tf32(void **state)
{
    (void)state;
    tg_problem problem = make_valid();
    problem.b_scale = TG_SCALE_TENSOR;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "b_scale = tensor with fp32");
    problem = make_valid();
    problem.d_scale = TG_SCALE_TENSOR;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d_scale = tensor with d.type = fp32");
    problem = make_valid();
    problem.a.type = problem.b.type = TG_TYPE_FP8_E4M3;
    problem.d.type = problem.c.type = TG_TYPE_FP8_E5M2;
    problem.d_scale = TG_SCALE_VECTOR;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "d_scale = vector");
    problem.d_scale = TG_SCALE_TENSOR; /* its pointer is missing */
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "d_scale = NULL"));
    problem.d_scale = TG_SCALE_NONE;
    problem.precision = TG_PRECISION_TF32;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision = tf32 needs fp32");
    problem.precision = TG_PRECISION_BF16X6;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision = bf16x6 needs fp32");
    problem.precision = TG_PRECISION_FP16X3;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "precision = fp16x3 needs fp32");
    for (int is_b = 0; is_b <= 1; is_b++) { /* named by the caller's operand in either role */
        for (int is_transposed = 0; is_transposed <= 1; is_transposed++) {
            problem = make_valid();
            problem.a.type = problem.b.type = TG_TYPE_FP8_E4M3;
            problem.a_scale = is_b ? TG_SCALE_NONE : TG_SCALE_VECTOR;
            problem.b_scale = is_b ? TG_SCALE_VECTOR : TG_SCALE_NONE;
            if (is_transposed) {
                problem.d.row_stride = 1;
                problem.d.col_stride = M;
            }
            assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_INVALID_ARGUMENT);
            assert_non_null(strstr(tg_get_error_detail(), is_b ? "b_scale = NULL" : "a_scale"));
        }
    }
}

static void test_overflow(void **state)
{
    (void)state;
    const int64_t huge = INT64_MAX / 4;
    tg_problem problem = make_valid();
    problem.a.row_stride = huge;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "A");
    problem = make_valid();
    problem.b.col_stride = -huge;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "B");
    problem = make_valid();
    problem.c.row_stride = INT64_MIN;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "C");
    problem = make_valid();
    problem.d.row_stride = INT64_MAX;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "D");
    problem = make_valid();
    problem.batch_count = 3;
    problem.a.batch_stride = huge;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "batch_stride");
    /* In this problem m n fits and m ld size does not: A has 2^31 rows of 2^31 FP32. */
    problem = make_valid();
    problem.a = tg_make_matrix(TG_TYPE_FP32, a, (int64_t)1 << 31, K);
    problem.c = problem.d = tg_make_matrix(TG_TYPE_FP32, d, (int64_t)1 << 31, N);
    problem.d.row_stride = (int64_t)1 << 31;
    problem.beta = 0;
    assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, "D");
}

/* Makes a problem of m x n x k FP8 elements, all inputs of stride 0. */
static tg_problem make_broadcast(int64_t m, int64_t n, int64_t k, int64_t batch_count)
{
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP8_E4M3, a, m, k),
                                         tg_make_matrix(TG_TYPE_FP8_E4M3, b, k, n),
                                         tg_make_matrix(TG_TYPE_FP8_E4M3, d, m, n));
    problem.a.row_stride = problem.a.col_stride = 0;
    problem.b.row_stride = problem.b.col_stride = 0;
    problem.batch_count = batch_count;
    problem.d.batch_stride = tgi_checked_multiply(m, n);
    return problem;
}

/* Sizes at their limit are planned, for any number of threads. Sizes above it are refused by name,
 * also where D is empty. */
static void test_limits(void **state)
{
    (void)state;
    const int64_t most = INT64_C(1) << 48, above = most + 1;
    const struct {
        int64_t m, n, k, batch_count;
        const char *refusal; /* NULL: the problem is legal */
    } cases[] = {
        {most, 1, 1, 1, NULL},
        {1, most, 1, 1, NULL},
        {1, 1, most, 1, NULL},
        {1, 1, 1, most, NULL},
        {3, most / 4, 116, 1, NULL},
        {1 << 20, 1 << 20, INT64_C(1) << 38, 1, NULL},
        {0, most, most, most, NULL},
        {most, most, most, 0, NULL},
        {above, 1, 1, 1, "m = 281474976710657 is above 2^48"},
        {1, above, 1, 1, "n = 281474976710657 is above 2^48"},
        {1, 1, above, 1, "k = 281474976710657 is above 2^48"},
        {1, 1, 1, INT64_MAX, "batch_count = 9223372036854775807 is above 2^48"},
        {0, above, 1, 1, "n = 281474976710657 is above 2^48"},
        {3, most / 2, 116, 1, "D is m x n = 3 x 140737488355328 in a batch of 1, more than 2^48"},
        {1 << 24, 1, INT64_C(1) << 34, 2, "op(A) is m x k = 16777216 x 17179869184"},
        {1, 1 << 24, INT64_C(1) << 34, 2, "op(B) is k x n = 17179869184 x 16777216"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const tg_problem problem =
            make_broadcast(cases[i].m, cases[i].n, cases[i].k, cases[i].batch_count);
        for (int thread_count = 1; thread_count <= 1024 && !cases[i].refusal; thread_count *= 8) {
            const tg_context_options options = {
                .struct_bytes = sizeof options, .device = "cpu", .thread_count = thread_count};
            tg_context *context;
            tg_plan *plan;
            assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
            if (tg_create_plan(context, &problem, NULL, &plan) != TG_STATUS_OK)
                fail_msg("case %zu: %s", i, tg_get_error_detail());
            tg_destroy_plan(plan);
            tg_destroy_context(context);
        }
        if (cases[i].refusal)
            assert_refused(&problem, TG_STATUS_SIZE_OVERFLOW, cases[i].refusal);
    }
    tg_problem problem = make_valid(); /* strides of a single entry are not used */
    problem.a.batch_stride = problem.d.batch_stride = INT64_MIN;
    assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
}

static void test_scalars(void **state)
{
    (void)state;
    static const double values[] = {NAN, INFINITY, -INFINITY, 1e-300};
    for (int i = 0; i < 4; i++) { /* legal, whatever they do to D */
        tg_problem problem = make_valid();
        problem.alpha = values[i];
        assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
        problem = make_valid();
        problem.beta = values[i];
        assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_OK);
    }
    tg_problem problem = make_valid();
    problem.alpha = 1e39; /* would silently become Inf in FP32 */
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "alpha");
    problem = make_valid();
    problem.beta = -1e300;
    assert_refused(&problem, TG_STATUS_INVALID_ARGUMENT, "beta");
}

static void test_null_data(void **state)
{
    (void)state;
    static const char *const names[] = {"a", "b", "c", "d", "bias"};
    for (int i = 0; i < 5; i++) {
        tg_problem problem = make_valid();
        problem.bias = TG_BIAS_COL;
        problem.bias_data = i == 4 ? NULL : b;
        tg_matrix *views[] = {&problem.a, &problem.b, &problem.c, &problem.d};
        if (i < 4)
            views[i]->data = NULL;
        for (int j = 0; j < M * N; j++)
            d[j] = -7;
        assert_int_equal(tg_multiply(NULL, &problem), TG_STATUS_INVALID_ARGUMENT);
        assert_non_null(strstr(tg_get_error_detail(), names[i]));
        for (int j = 0; j < M * N; j++)
            assert_true(d[j] == -7);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_valid),
        cmocka_unit_test(test_null),
        cmocka_unit_test(test_negative_counts),
        cmocka_unit_test(test_mismatched_shapes),
        cmocka_unit_test(test_bad_enums),
        cmocka_unit_test(test_types_that_do_not_go_together),
        cmocka_unit_test(test_scales_and_tf32),
        cmocka_unit_test(test_overflow),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_scalars),
        cmocka_unit_test(test_null_data),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
