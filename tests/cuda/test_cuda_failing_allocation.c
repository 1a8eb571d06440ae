/*
 * Fails every allocation in turn, the processor's and the device's: the status is OUT_OF_MEMORY,
 * and once the context is destroyed nothing is left of either.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "alloc/wrapped_allocation.h"
#include "fake_control.h"
#include "plan/context.h"

#define ALLOCATIONS_MAX 100

/* Runs through a context's life: a call, workspaces of two streams, and if is_host is 1 a product
 * of the processor's memory. */
static tg_status live(int is_host)
{
    float d[16];
    char streams[2];
    tg_context *context = NULL;
    tg_matrix view = tg_make_matrix(TG_TYPE_FP32, d, 4, 4);
    tg_problem problem = tg_make_problem(view, view, view);
    problem.alpha = 0.0;
    tg_status status = tg_create_context(
        &(tg_context_options){.struct_bytes = sizeof(tg_context_options), .device = "cuda:1"},
        &context);
    if (status == TG_STATUS_OK)
        status = tg_multiply(context, &problem);
    if (status == TG_STATUS_OK)
        status = tgi_workspace_reserve(&context->workspaces, 3000000);
    for (int i = 0; i < 2 && status == TG_STATUS_OK; i++) {
        tgi_workspace *workspace;
        status = tgi_workspace_take(&context->workspaces, 3000000, &streams[i], &workspace);
        if (status == TG_STATUS_OK)
            tgi_workspace_give(&context->workspaces, workspace);
    }
    fake_reach()->has_host_memory = is_host;
    if (is_host && status == TG_STATUS_OK)
        status = tg_multiply(context, &problem);
    fake_reach()->has_host_memory = 0;
    tg_destroy_context(context);
    return status;
}

static void test_host_allocations(void **state)
{
    (void)state;
    fake_reset();
    int failed_count = 0, forgiven_count = 0;
    for (int failing = 1; failing < ALLOCATIONS_MAX; failing++) {
        allocation_watch(failing);
        tg_status status = live(1);
        allocation_counts counts = allocation_unwatch();
        assert_int_equal(counts.live_count, 0);
        assert_int_equal(fake_reach()->live_allocation_count, 0);
        assert_int_equal(fake_reach()->retain_count, 0);
        if (!counts.failed_count) {
            assert_int_equal(status, TG_STATUS_OK);
            break;
        }
        failed_count++;
        if (status == TG_STATUS_OK) {
            forgiven_count++;
            continue;
        }
        assert_int_equal(status, TG_STATUS_OUT_OF_MEMORY);
        FAKE_ASSERT_DETAIL("bytes of memory");
    }
    assert_int_equal(forgiven_count, 2); /* the list of blocks and the one a context opens with */
    assert_true(failed_count >= 6);      /* context, device, plan, list of blocks, staging, slots */
    assert_true(failed_count < ALLOCATIONS_MAX - 1);
}

static void test_device_allocations(void **state)
{
    (void)state;
    fake_fail_at("cuMemAlloc_v2", 2, 2);
    assert_int_equal(live(0), TG_STATUS_OUT_OF_MEMORY);
    FAKE_ASSERT_DETAIL("bytes of memory could be had on cuda:1", "free");
    assert_int_equal(fake_reach()->live_allocation_count, 0);
    fake_fail_at("cuMemAlloc_v2", 1, 2); /* a plan then asks for what a context opens with */
    assert_int_equal(live(0), TG_STATUS_OK);
    fake_fail_at("cuMemAlloc_v2", 4, 2);
    assert_int_equal(live(0), TG_STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_host_allocations),
        cmocka_unit_test(test_device_allocations),
    };
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
