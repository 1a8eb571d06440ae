/*
 * All rows of family mma, and of FP32 by slices, in the simulator, with the passes that their plans
 * launch: random cases of every layout, alignment and epilogue are right, have no findings and no
 * bank conflicts. One launch multiplies a list of problems. A kernel without one of its barriers,
 * one that waits for too few copies and one whose units of shared memory are not permuted must be
 * found.
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
#include "kernels/gemm_args.h"
#include "kernels/runner.h"
#include "sim/sim.h"
#include "simulated_list.h"
#include "tilegemm_lab.h"

#define CASES_PER_ROW 3
#define WORK_LIMIT 60000
#define BATCH_MOST 2

extern tgi_sim_body simulated_unpermuted, simulated_list;

/* Changes to the launches of a case, and facts that they have shown. */
static struct {
    int is_narrow;       /* 1: blocks form several tiles */
    tgi_sim_body *body;  /* the kernel that has */
    int without_barrier; /* no barrier of this number; -1: all barriers, which are counted */
    int early_count;     /* copies that are not waited for when they should be */
    int is_unpermuted;   /* 1: runs the kernel without the swizzle of units instead */
    int list_rows;       /* D is cut after this row into a list of two problems; 0: it is not */
    int list_count;      /* launches of lists */
    int barrier_count;
    int64_t conflict_count;
    char conflict[80]; /* the place of the last one */
} watched;

tg_status __real_tgi_sim_run(const tgi_sim_launch *launch, tgi_sim_record *record);
tg_status __wrap_tgi_sim_run(const tgi_sim_launch *launch, tgi_sim_record *record);
void __real_tgi_sim_copy_wait(int pending_count);
void __wrap_tgi_sim_copy_wait(int pending_count);

void __wrap_tgi_sim_copy_wait(int pending_count)
{
    __real_tgi_sim_copy_wait(pending_count + watched.early_count);
}

/* Returns 1 if a site may meet banks twice. Sums in FP32 cross shared memory in boxes of TMA, which
 * permute lines for 16 bytes, in accesses of 8 bytes and of single sums. Edges are written by
 * elements; and lanes that leave out an access under a condition come to requests of others. */
static int may_conflict(int site)
{
    static const char *const own[] = {"mma.cuh", "mma_operand.cuh", "mma_slices.cuh",
                                      "mma_store.cuh"};
    static const char *const allowed[] = {"tgi_write_shared_1(", "tgi_write_shared_2(",
                                          "tgi_write_shared_4(", "tgi_write_shared_8(",
                                          "tgi_read_shared_2(",  "tgi_read_shared_4(",
                                          "tgi_read_shared_8(",  "tgi_read_shared_unit(",
                                          "tgi_write_element(",  "target, global, count >= width"};
    const char *file = tgi_sim_get_file(site);
    int length = 0, is_own = 0;
    for (size_t i = 0; i < sizeof own / sizeof own[0]; i++)
        is_own |= strcmp(file, own[i]) == 0;
    if (!is_own)
        return 1;
    const char *text = tgi_sim_get_source(file, tgi_sim_get_line(site), &length);
    for (size_t i = 0; i < sizeof allowed / sizeof allowed[0]; i++) {
        const char *found = strstr(text, allowed[i]);
        if (found && found < text + length)
            return 1;
    }
    return 0;
}

/* Has the launch multiply the upper rows of D and those below as a list of two problems. */
static void cut_problem(tgi_sim_launch *launch)
{
    static problem_list list;
    const tgi_gemm_args *args = launch->args;
    const tgi_problem *p = &args->problem;
    const int64_t rows = watched.list_rows, elem_bytes = tgi_type_bytes(p->type);
    tgi_gemm_args *upper = &list.problems[0], *below = &list.problems[1];
    *upper = *below = *args;
    upper->problem.m = rows;
    below->problem.m -= rows;
    below->a = (const char *)args->a + rows * p->a.row * elem_bytes;
    below->d = (char *)args->d + rows * p->d.row * elem_bytes;
    launch->args = &list;
    launch->args_bytes = sizeof list;
    launch->body = simulated_list;
    watched.list_count++;
}

