/*
 * Compares the ladder's closed forms with figures that are known; test_agreement.c tests the rest.
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

static tg_traffic explain(const char *family, int tile, int64_t m, int64_t n, int64_t k)
{
    tg_chip chip;
    tg_explanation found;
    assert_int_equal(tg_find_chip("T4", &chip), TG_STATUS_OK);
    assert_int_equal(tg_explain_kernel(&chip, family, tile, m, n, k, &found), TG_STATUS_OK);
    return found.traffic;
}

static void test_known_figures(void **state)
{
    (void)state;
    tg_traffic t = explain("edges", 16, 55, 43, 48);
    assert_int_equal(t.global_read_bytes, 64704);
    assert_int_equal(t.global_write_bytes, 9460);
    t = explain("cuda_edges", 32, 142, 146, 110);
    assert_int_equal(t.useful_flops, 4561040);
    assert_int_equal(t.issued_flops, 6553600);
    t = explain("edges", 16, 1000, 1200, 800);
    assert_int_equal(t.grid_x, 75);
    assert_int_equal(t.grid_y, 63);
    assert_int_equal(t.block_count, 4725);
    assert_int_equal(t.edge_row_count, 8);
    assert_int_equal(t.edge_col_count, 0);
    assert_int_equal(t.edge_block_count, 75);
    t = explain("edges", 12, 55, 43, 48);
    assert_int_equal(t.block_count, 20);
    assert_int_equal(t.edge_block_count, 8);
    assert_int_equal(t.global_read_elems, 55 * 48 * 4 + 48 * 43 * 5);
    assert_int_equal(t.issued_flops, 2 * 12 * 12 * 12 * 20 * 4);
    t = explain("edges", 3, 5, 7, 9); /* its 9 threads are one warp: a request a tile */
    assert_int_equal(t.block_count, 6);
    assert_int_equal(t.threads_per_block, 9);
    assert_int_equal(t.global_load_requests, 2 * 6 * 3);
    t = explain("naive", 16, 1000, 1200, 800);
    assert_int_equal(t.grid_x, 63);
    assert_int_equal(t.grid_y, 75);
}

static void test_cubes(void **state)
{
    (void)state;
    for (int64_t size = 64; size <= 4096; size *= 8) {
        const int64_t cube = size * size * size;
        tg_traffic t = explain("naive", 16, size, size, size);
        assert_int_equal(t.global_read_elems, 2 * cube);
        assert_true(t.flop_per_byte == 0.25 && t.reuse == 1.0);
        assert_int_equal(t.block_read_elems, 2 * size * 16 * 16);
        for (int tile = 1; tile <= 64; tile *= 2) {
            t = explain("tiled", tile, size, size, size);
            assert_int_equal(t.global_read_elems, 2 * cube / tile);
            assert_true(t.flop_per_byte == tile / 4.0 && t.reuse == tile);
            assert_int_equal(t.block_read_elems, 2 * tile * size);
        }
    }
}

/* A period must not hide behind small sizes: at large sizes sectors are whole, and sums of parts
 * match. */
static void test_large_sizes(void **state)
{
    (void)state;
    const int64_t m = 40000, n = 30000, k = 20000;
    tg_traffic t = explain("edges", 32, m, n, k);
    assert_int_equal(t.global_load_sectors, (m * k * 938 + k * n * 1250) / 8);
    assert_int_equal(t.global_store_sectors, m * n / 8);
    t = explain("naive", 32, 1, 1, INT64_C(1) << 39);
    assert_int_equal(t.global_read_elems, INT64_C(1) << 40);
    /* A column of B with one row of D has every element in a sector of its own. */
    t = explain("coalesced", 32, 1, 8, 1000003);
    assert_int_equal(t.global_load_sectors, 2 * 1000003);
}

static void test_refusals(void **state)
{
    (void)state;
    static const struct {
        const char *kernel;
        int tile;
        int64_t m;
        tg_status status;
        const char *detail;
    } cases[] = {
        {"edges", 16, 0, TG_STATUS_INVALID_ARGUMENT, "m = 0"},
        {"edges", 129, 8, TG_STATUS_UNSUPPORTED, "pass 1 to 128"},
        {"padded", -1, 8, TG_STATUS_UNSUPPORTED, "tile = -1"},
        {"register_column", 24, 8, TG_STATUS_UNSUPPORTED, "8, 16, 32 or 64"},
        {"register_tile", 32, 8, TG_STATUS_UNSUPPORTED, "64 or 128"},
        {"vector", 64, 8, TG_STATUS_UNSUPPORTED, "pass 128"},
        {"cuda_edges_sm75_fp32_8x8x8", 16, 8, TG_STATUS_UNSUPPORTED, "tile = 16"},
        {"simt", 0, 8, TG_STATUS_UNSUPPORTED, "ladder"},
        {"cpu_sequential_generic_fp32", 0, 8, TG_STATUS_UNSUPPORTED, "ladder"},
        {"nothing", 0, 8, TG_STATUS_UNKNOWN_NAME, "nothing"},
        {"edges", 16, INT64_C(1) << 60, TG_STATUS_SIZE_OVERFLOW, "63 bits"},
        {"edges", 12, (INT64_C(1) << 40) + 1, TG_STATUS_SIZE_OVERFLOW, "tiles of 12 x 12 x 12"},
    };
    tg_chip chip;
    tg_explanation found;
    assert_int_equal(tg_find_chip("a100", &chip), TG_STATUS_OK);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(
            tg_explain_kernel(&chip, cases[i].kernel, cases[i].tile, cases[i].m, 8, 8, &found),
            cases[i].status);
        assert_non_null(strstr(tg_get_error_detail(), cases[i].detail));
    }
    /* The model counts 1e18 products if the tile divides the sizes, and refuses them if it does
     * not. */
    assert_int_equal(tg_explain_kernel(&chip, "edges", 16, 1000000, 1000000, 1000000, &found),
                     TG_STATUS_OK);
    assert_int_equal(found.traffic.issued_flops, INT64_C(2000000000000000000));
    assert_int_equal(tg_explain_kernel(&chip, "edges", 12, 1000000, 1000000, 1000000, &found),
                     TG_STATUS_SIZE_OVERFLOW);
    assert_int_equal(tg_explain_kernel(NULL, "edges", 16, 8, 8, 8, &found),
                     TG_STATUS_INVALID_ARGUMENT);
    chip.sm_count = 0;
    assert_int_equal(tg_explain_kernel(&chip, "edges", 16, 8, 8, 8, &found),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_find_chip("gtx280", &chip), TG_STATUS_UNKNOWN_NAME);
    assert_non_null(strstr(tg_get_error_detail(), "rtx5090"));
    assert_int_equal(tg_get_chip(tg_get_chip_count(), &chip), TG_STATUS_INVALID_ARGUMENT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_figures),
        cmocka_unit_test(test_cubes),
        cmocka_unit_test(test_large_sizes),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
