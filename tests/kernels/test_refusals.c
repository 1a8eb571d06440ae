/*
 * A row that does not compute a problem says so before anything runs, with a reason, and planning,
 * listing and the table agree on it.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "core/kernels.h"
#include "harness/stride.h"
#include "kernels/runner.h"

#define PROBLEM_COUNT 150
#define CANDIDATES_MAX 400

static tg_status plan_with(const char *kernel, const tg_problem *problem)
{
    tg_plan *plan = (tg_plan *)(uintptr_t)1;
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_status status = tg_create_plan(NULL, problem, &options, &plan);
    if (status == TG_STATUS_OK) {
        tg_plan_info info;
        assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
        assert_string_equal(info.kernel, kernel);
        assert_true(info.workspace_bytes >= 0);
        assert_true(info.thread_count >= 1);
        tg_destroy_plan(plan);
    } else {
        assert_null(plan);
    }
    return status;
}

static void test_wrong_type(void **state)
{
    (void)state;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(NULL, i, &info), TG_STATUS_OK);
        tg_type other = info.type == TG_TYPE_FP32 ? TG_TYPE_FP64 : TG_TYPE_FP32;
        tg_matrix square = tg_make_matrix(other, NULL, 8, 8);
        tg_problem problem = tg_make_problem(square, square, square);
        assert_int_equal(plan_with(info.name, &problem), TG_STATUS_UNSUPPORTED);
        assert_non_null(strstr(tg_get_error_detail(), info.name));
        if (strcmp(info.device, "cpu") == 0)
            assert_non_null(strstr(tg_get_error_detail(), tg_get_type_name(other)));
    }
}

/* BF16 dot-product instructions lose subnormals, so they are not IEEE FP32. */
static void test_bf16_instructions_are_not_ieee(void **state)
{
    (void)state;
    int row_count = 0;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(NULL, i, &info), TG_STATUS_OK);
        if (strcmp(info.isa, "avx512_bf16") != 0 && strcmp(info.isa, "amx") != 0)
            continue;
        tg_matrix square = tg_make_matrix(info.type, NULL, 64, 64);
        tg_problem problem = tg_make_problem(square, square, square);
        problem.precision = TG_PRECISION_IEEE_FP32;
        assert_int_equal(plan_with(info.name, &problem), TG_STATUS_UNSUPPORTED);
        row_count++;
    }
    printf("%d rows\n", row_count);
}

/* Returns 1 if products that a row forms by this math round as the precision allows. FP64 matrix
 * instructions are multiply-adds. */
static int may_round(tgi_math math, tg_type type, tg_precision precision)
{
    const int has_slices = precision >= TG_PRECISION_BF16X3 && precision <= TG_PRECISION_BF16X9;
    switch (math) {
    case TGI_MATH_fma:
        return 1;
    case TGI_MATH_dot:
    case TGI_MATH_mma:
        return type == TG_TYPE_FP64 || precision == TG_PRECISION_DEFAULT;
    case TGI_MATH_fp64:
        return precision != TG_PRECISION_IEEE_FP32;
    case TGI_MATH_tf32:
        return precision == TG_PRECISION_TF32;
    case TGI_MATH_bf16x:
        return precision == TG_PRECISION_DEFAULT || has_slices;
    case TGI_MATH_fp16x:
        return precision == TG_PRECISION_FP16X3;
    }
    return 0;
}

/* Returns the number of legal rows of a chip or, if it is NULL, of a context's device. */
static int check_rounding(const tg_chip *chip, tg_context *context, const tg_problem *problem)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    int count = 0, legal_count = 0;
    tg_status status =
        chip ? tg_list_chip_candidates(chip, problem, candidates, CANDIDATES_MAX, &count)
             : tg_list_candidates(context, problem, candidates, CANDIDATES_MAX, &count);
    if (status == TG_STATUS_INVALID_ARGUMENT) /* the precision is not for this type */
        return 0;
    assert_int_equal(status, TG_STATUS_OK);
    for (int i = 0; i < count; i++) {
        const tgi_kernel *row = tgi_kernels_get(i);
        legal_count += candidates[i].is_legal;
        if (candidates[i].is_legal && !may_round(row->math, row->type, problem->precision))
            fail_msg("%s is legal in precision %s on %s", row->name,
                     tg_get_precision_name(problem->precision), chip ? chip->name : "its device");
    }
    return legal_count;
}

/* Does the same for products of all types and precisions. The short ones are A B^T, with a D of
 * BF16 if A is of FP8. */
