/*
 * Tests that chips of the built-in table, which need not be here, have plans for random problems,
 * and that nothing is predicted which the chip's published rates do not allow. Tests on which side
 * of D tiles lie.
 *
 * usage: test_chip_plans [FAMILY]   kernels of FAMILY do not count
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/arch.h"
#include "core/kernels.h"
#include "cuda/runtime/image.h"
#include "tilegemm_lab.h"

enum { CASE_COUNT = 266, TEXT_BYTES = 160, CANDIDATES_MAX = 512 };

/* The types of a problem, and its precision. */
static const char *const types[] = {"fp32",
                                    "bf16",
                                    "fp16",
                                    "bf16:d=fp32",
                                    "fp16:d=bf16",
                                    "fp8_e4m3",
                                    "fp8_e4m3:b=fp8_e5m2:d=bf16",
                                    "fp8_e5m2:b=fp8_e4m3:d=fp16",
                                    "fp8_e5m2:sa=vector:sb=tensor:sd=tensor",
                                    "fp64",
                                    "fp32:prec=tf32",
                                    "fp32:prec=ieee_fp32",
                                    "fp32:prec=bf16x3",
                                    "fp32:prec=bf16x6",
                                    "fp32:prec=bf16x9",
                                    "fp32:prec=fp16x3",
                                    "bf16:prec=ieee_fp32",
                                    "fp16:prec=ieee_fp32",
                                    "fp8_e4m3:prec=ieee_fp32"};
enum { TYPE_COUNT = sizeof types / sizeof *types };

static const char *const options[] = {"",
                                      ":nt",
                                      ":tn",
                                      ":tt",
                                      ":batch=3",
                                      ":bias=row",
                                      ":bias=col",
                                      ":beta=1",
                                      ":act=silu",
                                      ":batch_invariant",
                                      ":dcol:act=gelu_erf",
                                      ":act=relu:alpha=0.5:beta=2:bias=row:batch=2",
                                      ":rsa=3:csa=200001",
                                      ":rsd=2:csd=140001:act=gelu_tanh"};
enum { OPTION_COUNT = sizeof options / sizeof *options };

static const char *left_out = "none";

/* Returns a number from 1 to 2^16, small and large ones alike often. */
static int64_t draw_size(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return 1 + (int64_t)((*random >> 33) % (UINT64_C(1) << (*random >> 60)) * (1 + *random % 2));
}

/* Returns the shortest time in which the chip can form the products, by the highest rate that
 * NVIDIA publishes for the type. */
static double find_floor_seconds(const tg_chip *chip, const tg_problem *p, double products)
{
    const tgi_arch *arch = tgi_arch_find(chip->compute_capability);
    const int is_fp8 = tg_get_type_bytes(p->a.type) == 1;
    double macs = chip->fp32_lanes_per_sm;
    if (p->a.type == TG_TYPE_FP64)
        macs = fmax(2.0 * arch->fp64_lanes, arch->fp64_mma);
    else if (p->a.type != TG_TYPE_FP32)
        macs = fmax(macs, is_fp8 ? fmax(arch->fp8_mma, arch->fp16_mma) : arch->fp16_mma);
    else if (p->precision == TG_PRECISION_TF32)
        macs = fmax(macs, arch->tf32_mma);
    else if (p->precision != TG_PRECISION_IEEE_FP32)
        macs = fmax(macs, arch->fp16_mma / (p->precision == TG_PRECISION_DEFAULT ? 6.0 : 3.0));
    return products / (macs * chip->sm_count * chip->clock_hz);
}

/* Checks the candidates of a problem on a chip. Returns the least predicted time. */
static double check_candidates(const tg_chip *chip, const char *text)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    tg_problem problem;
    int count = 0;
    double least_s = INFINITY;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    const tg_status status =
        tg_list_chip_candidates(chip, &problem, candidates, CANDIDATES_MAX, &count);
    if (status != TG_STATUS_OK)
        fail_msg("%s on %s: %s", text, chip->name, tg_get_error_detail());
    const double products =
        (double)problem.d.row_count * (double)problem.d.col_count *
        (double)(problem.op_a == TG_OPERATION_NONE ? problem.a.col_count : problem.a.row_count) *
        (double)(problem.batch_count ? problem.batch_count : 1);
    for (int i = 0; i < count; i++) {
        if (!candidates[i].is_legal || strstr(candidates[i].kernel, left_out))
            continue;
        if (!(candidates[i].predicted_s >= find_floor_seconds(chip, &problem, products)))
            fail_msg("%s on %s: %s is predicted to take %g s; %g s is the least", text, chip->name,
                     candidates[i].kernel, candidates[i].predicted_s,
                     find_floor_seconds(chip, &problem, products));
        least_s = fmin(least_s, candidates[i].predicted_s);
    }
    if (!(least_s < INFINITY))
        fail_msg("%s on %s has no kernel", text, chip->name);
    return least_s;
}

