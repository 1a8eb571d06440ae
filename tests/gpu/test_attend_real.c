/*
 * Attention in FP32 and FP64 on a GPU, against the oracle of tests/attention: hostile cases, V of
 * ones, mutants, and blocks as chips with less shared memory have them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "core/types.h"
#include "gpu.h"
#include "gpu_attention.h"
#include "harness/stride.h"
#include "plan/context.h"

#define ONES_COUNT 60
#define LARGE_COUNT 60
#define ONES_UNITS 32 /* D differs from one by so many units roundoff at most */

static const tg_type types[2] = {TG_TYPE_FP32, TG_TYPE_FP64};

static void test_hostile(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_hostile(context, types, FILL_UNIFORM_HEADS, 19);
    gpu_check_hostile(context, types, FILL_NONFINITE_HEADS, 20);
    tg_destroy_context(context);
}

static void test_long(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_long(context, types, 21);
    tg_destroy_context(context);
}

static void test_mutants_and_batches(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_mutants(context, TG_TYPE_FP32);
    gpu_check_mutants(context, TG_TYPE_FP64);
    gpu_check_batch_invariance(context, TG_TYPE_FP32);
    gpu_check_batch_invariance(context, TG_TYPE_FP64);
    tg_destroy_context(context);
}

/* A V of ones gives ones up to a few roundings. */
static void test_ones(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_ones(context, types, ONES_COUNT, ONES_UNITS, 23);
    tg_destroy_context(context);
}

/* Blocks with the shared memory of other chips: K and V take turns in one place, and the last rows
 * of warps may be no queries. */
static void test_small_memory(void **state)
{
    static const int64_t kib[] = {64, 99};
    (void)state;
    for (int chip = 0; chip < 2; chip++) {
        tg_context *context = gpu_open_context();
        tgi_gpu *gpu = &context->machine.gpu;
        uint64_t random = stride_choose_seed(24 + chip);
        if (gpu->shared_bytes_per_block > kib[chip] << 10)
            gpu->shared_bytes_per_block = gpu->shared_bytes_per_sm = kib[chip] << 10;
        for (int i = stride_get_first(); i < LARGE_COUNT; i += stride_get()) {
            tg_attention a = draw_attention(&random);
            attention_case c;
            a.type = types[i % 2];
            if (i % 8 < 6)
                a.head_size = 129 + a.head_size % 128;
            case_open(&c, &a, i % 3 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, i % 5 > 2,
                      &random);
            gpu_check_attention(context, &c, i);
        }
        tg_destroy_context(context);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile), cmocka_unit_test(test_ones),
                                       cmocka_unit_test(test_mutants_and_batches),
                                       cmocka_unit_test(test_small_memory),
                                       cmocka_unit_test(test_long)};
    if (!gpu_is_there(sizeof tests / sizeof tests[0]))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
