/*
 * Fails every allocation of every public call, alone and with all that follow: the status is
 * OUT_OF_MEMORY, D is as it was, the same call then works, and once all is destroyed nothing is
 * left. Broken calls show that the test sees a leak, another status, and a spoilt D.
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
#include "harness/public_calls.h"

#define ALLOCATIONS_MAX 400

/* The calls below do what the library must not do. */
static void *lost; /* leak loses it; nothing watches its release */

static tg_status leak(tg_context *context)
{
    (void)context;
    lost = malloc(10);
    return lost ? TG_STATUS_OK : TG_STATUS_OUT_OF_MEMORY;
}

static tg_status blame_something_else(tg_context *context)
{
    (void)context;
    void *volatile memory = malloc(10);
    int has_memory = memory != NULL;
    free(memory);
    return has_memory ? TG_STATUS_OK : TG_STATUS_INVALID_ARGUMENT;
}

static tg_status hide_failure(tg_context *context)
{
    blame_something_else(context);
    return TG_STATUS_OK;
}

static tg_status spoil_output(tg_context *context)
{
    tg_status status = blame_something_else(context);
    public_calls_spoil_output();
    return status == TG_STATUS_OK ? status : TG_STATUS_OUT_OF_MEMORY;
}

/* Makes the context, or runs a call on it. */
static tg_status try_call(const public_call *call, tg_context **context)
{
    return call ? call->run(*context) : public_calls_open(context);
}

/* Makes the call, or the context without one. If it fails, runs it again with nothing failing.
 * Returns NULL or what went wrong. */
static const char *judge_call(const public_call *call, tg_context **context)
{
    public_calls_clear_output();
    int failed_before = allocation_get_counts().failed_count;
    tg_status status = try_call(call, context);
    int has_failed = allocation_get_counts().failed_count > failed_before;
    if (!has_failed)
        return status == TG_STATUS_OK ? NULL : "fails with all memory there";
    if (status == TG_STATUS_OK)
        return "reports success after a failed allocation";
    if (status != TG_STATUS_OUT_OF_MEMORY)
        return "does not report OUT_OF_MEMORY";
    if (!(call && call->may_touch_output) && !public_calls_is_untouched())
        return "touches D though it fails";
    allocation_stop_failing();
    return try_call(call, context) == TG_STATUS_OK ? NULL
                                                   : "fails for ever after a failed allocation";
}

/* Fails the allocations of a context and, unless it is NULL, of a call on it in turn, by `watch`,
 * all but the first `skipped_count`, and one of those that are alike. Returns NULL or what went
 * wrong. *count: allocations. */
static const char *fail_each(void (*watch)(int failing), const public_call *call, int skipped_count,
                             int *count)
{
    const int stride = call ? call->alike_count : 1;
    for (*count = skipped_count; *count < ALLOCATIONS_MAX; *count += stride) {
        tg_context *context = NULL;
        watch(*count + 1);
        const char *failure = judge_call(NULL, &context);
        if (!failure && call)
            failure = judge_call(call, &context);
        tg_destroy_context(context);
        allocation_counts counts = allocation_unwatch();
        if (failure)
            return failure;
        if (counts.live_count != 0)
            return "leaks";
        if (counts.failed_count == 0)
            return NULL; /* the failing one was not reached */
    }
    return NULL;
}

/* Fails the allocations of a context, and then those of each call alone. */
static void check_calls(void (*watch)(int failing))
{
    int context_count = 0;
    const char *failure = fail_each(watch, NULL, 0, &context_count);
    if (failure)
        fail_msg("a context, allocation %d: %s", context_count + 1, failure);
    assert_true(context_count >= 1);
    int call_count = 0;
    for (int i = 0; i < public_call_count; i++) {
        int count = 0;
        failure = fail_each(watch, &public_calls[i], context_count, &count);
        if (failure)
            fail_msg("%s, allocation %d: %s", public_calls[i].name, count + 1, failure);
        printf("%s: %d allocations\n", public_calls[i].name, count - context_count);
        call_count += count - context_count;
    }
    assert_true(call_count >= public_call_count);
}

static void test_single_failures(void **state)
{
    (void)state;
    check_calls(allocation_watch);
}

static void test_failures_for_good(void **state)
{
    (void)state;
    check_calls(allocation_watch_rest);
}

static void test_default_context(void **state)
{
    (void)state;
    public_calls_clear_output();
    allocation_watch(1);
    assert_int_equal(public_calls_find("multiply_large")->run(NULL), TG_STATUS_OUT_OF_MEMORY);
    assert_non_null(strstr(tg_get_error_detail(), "bytes"));
    assert_true(public_calls_is_untouched());
    assert_int_equal(public_calls_find("multiply_large")->run(NULL), TG_STATUS_OK);
    allocation_unwatch();
}

static void test_broken_calls_are_caught(void **state)
{
    (void)state;
    static const struct {
        public_call call;
        const char *failure;
    } broken[] = {
        {{"leak", leak, 0, 1}, "leaks"},
        {{"blame_something_else", blame_something_else, 0, 1}, "does not report OUT_OF_MEMORY"},
        {{"hide_failure", hide_failure, 0, 1}, "reports success after a failed allocation"},
        {{"spoil_output", spoil_output, 0, 1}, "touches D though it fails"}};
    for (size_t i = 0; i < sizeof broken / sizeof *broken; i++) {
        int count = 0;
        const char *failure = fail_each(allocation_watch, &broken[i].call, 0, &count);
        assert_non_null(failure);
        assert_string_equal(failure, broken[i].failure);
    }
    free(lost);
}

/* The simulator keeps its state for the process, so one run goes ahead unwatched. */
static int set_up(void **state)
{
    static const char *const calls[] = {"simulate", "simulate_copies"};
    tg_context *context;
    (void)state;
    public_calls_fill();
    if (public_calls_open(&context))
        return 1;
    tg_status status = TG_STATUS_OK;
    for (size_t i = 0; i < sizeof calls / sizeof calls[0] && !status; i++)
        status = public_calls_find(calls[i])->run(context);
    tg_destroy_context(context);
    return status != TG_STATUS_OK;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_single_failures),
        cmocka_unit_test(test_failures_for_good),
        cmocka_unit_test(test_default_context),
        cmocka_unit_test(test_broken_calls_are_caught),
    };
    return cmocka_run_group_tests(tests, set_up, NULL);
}
