/*
 * Forces each instruction set through the context: the library's choice computes every case with
 * rows of that set or less.
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

#include "harness/stride.h"
#include "kernels/runner.h"

#define CASES_PER_TYPE 800
#define WORK_LIMIT 12000

/* The instruction sets stand in order, from the least to the most. */
static const char *const isa_names[] = {"generic", "avx2", "avx512", "avx512_bf16", "amx"};
#define ISA_COUNT (int)(sizeof isa_names / sizeof *isa_names)

static int find_isa(const char *name)
{
    for (int i = 0; i < ISA_COUNT; i++) {
        if (strcmp(isa_names[i], name) == 0)
            return i;
    }
    fail_msg("instruction set %s is not in this test's list", name);
    return -1;
}

static void check_rows(tg_context *context, int isa)
{
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), TG_STATUS_OK);
        int is_of_cpu = strcmp(info.device, "cpu") == 0;
        assert_int_equal(info.is_available, is_of_cpu && find_isa(info.isa) <= isa);
        if (info.is_available)
            continue;
        tg_plan *plan = (tg_plan *)(uintptr_t)1;
        tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info.name};
        tg_matrix square = tg_make_matrix(info.type, NULL, 40, 40);
        tg_problem problem = tg_make_problem(square, square, square);
        assert_int_equal(tg_create_plan(context, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
        assert_null(plan);
        assert_non_null(strstr(tg_get_error_detail(), is_of_cpu ? info.isa : info.device));
    }
}

static void check_choices(tg_context *context, const char *isa)
{
    for (int i = TG_TYPE_FP32; i <= TG_TYPE_FP8_E5M2; i++) {
        run_summary summary;
        case_domain domain = {(tg_type)i, 6, 16, WORK_LIMIT, 0};
        library_choice choice = {context, NULL, NULL};
        int case_count = stride_count_cases(CASES_PER_TYPE);
        runner_run_cases(&domain, stride_choose_seed(700 + (uint64_t)i), case_count,
                         runner_compute_with_library, &choice, &summary);
        printf("%-12s %s: %d passed, largest share of the bound %.3f\n", isa,
               tg_get_type_name((tg_type)i), summary.passed_count, summary.bound_share);
        if (summary.failed_count)
            fail_msg("%s: %s", isa, summary.first_failure);
        assert_int_equal(summary.passed_count, case_count);
    }
}

static void test_each_isa(void **state)
{
    (void)state;
    int skipped_count = 0;
    for (int i = 0; i < ISA_COUNT; i++) {
        tg_context *context;
        tg_device_info info;
        tg_context_options options = {
            .struct_bytes = sizeof options, .isa = isa_names[i], .thread_count = 2};
        tg_status status = tg_create_context(&options, &context);
        if (status == TG_STATUS_NO_DEVICE && i > 0) {
            assert_null(context);
            assert_non_null(strstr(tg_get_error_detail(), isa_names[i]));
            printf("%s skipped: %s\n", isa_names[i], tg_get_error_detail());
            skipped_count++;
            continue;
        }
        assert_int_equal(status, TG_STATUS_OK);
        assert_int_equal(tg_get_device_info(context, &info, sizeof info), TG_STATUS_OK);
        assert_string_equal(info.isa, isa_names[i]);
        check_rows(context, i);
        check_choices(context, isa_names[i]);
        tg_destroy_context(context);
    }
    printf("%d instruction sets skipped\n", skipped_count);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_each_isa)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
