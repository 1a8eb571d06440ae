/*
 * The rows of attention of few queries in FP32 and FP64 in the simulator, against the oracle of
 * tests/attention: all options, heads of any size and strides, splits with and without keys.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
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

#define CASE_COUNT 160

extern tgi_sim_body simulated_few_queries_fp32_2x256, simulated_few_queries_fp64_2x256,
    simulated_merge_fp32, simulated_merge_fp64;

static tgi_sim_body *const merges[] = {
    [TG_TYPE_FP32] = simulated_merge_fp32, [TG_TYPE_FP64] = simulated_merge_fp64};

#include "simulated_case.h"

#define ROWS_MAX 8

/* Draws an attention whose heads that share keys have at most ROWS_MAX queries. */
static tg_attention draw_few(int index, uint64_t *random)
{
    tg_attention a = draw_attention(random);
    a.type = index % 2 ? TG_TYPE_FP32 : TG_TYPE_FP64;
    if (a.head_count > ROWS_MAX * a.kv_head_count)
        a.kv_head_count = a.head_count;
    a.m = 1 + index / 2 % (ROWS_MAX * a.kv_head_count / a.head_count);
    return a;
}

/* Holds D of the case, if its plan takes a row of few queries, against the bound. Returns 1 if it
 * does. A lone multiprocessor has as few splits of the keys as sums allow. */
static int check_case(attention_case *c, int is_lone, int number, int *split_count)
{
    tgi_machine machine = make_machine();
    simulated_case s;
    char problem[1024], text[256] = "";
    if (is_lone)
        machine.gpu.sm_count = 1;
    open_on(&s, c, machine);
    const int is_few = s.choice.row->kind == TGI_ATTENTION_FEW_QUERIES;
    if (is_few) {
        tg_format_attention(&c->attention, problem, sizeof problem);
        *split_count += s.choice.split_count > 1;
        if (attend(&s,
                   c->attention.type == TG_TYPE_FP32 ? simulated_few_queries_fp32_2x256
                                                     : simulated_few_queries_fp64_2x256,
                   text) > 0)
            fail_msg("case %d %s: %s", number, problem, text);
        const double worst = case_compare(c, "cuda");
        if (!(worst <= 1.0))
            fail_msg("case %d %s: %g of the bound", number, problem, worst);
    }
    close_simulated(&s);
    return is_few;
}

static void test_drawn(void **state)
{
    uint64_t random = stride_choose_seed(33);
    int count = 0, split_count = 0;
    (void)state;
    for (int i = stride_get_first(); i < CASE_COUNT; i += stride_get()) {
        tg_attention a = draw_few(i, &random);
        attention_case c;
        case_open(&c, &a, i % 3 ? FILL_UNIFORM_HEADS : FILL_NONFINITE_HEADS, i % 7 > 3, &random);
        count += check_case(&c, i % 5 == 0, i, &split_count);
        case_close(&c);
    }
    assert_true(stride_get() > 1 || (count > CASE_COUNT / 2 && split_count > CASE_COUNT / 10));
}

/* Long sums, which are split as sums allow. */
static void test_long_keys(void **state)
{
    static const char *const problems[] = {"1,1,1,1,37001,8:fp32", "1,4,1,1,9001,256:fp64",
                                           "1,2,1,2,20000,33:fp32:causal:lse"};
    uint64_t random = 34;
    (void)state;
    for (int i = stride_get_first(); i < 6; i += stride_get()) {
        tg_attention a;
        attention_case c;
        int split_count = 0;
        assert_int_equal(tg_parse_attention(problems[i / 2], &a, sizeof a), TG_STATUS_OK);
        case_open(&c, &a, i % 2 ? FILL_UNIFORM_HEADS : FILL_V_ONES, 0, &random);
        assert_int_equal(check_case(&c, 1, i, &split_count), 1);
        assert_int_equal(split_count, 1);
        case_close(&c);
    }
}

/* Chips without the row's code take another. */
static void test_other_chips(void **state)
{
    uint64_t random = 35;
    tg_attention a;
    attention_case c;
    simulated_case s;
    (void)state;
    assert_int_equal(tg_parse_attention("2,4,4,1,300,64:fp32", &a, sizeof a), TG_STATUS_OK);
    case_open(&c, &a, FILL_UNIFORM_HEADS, 0, &random);
    open_simulated(&s, &c);
    assert_int_not_equal(s.choice.row->kind, TGI_ATTENTION_FEW_QUERIES);
    close_simulated(&s);
    case_close(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_drawn),
                                       cmocka_unit_test(test_other_chips),
                                       cmocka_unit_test(test_long_keys)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
