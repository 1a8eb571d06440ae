/*
 * Tests occupancy and predicted times on chips of the table.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "tilegemm_lab.h"

static tg_prediction predict(const char *name, const char *family, int tile, int64_t m, int64_t n,
                             int64_t k)
{
    tg_chip chip;
    tg_explanation found;
    assert_int_equal(tg_find_chip(name, &chip), TG_STATUS_OK);
    assert_int_equal(tg_explain_kernel(&chip, family, tile, m, n, k, &found), TG_STATUS_OK);
    return found.prediction;
}

/* The model's occupancy must be what the occupancy calculator of the CUDA toolkit gives. */
static void test_occupancy(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *family;
        int tile, block_count, percent;
        const char *limiter;
    } cases[] = {
        {"h200", "edges", 32, 2, 100, "threads"},
        {"h200", "edges", 8, 32, 100, "threads"},
        {"h200", "edges", 4, 32, 50, "blocks"},
        {"h200", "warp_tile", 128, 2, 25, "registers"},
        {"h200", "register_column", 64, 2, 50, "registers"},
        {"a40", "edges", 32, 1, 67, "threads"},
        {"t4", "vector", 128, 1, 25, "registers"},
        {"t4", "naive", 32, 1, 100, "threads"},
        {"h200", "edges", 64, 0, 0, "threads"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_prediction p = predict(cases[i].chip, cases[i].family, cases[i].tile, 1024, 1024, 1024);
        assert_int_equal(p.resident_blocks, cases[i].block_count);
        assert_int_equal(lround(100 * p.occupancy), cases[i].percent);
        assert_string_equal(p.occupancy_limiter, cases[i].limiter);
    }
    /* The system takes 1 KiB of shared memory of each block since sm_80. */
    tg_chip chip;
    tg_explanation found;
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    chip.shared_bytes_per_sm = 3 * 3072 - 1;
    assert_int_equal(tg_explain_kernel(&chip, "edges", 16, 64, 64, 64, &found), TG_STATUS_OK);
    assert_int_equal(found.prediction.resident_blocks, 2);
    assert_string_equal(found.prediction.occupancy_limiter, "shared memory");
    chip.shared_bytes_per_block = 2047;
    assert_int_equal(tg_explain_kernel(&chip, "edges", 16, 64, 64, 64, &found), TG_STATUS_OK);
    assert_false(found.prediction.is_legal);
    assert_non_null(strstr(found.prediction.reason, "2048 bytes of shared memory"));
}

static void test_legality(void **state)
{
    (void)state;
    assert_true(predict("t4", "tiled", 16, 64, 64, 64).is_legal);
    tg_prediction p = predict("t4", "tiled", 16, 64, 63, 64);
    assert_false(p.is_legal);
    assert_non_null(strstr(p.reason, "cuda_edges"));
    p = predict("t4", "edges", 64, 64, 64, 64);
    assert_false(p.is_legal);
    assert_non_null(strstr(p.reason, "limit is 1024 threads"));
    assert_true(predict("t4", "edges", 32, 64, 64, 64).is_legal);
    p = predict("t4", "edges", 33, 64, 64, 64);
    assert_false(p.is_legal);
    assert_non_null(strstr(p.reason, "1089 threads"));
    p = predict("t4", "edges", 8, 65535 * 8 + 1, 8, 8);
    assert_false(p.is_legal);
    assert_non_null(strstr(p.reason, "65536 blocks high"));
    assert_true(predict("t4", "edges", 8, 65535 * 8, 8, 8).is_legal);
    assert_true(predict("t4", "naive", 16, 65535 * 16 + 1, 8, 8).is_legal);
    assert_false(predict("t4", "naive", 16, 8, 65535 * 16 + 1, 8).is_legal);
    assert_false(predict("t4", "edges", 32, 50000, 8, 50000).is_legal);
}

/* Copies in the background keep no warp waiting. Before sm_80 they are loads and stores, and a
 * block that is alone waits for the loads. */
static void test_copies_before_sm80(void **state)
{
    (void)state;
    static const char *const families[] = {"buffered", "warp_tile"};
    const tg_prediction vector = predict("t4", "vector", 0, 4096, 4096, 4096);
    tg_chip later;
    tg_explanation found;
    assert_int_equal(tg_find_chip("t4", &later), TG_STATUS_OK);
    later.compute_capability = 80;
    for (int i = 0; i < 2; i++) {
        const tg_prediction p = predict("t4", families[i], 0, 4096, 4096, 4096);
        assert_int_equal(tg_explain_kernel(&later, families[i], 0, 4096, 4096, 4096, &found),
                         TG_STATUS_OK);
        assert_true(found.prediction.l1_s == 0.0);
        assert_true(p.l1_s == vector.l1_s && p.l1_s > 0.0);
        assert_true(p.shared_s > found.prediction.shared_s);
        assert_true(p.chain_s > found.prediction.chain_s);
    }
    assert_true(predict("t4", "buffered", 0, 4096, 4096, 4096).shared_s == vector.shared_s);
}

