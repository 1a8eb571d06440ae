/*
 * Attention on every instruction set of this processor, against the oracle.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/oracle.h"
#include "check/check.h"
#include "cpu/attention_isa.h"
#include "harness/stride.h"

#define CASE_COUNT 120

/* Returns NULL where the processor lacks the instruction set. */
static tg_context *open_context(const char *isa, int thread_count)
{
    tg_context *context;
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cpu", .isa = isa, .thread_count = thread_count};
    return tg_create_context(&options, &context) ? NULL : context;
}

static void run_hostile(const char *isa, attention_fill fill, uint64_t seed)
{
    tg_context *context = open_context(isa, 2);
    uint64_t random = stride_choose_seed(seed);
    if (!context)
        skip();
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_attention(&random);
        attention_case c;
        char text[1024];
        case_open(&c, &a, fill, i % 3 != 0, &random);
        const tg_status status = tg_attend(context, &c.attention);
        const double worst = status ? INFINITY : case_compare(&c, "cpu");
        if (status || !(worst <= 1.0)) {
            tg_format_attention(&c.attention, text, sizeof text);
            fail_msg("%s: case %d %s: %s, %g of the bound", isa, i, text,
                     status ? tg_get_error_detail() : "wrong", worst);
        }
        case_close(&c);
    }
    tg_destroy_context(context);
}

static void test_hostile(void **state)
{
    run_hostile(*state, FILL_UNIFORM_HEADS, 1);
}

static void test_nonfinite(void **state)
{
    run_hostile(*state, FILL_NONFINITE_HEADS, 2);
}

/* A V of ones gives ones, to the last bit, and zeros where no key is seen. */
static void test_ones(void **state)
{
    tg_context *context = open_context(*state, 2);
    uint64_t random = stride_choose_seed(3);
    if (!context)
        skip();
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_attention(&random);
        attention_case c;
        case_open(&c, &a, FILL_V_ONES, 0, &random);
        assert_int_equal(tg_attend(context, &c.attention), TG_STATUS_OK);
        const tgi_attention_tensor d = tgi_attention_get(&c.attention, TGI_ATTENTION_D);
        const int64_t rows =
            a.has_query_offsets ? 0 : d.counts[0] * d.counts[1] * d.counts[2] * d.counts[3];
        for (int64_t e = 0; e < rows; e++) {
            const double value = check_get_element(a.type, c.attention.d.data, e);
            if (value != 1.0 && value != 0.0)
                fail_msg("%s: case %d: %.17g", (const char *)*state, i, value);
        }
        case_close(&c);
    }
    tg_destroy_context(context);
}

/* A weight errs by less than 2.5 units roundoff, whatever the rounded score; those below the least
 * exponent are zero. */
static void check_weights(const tgi_attention_isa *isa, int is_fp64)
{
    enum { KEYS = 128, COLS = 64 }; /* vectors side by side, and one alone */
    static double scores[KEYS * COLS], rows[2 * COLS], before[KEYS * COLS];
    const double u = is_fp64 ? 0x1p-53 : 0x1p-24, least = is_fp64 ? -1022 : -126;
    const tg_type type = is_fp64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
    uint64_t random = 7;
    for (int turn = 0; turn < 99; turn++) {
        const double scale = turn % 3 == 0 ? 1.0 : turn % 3 == 1 ? 0.17 : 5.3;
        const double factor = is_fp64 ? scale : (double)(float)scale;
        for (int i = 0; i < KEYS * COLS; i++) {
            double score = turn % 2 ? 1.5 * least * fabs(check_next_uniform(&random))
                                    : -4.0 * fabs(check_next_uniform(&random));
            check_set_element(type, scores, i, i < COLS ? 0.0 : score / factor);
            before[i] = check_get_element(type, scores, i);
        }
        const tgi_attention_block block = {.keys = KEYS, .scores = scores, .scale = scale};
        const tgi_attention_state state = {rows, 0, COLS, COLS};
        isa->weigh(&block, &state);
        for (int i = 0; i < KEYS * COLS; i++) {
            const double got = check_get_element(type, scores, i);
            const double score = is_fp64 ? before[i] * factor : (double)(float)(before[i] * factor);
            const long double exact = exp2l(score);
            if (score < least ? got > (double)exp2l(least)
                              : !(fabsl(got - exact) <= 2.5L * u * exact))
                fail_msg("2^%.17g = %.17g, not %.17Lg", score, got, exact);
        }
    }
}

static void test_weights(void **state)
{
    tg_context *context = open_context(*state, 1);
    const tgi_attention_isa *isa = tgi_attention_generic;
    if (!context)
        skip();
    tg_destroy_context(context);
#if defined(__x86_64__)
    if (strcmp(*state, "generic") != 0)
        isa = strcmp(*state, "avx2") == 0 ? tgi_attention_avx2 : tgi_attention_avx512;
#endif
    check_weights(&isa[0], 0);
    check_weights(&isa[1], 1);
}

