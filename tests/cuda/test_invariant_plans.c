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

enum { CANDIDATES_MAX = 512 };

/* Returns the choice for a problem on an H100 with so many bytes of memory (0: those that it
 * has). */
static tg_candidate find_choice(const char *text, int64_t memory_bytes)
{
    tg_chip chip;
    static tg_candidate candidates[CANDIDATES_MAX];
    tg_candidate choice = {0};
    tg_problem problem;
    int count = 0;
    assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
    if (memory_bytes)
        chip.memory_bytes = memory_bytes;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, CANDIDATES_MAX, &count),
                     TG_STATUS_OK);
    assert_true(count <= CANDIDATES_MAX);
    for (int i = 0; i < count; i++)
        if (candidates[i].is_chosen)
            choice = candidates[i];
    assert_non_null(choice.kernel);
    return choice;
}

/* Rows of batch-invariant problems sum in one order for every m: k is whole, split by n and k alone
 * or, for slices, split after runs of 1024. FP32 of small n and k is left to multiply-adds in
 * teams, or for a short k in steps.
 * Without the option those shapes would be split otherwise, or taken by other rows. */
static void test_batch_invariant_rows(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *row;
        int split_count;
    } cases[] = {{"64x64x65536:prec=ieee_fp32", "cuda_simt_sm75_fp32_", 128},
                 {"1x8192x8192:nt:prec=ieee_fp32", "cuda_dot_sm80_fp32_16x64x64", 1},
                 {"12x20000x600:prec=ieee_fp32", "cuda_rank_sm80_fp32_16x128x64", 1},
                 {"64x300x8192:prec=ieee_fp32", "cuda_simt_sm75_fp32_", 24},
                 {"128x256x65536", "cuda_bf16", 64},
                 {"128x256x66000", "cuda_bf16", 1}, /* would have too many splits */
                 {"1x8192x8192:nt", "cuda_bf16d_sm90a_fp32_", 1},
                 {"64x8192x8100:nt", "cuda_bf16r_sm90a_fp32_", 8},
                 {"60000x12x900", "cuda_dot_sm80_fp32_16x64x64", 3},
                 {"64x200x5000", "cuda_simt_sm75_fp32_32x64x32", 15},
                 {"64x1100x6000", "cuda_bf16r_sm90a_fp32_", 6},
                 {"64x200x1500", "cuda_small_sm75_fp32_16x16x32", 4},
                 {"3x40x300:nt:prec=ieee_fp32", "cuda_small_sm90a_fp32_32x32x16", 1},
                 {"20x300x40", "cuda_small_sm90a_fp32_32x32x16", 1},
                 {"3x40x300:bf16", "cuda_small_sm90a_bf16_64x64x32", 1},
                 {"64x64x65536:fp64", "cuda_dmma_sm80_fp64_64x64x32", 128},
                 {"64x63x65537:fp64", "cuda_dmma_sm80_fp64_64x64x32", 129},
                 {"640x1754x2408:fp64", "cuda_dmma_tma_sm90a_fp64_64x64x16", 4},
                 {"700x112x11648:nt:bf16", "cuda_wgmma_sm90a_bf16_", 8}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[128];
        snprintf(text, sizeof text, "%s:batch_invariant", cases[i].problem);
        const tg_candidate bound = find_choice(text, 0), other = find_choice(cases[i].problem, 0);
        if (strncmp(bound.kernel, cases[i].row, strlen(cases[i].row)) != 0 ||
            bound.split_count != cases[i].split_count)
            fail_msg("%s: %s, %lld splits", text, bound.kernel, (long long)bound.split_count);
        assert_true(other.split_count != bound.split_count ||
                    strcmp(other.kernel, bound.kernel) != 0);
    }
}

/* For every m, and every number of batch entries, all legal rows have equally many splits. In types
 * other than FP32 the row of family small with tiles of 16 x 16, whose stages have their own order,
 * is legal for a short k alone. */
