/*
 * A plan keeps what its first call launches. These tests compare each later call with the same call
 * of a plan that no one has called before, on a fake driver.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_control.h"
#include "kernels/wgmma/wgmma_args.h"
#include "tilegemm_lab.h"

/* A problem whose calls launch one kernel or several. */
typedef struct kept_case {
    const char *problem, *kernel;
    size_t argument_bytes; /* all of its kernels have as many */
    int64_t limit_bytes;   /* workspace; 0: the default */
} kept_case;

static const kept_case cases[] = {
    {"64x64x64:fp64:alpha=2", "cuda_dmma_sm80", 320, 0},
    {"64x64x64:fp64:bias=col:beta=1", "cuda_small", 320, 0},
    {"20x30x1:nt:fp16:batch=3", "cuda_small", 320, 0},
    {"20x10x16:nt:fp16:batch=18", "cuda_batch", 320, 0},
    {"64x64x64:prec=ieee_fp32", "cuda_simt", 320, 0},
    {"1x256x256:nt:bf16", "cuda_dot", 320, 0},
    {"64x64x64:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", sizeof(tgi_wgmma_args), 0},
    {"64x64x64:nt:bf16:d=bf16:beta=1", "cuda_wgmma_sm90a_bf16_64x64x64", sizeof(tgi_wgmma_args), 0},
    {"65x64x64:fp64:beta=1", "cuda_dmma_tma_sm90a_fp64_32x32x32", 960, 0},
    {"64x64x65:nt:bf16", "cuda_wgmma", 208, 0},
    {"80x48x5136:nt:bf16", "cuda_mma", 208, 0},
    {"64x100x1030:nt:bf16", "cuda_mma", 208, 0},
    {"256x256x256:nt:prec=fp16x3", "cuda_fp16x", 208, 0},
    {"256x256x256:nt", "cuda_bf16x_sm90a_fp32_128x128x32", 208, 0},
    {"64x64x64:alpha=0:beta=1", "cuda_simt", 320, 0},
    {"1000x900x4000", "cuda_bf16x_sm90a_fp32_128x128x32", 208, 68000000}};
enum { case_count = sizeof cases / sizeof cases[0], set_count = 4, turn_count = 40 };

static _Alignas(256) char memory[6][20 << 20];

static tg_problem parse(const char *text)
{
    tg_problem problem;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    return problem;
}

static tg_context *open_context(const kept_case *c)
{
    const tg_context_options options = {
        .struct_bytes = sizeof options, .device = "cuda", .workspace_limit_bytes = c->limit_bytes};
    tg_context *context;
    assert_int_equal(tg_create_context(&options, &context), 0);
    return context;
}

static tg_plan *make_plan(tg_context *context, const kept_case *c)
{
    const tg_problem problem = parse(c->problem);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = c->kernel};
    tg_plan *plan = NULL;
    if (tg_create_plan(context, &problem, c->kernel[0] ? &options : NULL, &plan))
        fail_msg("%s: %s", c->problem, tg_get_error_detail());
    return plan;
}

/* Returns operands that differ from those of the other sets in one operand, or in D and those
 * of the epilogue. The context has the workspace where it is limited. */
static tg_buffers make_set(const kept_case *c, int set)
{
    const int is_limited = c->limit_bytes > 0;
    return (tg_buffers){.struct_bytes = sizeof(tg_buffers),
                        .a = memory[0] + (set == 1 ? 256 : 0),
                        .b = memory[1] + (set == 2 ? 256 : 0),
                        .c = memory[3] + (set == 3 ? 256 : 0),
                        .bias = memory[4] + (set == 3 ? 256 : 0),
                        .d = memory[2] + (set == 3 ? 256 : 0),
                        .workspace = is_limited ? NULL : memory[5],
                        .workspace_bytes = is_limited ? 0 : sizeof memory[5]};
}

/* Returns the hash of what a call launches. */
static uint64_t call_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    fake_driver *fake = fake_reach();
    fake->launch_hash = 0;
    fake->kernels[0] = '\0';
    if (tg_execute_plan(plan, buffers))
        fail_msg("%s", tg_get_error_detail());
    assert_true(fake->launch_hash != 0);
    return fake->launch_hash;
}

/* Returns the hash of what the first call of a plan launches. */
static uint64_t call_unused_plan(tg_context *context, const kept_case *c, const tg_buffers *buffers)
{
    tg_plan *plan = make_plan(context, c);
    const uint64_t hash = call_plan(plan, buffers);
    tg_destroy_plan(plan);
    return hash;
}

