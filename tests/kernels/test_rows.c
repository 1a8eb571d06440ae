/*
 * test_rows TYPE [DEVICE [CASES [NAMES|-NAMES]]] compares every row of the kernel table for one
 * input type on one device, and the library's own choice, with the oracle on random cases. With
 * NAMES, separated by commas, it tests only the rows whose names begin with one of them, with
 * -NAMES only the others. It exits with 77 if there is no such device.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "harness/stride.h"
#include "kernels/runner.h"

#define CASES_PER_ROW 2000
#define CASES_PER_ROW_ON_GPU 300
#define WORK_LIMIT 20000
#define WORK_LIMIT_ON_GPU 400000 /* a GPU's tiles are larger */
#define LEAST_SHARE 20           /* a row must take one case in this many, or it goes untested */

static tg_type type;
static const char *device = "cpu", *name_start = "";
static int is_on_gpu, cases_per_row = CASES_PER_ROW;
static int64_t work_limit = WORK_LIMIT;

static compute_function *get_compute(void)
{
    return is_on_gpu ? runner_compute_on_device : runner_compute_with_library;
}

/* Returns 1 for a row of the device at hand; other rows are tested by a run on their device. */
static int is_of_device(const tg_kernel_info *info)
{
    if (strcmp(device, "sim") == 0) /* runs some rows of GPUs */
        return strcmp(info->device, "cuda") == 0 && info->is_available;
    return strncmp(device, info->device, strlen(info->device)) == 0;
}

static void report(const char *name, const run_summary *summary)
{
    printf("%-32s %5d passed %5d refused, largest share of the bound %.3f\n", name,
           summary->passed_count, summary->refused_count, summary->bound_share);
    if (summary->failed_count)
        fail_msg("%s: %d cases failed, the first: %s", name, summary->failed_count,
                 summary->first_failure);
}

/* Returns 1 if the row is among those that the last argument names. */
static int is_named(const char *name)
{
    const int is_left_out = name_start[0] == '-';
    return runner_is_named(name, name_start + is_left_out) != is_left_out;
}

static void test_rows(void **state)
{
    tg_context *context = *state;
    int skipped_count = 0, row_count = tg_get_kernel_count();
    assert_true(row_count > 0);
    for (int i = 0; i < row_count; i++) {
        tg_kernel_info info;
        run_summary summary;
        assert_int_equal(tg_get_kernel_info(context, i, &info), TG_STATUS_OK);
        if (info.type != type || !is_of_device(&info) || !is_named(info.name))
            continue;
        if (!info.is_available) {
            printf("%-32s skipped: this machine lacks %s\n", info.name, info.isa);
            skipped_count++;
            continue;
        }
        case_domain domain = {type, info.tile_rows, info.tile_cols, work_limit,
                              is_on_gpu && info.ladder_rung >= 0};
        library_choice choice = {context, info.name, NULL};
        int case_count = stride_count_cases(cases_per_row);
        runner_run_cases(&domain, stride_choose_seed((uint64_t)i + 1), case_count, get_compute(),
                         &choice, &summary);
        report(info.name, &summary);
        assert_true(summary.passed_count >= case_count / LEAST_SHARE);
    }
    printf("%d rows skipped\n", skipped_count);
}

static void test_choice(void **state)
{
    run_summary summary;
    case_domain domain = {type, 14, 32, work_limit, 0};
    library_choice choice = {*state, NULL, name_start[0] == '-' ? name_start + 1 : NULL};
    if (strcmp(device, "sim") == 0) /* its rows do not take every problem */
        return;
    int case_count = stride_count_cases(2 * cases_per_row);
    runner_run_cases(&domain, stride_choose_seed(500), case_count, get_compute(), &choice,
                     &summary);
    report("(the library's choice)", &summary);
    /* A GPU has batch-invariant kernels for some types only; one case in eight asks for them. */
    int refusal_limit = is_on_gpu ? case_count / 4 : 0;
    assert_true(summary.passed_count >= case_count - refusal_limit);
}

static int open_context(void **state)
{
    tg_context_options options = {
        .struct_bytes = sizeof options, .device = device, .thread_count = 2};
    return tg_create_context(&options, (tg_context **)state) != TG_STATUS_OK;
}

static int close_context(void **state)
{
    tg_destroy_context(*state);
    return 0;
}

/* Chooses the device. Returns 77, which ctest takes for skipped, if the device is not there. */
static int choose_device(const char *name, const char *cases)
{
    int count = 0;
    device = name;
    is_on_gpu = strcmp(name, "cpu") != 0;
    if (tg_count_devices(name, &count) != TG_STATUS_OK) {
        printf("every row of %s skipped: %s\n", name, tg_get_error_detail());
        return 77;
    }
    if (is_on_gpu) {
        cases_per_row = CASES_PER_ROW_ON_GPU;
        work_limit = WORK_LIMIT_ON_GPU;
    }
    if (cases)
        cases_per_row = atoi(cases);
    return 0;
}

int main(int argc, char **argv)
{
    int is_known = 0;
    for (int i = TG_TYPE_FP32; argc >= 2 && argc <= 5 && tg_get_type_name((tg_type)i); i++) {
        if (strcmp(argv[1], tg_get_type_name((tg_type)i)) != 0)
            continue;
        type = (tg_type)i;
        is_known = 1;
    }
    if (!is_known) {
        fprintf(stderr,
                "usage: %s fp32|fp64|bf16|fp16|fp8_e4m3|fp8_e5m2 [DEVICE [CASES [[-]NAMES]]]\n",
                argv[0]);
        return 2;
    }
    if (argc > 2) {
        int code = choose_device(argv[2], argc > 3 ? argv[3] : NULL);
        if (code)
            return code;
        name_start = argc > 4 ? argv[4] : name_start;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, open_context, close_context);
}