static void test_batch_invariant_splits(void **state)
{
    (void)state;
    static const struct {
        int64_t n, k;
        const char *words;
        int may_be_small;
    } cases[] = {{64, 3712, "nn:fp64", 0},
                 {1754, 2408, "tt:fp64", 0},
                 {8, 700, "nn:fp64", 0},
                 {112, 11648, "nt:bf16", 0},
                 {3, 9488, "nn:fp16", 0},
                 {512, 16384, "nt:bf16", 0},
                 {27, 16, "nn:bf16", 1},
                 {5000, 1, "nt:bf16:beta=1", 1},
                 {240, 14961, "nt:fp8_e4m3:d=bf16", 0},
                 {40, 5000, "nt:prec=tf32", 1},
                 {2064, 2368, "tt:prec=ieee_fp32", 1},
                 {20, 1088, "nn:prec=ieee_fp32", 1},
                 {9, 5, "tn", 1}};
    static const int64_t row_counts[] = {1, 5, 60, 700, 20000, 1100000};
    int split_count = 0;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int64_t first_count = 0;
        for (size_t j = 0; j < 2 * sizeof row_counts / sizeof row_counts[0]; j++) {
            tg_chip chip;
            static tg_candidate candidates[CANDIDATES_MAX];
            tg_problem problem;
            char text[128];
            int count = 0, legal_count = 0;
            snprintf(text, sizeof text, "%lldx%lldx%lld:%s:batch=%d:batch_invariant",
                     (long long)row_counts[j / 2], (long long)cases[i].n, (long long)cases[i].k,
                     cases[i].words, j % 2 ? 3 : 1);
            assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
            if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
                fail_msg("%s: %s", text, tg_get_error_detail());
            assert_int_equal(
                tg_list_chip_candidates(&chip, &problem, candidates, CANDIDATES_MAX, &count),
                TG_STATUS_OK);
            assert_true(count <= CANDIDATES_MAX);
            for (int row = 0; row < count; row++) {
                const tg_candidate *candidate = &candidates[row];
                if (!candidate->is_legal)
                    continue;
                legal_count++;
                first_count = first_count ? first_count : candidate->split_count;
                if (candidate->split_count != first_count)
                    fail_msg("%s: %s has %lld splits, others %lld", text, candidate->kernel,
                             (long long)candidate->split_count, (long long)first_count);
                assert_true(cases[i].may_be_small || !strstr(candidate->kernel, "_16x16x"));
            }
            assert_true(legal_count > 0);
        }
        split_count += first_count > 1;
    }
    assert_true(split_count >= 5);
}

/* FP64 of up to 32 columns is summed in teams if k is neither short nor long, for every m, however
 * large, and every number of batch entries. */