static void test_calls_launch_what_an_unused_plan_does(void **state)
{
    (void)state;
    fake_reset();
    for (int i = 0; i < case_count; i++) {
        tg_context *context = open_context(&cases[i]);
        for (int first = 0; first < set_count; first++) {
            tg_plan *plan = make_plan(context, &cases[i]);
            fake_reach()->argument_bytes = cases[i].argument_bytes;
            for (int turn = 0; turn < turn_count; turn++) {
                tg_buffers buffers =
                    make_set(&cases[i], turn == 0 ? first : turn * 7 / 3 % set_count);
                if (turn % 5 == 4 && buffers.workspace)
                    buffers.workspace = memory[5] + 256, buffers.workspace_bytes -= 256;
                if (turn % 3 == 2)
                    buffers.stream = memory[0];
                const uint64_t expected = call_unused_plan(context, &cases[i], &buffers);
                if (call_plan(plan, &buffers) != expected)
                    fail_msg("%s: turn %d after set %d", cases[i].problem, turn, first);
            }
            tg_destroy_plan(plan);
        }
        tg_destroy_context(context);
    }
    fake_reach()->argument_bytes = 0;
}

/* A call that fails is not kept. */
static void test_failed_calls_are_not_kept(void **state)
{
    (void)state;
    for (int i = 0; i < case_count; i++) {
        fake_reset();
        tg_context *context = open_context(&cases[i]);
        const tg_buffers one = make_set(&cases[i], 1), two = make_set(&cases[i], 2);
        fake_reach()->argument_bytes = cases[i].argument_bytes;
        const uint64_t expected = call_unused_plan(context, &cases[i], &two);
        tg_plan *plan = make_plan(context, &cases[i]);
        fake_fail_at("cuLaunchKernelEx", 1, 1);
        assert_int_equal(tg_execute_plan(plan, &one), TG_STATUS_DEVICE_FAILURE);
        for (int turn = 0; turn < 3; turn++)
            assert_true(call_plan(plan, &two) == expected);
        fake_fail_at("cuLaunchKernelEx", 1, 1);
        assert_int_equal(tg_execute_plan(plan, &two), TG_STATUS_DEVICE_FAILURE);
        fake_reset();
        assert_true(call_plan(plan, &two) == expected);
        tg_destroy_plan(plan);
        tg_destroy_context(context);
    }
    fake_reach()->argument_bytes = 0;
}

/* A call that differs from the kept one is checked. */
static void test_other_calls_are_checked(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context = open_context(&cases[0]);
    tg_plan *plan = make_plan(context, &cases[0]);
    tg_buffers buffers = make_set(&cases[0], 0);
    for (int turn = 0; turn < 3; turn++)
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    buffers.d = (char *)memory[0] + 64;
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OVERLAP);
    buffers.d = NULL;
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_INVALID_ARGUMENT);
    buffers = make_set(&cases[0], 0);
    assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* A plan launches its own alpha, though products of others that share it came first. */
static void test_plans_launch_their_own_factors(void **state)
{
    (void)state;
    static const kept_case own = {"64x64x64:fp64:alpha=2", "", 320, 0};
    fake_reset();
    tg_context *context = open_context(&own), *other_context = open_context(&own);
    const tg_buffers buffers = make_set(&own, 0);
    tg_plan *plan = make_plan(context, &own);
    tg_problem problem = parse("64x64x64:fp64:alpha=3");
    problem.a.data = memory[0];
    problem.b.data = memory[1];
    problem.d.data = memory[2];
    for (int i = 0; i < 3; i++)
        assert_int_equal(tg_multiply(context, &problem), 0);
    fake_reach()->argument_bytes = own.argument_bytes;
    for (int i = 0; i < 3; i++)
        assert_true(call_plan(plan, &buffers) == call_unused_plan(other_context, &own, &buffers));
    fake_reach()->argument_bytes = 0;
    tg_destroy_plan(plan);
    tg_destroy_context(other_context);
    tg_destroy_context(context);
}