tg_status __wrap_tgi_sim_run(const tgi_sim_launch *launch, tgi_sim_record *record)
{
    const int site_count = tgi_sim_open_sites() ? tgi_sim_count_sites() : 0;
    tgi_sim_counts *counts = calloc((size_t)site_count, sizeof *counts);
    tgi_sim_launch own = *launch;
    assert_non_null(counts);
    if (own.body == watched.body)
        own.without_barrier = watched.without_barrier;
    if (watched.is_narrow && own.body != tgi_sim_find_body("tgi_add_splits_fp32") &&
        own.body != tgi_sim_find_body("tgi_add_sums_fp32"))
        own.grid[0] = (own.grid[0] + 1) / 2;
    if (watched.is_unpermuted && own.body == tgi_sim_find_body("cuda_mma_sm80_bf16_64x64x64"))
        own.body = simulated_unpermuted;
    if (watched.list_rows)
        cut_problem(&own);
    record->counts = counts;
    const tg_status status = __real_tgi_sim_run(&own, record);
    record->counts = NULL;
    if (own.without_barrier)
        watched.barrier_count = record->barrier_count;
    for (int i = 0; i < site_count; i++) {
        if (counts[i].bank_conflicts == 0 || may_conflict(i))
            continue;
        watched.conflict_count += counts[i].bank_conflicts;
        snprintf(watched.conflict, sizeof watched.conflict, "%s:%d", tgi_sim_get_file(i),
                 tgi_sim_get_line(i));
    }
    free(counts);
    return status;
}

static int is_of_family(const char *family)
{
    return strcmp(family, "mma") == 0 || strcmp(family, "mma_bf16x") == 0 ||
           strcmp(family, "mma_fp16x") == 0;
}

/* Has the case be one that the row takes, in the precision that it computes in. */
static void suit(const tg_kernel_info *row, int number, operand_spec *spec)
{
    static const tg_precision slices[] = {TG_PRECISION_BF16X6, TG_PRECISION_BF16X3,
                                          TG_PRECISION_BF16X9};
    tg_problem *p = &spec->problem;
    p->precision = strcmp(row->family, "mma_bf16x") == 0   ? slices[number % 3]
                   : strcmp(row->family, "mma_fp16x") == 0 ? TG_PRECISION_FP16X3
                   : row->type == TG_TYPE_FP32             ? TG_PRECISION_TF32
                                                           : TG_PRECISION_DEFAULT;
    p->batch_count = p->batch_count > BATCH_MOST ? BATCH_MOST : p->batch_count;
    p->alpha = p->alpha == 0.0 ? 1.0 : p->alpha;
    p->is_batch_invariant = 0;
}

static tg_context *open_context(void)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "sim"};
    tg_context *context = NULL;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    return context;
}

static int run_row(tg_context *context, const tg_kernel_info *row, uint64_t *random)
{
    const case_domain domain = {row->type, row->tile_rows, row->tile_cols, WORK_LIMIT, 0};
    const library_choice choice = {context, row->name, NULL};
    test_operands operands;
    int passed_count = 0;
    operands_open(&operands);
    for (int i = 0; i < CASES_PER_ROW; i++) {
        operand_spec spec;
        case_outcome outcome;
        char text[800];
        case_draw(&domain, check_next_random(random), &spec);
        if (i % stride_get() != stride_get_first())
            continue;
        suit(row, i, &spec);
        watched.is_narrow = i % 2;
        watched.conflict_count = 0;
        case_describe(&spec, text, sizeof text);
        runner_run_case(&operands, &spec, runner_compute_on_device, (void *)(uintptr_t)&choice,
                        &outcome);
        if (outcome.verdict == CASE_FAILED)
            fail_msg("%s, case %d:%s: %s", row->name, i, text, outcome.reason);
        if (watched.conflict_count > 0)
            fail_msg("%s, case %d:%s: %lld bank conflicts, some at %s", row->name, i, text,
                     (long long)watched.conflict_count, watched.conflict);
        passed_count += outcome.verdict == CASE_PASSED;
    }
    operands_close(&operands);
    return passed_count;
}

static void test_rows(void **state)
{
    uint64_t random = stride_choose_seed(20261127);
    tg_context *context = open_context();
    int row_count = 0;
    (void)state;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), TG_STATUS_OK);
        if (strcmp(info.device, "cuda") != 0 || !is_of_family(info.family))
            continue;
        if (!info.is_available)
            fail_msg("the simulator lacks %s", info.name);
        const int passed_count = run_row(context, &info, &random);
        printf("%s: %d cases\n", info.name, passed_count);
        assert_true(passed_count > 0 ||
                    stride_get() > 1); /* a stride may have refused cases alone */
        row_count++;
    }
    assert_true(row_count > 0);
    tg_destroy_context(context);
}