static void test_fp64_teams(void **state)
{
    static const struct {
        const char *columns; /* n x k, and words */
        int has_teams;
    } cases[] = {{"5x96:nn:fp64", 1},         {"32x2560:tt:fp64:beta=1", 1},
                 {"17x900:nt:fp64:dcol", 1},  {"1x3100:tn:fp64:bias=col", 0},
                 {"5x95:nn:fp64", 0},         {"33x900:nt:fp64", 0},
                 {"32x2561:nn:fp64:dcol", 0}, {"3x400:nn:fp64", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t m = 1; m < INT64_C(9000000000); m = m * 7 + 2) {
            char text[128];
            snprintf(text, sizeof text, "%lldx%s:batch=%d:batch_invariant", (long long)m,
                     cases[i].columns, m % 3 == 0 ? 1 : 4);
            const tg_candidate choice = find_choice(text, 0);
            const int is_tile = strstr(choice.kernel, "dmma_tma_sm90a_fp64_32x32x32") ||
                                strstr(choice.kernel, "dmma_tma_sm90a_fp64_16x32x64");
            const int is_relay = strstr(choice.kernel, "small_sm90a_fp64_64x64x16") != NULL;
            if (cases[i].has_teams ? !is_tile && !is_relay : is_tile)
                fail_msg("%s: %s", text, choice.kernel);
        }
}

/* Functions of one row form few columns for every m, without splits, if k is neither short nor
 * long. Others leave one row to rows of the type's order. */
static void test_few_columns(void **state)
{
    static const struct {
        const char *columns; /* n x k, and words */
        int is_shared;
    } cases[] = {{"1x96:nn:fp64", 1},
                 {"4x1500:tt:fp64:beta=1", 1},
                 {"2x3000:tn:fp64", 1},
                 {"1x3000:nt", 0},
                 {"3x300:nn:prec=ieee_fp32", 0},
                 {"1x1000:nn:bf16", 1},
                 {"1x200:tn:fp16", 1},
                 {"5x400:nn:fp64", 0},
                 {"1x3001:nn:fp64", 0},
                 {"1x95:nt:fp64", 0},
                 {"4x301:nn", 0},
                 {"2x200:nt:bf16", 0},
                 {"1x400:nt:prec=tf32", 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int64_t m = 1; m < (cases[i].is_shared ? INT64_C(3000000000) : 2); m = m * 7 + 2) {
            char text[128];
            snprintf(text, sizeof text, "%lldx%s:batch_invariant", (long long)m, cases[i].columns);
            const tg_candidate choice = find_choice(text, 0);
            const int is_shared = strstr(choice.kernel, "_16x16x") && choice.split_count == 1 &&
                                  !strstr(choice.kernel, "fp32_16x16x32");
            if (is_shared != cases[i].is_shared)
                fail_msg("%s: %s", text, choice.kernel);
        }
}

/* Slices of every m split k after runs of 1024 or not at all, and a large B that meets a few
 * rows is not sliced by a pass, whichever way it is stored. */
static void test_batch_invariant_slices(void **state)
{
    (void)state;
    static const int64_t sizes[][2] = {{8192, 8192},  {8192, 8192}, {4096, 14336},
                                       {4096, 14336}, {2400, 3000}, {900, 9000}};
    int split_count = 0, whole_count = 0;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        const int64_t n = sizes[i][0], k = sizes[i][1], runs = (k + 1023) / 1024;
        for (int64_t m = 1; m < 20000; m = m * 5 / 2 + 1) {
            char text[128];
            snprintf(text, sizeof text, "%lldx%lldx%lld:%s:batch_invariant", (long long)m,
                     (long long)n, (long long)k, i % 2 ? "nn" : "nt");
            const tg_candidate choice = find_choice(text, 0);
            assert_memory_equal(choice.kernel, "cuda_bf16", strlen("cuda_bf16"));
            const int is_direct = strncmp(choice.kernel, "cuda_bf16d", 10) == 0;
            assert_true(choice.split_count == 1 || choice.split_count == runs ||
                        (is_direct && choice.split_count <= 8));
            split_count += choice.split_count > 1;
            whole_count += choice.split_count == 1;
            if (m <= 64 && n >= 4096)
                assert_true(strncmp(choice.kernel, "cuda_bf16x", 10) != 0);
        }
    }
    assert_true(split_count > 0 && whole_count > 0);
}

/* A limit of the workspace in which slices of 256 rows and columns have no room leaves a problem to
 * multiply-adds, also one whose m and batch have a row of slices without a workspace. */
static void test_small_workspaces(void **state)
{
    static const char *const problems[] = {"257x257x100001:batch_invariant",
                                           "257x257x100001:batch=8192:bsa=0:batch_invariant",
                                           "1x257x200001:batch_invariant"};
    (void)state;
    for (size_t i = 0; i < sizeof problems / sizeof *problems; i++) {
        const char *row = find_choice(problems[i], INT64_C(4) << 30).kernel;
        if (strncmp(row, "cuda_simt_", 10) != 0)
            fail_msg("%s: %s", problems[i], row);
        assert_int_equal(strncmp(find_choice(problems[i], 0).kernel, "cuda_bf16", 9), 0);
    }
}

/* More rows than a kernel counts are formed in bands, also if a copy of A takes all of the
 * workspace and k is whole, so that their time grows with the rows. */
static void test_bands(void **state)
{
    static const char *const columns[] = {"16x33:nn:fp8_e4m3", "4x7:nn:fp8_e5m2:beta=1",
                                          "64x9:nn:bf16", "8x90:nn:fp64", "8x90:nn"};
    (void)state;
    for (size_t i = 0; i < sizeof columns / sizeof *columns; i++) {
        double seconds = 0.0;
        for (int64_t m = INT64_C(1) << 30; m <= INT64_C(1) << 34; m *= 4) {
            char text[128];
            snprintf(text, sizeof text, "%lldx%s:batch_invariant", (long long)m, columns[i]);
            const tg_candidate choice = find_choice(text, 0);
            if (choice.predicted_s < 2.0 * seconds)
                fail_msg("%s: %s takes %g s", text, choice.kernel, choice.predicted_s);
            seconds = choice.predicted_s;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_invariant_rows),
        cmocka_unit_test(test_batch_invariant_splits),
        cmocka_unit_test(test_fp64_teams),
        cmocka_unit_test(test_few_columns),
        cmocka_unit_test(test_batch_invariant_slices),
        cmocka_unit_test(test_small_workspaces),
        cmocka_unit_test(test_bands),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
