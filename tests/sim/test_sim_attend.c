/*
 * The kernels of attention on mma.sync and CUDA cores in the simulator, against the oracle of
 * tests/attention: no race, no early read, no access beside the operands. Mutants must be found.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "attention/oracle.h"
#include "check/check.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "harness/stride.h"
#include "model/chips.h"
#include "sim/sim.h"

#define CASE_COUNT 80

#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, products, ...)                  \
    ROW_##products(simulated_##products##_##type##_##queries##x##head,                             \
                   TGI_QUOTE_VALUE(TGI_ATTENTION_NAME(family, isa, type, queries, head)))
#define ROW_groups(...)
#define ROW_clusters(...)
#define ROW_short_sequences(...)
#define ROW_few_queries(...)
#define ROW_warps DECLARE
#define ROW_splits DECLARE
#define ROW_few_keys DECLARE
#define ROW_multiply_adds DECLARE
#define DECLARE(symbol, name) extern tgi_sim_body symbol;
#include "core/attention_kernels.def"
#undef DECLARE
extern tgi_sim_body simulated_merge_bf16, simulated_merge_fp16, simulated_merge_fp32,
    simulated_merge_fp64, simulated_rash, simulated_lone, simulated_turns, simulated_rash_turns;

typedef struct named_body {
    const char *name;
    tgi_sim_body *body;
} named_body;

static const named_body bodies[] = {
#define DECLARE(symbol, name) {name, symbol},
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_ROW
#undef DECLARE
};

/* Rows as chips without matrix instructions of FP32 and FP64 multiply. */
#define TGI_ATTENTION_ROW(image, family, isa, type, queries, head, ...)                            \
    PLAIN_##isa(simulated_plain_##type##_##queries##x##head,                                       \
                TGI_QUOTE_VALUE(TGI_ATTENTION_NAME(family, isa, type, queries, head)))
#define PLAIN_sm90a(...)
#define PLAIN_sm80(...)
#define PLAIN_sm75 DECLARE
#define DECLARE(symbol, name) extern tgi_sim_body symbol;
#include "core/attention_kernels.def"
#undef DECLARE

static const named_body plain_bodies[] = {
#define DECLARE(symbol, name) {name, symbol},
#include "core/attention_kernels.def"
};

static tgi_sim_body *find_named(const named_body *named, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++) {
        if (strcmp(named[i].name, name) == 0)
            return named[i].body;
    }
    fail_msg("no %s", name);
    return NULL;
}

static tgi_sim_body *find_body(const char *name)
{
    return find_named(bodies, sizeof bodies / sizeof bodies[0], name);
}

static tgi_sim_body *find_plain_body(const char *name)
{
    return find_named(plain_bodies, sizeof plain_bodies / sizeof plain_bodies[0], name);
}

static tgi_sim_body *const merges[] = {[TG_TYPE_FP32] = simulated_merge_fp32,
                                       [TG_TYPE_FP64] = simulated_merge_fp64,
                                       [TG_TYPE_BF16] = simulated_merge_bf16,
                                       [TG_TYPE_FP16] = simulated_merge_fp16};

#include "simulated_case.h"

/* Draws an attention with heads of multiples of 8: the simulator counts a copy of fewer bytes than
 * an access has as misaligned. */
static tg_attention draw(int index, uint64_t *random)
{
    tg_attention a = draw_attention(random);
    a.type = index % 2 ? TG_TYPE_BF16 : TG_TYPE_FP16;
    a.head_size = (a.head_size + 7) / 8 * 8;
    a.v_head_size = (a.v_head_size + 7) / 8 * 8;
    return a;
}

/* Runs drawn case `number` in `body` and holds D against the bound. */
static void check_body(const simulated_case *s, attention_case *c, int number, tgi_sim_body *body)
{
    char problem[1024], text[256] = "";
    tg_format_attention(&c->attention, problem, sizeof problem);
    if (attend(s, body, text) > 0)
        fail_msg("case %d %s: %s", number, problem, text);
    const double worst = case_compare(c, "cuda");
    if (!(worst <= 1.0))
        fail_msg("case %d %s: %g of the bound", number, problem, worst);
}

static void check_drawn(const simulated_case *s, attention_case *c, int number)
{
    check_body(s, c, number, find_body(s->choice.kernel));
}

/* Checks drawn cases of FP32 and FP64 if is_wide is 1, else of BF16 and FP16. */
static void check_rows(int is_wide, uint64_t seed)
{
    uint64_t random = stride_choose_seed(seed);
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        tg_attention a = draw(i, &random);
        attention_case c;
        simulated_case s;
        if (is_wide)
            a.type = i % 2 ? TG_TYPE_FP32 : TG_TYPE_FP64;
        case_open(&c, &a, i % 3 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, i % 7 > 3, &random);
        open_simulated(&s, &c);
        check_drawn(&s, &c, i);
        close_simulated(&s);
        case_close(&c);
    }
}

static void test_rows(void **state)
{
    (void)state;
    check_rows(0, 21);
}

