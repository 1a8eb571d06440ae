/*
 * Attention in 16 bits on a GPU, against the oracle of tests/attention: hostile lengths, strides,
 * masks and lists, Inf and NaN, V of ones, and mutants.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "check/check.h"
#include "core/types.h"
#include "gpu.h"
#include "gpu_attention.h"
#include "harness/stride.h"

#define ONES_COUNT 400
#define SHORT_COUNT 60
#define RUN_COUNT 16
#define DENSE_COUNT 160

static const tg_type types[2] = {TG_TYPE_FP16, TG_TYPE_BF16};

static void test_hostile(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_hostile(context, types, FILL_UNIFORM_HEADS, 11);
    tg_destroy_context(context);
}

static void test_nonfinite(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_hostile(context, types, FILL_NONFINITE_HEADS, 12);
    tg_destroy_context(context);
}

static void test_long(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_long(context, types, 14);
    tg_destroy_context(context);
}

static void test_mutants_and_batches(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_mutants(context, TG_TYPE_FP16);
    gpu_check_batch_invariance(context, TG_TYPE_FP16);
    gpu_check_batch_invariance(context, TG_TYPE_BF16);
    tg_destroy_context(context);
}

/* A V of ones gives ones in D's 16 bits. */
static void test_ones(void **state)
{
    tg_context *context = gpu_open_context();
    (void)state;
    gpu_check_ones(context, types, ONES_COUNT, 0.0, 13);
    tg_destroy_context(context);
}

/* Lists tell the keys: threads copy whole steps of V that not all queries see, by runs of rows. */
static void test_runs(void **state)
{
    tg_context *context = gpu_open_context();
    uint64_t random = stride_choose_seed(17);
    (void)state;
    for (int i = stride_get_first(); i < RUN_COUNT; i += stride_get()) {
        tg_attention a;
        attention_case c;
        tg_init_attention(&a, sizeof a, i / 4 % 2 ? TG_TYPE_BF16 : TG_TYPE_FP16, 3, 4, 2, 130, 400,
                          64 * (1 + i % 4));
        a.causal = i / 8 % 2 ? TG_CAUSAL_TOP_LEFT : TG_CAUSAL_BOTTOM_RIGHT;
        a.has_key_offsets = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        gpu_check_attention(context, &c, i);
    }
    tg_destroy_context(context);
}

/* Nothing is written behind a row of D that ends within a unit of 16 bytes. */
static void test_row_ends(void **state)
{
    tg_context *context = gpu_open_context();
    uint64_t random = stride_choose_seed(22);
    (void)state;
    for (int i = stride_get_first(); i < RUN_COUNT; i += stride_get()) {
        tg_attention a;
        attention_case c;
        tg_init_attention(&a, sizeof a, types[i % 2], 1, 1, 1, 1, 3, 40);
        a.v_head_size = 1 + 3 * i;
        a.soft_cap = 3.0;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        gpu_check_attention(context, &c, i);
    }
    tg_destroy_context(context);
}

/* Draws an attention of many short sequences, whose operands are aligned. Some have many queries
 * and few keys, so that blocks compute several tiles. */
static tg_attention draw_short(int index, uint64_t *random)
{
    static const int64_t sizes[] = {40, 64, 96, 128, 184, 256};
    const int is_tall = index % 10 == 5;
    const int64_t most = index % 4 ? 150 : 330, kv_heads = index % 3 ? 8 : 24;
    const int64_t length = 1 + (int64_t)(check_next_random(random) % (uint64_t)most);
    const int64_t other = 1 + (int64_t)(check_next_random(random) % (uint64_t)most);
    const int64_t m = is_tall ? 200 + length : length;
    const int64_t few = index % 20 == 15 ? 33 + other % 130 : 1 + other % 40; /* steps of keys */
    const int64_t n = is_tall ? few : index % 5 < 3 ? length : other;
    const int64_t size = sizes[check_next_random(random) % 6];
    const uint64_t flags = check_next_random(random);
    tg_attention a;
    tg_init_attention(&a, sizeof a, index % 2 ? TG_TYPE_BF16 : TG_TYPE_FP16, is_tall ? 16 : 2, 24,
                      kv_heads, m, n, size);
    a.causal = (tg_causal)(flags % 3);
    if (flags >> 8 & 1)
        a.keys_before = (int64_t)(flags >> 16) % 100;
    if ((flags >> 9) % 4 == 0)
        a.keys_after = (int64_t)(flags >> 24) % 100;
    a.v_head_size = (flags >> 11) % 4 == 0 ? size / 2 / 8 * 8 : size;
    a.has_log_sum_exp = (flags >> 10) & 1;
    return a;
}