/* The bits are those of one thread, and those of the last query alone. */
static void test_bits(void **state)
{
    tg_context *one = open_context(*state, 1), *many = open_context(*state, 7);
    uint64_t random = stride_choose_seed(4);
    if (!one || !many)
        skip();
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const tg_attention a = draw_attention(&random);
        attention_case c;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        assert_int_equal(tg_attend(one, &c.attention), TG_STATUS_OK);
        char *first = malloc((size_t)c.bytes[TGI_ATTENTION_D]);
        memcpy(first, c.memory[TGI_ATTENTION_D], (size_t)c.bytes[TGI_ATTENTION_D]);
        case_poison(&c);
        assert_int_equal(tg_attend(many, &c.attention), TG_STATUS_OK);
        assert_memory_equal(first, c.memory[TGI_ATTENTION_D], (size_t)c.bytes[TGI_ATTENTION_D]);
        if (!a.has_query_offsets && !a.has_key_offsets && !a.has_bias && a.m > 1) {
            /* The last query alone, which then stands at the end of the keys as before. */
            tg_attention last = c.attention;
            case_poison(&c);
            last.m = 1;
            last.q.data = (char *)last.q.data + (a.m - 1) * a.head_size * tg_get_type_bytes(a.type);
            last.d.data =
                (char *)last.d.data + (a.m - 1) * a.v_head_size * tg_get_type_bytes(a.type);
            if (a.causal == TG_CAUSAL_BOTTOM_RIGHT) {
                assert_int_equal(tg_attend(many, &last), TG_STATUS_OK);
                const int64_t at = (char *)last.d.data - c.memory[TGI_ATTENTION_D];
                assert_memory_equal(first + at, last.d.data,
                                    (size_t)(a.v_head_size * tg_get_type_bytes(a.type)));
            }
        }
        free(first);
        case_close(&c);
    }
    tg_destroy_context(one);
    tg_destroy_context(many);
}

/* Makes an attention a little wrong, as a broken kernel would compute it. */
static void break_attention(tg_attention *a, int mutant)
{
    switch (mutant) {
    case 0:
        a->causal = TG_CAUSAL_NONE;
        break;
    case 1:
        a->causal = TG_CAUSAL_TOP_LEFT;
        break;
    case 2:
        a->scale *= 1.0 + 0x1p-8;
        break;
    case 3:
        a->keys_before -= 1;
        break;
    case 4:
        a->keys_after = 0;
        break;
    case 5:
        a->v.head_stride = 0;
        break;
    case 6:
        a->n -= 1;
        break;
    case 7:
        a->has_bias = 0;
        break;
    case 8:
        a->has_slopes = 0;
        break;
    case 9:
        a->soft_cap = 0.0;
        break;
    case 10:
        a->kv_head_count = a->head_count, a->k.head_stride = a->v.head_stride = 0;
        break;
    default:
        a->v.row_stride = 0;
        break;
    }
}
#define MUTANT_COUNT 12

/* The oracle refuses each of them. */
static void test_mutants(void **state)
{
    (void)state;
    for (int mutant = 0; mutant < MUTANT_COUNT; mutant++) {
        tg_attention a;
        attention_case c;
        uint64_t random = 5;
        tg_init_attention(&a, sizeof a, TG_TYPE_FP32, 1, 4, 2, 50, 70, 24);
        a.causal = mutant == 4 ? TG_CAUSAL_NONE : TG_CAUSAL_BOTTOM_RIGHT;
        a.keys_before = 40;
        a.soft_cap = 5.0;
        a.has_bias = a.has_slopes = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        assert_int_equal(tg_attend(NULL, &c.attention), TG_STATUS_OK);
        assert_true(case_compare(&c, "cpu") <= 1.0);
        tg_attention broken = c.attention;
        break_attention(&broken, mutant);
        case_poison(&c);
        assert_int_equal(tg_attend(NULL, &broken), TG_STATUS_OK);
        if (case_compare(&c, "cpu") <= 1.0)
            fail_msg("mutant %d passes", mutant);
        case_close(&c);
    }
}

#define FOR_ISA(test, isa)                                                                         \
    {                                                                                              \
#test " " #isa, test, NULL, NULL, (void *)(uintptr_t) #isa                                 \
    }
#define FOR_ISAS(test)                                                                             \
    FOR_ISA(test, generic), FOR_ISA(test, avx2), FOR_ISA(test, avx512), FOR_ISA(test, amx)

int main(void)
{
    const struct CMUnitTest tests[] = {FOR_ISAS(test_hostile), FOR_ISAS(test_nonfinite),
                                       FOR_ISAS(test_ones),    FOR_ISAS(test_bits),
                                       FOR_ISAS(test_weights), cmocka_unit_test(test_mutants)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