static void test_multiply_adds(void **state)
{
    (void)state;
    check_rows(1, 28);
}

/* FP32 and FP64 on chips with little shared memory: K and V take turns in one place, and the last
 * rows of a block's warps may be no queries. A chip of 7.5 forms products by multiply-adds. */
static void test_small_memory(void **state)
{
    uint64_t random = stride_choose_seed(30);
    int turn_count = 0, part_count = 0;
    (void)state;
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        const int is_old = i / 2 % 2, size = is_old ? 64 << 10 : 99 << 10;
        tgi_machine machine = make_machine();
        tg_attention a = draw(i, &random);
        attention_case c;
        simulated_case s;
        a.type = i % 2 ? TG_TYPE_FP32 : TG_TYPE_FP64;
        if (i % 8 < 6)
            a.head_size = 136 + a.head_size % 128;
        machine.features = is_old ? 0 : TGI_FEATURES_SM80;
        machine.gpu.shared_bytes_per_block = machine.gpu.shared_bytes_per_sm = size;
        case_open(&c, &a, i % 3 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, i % 7 > 3, &random);
        open_on(&s, &c, machine);
        assert_in_range(s.choice.shared_bytes, 1, size);
        turn_count += s.choice.tile_places == 1;
        part_count += s.choice.query_tile % 16 > 0;
        check_body(&s, &c, i,
                   is_old ? find_plain_body(s.choice.kernel) : find_body(s.choice.kernel));
        close_simulated(&s);
        case_close(&c);
    }
    assert_true(stride_get() > 1 || (turn_count > CASE_COUNT / 2 && part_count > CASE_COUNT / 8));
}

/* Long sums of FP32 and FP64: a chip of one multiprocessor does not split the keys. */
static void test_long_keys(void **state)
{
    uint64_t random = 29;
    (void)state;
    for (int i = stride_get_first(); i < 4; i += stride_get()) {
        tgi_machine machine = make_machine();
        tg_attention a;
        attention_case c;
        simulated_case s;
        tg_init_attention(&a, sizeof a, i % 2 ? TG_TYPE_FP32 : TG_TYPE_FP64, 4, 4, 4, 9,
                          i % 2 ? 37001 : 9001, 8);
        a.has_log_sum_exp = 1;
        machine.gpu.sm_count = 1;
        case_open(&c, &a, i / 2 ? FILL_UNIFORM_HEADS : FILL_V_ONES, 0, &random);
        open_on(&s, &c, machine);
        assert_int_equal(s.choice.split_count, 1);
        check_drawn(&s, &c, i);
        close_simulated(&s);
        case_close(&c);
    }
}

/* Q near the smallest numbers, whose second slices are subnormal, and a K that makes up for it. */
static void test_small_numbers(void **state)
{
    uint64_t random = 31;
    (void)state;
    for (int i = 0; i < 2; i++) {
        tg_attention a;
        attention_case c;
        simulated_case s;
        tg_init_attention(&a, sizeof a, TG_TYPE_FP32, 1, 1, 1, 20, 20, 40 + 100 * i);
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        for (int64_t e = 0; e < a.m * a.head_size; e++) {
            check_set_element(a.type, c.attention.q.data, e,
                              0x1p-125 * check_next_uniform(&random));
            check_set_element(a.type, c.attention.k.data, e, 0x1p125 * check_next_uniform(&random));
        }
        open_simulated(&s, &c);
        check_drawn(&s, &c, i);
        close_simulated(&s);
        case_close(&c);
    }
}

/* Rows of few keys, or of many in a narrow window: on a chip of one multiprocessor a block goes
 * through many tiles, and on a whole one warps may share the keys. */
static void test_few_keys(void **state)
{
    uint64_t random = stride_choose_seed(27);
    int count = 0, split_count = 0;
    (void)state;
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        tgi_machine machine = make_machine();
        tg_attention a = draw(i, &random);
        attention_case c;
        simulated_case s;
        if (i % 5 == 4)
            a.keys_before = a.keys_after = i % 40;
        else
            a.n %= 100;
        a.soft_cap = 0.0;
        a.has_bias = a.has_slopes = 0;
        a.page_rows = a.page_count = a.pages_stride = 0;
        machine.gpu.sm_count = i % 3 ? 1 : machine.gpu.sm_count;
        case_open(&c, &a, i % 4 > 1 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, i % 7 > 3,
                  &random);
        open_on(&s, &c, machine);
        if (s.choice.row->kind == TGI_ATTENTION_FEW_KEYS) {
            count++;
            split_count += s.choice.warp_split_count > 1;
            check_drawn(&s, &c, i);
        }
        close_simulated(&s);
        case_close(&c);
    }
    assert_true(count > 0 && (split_count > 0 || stride_get() > 1));
}

/* A V of ones gives ones in D's 16 bits: rows whose keys lie in two steps, and whose later scores
 * are the larger ones, show a weight that is not rounded as its sum. */
