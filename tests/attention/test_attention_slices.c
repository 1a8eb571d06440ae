/*
 * Attention by slices, whose tile registers are those of amx_in_c.h, so that it is tested on every
 * machine with AVX-512. The tasks are compiled once more, with these functions as AMX.
 *
 * SPDX-License-Identifier: MIT
 */
#if defined(__x86_64__)
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/oracle.h"
#include "check/check.h"
#include "cpu/amx_in_c.h"
#include "cpu/attention_tasks.h"
#include "harness/small_stack.h"
#include "harness/stride.h"

#include "cpu/simd_avx512.h"
#define HAS_FMA 1
#define TGI_EPILOGUE_HAS_FMA 1
#include "core/epilogue.h"
#define PACKED_VECTORS 3
#define ACC_NAME fp32
#define IN_NAME bf16x2
#define ACC_IS_FP32 1
#define ACC_TYPE TG_TYPE_FP32
#include "cpu/attention_body.h"
#include "cpu/finish_body.h"

#include "cpu/bf16x2_in_c.h"
#include "cpu/amx_tile_body.h"
#include "cpu/pairs_body.h"

#include "cpu/attention_slices_body.h"

static const tgi_attention_slices slices_in_c = SLICES_FUNCTIONS;
#define tgi_attention_amx slices_in_c
#define tgi_attention_cpu attention_in_c
#include "../../src/cpu/attention_tasks.c"

#define CASE_COUNT 120

/* Functions that this file gets but does not call. */
const void *const unused_functions[] = {(void *)attention_weigh_avx512_fp32,
                                        (void *)attention_merge_avx512_fp32,
                                        (void *)attention_divide_avx512_fp32,
                                        (void *)attention_narrow_avx512_fp32,
                                        (void *)attention_is_finite_avx512_fp32,
                                        (void *)finish_avx512_fp32,
                                        (void *)&tile_set_avx512_bf16x2_32,
                                        (void *)pack_k_inner,
                                        (void *)pack_k_outer};

static int launch_call(void *argument)
{
    return (int)attention_in_c.launch(argument);
}

/* Runs the attention on a thread whose stack is as small as a caller's may be, with room for the
 * registers in C, and returns its status. */
static tg_status attend(const tg_attention *a, tgi_isa isa, int thread_count)
{
    tgi_machine machine;
    tgi_attention_choice choice;
    memset(&choice, 0, sizeof choice);
    tgi_cpu_detect(&machine);
    machine.isa = isa;
    machine.thread_count = thread_count;
    const tg_status status = attention_in_c.choose(&machine, a, &choice);
    char *workspace = aligned_alloc(64, (size_t)tgi_round_up(choice.workspace_bytes + 1, 64));
    tgi_attention_call call = {
        .machine = &machine, .attention = a, .choice = &choice, .workspace = workspace};
    size_t used_bytes = 1;
    const int run_status =
        status ? (int)status
               : small_stack_run(launch_call, &call, 4 * SMALL_STACK_BYTES, &used_bytes);
    assert_in_range(used_bytes, 1, SMALL_STACK_BYTES + sizeof amx);
    free(workspace);
    return (tg_status)run_status;
}

/* Draws a problem of a type that is sliced. */
static tg_attention draw_sliced(uint64_t *random)
{
    tg_attention a;
    do {
        a = draw_attention(random);
    } while (tg_get_type_bytes(a.type) != 2);
    return a;
}

/* Puts numbers that are not sliced, and some near the smallest, into Q and K. */
static void spoil(attention_case *c, uint64_t *random)
{
    static const double numbers[] = {INFINITY, -INFINITY, NAN, 0x1p-126, 0x1p-133};
    const tg_attention *a = &c->attention;
    if (a->batch_count == 0 || a->m == 0 || a->n == 0 || a->type == TG_TYPE_FP16)
        return;
    for (int i = 0; i < 2; i++) {
        const tg_heads *heads = i ? &a->k : &a->q;
        const double number = numbers[check_next_random(random) % 5];
        if (heads->data && !(i ? a->has_key_offsets || a->page_rows : a->has_query_offsets))
            check_set_element(a->type, heads->data, 0, number);
    }
}

static void run_hostile(attention_fill fill, uint64_t seed)
{
    uint64_t random = stride_choose_seed(seed);
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_sliced(&random);
        attention_case c;
        char text[1024];
        case_open(&c, &a, fill, i % 3 != 0, &random);
        const tg_status status = attend(&c.attention, TGI_ISA_amx, 2);
        const double worst = status ? INFINITY : case_compare(&c, "cpu");
        if (status || !(worst <= 1.0)) {
            tg_format_attention(&c.attention, text, sizeof text);
            fail_msg("case %d %s: %g of the bound", i, text, worst);
        }
        case_close(&c);
    }
}

static void test_hostile(void **state)
{
    (void)state;
    run_hostile(FILL_UNIFORM_HEADS, 1);
}

static void test_nonfinite(void **state)
{
    (void)state;
    run_hostile(FILL_NONFINITE_HEADS, 2);
}

/* Rows of numbers that are not sliced are those of AVX-512, up to rounding. */
static void test_spoilt(void **state)
{
    uint64_t random = stride_choose_seed(3);
    (void)state;
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_sliced(&random);
        const int64_t bytes = tg_get_type_bytes(a.type);
        attention_case c;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        spoil(&c, &random);
        const char *d = c.memory[TGI_ATTENTION_D];
        assert_int_equal(attend(&c.attention, TGI_ISA_amx, 2), TG_STATUS_OK);
        const size_t size_bytes = (size_t)c.bytes[TGI_ATTENTION_D];
        char *first = malloc(size_bytes);
        memcpy(first, d, size_bytes);
        assert_int_equal(attend(&c.attention, TGI_ISA_avx512, 2), TG_STATUS_OK);
        for (int64_t e = 0; e < (int64_t)size_bytes / bytes; e++) {
            const double x = check_get_element(a.type, first, e);
            const double y = check_get_element(a.type, d, e);
            if (isnan(x) != isnan(y) || (!isnan(x) && !(fabs(x - y) <= 0x1p-6 * (1 + fabs(y)))))
                fail_msg("case %d: element %lld is %g, not %g", i, (long long)e, x, y);
        }
        free(first);
        case_close(&c);
    }
}

/* The bits do not depend on the number of threads. */
static void test_bits(void **state)
{
    uint64_t random = stride_choose_seed(4);
    (void)state;
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_sliced(&random);
        attention_case c;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        assert_int_equal(attend(&c.attention, TGI_ISA_amx, 1), TG_STATUS_OK);
        const size_t size_bytes = (size_t)c.bytes[TGI_ATTENTION_D];
        char *first = malloc(size_bytes);
        memcpy(first, c.memory[TGI_ATTENTION_D], size_bytes);
        case_poison(&c);
        assert_int_equal(attend(&c.attention, TGI_ISA_amx, 7), TG_STATUS_OK);
        assert_memory_equal(first, c.memory[TGI_ATTENTION_D], size_bytes);
        free(first);
        case_close(&c);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_hostile),
                                       cmocka_unit_test(test_nonfinite),
                                       cmocka_unit_test(test_spoilt), cmocka_unit_test(test_bits)};
    tgi_machine machine;
    tgi_cpu_detect(&machine);
    if (!(machine.features & TGI_FEATURE_AVX512)) {
        printf("skipped: this machine lacks avx512\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else
int main(void)
{
    return 77;
}
#endif
