/*
 * Compares the model's counts of the rungs of attention with the simulator, which runs their
 * source, and D with its definition in FP64.
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

#include "attention_check.h"
#include "harness/stride.h"
#include "model/traffic_counts.h"
#include "tilegemm_sim.h"

/* Returns 1 if D is right. Rung 3 rounds weights to the type of V before they are multiplied, which
 * the bound of the header does not have, and then D. */
static int is_right(tg_type type, const check_attention_result *verdict)
{
    const double unit = type == TG_TYPE_BF16 ? 0x1p-8 : 0x1p-11;
    return type == TG_TYPE_FP32 ? verdict->worst_share <= 1.0 : verdict->max_error <= 2.1 * unit;
}

static void *make_array(tg_type type, int64_t elems, int seed)
{
    const int64_t elem_bytes = tg_get_type_bytes(type);
    char *array = aligned_alloc(256, ((size_t)(elem_bytes * elems) + 255) / 256 * 256);
    assert_non_null(array);
    uint32_t state = (uint32_t)seed * 2654435761u + 12345u;
    for (int64_t i = 0; i < elems; i++) {
        state = state * 1664525u + 1013904223u;
        const float value = (float)((int)(state >> 16 & 255) - 128) / 64.0f;
        if (type == TG_TYPE_FP32)
            ((float *)(void *)array)[i] = value;
        else
            ((uint16_t *)(void *)array)[i] = tg_encode_bits(type, value);
    }
    return array;
}

static void allocate(tg_attention *a)
{
    const int64_t q = a->batch_count * a->head_count * a->m * a->head_size;
    const int64_t kv = a->batch_count * a->kv_head_count * a->n * a->head_size;
    a->q.data = make_array(a->type, q, 1);
    a->k.data = make_array(a->type, kv, 2);
    a->v.data = make_array(a->type, kv, 3);
    a->d.data = make_array(a->type, q, 4);
}

static void release(tg_attention *a)
{
    free(a->q.data);
    free(a->k.data);
    free(a->v.data);
    free(a->d.data);
}

/* Returns how many counts differ, and one more if D is wrong. */
static int compare(const char *kernel, const char *text)
{
    tg_attention attention;
    tg_chip chip;
    tg_explanation predicted;
    const tg_simulation *simulated;
    check_attention_result verdict;
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_parse_attention(text, &attention, sizeof attention), TG_STATUS_OK);
    if (tg_explain_attention(&chip, kernel, &attention, &predicted) != TG_STATUS_OK)
        fail_msg("%s %s: %s", kernel, text, tg_get_error_detail());
    assert_true(predicted.prediction.is_legal && predicted.prediction.predicted_s > 0.0);
    allocate(&attention);
    const tg_simulation_options options = {.kernel = predicted.kernel};
    if (tg_simulate_attention(&options, &attention, &simulated) != TG_STATUS_OK)
        fail_msg("%s %s: %s", kernel, text, tg_get_error_detail());
    int wrong_count = simulated->finding_count;
    for (int i = 0; i < simulated->finding_count; i++)
        print_error("%s %s: %s\n", kernel, text, simulated->findings[i].text);
    wrong_count += traffic_compare(text, &predicted, simulated);
    assert_true(check_compare_attention(&attention, "cpu", 1e9, &verdict));
    if (!is_right(attention.type, &verdict)) {
        print_error("%s %s: D is wrong by %g of the weighted |V|, %g of the bound\n", kernel, text,
                    verdict.max_error, verdict.worst_share);
        wrong_count++;
    }
    tg_destroy_simulation(simulated);
    release(&attention);
    return wrong_count;
}

static const char *const plain[] = {
    "1,1,1,1,1,8",     "1,1,1,32,32,64", "1,2,1,33,31,32",  "2,2,2,5,7,16",
    "1,1,1,64,3,128",  "1,3,3,37,41,48", "1,1,1,1,100,64",  "1,2,2,65,97,40",
    "1,4,2,16,130,64", "1,1,1,40,70,72", "1,1,1,96,96,128", "1,1,1,31,17,24",
    "1,1,1,9,200,256", "1,1,1,63,64,64", "3,1,1,34,11,8",   "1,1,1,128,128,32",
};
static const char *const masks[] = {"", ":causal", ":causal=top_left"};