static int check_all_rounding(const tg_chip *chip, tg_context *context)
{
    static const int64_t sizes[][3] = {
        {64, 64, 64}, {8, 512, 256}, {4096, 4096, 4096}, {512, 512, 32}};
    enum { size_count = sizeof sizes / sizeof sizes[0] };
    int legal_count = 0;
    for (int i = 0; tg_get_type_name((tg_type)(i / size_count)); i++) {
        const tg_type type = (tg_type)(i / size_count);
        const int64_t *size = sizes[i % size_count];
        const int64_t m = size[0], n = size[1], k = size[2];
        const int is_short = k == 32, is_fp8 = tgi_type_bytes(type) == 1;
        tg_problem problem = tg_make_problem(
            tg_make_matrix(type, NULL, m, k),
            is_short ? tg_make_matrix(type, NULL, n, k) : tg_make_matrix(type, NULL, k, n),
            tg_make_matrix(is_short && is_fp8 ? TG_TYPE_BF16 : type, NULL, m, n));
        problem.op_b = is_short ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        for (int at = 0; tg_get_precision_name((tg_precision)at); at++) {
            problem.precision = (tg_precision)at;
            legal_count += check_rounding(chip, context, &problem);
        }
    }
    return legal_count;
}

/* No row is legal whose products round otherwise than the precision asks, on any device. */
static void test_rows_round_as_the_precision_asks(void **state)
{
    (void)state;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "sim"};
    tg_context *sim;
    assert_true(check_all_rounding(NULL, NULL) > 0);
    if (tg_create_context(&options, &sim) == TG_STATUS_OK) { /* a build may lack the simulator */
        assert_true(check_all_rounding(NULL, sim) > 0);
        tg_destroy_context(sim);
    }
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        assert_true(check_all_rounding(&chip, NULL) > 0);
    }
}

/* Returns 0 if nothing is multiplied: such a problem may be predicted to take no time. */
static int has_work(const tg_problem *problem)
{
    int64_t k =
        problem->op_a == TG_OPERATION_TRANSPOSE ? problem->a.row_count : problem->a.col_count;
    return problem->d.row_count > 0 && problem->d.col_count > 0 && k > 0 &&
           problem->batch_count > 0 && problem->alpha != 0;
}

static void check_candidates(const tg_problem *problem)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    int count = 0, chosen_count = 0, row_count = tg_get_kernel_count();
    assert_true(row_count <= CANDIDATES_MAX);
    assert_int_equal(tg_list_candidates(NULL, problem, candidates, CANDIDATES_MAX, &count),
                     TG_STATUS_OK);
    assert_int_equal(count, row_count);
    for (int i = 0; i < count; i++) {
        const tg_candidate *candidate = &candidates[i];
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(NULL, i, &info), TG_STATUS_OK);
        assert_string_equal(candidate->kernel, info.name);
        tg_status status = plan_with(candidate->kernel, problem);
        assert_int_equal(status, candidate->is_legal ? TG_STATUS_OK : TG_STATUS_UNSUPPORTED);
        if (candidate->is_chosen) {
            assert_true(candidate->is_legal);
            assert_string_equal(candidate->reason, "");
            assert_int_equal(candidate->refusal, TG_REFUSAL_NONE);
            chosen_count++;
        } else {
            assert_true(candidate->reason[0] != 0);
            assert_int_equal(candidate->is_legal, candidate->refusal == TG_REFUSAL_SLOWER ||
                                                      candidate->refusal == TG_REFUSAL_NO_PRODUCT ||
                                                      candidate->refusal == TG_REFUSAL_TEACHING);
        }
        if (!candidate->is_legal)
            assert_true(candidate->predicted_s == 0);
        else
            assert_true(candidate->predicted_s > 0 || !has_work(problem));
    }
    assert_int_equal(chosen_count, 1);
}

static void test_candidates_agree_with_plans(void **state)
{
    (void)state;
    uint64_t random = stride_choose_seed(runner_get_seed());
    const int problem_count = stride_count_cases(PROBLEM_COUNT);
    for (int i = 0; i < problem_count; i++) {
        operand_spec spec;
        case_domain domain = {(tg_type)(i % 6), 6, 16, 100000, 0};
        case_draw(&domain, check_next_random(&random), &spec);
        check_candidates(&spec.problem);
    }
}

/* Names differ from one another and each value has a text; a number that is no value has
 * neither. */