/* A multiprocessor with 16 load/store units serves a warp's words in two cycles, with 32 in one.
 * A float4 takes longer than that on both. */
static void test_load_store_units(void **state)
{
    (void)state;
    static const struct {
        const char *family;
        int tile;
        double turns[2]; /* a warp's in one step: 16 units, 32 units */
    } cases[] = {{"tiled", 32, {32 * 2.5 + 4, 32 * 1.5 + 2}},
                 {"tiled", 4, {4 * 1.25 + 2, 4 * 1.25 + 2}}, /* a block of 16 threads */
                 {"padded", 32, {32 * 2.5 + 4, 32 * 1.5 + 2}},
                 {"register_column", 64, {8 * 6 + 4, 8 * 5 + 2}},
                 {"register_tile", 128, {8 * 32 + 16, 8 * 16 + 8}},
                 {"vector", 128, {8 * 12 + 8, 8 * 12 + 8}}};
    const int capabilities[] = {86, 80};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        for (int j = 0; j < 2; j++) {
            tg_chip chip;
            tg_explanation found;
            assert_int_equal(tg_find_chip("a40", &chip), TG_STATUS_OK);
            chip.compute_capability = capabilities[j];
            assert_int_equal(
                tg_explain_kernel(&chip, cases[i].family, cases[i].tile, 128, 128, 128, &found),
                TG_STATUS_OK);
            const tg_traffic *t = &found.traffic;
            const double blocks = ceil((double)t->block_count / chip.sm_count);
            const double warps = ceil(t->threads_per_block / 32.0);
            const double cycles = blocks * warps * (128.0 / t->tile_depth) * cases[i].turns[j];
            if (fabs(found.prediction.shared_s * chip.clock_hz / cycles - 1.0) > 1e-9)
                fail_msg("%s, sm_%d: %.17g cycles", cases[i].family, capabilities[j],
                         found.prediction.shared_s * chip.clock_hz);
        }
    }
}

static void test_bound_and_time(void **state)
{
    (void)state;
    tg_prediction naive = predict("h200", "naive", 32, 4096, 4096, 4096);
    tg_prediction last = predict("h200", "warp_tile", 128, 4096, 4096, 4096);
    assert_string_equal(naive.bound, "memory");
    assert_string_equal(naive.limiter, "l1");
    assert_string_equal(last.bound, "compute");
    assert_true(fabs(last.ridge_flop_per_byte - 66.908e12 / 4.8e12) < 0.01);
    assert_true(naive.predicted_s > 10 * last.predicted_s);
    assert_true(naive.peak_share < 0.02 && last.peak_share > 0.4 && last.peak_share < 1.0);
    double sum_s = last.l1_s + last.shared_s + last.multiply_s;
    double store_s = 4.0 * 4096 * 4096 / 4.8e12;
    assert_true(sum_s > last.dram_s);
    assert_true(fabs(last.launch_s + sum_s + store_s - last.predicted_s) < 1e-9);
    /* Bank conflicts limit this kernel. */
    assert_string_equal(predict("h200", "transposed", 32, 1024, 1024, 1024).limiter, "shared");
}

/* Data that fits in L2 is read once; data that does not is read once for each sweep. */
static void test_dram(void **state)
{
    (void)state;
    tg_prediction p = predict("h200", "warp_tile", 128, 2048, 2048, 2048);
    assert_true(p.dram_read_bytes == 2.0 * 4 * 2048 * 2048);
    /* This is one wave: L2 holds most of D when its last block ends. */
    assert_true(fabs(p.dram_write_bytes / (0.15 * 4 * 2048 * 2048) - 1.0) < 1e-6);
    p = predict("h200", "warp_tile", 128, 8192, 8192, 8192);
    /* The model lets 132 of 264 blocks keep pace, in 2 bands of 64: it counts 32 sweeps of B, and A
     * once. */
    assert_true(p.dram_read_bytes == 33.0 * 4 * 8192 * 8192);
    /* All blocks of rung 9 keep pace: 4 bands, 16 sweeps. */
    assert_true(predict("h200", "vector", 128, 8192, 8192, 8192).dram_read_bytes ==
                17.0 * 4 * 8192 * 8192);
    /* L2 keeps the part of D that it never hurries to write. */
    assert_true(predict("h200", "tiled", 32, 8192, 8192, 8192).dram_write_bytes ==
                4.0 * 8192 * 8192 - 0.07 * (60 << 20));
    /* DRAM delivers 64 bytes together: tiles of 8 use half of them. */
    assert_true(predict("h200", "edges", 8, 8192, 8192, 8192).dram_read_bytes >
                1.1 * 1025 * 4 * 8192 * 8192);
    /* Rows of A 32 KiB apart share sets of L1; 36 KiB apart they do not. */
    assert_true(predict("h200", "naive", 16, 8192, 8192, 8192).dram_read_bytes >
                2.0 * predict("h200", "naive", 16, 8192, 8192, 9216).dram_read_bytes);
    assert_true(predict("t4", "warp_tile", 128, 8192, 8192, 8192).dram_read_bytes >
                p.dram_read_bytes);
}