/* A context with a log writes a line for each call. */
static void test_repeated_calls_are_logged(void **state)
{
    (void)state;
    static const kept_case own = {"64x64x64:fp64", "", 320, 0};
    char path[] = P_tmpdir "/tilegemm-test-XXXXXX", line[1024];
    const int descriptor = mkstemp(path);
    int line_count = 0;
    assert_true(descriptor >= 0);
    FILE *log = fdopen(descriptor, "r");
    fake_reset();
    setenv("TILEGEMM_LOG", path, 1);
    tg_context *context = open_context(&own);
    unsetenv("TILEGEMM_LOG");
    tg_plan *plan = make_plan(context, &own);
    const tg_buffers buffers = make_set(&own, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
    while (fgets(line, sizeof line, log))
        line_count += strstr(line, "kernel=") != NULL;
    assert_int_equal(line_count, 3);
    fclose(log);
    unlink(path);
}

/* Problems that share a plan, or differ only in unread operands, follow one another. */
static void test_products_launch_their_own_operands(void **state)
{
    (void)state;
    static const char *const texts[] = {"64x64x64:fp64", "64x64x64:fp64:alpha=3",
                                        "64x64x64:fp64:alpha=5:beta=2", "64x64x64:nt:bf16:d=bf16",
                                        "64x64x64:nt:bf16:d=bf16:bias=col"};
    enum { text_count = sizeof texts / sizeof texts[0] };
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    fake_reach()->argument_bytes = 320;
    for (int turn = 0; turn < 200; turn++) {
        const tg_buffers set = make_set(&cases[0], turn * 5 / 3 % set_count);
        tg_problem problem = parse(texts[turn / 2 % text_count]);
        problem.a.data = memory[0] + ((const char *)set.a - memory[0]);
        problem.b.data = memory[1] + ((const char *)set.b - memory[1]);
        problem.c.data = memory[3 + turn % 3 / 2]; /* some of them alone read it */
        problem.d.data = set.d;
        problem.bias_data = set.bias;
        if (turn / 7 % 2 && problem.alpha != 1.0)
            problem.alpha += turn % 4;
        tg_context *other_context = fake_open_context("cuda");
        uint64_t hashes[2];
        for (int i = 0; i < 2; i++) {
            fake_reach()->launch_hash = 0;
            assert_int_equal(tg_multiply(i ? other_context : context, &problem), 0);
            hashes[i] = fake_reach()->launch_hash;
        }
        assert_true(hashes[0] == hashes[1]);
        tg_destroy_context(other_context);
    }
    fake_reach()->argument_bytes = 0;
    tg_destroy_context(context);
}

static unsigned band_blocks[4];
static int band_count;

static void note_blocks(const void *argument)
{
    (void)argument;
    if (band_count < 4)
        band_blocks[band_count] = fake_reach()->grid[0];
    band_count++;
}

/* Runs the case's problem by its kernel and notes the blocks of each launch along x. */
static void run_bands(const kept_case *c)
{
    fake_driver *fake = fake_reset();
    tg_context *context = open_context(c);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = c->kernel};
    const tg_problem problem = parse(c->problem);
    const tg_buffers buffers = make_set(c, 0);
    tg_plan *plan;
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
    band_count = 0;
    fake->compute = note_blocks;
    fake->argument_bytes = c->argument_bytes;
    assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    fake->compute = NULL;
    fake->argument_bytes = 0;
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* A batch-invariant D whose partial sums need more workspace than there is takes bands of rows. The
 * last one has fewer tiles, each with as many splits. */
static void test_last_bands_have_fewer_blocks(void **state)
{
    (void)state;
    run_bands(&(kept_case){"600x16x8192:prec=ieee_fp32:batch_invariant",
                           "cuda_dot_sm80_fp32_16x64x64", 320, 1 << 20});
    assert_int_equal(band_count, 2);
    assert_int_equal(band_blocks[0], 512 / 64 * 32);
    assert_int_equal(band_blocks[1], 2 * 32); /* 88 rows */
}

/* Tiles of D that fill no round of the multiprocessors are a band with splits of its own. */
static void test_last_rounds_are_bands(void **state)
{
    (void)state;
    run_bands(&(kept_case){"768x384x4096:prec=ieee_fp32", "cuda_simt_sm75_fp32_32x64x32", 320, 0});
    assert_int_equal(band_count, 2);
    assert_int_equal(band_blocks[0], 22 * 6);
    assert_int_equal(band_blocks[1], 2 * 6);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_calls_launch_what_an_unused_plan_does),
                                       cmocka_unit_test(test_failed_calls_are_not_kept),
                                       cmocka_unit_test(test_other_calls_are_checked),
                                       cmocka_unit_test(test_plans_launch_their_own_factors),
                                       cmocka_unit_test(test_repeated_calls_are_logged),
                                       cmocka_unit_test(test_products_launch_their_own_operands),
                                       cmocka_unit_test(test_last_bands_have_fewer_blocks),
                                       cmocka_unit_test(test_last_rounds_are_bands)};
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