/* Every chip has a kernel for every product: of any type, precision, shape, layout, batch and
 * epilogue. None is predicted to be faster than the chip. */
static void test_every_product_has_a_kernel(void **state)
{
    uint64_t random = 20261125;
    (void)state;
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        for (int j = 0; j < CASE_COUNT; j++) {
            char text[TEXT_BYTES];
            const long long m = draw_size(&random), n = draw_size(&random), k = draw_size(&random);
            snprintf(text, sizeof text, "%lldx%lldx%lld:%s%s", m, n, k, types[j % TYPE_COUNT],
                     options[j % OPTION_COUNT]);
            check_candidates(&chip, text);
        }
    }
}

/* A build with fewer architectures takes, on each chip, the rows that the chip finds code for. */
static void test_code_for_chips(void **state)
{
    static const struct {
        const char *codes;
        int capability;
        tgi_isa isa;
        int serves;
    } cases[] = {{"sm_75 sm_80", 89, TGI_ISA_sm80, 1},
                 {"sm_75 sm_80", 89, TGI_ISA_sm89, 0},
                 {"sm_75 sm_80 sm_89", 89, TGI_ISA_sm89, 1},
                 {"sm_89 compute_89", 86, TGI_ISA_sm80, 0},
                 {"sm_75", 89, TGI_ISA_sm75, 0},
                 {"sm_75 compute_75", 89, TGI_ISA_sm75, 1},
                 {"sm_80 sm_90 compute_90", 90, TGI_ISA_sm90a, 0},
                 {"sm_80 sm_90a compute_90", 90, TGI_ISA_sm90a, 1},
                 {"sm_90a", 100, TGI_ISA_sm80, 0},
                 {"sm_90 compute_90", 120, TGI_ISA_sm89, 1},
                 {"sm_75 sm_80", 75, TGI_ISA_sm80, 0},
                 {"", 80, TGI_ISA_sm75, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(tgi_cuda_serves(cases[i].codes, cases[i].capability, cases[i].isa),
                         cases[i].serves);
}

/* A kernel starts early if the code that a chip takes waits for the stream: not by PTX for earlier
 * chips, although the chip has the feature. */
static void test_code_that_waits(void **state)
{
    static const struct {
        const char *codes;
        int capability, waits;
    } cases[] = {{"sm_90a", 90, 1},
                 {"sm_75 sm_80 sm_90 compute_90", 90, 1},
                 {"sm_80 compute_80", 90, 0},
                 {"compute_75", 90, 0},
                 {"sm_80 sm_90", 80, 0},
                 {"sm_80 sm_90 compute_90", 120, 1},
                 {"", 90, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_int_equal(
            tgi_cuda_code_uses(cases[i].codes, cases[i].capability, TGI_FEATURE_EARLY_LAUNCH),
            cases[i].waits);
}

/* The images of this build have the rows of every chip. */
static void test_code_of_this_build(void **state)
{
    (void)state;
    if (strcmp(tgi_cuda_architectures(), "sm_75 sm_80 sm_89 sm_90a compute_90") != 0)
        return; /* it was told to leave out some */
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        const unsigned features = tgi_arch_find(chip.compute_capability)->features;
        for (int j = 0; j < tgi_kernels_count(); j++) {
            const tgi_kernel *row = tgi_kernels_get(j);
            if (strcmp(row->device, "cuda") == 0 && tgi_kernels_isa_runs(row->isa, features) &&
                !tgi_cuda_has_image(row->image, chip.compute_capability, row->isa))
                fail_msg("%s has no code for %s", chip.name, row->name);
        }
    }
}

/* More products never take less time than half as many. */
static void test_predictions_grow_with_the_problem(void **state)
{
    (void)state;
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        for (int j = 0; j < TYPE_COUNT; j++) {
            double before_s = 0.0;
            for (int64_t size = 64; size <= 16384; size *= 2) {
                char text[TEXT_BYTES];
                snprintf(text, sizeof text, "%lldx%lldx%lld:%s", (long long)size, (long long)size,
                         (long long)size, types[j]);
                const double seconds = check_candidates(&chip, text);
                if (seconds < before_s)
                    fail_msg("%s on %s takes %g s, a smaller problem %g s", text, chip.name,
                             seconds, before_s);
                before_s = seconds;
            }
        }
    }
}

/* Returns what the planner says of a row for a product on a chip. */
static tg_candidate find_row(const char *chip_name, const char *text, const char *row)
{
    static tg_candidate candidates[CANDIDATES_MAX];
    tg_chip chip;
    tg_problem problem;
    int count = 0;
    assert_int_equal(tg_find_chip(chip_name, &chip), TG_STATUS_OK);
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, CANDIDATES_MAX, &count),
                     TG_STATUS_OK);
    for (int i = 0; i < count; i++)
        if (strcmp(candidates[i].kernel, row) == 0)
            return candidates[i];
    fail_msg("%s has no row %s", chip_name, row);
    return candidates[0];
}

