/*
 * Tests the table of chips, and the chips that describe the GPUs of a machine.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>

#include <cmocka.h>

#include "model/chips.h"
#include "tilegemm_lab.h"

/* Multiprocessors, lanes and clock must give the FP32 rate that each datasheet states. */
static void test_peaks_are_the_datasheets(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        double fp32_tflops, gb_per_s;
    } sheets[] = {{"t4", 8.1, 320},        {"a10", 31.2, 600},      {"a40", 37.4, 696},
                  {"l4", 30.3, 300},       {"l40s", 91.6, 864},     {"a100", 19.5, 2039},
                  {"rtx3090", 35.6, 936},  {"rtx4090", 82.6, 1008}, {"h100", 67, 3350},
                  {"h100_pcie", 51, 2000}, {"h200", 67, 4800},      {"b200", 75, 8000},
                  {"rtx5090", 104.8, 1792}};
    assert_int_equal(tg_get_chip_count(), sizeof sheets / sizeof sheets[0]);
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        assert_string_equal(chip.name, sheets[i].name);
        double tflops = 2e-12 * chip.sm_count * chip.fp32_lanes_per_sm * chip.clock_hz;
        assert_true(fabs(tflops / sheets[i].fp32_tflops - 1.0) < 0.02);
        assert_true(fabs(chip.memory_bytes_per_s * 1e-9 / sheets[i].gb_per_s - 1.0) < 0.025);
        assert_true(chip.shared_bytes_per_block <= chip.shared_bytes_per_sm);
        assert_int_equal(chip.fp32_lanes_per_sm, chip.compute_capability <= 80 ? 64 : 128);
    }
}

/* The chip that describes a GPU must be the same GPU to the model, also where a board has a part of
 * its architecture's rates. */
static void test_a_described_gpu_is_the_same(void **state)
{
    static const double shares[] = {1.0, 0.5, 1.0 / 16};
    (void)state;
    for (int i = 0; i < 3 * tg_get_chip_count(); i++) {
        tg_chip chip, described;
        tgi_gpu gpu, again;
        assert_int_equal(tg_get_chip(i / 3, &chip), TG_STATUS_OK);
        gpu = tgi_chips_make_gpu(&chip);
        gpu.fp64_share = shares[i % 3];
        gpu.mma_share *= shares[i % 3];
        described = tgi_chips_describe(&gpu);
        assert_int_equal(tgi_chips_check(&described), TG_STATUS_OK);
        assert_true(described.fp64_flop_per_s / chip.fp64_flop_per_s / gpu.fp64_share < 1.1);
        assert_true(described.fp64_flop_per_s / chip.fp64_flop_per_s / gpu.fp64_share > 0.9);
        again = tgi_chips_make_gpu(&described);
        assert_true(fabs(again.fp64_share / gpu.fp64_share - 1.0) < 1e-12);
        assert_true(fabs(again.mma_share - gpu.mma_share) < 1e-12);
        again.fp64_share = gpu.fp64_share;
        again.mma_share = gpu.mma_share;
        assert_memory_equal(&again, &gpu, sizeof gpu);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_peaks_are_the_datasheets),
        cmocka_unit_test(test_a_described_gpu_is_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