/* A figure out of its range is refused by its name and its value. */
static void test_ranges(void **state)
{
    (void)state;
    static const struct {
        size_t offset;
        double value; /* the figure may be an int, an int64_t or a double */
        const char *detail;
    } cases[] = {
        {offsetof(tg_chip, sm_count), 0, "sm_count = 0; pass 1 to 65536"},
        {offsetof(tg_chip, sm_count), 65537, "sm_count = 65537;"},
        {offsetof(tg_chip, sm_count), -2147483648.0, "sm_count = -2147483648;"},
        {offsetof(tg_chip, threads_per_sm), 31, "threads_per_sm = 31; pass 32 to 65536"},
        {offsetof(tg_chip, blocks_per_sm), 0, "blocks_per_sm = 0;"},
        {offsetof(tg_chip, fp32_lanes_per_sm), 0, "fp32_lanes_per_sm = 0;"},
        {offsetof(tg_chip, registers_per_sm), 16777217, "registers_per_sm = 16777217;"},
        {offsetof(tg_chip, compute_capability), 74, "compute_capability = 74;"},
        {offsetof(tg_chip, shared_bytes_per_sm), 0, "shared_bytes_per_sm = 0;"},
        {offsetof(tg_chip, shared_bytes_per_block), 1e15, "shared_bytes_per_block = 10000"},
        {offsetof(tg_chip, l2_bytes), -1, "l2_bytes = -1; pass 1 to 1e+12"},
        {offsetof(tg_chip, memory_bytes), -1, "memory_bytes = -1;"},
        {offsetof(tg_chip, clock_hz), 1e-300, "clock_hz = 1"},
        {offsetof(tg_chip, clock_hz), NAN, "clock_hz = "},
        {offsetof(tg_chip, memory_bytes_per_s), INFINITY, "memory_bytes_per_s = inf;"},
        {offsetof(tg_chip, fp64_flop_per_s), -1, "fp64_flop_per_s = -1;"},
        {offsetof(tg_chip, fp16_flop_per_s), 1e-300, "pass 1000000 to 1e+21"},
        {offsetof(tg_chip, tf32_flop_per_s), 1e22, "tf32_flop_per_s = 1"},
        {offsetof(tg_chip, fp16_flop_per_s), NAN, "fp16_flop_per_s = "},
    };
    tg_explanation found;
    tg_candidate candidate;
    int count;
    const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8));
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_chip chip;
        assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
        void *figure = (char *)&chip + cases[i].offset;
        if (cases[i].offset < offsetof(tg_chip, shared_bytes_per_sm))
            *(int *)figure = (int)cases[i].value;
        else if (cases[i].offset < offsetof(tg_chip, clock_hz))
            *(int64_t *)figure = (int64_t)cases[i].value;
        else
            *(double *)figure = cases[i].value;
        assert_int_equal(tg_explain_kernel(&chip, "edges", 16, 8, 8, 8, &found),
                         TG_STATUS_INVALID_ARGUMENT);
        if (!strstr(tg_get_error_detail(), cases[i].detail))
            fail_msg("\"%s\" is not in: %s", cases[i].detail, tg_get_error_detail());
        assert_int_equal(tg_list_chip_candidates(&chip, &problem, &candidate, 1, &count),
                         TG_STATUS_INVALID_ARGUMENT);
    }
}