/* Returns how many tiles of 128 x 256 family mma takes for a product on an H200. */
static int64_t count_tiles(const char *text)
{
    return find_row("h200", text, "cuda_mma_sm80_bf16_128x256x64").block_count;
}

static double predict(const char *text, const char *row)
{
    return find_row("h200", text, row).predicted_s;
}

/* Threads that share out k along B read a line each of an A across k. Both layouts wait for loads,
 * so that this takes some tenth more. Lines that begin between two sectors arrive later, the more
 * blocks copy the same ones at once. */
static void test_lines_cost_time(void **state)
{
    const char *row = "cuda_small_sm80_bf16_16x16x256", *tiles = "cuda_wgmma_sm90a_bf16_64x64x64";
    (void)state;
    assert_true(predict("112x8x2322:tt:bf16", row) > 1.1 * predict("112x8x2322:nt:bf16", row));
    const double few_s =
        predict("512x512x72:nt:bf16", tiles) - predict("512x512x80:nt:bf16", tiles);
    const double many_s =
        predict("64x4096x72:nt:bf16", tiles) - predict("64x4096x80:nt:bf16", tiles);
    assert_true(few_s > 0.2e-6 && many_s > few_s + 0.1e-6);
}

/* k of slices is split by a divisor where D has few tiles, and the order of sums may depend on
 * m. */
static void test_slices_split_k(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        int64_t least, most;
    } cases[] = {
        {"256x256x16384", 8, 64},        {"300x500x6000:nt", 4, 64},
        {"4096x4096x4096", 1, 1},        {"256x256x16381", 1, 1}, /* a prime */
        {"256x256x16384:batch=2", 1, 1}, {"256x256x16384:batch_invariant:prec=bf16x6", 1, 1}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const int64_t splits =
            find_row("a100", cases[i].problem, "cuda_mma_bf16x_sm80_fp32_64x128x32").split_count;
        if (splits < cases[i].least || splits > cases[i].most)
            fail_msg("%s has %lld splits", cases[i].problem, (long long)splits);
    }
}

/* Blocks that would be alone on their multiprocessors have two teams, if shared memory has room for
 * the stages of both, the chunks of k are even in number, and the order of sums may depend on m. */
static void test_teams_of_slices(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *problem;
        int thread_count;
    } cases[] = {{"a100", "768x1024x1024", 256},
                 {"a100", "768x1024x1056", 128},
                 {"a100", "192x512x512:batch=4", 256},
                 {"a100", "768x1024x1024:batch_invariant:prec=bf16x6", 128},
                 {"a100", "4096x4096x4096", 128},
                 {"l40s", "768x1024x1024", 128}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_candidate row =
            find_row(cases[i].chip, cases[i].problem, "cuda_mma_bf16x_sm80_fp32_64x128x32");
        if (row.threads_per_block != cases[i].thread_count ||
            row.shared_bytes != row.threads_per_block * 576)
            fail_msg("%s on %s has %d threads a block", cases[i].problem, cases[i].chip,
                     (int)row.threads_per_block);
    }
}

/* Tiles lie across D or down it, whichever way they fill the last round of multiprocessors better,
 * where the kernels can store both and the order of sums may depend on m. */