static void test_refusal_names(void **state)
{
    (void)state;
    int count = 0;
    for (; tg_get_refusal_name((tg_refusal)count); count++) {
        assert_true(tg_get_refusal_text((tg_refusal)count)[0] != 0);
        for (int i = 0; i < count; i++)
            assert_string_not_equal(tg_get_refusal_name((tg_refusal)i),
                                    tg_get_refusal_name((tg_refusal)count));
    }
    assert_int_equal(count, TG_REFUSAL_TEACHING + 1);
    assert_null(tg_get_refusal_text((tg_refusal)count));
}

/* No row of an A100 multiplies FP8 if k is 2^31. Each family tells why, the nearest first. */
static void test_a_problem_that_no_row_takes(void **state)
{
    (void)state;
    static tg_candidate candidates[CANDIDATES_MAX];
    const int64_t k = (int64_t)1 << 31;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP8_E4M3, NULL, 4096, k),
                                         tg_make_matrix(TG_TYPE_FP8_E4M3, NULL, k, 4096),
                                         tg_make_matrix(TG_TYPE_FP8_E4M3, NULL, 4096, 4096));
    tg_chip chip;
    int count;
    assert_int_equal(tg_find_chip("a100", &chip), TG_STATUS_OK);
    assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, CANDIDATES_MAX, &count),
                     TG_STATUS_OK);
    for (int i = 0; i < count; i++)
        assert_false(candidates[i].is_legal);
    const char *detail = tg_get_error_detail();
    const char *near = strstr(detail, "\n  mma (6 rows): the kernel counts to 2147482624");
    const char *far = strstr(detail, " rows): needs sm90a, the plan is for sm80");
    if (strncmp(detail, "no kernel of device cuda runs this problem:", 43) != 0 || !near || !far ||
        near > far)
        fail_msg("%s", detail);
}

/* A family's name stands for rows that refuse for several reasons; the detail has room for all. */
static void test_refusals_of_a_name(void **state)
{
    (void)state;
    tg_matrix a = tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8);
    tg_problem problem = tg_make_problem(a, a, a);
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cuda"};
    tg_plan *plan;
    assert_int_equal(tg_create_plan(NULL, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
    assert_non_null(strstr(tg_get_error_detail(), "runs on cuda, the plan is for cpu"));
    assert_non_null(strstr(tg_get_error_detail(), "pass another kernel or none"));
    a.type = TG_TYPE_FP8_E4M3;
    problem = tg_make_problem(a, a, a);
    options.kernel = "cpu_rank"; /* all types of the rows are named, not those of one of them */
    assert_int_equal(tg_create_plan(NULL, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
    assert_non_null(strstr(tg_get_error_detail(),
                           "multiplies fp32, fp64, bf16 and fp16, the inputs are fp8_e4m3"));
}

static void test_unknown_names(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", "cpu_packed_avx2_fp3", "nosuch", "cpu_packed_avx2_fp32x", "CPU", "%s%n"};
    tg_matrix square = tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8);
    tg_problem problem = tg_make_problem(square, square, square);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        assert_int_equal(plan_with(wrong[i], &problem), TG_STATUS_UNKNOWN_NAME);
        assert_non_null(strstr(tg_get_error_detail(), wrong[i]));
    }
}

static void test_table(void **state)
{
    (void)state;
    int row_count = tg_get_kernel_count();
    tg_kernel_info info, other;
    for (int i = 0; i < row_count; i++) {
        assert_int_equal(tg_get_kernel_info(NULL, i, &info), TG_STATUS_OK);
        assert_true(info.name && info.name[0] && info.family && info.idea && info.idea[0]);
        assert_non_null(strstr(info.name, info.family));
        assert_non_null(strstr(info.name, info.isa));
        /* Rows that round FP32 to TF32 have names that tell what they multiply. */
        if (!strstr(info.name, "_tf32_"))
            assert_non_null(strstr(info.name, tg_get_type_name(info.type)));
        for (int j = 0; j < i; j++) {
            assert_int_equal(tg_get_kernel_info(NULL, j, &other), TG_STATUS_OK);
            assert_string_not_equal(info.name, other.name);
        }
    }
    assert_int_equal(tg_get_kernel_info(NULL, -1, &info), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_get_kernel_info(NULL, row_count, &info), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_get_kernel_info(NULL, 0, NULL), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_table),
        cmocka_unit_test(test_wrong_type),
        cmocka_unit_test(test_bf16_instructions_are_not_ieee),
        cmocka_unit_test(test_rows_round_as_the_precision_asks),
        cmocka_unit_test(test_candidates_agree_with_plans),
        cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_refusal_names),
        cmocka_unit_test(test_a_problem_that_no_row_takes),
        cmocka_unit_test(test_refusals_of_a_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