static void test_ones(void **state)
{
    static const char *const problems[] = {
        "2,1,1,31,97,256:fp16:causal:after=102:scale=-0.15:cap=3.5:slopes",
        "1,2,1,70,150,64:fp16:scale=0.9", "1,1,1,40,200,128:bf16:scale=2"};
    uint64_t random = 24;
    (void)state;
    for (int i = 0; i < 3 * 8; i++) {
        tg_attention a;
        attention_case c;
        simulated_case s;
        char text[256] = "";
        assert_int_equal(tg_parse_attention(problems[i % 3], &a, sizeof a), TG_STATUS_OK);
        case_open(&c, &a, FILL_V_ONES, 0, &random);
        open_simulated(&s, &c);
        assert_int_equal(attend(&s, find_body(s.choice.kernel), text), 0);
        const tgi_attention_tensor d = tgi_attention_get(&c.attention, TGI_ATTENTION_D);
        const int64_t count = d.counts[0] * d.counts[1] * d.counts[2] * d.counts[3];
        for (int64_t e = 0; e < count; e++) {
            const double value = check_get_element(a.type, c.attention.d.data, e);
            if (value != 1.0)
                fail_msg("case %d %s: %.17g", i, problems[i % 3], value);
        }
        close_simulated(&s);
        case_close(&c);
    }
}

/* Rows of few queries of heads that share keys have splits of blocks, of their warps, and of both.
 * Some splits see no key. */
static void test_splits(void **state)
{
    static const int64_t batch_counts[] = {1, 1, 1, 24, 34};
    uint64_t random = 22;
    (void)state;
    for (int i = 0; i < 5; i++) {
        const int64_t batch_count = batch_counts[i];
        tg_attention a;
        attention_case c;
        simulated_case s;
        char text[256] = "";
        tg_init_attention(&a, sizeof a, TG_TYPE_BF16, batch_count, 4, 2, 5, 1100, 64);
        a.causal = (tg_causal)(i % 3);
        a.has_log_sum_exp = 1;
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        open_simulated(&s, &c);
        assert_int_equal(s.choice.split_count > 1, batch_count < 34);
        assert_int_equal(s.choice.warp_split_count > 1, batch_count > 1);
        if (attend(&s, find_body(s.choice.kernel), text) > 0)
            fail_msg("case %d: %s", i, text);
        assert_true(case_compare(&c, "cuda") <= 1.0);
        close_simulated(&s);
        case_close(&c);
    }
}

/* A K with shorter rows than V's comes to places where V lay, whose Inf counts for its keys and its
 * column alone. */
static void test_shorter_keys(void **state)
{
    tg_attention a;
    attention_case c;
    simulated_case s;
    char text[256] = "";
    uint64_t random = 25;
    (void)state;
    tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 1, 1, 33, 700, 64);
    a.v_head_size = 128;
    case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
    check_set_element(a.type, (void *)(uintptr_t)c.attention.v.data,
                      70 * c.attention.v.row_stride + 100, INFINITY);
    open_simulated(&s, &c);
    assert_int_equal(attend(&s, find_body(s.choice.kernel), text), 0);
    assert_true(case_compare(&c, "cuda") <= 1.0);
    close_simulated(&s);
    case_close(&c);
}

static void test_mutants(void **state)
{
    tgi_sim_body *const mutants[] = {simulated_rash, simulated_lone};
    (void)state;
    for (int i = 0; i < 2; i++) {
        tg_attention a;
        attention_case c;
        simulated_case s;
        char text[256];
        uint64_t random = 23;
        tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 1, 1, 130, 300, 64);
        case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
        open_simulated(&s, &c);
        assert_string_equal(s.choice.kernel, "cuda_attend_sm80_bf16_128x64");
        assert_int_equal(attend(&s, find_body(s.choice.kernel), text), 0);
        assert_true(attend(&s, mutants[i], text) > 0);
        close_simulated(&s);
        case_close(&c);
    }
}

/* A read by another lane of the warp before a syncwarp is no race with a write behind it. */
static void test_turns(void **state)
{
    tg_attention a;
    attention_case c;
    simulated_case s;
    char text[256] = "";
    uint64_t random = 26;
    (void)state;
    tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 1, 1, 16, 16, 64);
    case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
    open_simulated(&s, &c);
    if (launch(&s, simulated_turns, 1, 32, 16, text) > 0)
        fail_msg("%s", text);
    assert_true(launch(&s, simulated_rash_turns, 1, 32, 16, text) > 0);
    close_simulated(&s);
    case_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),          cmocka_unit_test(test_multiply_adds),
        cmocka_unit_test(test_small_memory),  cmocka_unit_test(test_long_keys),
        cmocka_unit_test(test_small_numbers), cmocka_unit_test(test_splits),
        cmocka_unit_test(test_few_keys),      cmocka_unit_test(test_ones),
        cmocka_unit_test(test_shorter_keys),  cmocka_unit_test(test_mutants),
        cmocka_unit_test(test_turns)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