/* Multiplies ones, of whose D blocks form several tiles, and returns the status. D becomes k. */
static tg_status multiply_ones(tg_context *context, const char *kernel, tg_type type,
                               tg_precision precision, int64_t k)
{
    enum { m = 130, n = 200, most = n * 1100 };
    static char a[most * 4], b[most * 4], d[most * 4];
    const library_choice choice = {context, kernel, NULL};
    tg_problem p = tg_make_problem(tg_make_matrix(type, a, m, k), tg_make_matrix(type, b, k, n),
                                   tg_make_matrix(type, d, m, n));
    p.precision = precision;
    for (int i = 0; i < most; i++) {
        check_set_element(type, a, i, 1.0);
        check_set_element(type, b, i, 1.0);
    }
    const tg_status status = runner_compute_with_library((void *)(uintptr_t)&choice, &p);
    for (int i = 0; status == TG_STATUS_OK && i < m * n; i++)
        assert_true(check_get_element(type, d, i) == (double)k);
    return status;
}

/* Sums of so many values of k wait in the workspace, a place for each block. */
static void test_runs_of_slices(void **state)
{
    tg_context *context = open_context();
    (void)state;
    watched.is_narrow = 1;
    assert_int_equal(multiply_ones(context, "cuda_mma_bf16x_sm80_fp32_64x128x32", TG_TYPE_FP32,
                                   TG_PRECISION_BF16X3, 1100),
                     TG_STATUS_OK);
    tg_destroy_context(context);
}

/* A list of problems is one more schedule. Blocks go on from the first problem to the second. */
static void test_list(void **state)
{
    tg_context *context = open_context();
    (void)state;
    watched.is_narrow = 1;
    watched.list_rows = 64; /* the tiles of both are as many as those of the whole */
    assert_int_equal(multiply_ones(context, "cuda_mma_sm80_bf16_64x64x64", TG_TYPE_BF16,
                                   TG_PRECISION_DEFAULT, 200),
                     TG_STATUS_OK);
    assert_int_equal(watched.list_count, 1);
    watched.list_rows = 0;
    tg_destroy_context(context);
}

/* Returns 1 if the simulator finds something in a row. With this k the last chunk of a team lies
 * where its sums follow. */
static int is_found(tg_context *context, const char *kernel, tg_type type, tg_precision precision)
{
    return multiply_ones(context, kernel, type, precision, 376) == TG_STATUS_DEVICE_FAILURE;
}

static void test_mutants(void **state)
{
    static const struct {
        const char *kernel;
        tg_type type;
        tg_precision precision;
    } rows[] = {{"cuda_mma_sm80_bf16_64x64x64", TG_TYPE_BF16, TG_PRECISION_DEFAULT},
                {"cuda_mma_bf16x_sm80_fp32_64x128x32", TG_TYPE_FP32, TG_PRECISION_BF16X6}};
    tg_context *context = open_context();
    (void)state;
    memset(&watched, 0, sizeof watched);
    watched.is_narrow = 1;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        watched.body = tgi_sim_find_body(rows[i].kernel);
        watched.without_barrier = -1;
        assert_false(is_found(context, rows[i].kernel, rows[i].type, rows[i].precision));
        const int barrier_count = watched.barrier_count;
        assert_true(barrier_count > 0);
        for (int barrier = 1; barrier <= barrier_count; barrier++) {
            watched.without_barrier = barrier;
            if (!is_found(context, rows[i].kernel, rows[i].type, rows[i].precision))
                fail_msg("%s without barrier %d passes", rows[i].kernel, barrier);
        }
        watched.without_barrier = 0;
        watched.early_count = 1;
        assert_true(is_found(context, rows[i].kernel, rows[i].type, rows[i].precision));
        watched.early_count = 0;
    }
    watched.conflict_count = 0;
    watched.is_unpermuted = 1;
    assert_false(is_found(context, rows[0].kernel, rows[0].type, rows[0].precision));
    assert_true(watched.conflict_count > 0);
    watched.is_unpermuted = 0;
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_runs_of_slices),
                                       cmocka_unit_test(test_list), cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
