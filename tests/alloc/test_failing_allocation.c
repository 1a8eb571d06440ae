/*
 * Fails every allocation in turn: the status is OUT_OF_MEMORY, D is as it was, the same call then
 * works, and once all is destroyed nothing is left. Broken steps show that the test sees a leak,
 * another status, and a spoilt D.
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

#include "alloc/wrapped_allocation.h"
#include "tilegemm_lab.h"

#define SIZE_MAX_ELEMS (300 * 300)
#define ALLOCATIONS_MAX 1000
#define UNTOUCHED -7.0f

static float a[SIZE_MAX_ELEMS], b[SIZE_MAX_ELEMS], d[SIZE_MAX_ELEMS];

/* Calls the library on *context, which the first step makes. */
typedef tg_status step_function(tg_context **context);

static tg_problem make_problem(int64_t m, int64_t n, int64_t k)
{
    return tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, m, k),
                           tg_make_matrix(TG_TYPE_FP32, b, k, n),
                           tg_make_matrix(TG_TYPE_FP32, d, m, n));
}

static tg_status make_context(tg_context **context)
{
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = 2};
    return tg_create_context(&options, context);
}

static tg_status multiply_small(tg_context **context)
{
    tg_problem problem = make_problem(5, 6, 7);
    return tg_multiply(*context, &problem);
}

static tg_status multiply_large(tg_context **context)
{
    tg_problem problem = make_problem(300, 290, 280);
    return tg_multiply(*context, &problem);
}

static tg_status multiply_vector(tg_context **context)
{
    tg_problem problem = make_problem(1, 300, 250);
    problem.op_b = TG_OPERATION_TRANSPOSE;
    problem.b = tg_make_matrix(TG_TYPE_FP32, b, 300, 250);
    return tg_multiply(*context, &problem);
}

static tg_status multiply_batch(tg_context **context)
{
    tg_problem problem = make_problem(20, 30, 40);
    problem.batch_count = 9;
    problem.d.batch_stride = 600;
    return tg_multiply(*context, &problem);
}

/* Runs every row that can run a problem, with the context's workspace. */
static tg_status run_rows(tg_context **context)
{
    tg_problem problem = make_problem(150, 140, 130);
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        tg_plan *plan;
        tg_status status = tg_get_kernel_info(*context, i, &info);
        if (status != TG_STATUS_OK)
            return status;
        tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info.name};
        status = tg_create_plan(*context, &problem, &options, &plan);
        if (status == TG_STATUS_UNSUPPORTED)
            continue;
        if (status != TG_STATUS_OK)
            return status;
        tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = d};
        status = tg_execute_plan(plan, &buffers);
        tg_destroy_plan(plan);
        if (status != TG_STATUS_OK)
            return status;
        for (int j = 0; j < SIZE_MAX_ELEMS; j++)
            d[j] = UNTOUCHED; /* the next must leave it alone */
    }
    return TG_STATUS_OK;
}

static tg_status inspect(tg_context **context)
{
    tg_problem problem;
    tg_candidate candidates[4];
    char text[256];
    int count;
    double flop_per_s;
    tg_status status = tg_parse_problem("30x40x50:nt:beta=1", &problem, sizeof problem);
    if (status == TG_STATUS_OK)
        status = tg_format_problem(&problem, text, sizeof text);
    if (status == TG_STATUS_OK)
        status = tg_list_candidates(*context, &problem, candidates, 4, &count);
    if (status == TG_STATUS_OK)
        status = tg_measure_peak(*context, TG_TYPE_FP32, 2, &flop_per_s);
    return status;
}

/* The steps below do what the library must not do. */
static void *lost; /* leak loses it; nothing watches its release */

static tg_status leak(tg_context **context)
{
    (void)context;
    lost = malloc(10);
    return lost ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
}

static tg_status blame_something_else(tg_context **context)
{
    (void)context;
    void *volatile memory = malloc(10);
    int has_memory = memory != NULL;
    free(memory);
    return has_memory ? TG_STATUS_OK : TG_STATUS_INVALID_ARGUMENT;
}

