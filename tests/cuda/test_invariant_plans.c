/*
 * Tests which rows batch-invariant problems get on an H100, and how their k is split.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "tilegemm_lab.h"

/* Returns the choice for a problem on an H100. */
static tg_candidate find_choice(const char *text)
{
    tg_chip chip;
    tg_candidate candidates[256], choice = {0};
    tg_problem problem;
    int count = 0;
    assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 256, &count),
                     TG_STATUS_OK);
    for (int i = 0; i < count; i++)
        if (candidates[i].is_chosen)
            choice = candidates[i];
    assert_non_null(choice.kernel);
    return choice;
}

/* Rows of batch-invariant FP32 and FP64 sum in one order for every m: k is whole or, for slices,
 * split after runs of 1024. Without the option those shapes would be split otherwise, or taken by
 * other families. */
static void test_batch_invariant_rows(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *row;
        int k_part_count;
    } cases[] = {{"64x64x65536:prec=ieee_fp32", "cuda_simt_sm75_fp32_", 1},
                 {"1x8192x8192:nt:prec=ieee_fp32", "cuda_simt_sm75_fp32_", 1},
                 {"64x64x65536", "cuda_bf16", 64},
                 {"64x64x66000", "cuda_bf16", 1}, /* would have too many parts */
                 {"1x8192x8192:nt", "cuda_bf16r_sm90a_fp32_", 8},
                 {"64x8192x8100:nt", "cuda_bf16r_sm90a_fp32_", 8},
                 {"64x64x65536:fp64", "cuda_dmma_sm80_fp64_", 1},
                 {"1x8192x8192:nt:fp64", "cuda_dmma_sm80_fp64_", 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s:batch_invariant", cases[i].problem);
        const tg_candidate bound = find_choice(text), other = find_choice(cases[i].problem);
        assert_memory_equal(bound.kernel, cases[i].row, strlen(cases[i].row));
        assert_int_equal(bound.k_part_count, cases[i].k_part_count);
        assert_true(other.k_part_count != bound.k_part_count ||
                    strcmp(other.kernel, bound.kernel) != 0);
    }
}

/* Slices of every m split k after each run of 1024 or not at all, and a large B that meets a few
 * rows is not sliced by a pass, whichever way it is stored. */
static void test_batch_invariant_slices(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{8192, 8192},  {8192, 8192}, {4096, 14336},
                                       {4096, 14336}, {1000, 3000}, {100, 9000}};
    int split_count = 0, whole_count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t n = sizes[i][0], k = sizes[i][1], runs = (k + 1023) / 1024;
        for (int64_t m = 1; m < 20000; m = m * 5 / 2 + 1) {
            char text[128];
            snprintf(text, sizeof text, "%lldx%lldx%lld:%s:batch_invariant", (long long)m,
                     (long long)n, (long long)k, i % 2 ? "nn" : "nt");
            const tg_candidate choice = find_choice(text);
            assert_memory_equal(choice.kernel, "cuda_bf16", strlen("cuda_bf16"));
            assert_true(choice.k_part_count == 1 || choice.k_part_count == runs);
            split_count += choice.k_part_count > 1;
            whole_count += choice.k_part_count == 1;
            if (m <= 64 && n >= 4096)
                assert_memory_equal(choice.kernel, "cuda_bf16r", strlen("cuda_bf16r"));
        }
    }
    assert_true(split_count > 0 && whole_count > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_invariant_rows),
        cmocka_unit_test(test_batch_invariant_slices),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