/* Runs each rung on the attentions that it takes. */
static void test_rungs(void **state)
{
    static const struct {
        const char *kernel, *type;
        int head_most, head_multiple;
    } rungs[] = {{"attention_naive", "", 256, 8},
                 {"attention_tiled", "", 128, 8},
                 {"attention_mma", ":bf16", 128, 16},
                 {"attention_mma", ":fp16", 128, 16}};
    const int stride = stride_get();
    int wrong_count = 0, run_count = 0;
    (void)state;
    for (int r = 0; r < 4; r++) {
        for (size_t i = (size_t)stride_get_first(); i < sizeof plain / sizeof plain[0] * 3;
             i += (size_t)stride) {
            char text[96];
            const char *sizes = plain[i / 3];
            const int head = atoi(strrchr(sizes, ',') + 1);
            if (head > rungs[r].head_most || head % rungs[r].head_multiple)
                continue;
            snprintf(text, sizeof text, "%s%s%s", sizes, rungs[r].type, masks[i % 3]);
            wrong_count += compare(rungs[r].kernel, text);
            run_count++;
        }
    }
    assert_int_equal(wrong_count, 0);
    assert_true(run_count >= 8);
}

/* Every barrier of a rung is needed: without it the simulator finds a race. */
static void test_barriers(void **state)
{
    static const struct {
        const char *kernel, *text;
        int barrier_count;
    } rungs[] = {{"attention_naive", "1,1,1,33,40,32", 2},
                 {"attention_tiled", "1,1,1,33,70,64", 4},
                 {"attention_mma", "1,1,1,33,130,64:bf16", 2}};
    (void)state;
    for (int r = 0; r < 3; r++) {
        tg_attention attention;
        assert_int_equal(tg_parse_attention(rungs[r].text, &attention, sizeof attention),
                         TG_STATUS_OK);
        allocate(&attention);
        for (int barrier = 0; barrier <= rungs[r].barrier_count + 1; barrier++) {
            const tg_simulation_options options = {.kernel = rungs[r].kernel,
                                                   .without_barrier = barrier};
            const tg_simulation *made = NULL;
            assert_int_equal(tg_simulate_attention(&options, &attention, &made),
                             barrier <= rungs[r].barrier_count ? TG_STATUS_OK
                                                               : TG_STATUS_INVALID_ARGUMENT);
            if (made)
                assert_int_equal(made->finding_count > 0, barrier > 0);
            tg_destroy_simulation(made);
        }
        release(&attention);
    }
}

static void test_refusals(void **state)
{
    static const struct {
        const char *kernel, *text, *detail;
        tg_status status;
    } cases[] = {
        {"attention_flat", "1,1,1,8,8,64", "attention_mma", TG_STATUS_UNKNOWN_NAME},
        {"attention_mma", "1,1,1,8,8,64", "bf16 or fp16", TG_STATUS_UNSUPPORTED},
        {"attention_naive", "1,1,1,8,8,64:bf16", "fp32", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,1,1,8,8,136", "up to 128", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,1,1,8,8,12", "multiples of 8", TG_STATUS_UNSUPPORTED},
        {"attention_mma", "1,1,1,8,8,24:bf16", "multiples of 16", TG_STATUS_UNSUPPORTED},
        {"attention_tiled_sm75_fp32_32x64", "1,1,1,8,8,72", "up to 64", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,1,1,8,8,64:before=3", "windows", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,1,1,8,8,64:qr=65", "strides", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,1,1,0,8,64", "m = 0", TG_STATUS_INVALID_ARGUMENT},
        {"attention_naive", "1,1,1,60000,60000,64", "scores", TG_STATUS_UNSUPPORTED},
        {"attention_tiled", "1,70000,70000,1,1,8", "70000", TG_STATUS_UNSUPPORTED},
    };
    tg_chip chip;
    tg_explanation explained;
    tg_attention attention;
    (void)state;
    assert_int_equal(tg_find_chip("t4", &chip), TG_STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(tg_parse_attention(cases[i].text, &attention, sizeof attention),
                         TG_STATUS_OK);
        assert_int_equal(tg_explain_attention(&chip, cases[i].kernel, &attention, &explained),
                         cases[i].status);
        assert_non_null(strstr(tg_get_error_detail(), cases[i].detail));
    }
    /* The chip has no instructions for the last rung. */
    assert_int_equal(tg_parse_attention("1,1,1,8,8,64:bf16", &attention, sizeof attention),
                     TG_STATUS_OK);
    assert_int_equal(tg_explain_attention(&chip, "attention_mma", &attention, &explained),
                     TG_STATUS_OK);
    assert_int_equal(explained.prediction.is_legal, 0);
    assert_non_null(strstr(explained.prediction.reason, "sm80"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rungs),
        cmocka_unit_test(test_barriers),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