static tg_status hide_failure(tg_context **context)
{
    blame_something_else(context);
    return TG_STATUS_OK;
}

static tg_status spoil_output(tg_context **context)
{
    tg_status status = blame_something_else(context);
    d[3] = 1;
    return status == TG_STATUS_OK ? status : TG_STATUS_OUT_OF_MEMORY;
}

static int is_untouched(void)
{
    for (int i = 0; i < SIZE_MAX_ELEMS; i++) {
        if (d[i] != UNTOUCHED)
            return 0;
    }
    return 1;
}

/* Runs the step. If it fails, runs it again with nothing failing. Returns NULL or what went
 * wrong. */
static const char *run_step(step_function *step, tg_context **context)
{
    for (int i = 0; i < SIZE_MAX_ELEMS; i++)
        d[i] = UNTOUCHED;
    int failed_before = allocation_get_counts().failed_count;
    tg_status status = step(context);
    int has_failed = allocation_get_counts().failed_count > failed_before;
    if (!has_failed)
        return status == TG_STATUS_OK ? NULL : "fails with all memory there";
    if (status == TG_STATUS_OK)
        return "reports success after a failed allocation";
    if (status != TG_STATUS_OUT_OF_MEMORY)
        return "does not report OUT_OF_MEMORY";
    if (!is_untouched())
        return "touches D though it fails";
    allocation_stop_failing();
    return step(context) == TG_STATUS_OK ? NULL : "fails for ever after one failed allocation";
}

/* Fails every allocation of the steps in turn. Returns NULL or what went wrong. *count counts
 * allocations. */
static const char *run_steps(step_function *const *steps, int step_count, int *count)
{
    for (*count = 0; *count < ALLOCATIONS_MAX; ++*count) {
        tg_context *context = NULL;
        const char *failure = NULL;
        allocation_watch(*count + 1);
        for (int i = 0; i < step_count && !failure; i++)
            failure = run_step(steps[i], &context);
        tg_destroy_context(context);
        allocation_counts counts = allocation_unwatch();
        if (failure)
            return failure;
        if (counts.live_count != 0)
            return "leaks";
        if (counts.failed_count == 0)
            return NULL; /* the failing one was not reached */
    }
    return "allocates without end";
}

static void test_every_allocation(void **state)
{
    (void)state;
    static step_function *const steps[] = {make_context,    multiply_small, multiply_large,
                                           multiply_vector, multiply_batch, multiply_large,
                                           run_rows,        inspect};
    int count = 0;
    const char *failure = run_steps(steps, sizeof steps / sizeof *steps, &count);
    if (failure)
        fail_msg("allocation %d: %s", count + 1, failure);
    printf("%d allocations failed in turn\n", count);
    assert_true(count >= 3); /* counts a context, a plan, a workspace */
}

static void test_default_context(void **state)
{
    (void)state;
    tg_context *none = NULL;
    for (int i = 0; i < SIZE_MAX_ELEMS; i++)
        d[i] = UNTOUCHED;
    allocation_watch(1);
    assert_int_equal(multiply_large(&none), TG_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(tg_get_error_detail(), "bytes"));
    assert_true(is_untouched());
    assert_int_equal(multiply_large(&none), TG_STATUS_OK);
    allocation_unwatch();
}

static void test_broken_steps_are_caught(void **state)
{
    (void)state;
    static const struct {
        step_function *step;
        const char *failure;
    } broken[] = {{leak, "leaks"},
                  {blame_something_else, "does not report OUT_OF_MEMORY"},
                  {hide_failure, "reports success after a failed allocation"},
                  {spoil_output, "touches D though it fails"}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        step_function *const steps[] = {make_context, broken[i].step};
        int count = 0;
        const char *failure = run_steps(steps, 2, &count);
        assert_non_null(failure);
        assert_string_equal(failure, broken[i].failure);
    }
    free(lost);
}

int main(void)
{
    for (int i = 0; i < SIZE_MAX_ELEMS; i++)
        a[i] = b[i] = (float)(i % 7 - 3);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation),
        cmocka_unit_test(test_default_context),
        cmocka_unit_test(test_broken_steps_are_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