/* Planning takes no longer for more columns, and the panels of slices stay within 32 bits. */
static void test_huge_problems(void **state)
{
    (void)state;
    static tg_candidate candidates[400];
    const int64_t columns[] = {INT64_C(1) << 31, INT64_C(1) << 32, INT64_C(1) << 46};
    for (int i = 0; i < 3; i++) {
        for (int index = 0; index < tg_get_chip_count(); index++) {
            tg_chip chip;
            int count, legal_count = 0;
            tg_problem problem =
                tg_make_problem(tg_make_matrix(TG_TYPE_FP32, NULL, 3, 116),
                                tg_make_matrix(TG_TYPE_FP32, NULL, 116, columns[i]),
                                tg_make_matrix(TG_TYPE_FP32, NULL, 3, columns[i]));
            problem.b.row_stride = problem.b.col_stride = 0;
            assert_int_equal(tg_get_chip(index, &chip), TG_STATUS_OK);
            assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 400, &count),
                             TG_STATUS_OK);
            for (int row = 0; row < count; row++) {
                legal_count += candidates[row].is_legal;
                assert_true(isfinite(candidates[row].predicted_s));
                assert_true(candidates[row].occupancy <= 1.0);
            }
            assert_true(legal_count > 0);
        }
    }
}

/* Counts of a split are positive if the last cluster has tiles without rows, and if D is smaller
 * than the panel whose split was chosen. */
static void test_counts_of_splits(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t memory_bytes;
    } cases[] = {{"259x250x33554432:bf16:d=fp16:batch=133:lda=33554454:rsb=1:csb=33554432:bsb=0",
                  INT64_C(80) << 30},
                 {"36x32768x3422:nt:prec=bf16x3:rsb=0:dcol:ldd=61", INT64_C(1) << 30}};
    static tg_candidate candidates[400];
    for (int i = 0; i < 2; i++) {
        tg_chip chip;
        tg_problem problem;
        int count, split_count = 0;
        assert_int_equal(tg_find_chip("h100", &chip), TG_STATUS_OK);
        chip.memory_bytes = cases[i].memory_bytes;
        assert_int_equal(tg_parse_problem(cases[i].text, &problem, sizeof problem), TG_STATUS_OK);
        assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 400, &count),
                         TG_STATUS_OK);
        for (int row = 0; row < count; row++) {
            split_count += candidates[row].split_count > 1;
            assert_true(candidates[row].block_count > 0 || !candidates[row].is_legal);
            assert_true(candidates[row].global_write_bytes >= 0.0);
        }
        assert_true(split_count > 0);
    }
}

/* A row that teaches is the choice only where no other row is legal, whatever it is predicted. */
static void test_teaching_rows(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "2118x669x102:prec=ieee_fp32",     "2048x2048x64", "128x128x8",
        "1000x1200x800:tt:prec=ieee_fp32", "7x9x11",       "1x1x1"};
    static tg_candidate candidates[400];
    for (int i = 0; i < 6 * tg_get_chip_count(); i++) {
        tg_chip chip;
        tg_problem problem;
        int count;
        assert_int_equal(tg_get_chip(i / 6, &chip), TG_STATUS_OK);
        assert_int_equal(tg_parse_problem(texts[i % 6], &problem, sizeof problem), TG_STATUS_OK);
        assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 400, &count),
                         TG_STATUS_OK);
        for (int row = 0; row < count; row++) {
            tg_kernel_info info;
            assert_int_equal(tg_get_kernel_info(NULL, row, &info), TG_STATUS_OK);
            if (candidates[row].is_chosen && info.ladder_rung >= 0)
                fail_msg("%s of %s is given to %s", texts[i % 6], chip.name, info.name);
        }
    }
}

/* FP32 is multiplied by FP64 instructions only on a board that has their full rate. */
static void test_fp32_by_fp64(void **state)
{
    (void)state;
    static tg_candidate candidates[400];
    static const double rates[] = {33.5e12, 0, 1e12};
    tg_problem problem;
    assert_int_equal(tg_parse_problem("98x41x200:tt:batch=1200", &problem, sizeof problem),
                     TG_STATUS_OK);
    for (int i = 0; i < 3; i++) {
        tg_chip chip;
        int count, chosen_count = 0;
        assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
        chip.fp64_flop_per_s = rates[i];
        assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 400, &count),
                         TG_STATUS_OK);
        for (int row = 0; row < count; row++)
            if (candidates[row].is_chosen) {
                assert_int_equal(strstr(candidates[row].kernel, "_fp32w_") != NULL, i < 2);
                chosen_count++;
            }
        assert_int_equal(chosen_count, 1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_occupancy),
        cmocka_unit_test(test_legality),
        cmocka_unit_test(test_copies_before_sm80),
        cmocka_unit_test(test_load_store_units),
        cmocka_unit_test(test_bound_and_time),
        cmocka_unit_test(test_dram),
        cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_huge_problems),
        cmocka_unit_test(test_counts_of_splits),
        cmocka_unit_test(test_teaching_rows),
        cmocka_unit_test(test_fp32_by_fp64),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