static void test_tiles_lie_where_they_fill_rounds(void **state)
{
    (void)state;
    assert_int_equal(count_tiles("4095x4097x4099:nt:bf16"), 16 * 33);
    assert_int_equal(count_tiles("4097x4095x4099:nt:bf16"), 33 * 16);
    assert_int_equal(count_tiles("4096x4096x4096:nt:bf16:d=fp32"), 32 * 16);
    assert_int_equal(count_tiles("4095x4097x4099:nt:bf16:batch_invariant"), 32 * 17);
}

/* k of the last rows of tiles is split where they would leave multiprocessors idle in a round of
 * their own, and where the order of sums may depend on m: 264 of 288 tiles take two rounds of 132
 * multiprocessors, and the others have five splits each. */
static void test_rest_of_rounds_splits_k(void **state)
{
    (void)state;
    assert_int_equal(count_tiles("3072x3072x3072:bf16"), 264 + 5 * 24);
    assert_int_equal(count_tiles("3072x3072x3072:bf16:batch_invariant"), 288);
    assert_int_equal(count_tiles("3072x3072x3072:bf16:batch=2"), 2 * 288);
    assert_int_equal(count_tiles("4096x4096x4096:bf16"), 512);
}

/* Slices on mma.sync take FP32 where several products by the chip's matrix instructions take less
 * time than one by its FP32 units. */
static void test_slices_where_they_pay(void **state)
{
    (void)state;
    static const struct {
        const char *chip, *problem, *row;
    } cases[] = {{"a100", "4096x4096x4096", "cuda_mma_bf16x_"},
                 {"a100", "1030x4096x512:tn", "cuda_mma_bf16x_"},
                 {"a100", "4096x4096x4096:prec=fp16x3", "cuda_mma_fp16x_"},
                 {"a100", "4096x4096x4096:prec=ieee_fp32", "cuda_simt_"},
                 {"a100", "4096x4096x63", "cuda_simt_"},
                 {"a100", "4096x4096x4096:batch_invariant", "cuda_simt_"},
                 {"a100", "1x4096x4096:batch_invariant:prec=bf16x6", "cuda_mma_bf16x_"},
                 {"a10", "4096x4096x4096", "cuda_simt_"},
                 {"a10", "4096x4096x4096:prec=bf16x3", "cuda_mma_bf16x_"},
                 {"a10", "1x4096x4096:batch_invariant:prec=bf16x6", "cuda_rank_"},
                 {"l4", "4096x4096x4096", "cuda_simt_"},
                 {"l4", "4096x4096x4096:prec=fp16x3", "cuda_mma_fp16x_"},
                 {"rtx4090", "4096x4096x4096:prec=fp16x3", "cuda_simt_"},
                 {"t4", "4096x4096x4096", "cuda_simt_"},
                 {"t4", "4096x4096x4096:prec=fp16x3", "cuda_mma_fp16x_sm75_"},
                 {"h200", "4096x4096x4096", "cuda_bf16"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        static tg_candidate candidates[CANDIDATES_MAX];
        tg_chip chip;
        tg_problem problem;
        int count = 0;
        assert_int_equal(tg_find_chip(cases[i].chip, &chip), TG_STATUS_OK);
        assert_int_equal(tg_parse_problem(cases[i].problem, &problem, sizeof problem),
                         TG_STATUS_OK);
        assert_int_equal(
            tg_list_chip_candidates(&chip, &problem, candidates, CANDIDATES_MAX, &count),
            TG_STATUS_OK);
        for (int j = 0; j < count; j++)
            if (candidates[j].is_chosen &&
                strncmp(candidates[j].kernel, cases[i].row, strlen(cases[i].row)) != 0)
                fail_msg("%s on %s gets %s", cases[i].problem, cases[i].chip, candidates[j].kernel);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_where_they_pay),
        cmocka_unit_test(test_lines_cost_time),
        cmocka_unit_test(test_slices_split_k),
        cmocka_unit_test(test_teams_of_slices),
        cmocka_unit_test(test_tiles_lie_where_they_fill_rounds),
        cmocka_unit_test(test_rest_of_rounds_splits_k),
        cmocka_unit_test(test_every_product_has_a_kernel),
        cmocka_unit_test(test_code_for_chips),
        cmocka_unit_test(test_code_that_waits),
        cmocka_unit_test(test_code_of_this_build),
        cmocka_unit_test(test_predictions_grow_with_the_problem),
    };
    left_out = argc > 1 ? argv[1] : left_out;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