/* Many short sequences: masks, windows, lengths that differ, Inf and NaN. On a chip that has a row
 * for them most plans take it. */
static void test_short(void **state)
{
    tg_context *context = gpu_open_context();
    uint64_t random = stride_choose_seed(16);
    int case_count = 0, short_count = 0, has_row = 0;
    (void)state;
    for (int i = stride_get_first(); i < SHORT_COUNT; i += stride_get()) {
        const tg_attention a = draw_short(i, &random);
        attention_case c;
        tg_attention_plan *plan;
        char text[1024];
        case_open(&c, &a, i % 3 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, 0, &random);
        assert_int_equal(tg_create_attention_plan(context, &c.attention, &plan), TG_STATUS_OK);
        case_count++;
        short_count += strstr(tg_get_attention_kernel(plan), "attend_short") != NULL;
        has_row |= strstr(tg_get_attention_kernel(plan), "sm90a") != NULL;
        tg_destroy_attention_plan(plan);
        assert_int_equal(gpu_attend(context, &c, NULL), TG_STATUS_OK);
        const double worst = case_compare(&c, "cuda");
        tg_format_attention(&c.attention, text, sizeof text);
        if (!(worst <= 1.0))
            fail_msg("case %d %s: %g of the bound", i, text, worst);
        case_close(&c);
    }
    assert_true(!has_row || stride_get() > 1 || 2 * short_count > case_count);
    tg_destroy_context(context);
}

/* Draws an attention of few queries, with dense tiles: rows of an odd number of units, no gaps. */
static tg_attention draw_dense(int index, uint64_t *random)
{
    static const int64_t sizes[] = {8, 24, 40, 56, 72, 120, 136, 248};
    const int64_t size = sizes[index % 8], n = 1 + (int64_t)(check_next_random(random) % 900);
    const uint64_t flags = check_next_random(random);
    tg_attention a;
    tg_init_attention(&a, sizeof a, index % 2 ? TG_TYPE_BF16 : TG_TYPE_FP16, 1 + (index & 1), 4,
                      flags & 1 ? 1 : 4, 1 + (int64_t)(flags >> 8 & 7), n, size);
    a.v_head_size = flags >> 12 & 3 ? size : sizes[flags >> 32 & 7];
    a.causal = (tg_causal)((flags >> 16) % 3);
    a.soft_cap = flags >> 18 & 1 ? 3.5 : 0.0;
    a.has_log_sum_exp = (flags >> 19) & 1;
    if ((flags >> 20) % 4 == 0)
        a.keys_before = (int64_t)(check_next_random(random) % 300);
    a.has_key_lengths = (flags >> 40) % 3 == 0;
    a.has_key_offsets = (flags >> 48) % 3 == 0;
    if ((flags >> 48) % 3 == 1) {
        a.page_rows = 64;
        a.pages_stride = (n + a.page_rows - 1) / a.page_rows + 1;
        a.page_count = a.batch_count * a.pages_stride;
    }
    return a;
}

static void test_dense(void **state)
{
    tg_context *context = gpu_open_context();
    uint64_t random = stride_choose_seed(18);
    (void)state;
    for (int i = stride_get_first(); i < DENSE_COUNT; i += stride_get()) {
        const tg_attention a = draw_dense(i, &random);
        attention_case c;
        case_open(&c, &a, i / 8 % 2 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, 0, &random);
        gpu_check_attention(context, &c, i);
    }
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hostile), cmocka_unit_test(test_nonfinite),
        cmocka_unit_test(test_ones),    cmocka_unit_test(test_mutants_and_batches),
        cmocka_unit_test(test_runs),    cmocka_unit_test(test_row_ends),
        cmocka_unit_test(test_short),   cmocka_unit_test(test_dense),
        cmocka_unit_test(test_long)};
    if (!gpu_is_there(sizeof tests / sizeof tests[0]))
        return GPU_SKIPPED;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
