/*
 * Compares the model's closed forms with the simulator, which runs the kernels' own source and
 * looks at every access: every count is the same for every rung and every size.
 *
 * usage: test_agreement PART (0 .. 3: every fourth rung of the ladder)
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

#include "harness/stride.h"
#include "model/sizes.h"
#include "model/traffic_counts.h"
#include "tilegemm_sim.h"

enum { part_count = 4 };
static int part;

/* Returns a matrix of zeros, of at most 4 bytes an element. It starts at a multiple of 256 bytes,
 * as the model assumes. */
static void *make_matrix(int64_t elems)
{
    size_t bytes = ((size_t)elems * sizeof(float) + 255) / 256 * 256;
    void *matrix = aligned_alloc(256, bytes);
    assert_non_null(matrix);
    memset(matrix, 0, bytes);
    return matrix;
}

/* Returns 1 for the rung whose instructions only a GPU has. */
static int is_beyond_simulator(const char *kernel)
{
    return strstr(kernel, "sm90a") != NULL;
}

/* Returns how many counts differ between model and simulator. */
static int compare(const char *kernel, int tile, const int size[3])
{
    const int m = size[0], n = size[1], k = size[2];
    tg_chip chip;
    tg_explanation predicted;
    const tg_simulation *simulated;
    char text[64];
    int wrong_count;
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_explain_kernel(&chip, kernel, tile, m, n, k, &predicted), TG_STATUS_OK);
    if (!predicted.prediction.is_legal) /* rung 3 takes only whole tiles */
        return 0;
    void *a = make_matrix((int64_t)m * k), *b = make_matrix((int64_t)k * n);
    void *d = make_matrix((int64_t)m * n);
    const tg_simulation_options options = {.kernel = kernel, .tile = tile, .a = a, .b = b, .d = d};
    tg_status status = tg_simulate_kernel(&options, m, n, k, &simulated);
    if (is_beyond_simulator(kernel)) {
        assert_int_equal(status, TG_STATUS_UNSUPPORTED);
        assert_non_null(strstr(tg_get_error_detail(), "explain"));
        free(a), free(b), free(d);
        return 0;
    }
    if (status != TG_STATUS_OK)
        fail_msg("%s: %s", kernel, tg_get_error_detail());
    assert_true(simulated->is_exact);
    assert_int_equal(simulated->finding_count, 0);
    snprintf(text, sizeof text, "%dx%dx%d", m, n, k);
    wrong_count = traffic_compare(text, &predicted, simulated);
    tg_destroy_simulation(simulated);
    free(a), free(b), free(d);
    return wrong_count;
}

static void test_rows(void **state)
{
    (void)state;
    const int size_stride = stride_get();
    int row_count = 0, wrong_count = 0;
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(NULL, i, &info), TG_STATUS_OK);
        if (strcmp(info.device, "cuda") != 0 || info.ladder_rung < 0 ||
            info.ladder_rung % part_count != part)
            continue;
        row_count++;
        for (int s = stride_get_first(); s < size_count; s += size_stride)
            wrong_count += compare(info.name, 0, sizes[s]);
    }
    assert_int_equal(wrong_count, 0);
    assert_true(row_count >= 2 && size_count >= 40);
}

/* Compares tiles without a row in the table, of every side that a family takes, each at some of the
 * sizes. Most of the sides are no power of two, so that a warp covers parts of rows. */
static void test_other_tiles(void **state)
{
    (void)state;
    static const char *const families[] = {"naive",           "coalesced",    "tiled",
                                           "edges",           "transposed",   "padded",
                                           "register_column", "register_tile"};
    enum { family_count = sizeof families / sizeof families[0], sizes_apart = 12 };
    const int size_stride = stride_get();
    int wrong_count = 0, tile_count = 0;
    for (int i = 0; i < family_count; i++) {
        for (int tile = 1; tile <= 64; tile++) {
            const int is_taken = i < 6    ? tile <= 32
                                 : i == 6 ? tile >= 8 && (tile & (tile - 1)) == 0
                                          : tile == 64;
            if (!is_taken || (tile + i) % part_count != part)
                continue;
            tile_count++;
            const int first = (3 * tile + i) % sizes_apart + sizes_apart * stride_get_first();
            for (int s = first; s < size_count; s += sizes_apart * size_stride)
                wrong_count += compare(families[i], tile, sizes[s]);
            wrong_count += compare(families[i], tile, (int[]){2 * tile, 3 * tile, 2 * tile});
        }
    }
    assert_int_equal(wrong_count, 0);
    assert_true(tile_count >= 6 * 32 / part_count);
}

int main(int argc, char **argv)
{
    part = argc > 1 ? atoi(argv[1]) : 0;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_other_tiles),
        cmocka_unit_test(test_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
