/*
 * test_tma_calls tests which operands TMA brings. The fake driver tells the boxes of all tensor
 * maps, and refuses the strides that the driver refuses. A C of 16 bits whose lines a map cannot
 * describe has none, and neither has a C that begins between units of 16 bytes. FP64 operands that
 * begin there are left to family dmma. It also tests where the next kernel starts.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_control.h"
#include "kernels/wgmma/wgmma_args.h"
#include "tilegemm.h"

enum { OFFSET_BYTES = 264 }; /* not a multiple of 16 */

static _Alignas(256) char memory[4][4 << 20]; /* A, B, C and D */

static tg_plan *make_plan(tg_context *context, const char *text, const char *kernel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_problem problem;
    tg_plan *plan = NULL;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK ||
        tg_create_plan(context, &problem, &options, &plan) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    return plan;
}

/* Runs the plan, and returns the boxes of the maps that were encoded. */
static const char *run(const tg_plan *plan, size_t c_offset_bytes)
{
    fake_driver *fake = fake_reach();
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = memory[0],
                                .b = memory[1],
                                .c = memory[2] + c_offset_bytes,
                                .d = memory[3]};
    fake->boxes[0] = '\0';
    if (tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
        fail_msg("%s", tg_get_error_detail());
    return fake->boxes;
}

static void test_boxes_of_c(void **state)
{
    (void)state;
#define KERNEL "cuda_wgmma_sm90a_bf16_128x128x64"
    static const struct {
        const char *problem, *kernel, *boxes; /* boxes of A, of B, of C and of D, edges too */
    } cases[] = {
        {"256x256x64:nt:bf16:d=bf16", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1", KERNEL, "64x128,64x128,64x64,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:ldc=260", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:rsc=1:csc=256", KERNEL, "64x128,64x128,64x64,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:rsc=2:csc=512", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:rsc=0:csc=1", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:rsc=-256:csc=1", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:batch=2", KERNEL, "64x128,64x128,64x64,64x64,"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:batch=2:bsc=0", KERNEL, "64x128,64x128,64x64,"},
        {"256x256x64:nt:bf16:beta=1:d=fp32", KERNEL, "64x128,64x128,32x64,"},
        {"16x256x64:nt:bf16:d=bf16:beta=1", "cuda_wgmma_sm90a_bf16_64x64x64",
         "64x16,64x64,64x16,64x64,"},
        {"256x256x128:nt:fp8_e4m3:d=fp16:beta=1", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,64x64,64x64,"},
    };
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, cases[i].kernel);
        const char *boxes = run(plan, 0);
        if (strcmp(boxes, cases[i].boxes) != 0)
            fail_msg("%s: boxes %s, not %s", cases[i].problem, boxes, cases[i].boxes);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* Returns where the last kernel takes C from by TMA, or NULL if threads read it. */
static const char *find_staged_c(void)
{
    const fake_driver *fake = fake_reach();
    tgi_wgmma_args args;
    const char *c;
    memcpy(&args, fake->argument, sizeof args);
    memcpy(&c, &args.c_map, sizeof c); /* the fake driver's map has the address */
    return args.c.source == TGI_C_STAGED ? c : NULL;
}

/* A plan whose first C begins between units of 16 bytes encodes the map for a later one. Each call
 * takes its own C. */
static void test_map_of_a_later_c(void **state)
{
    (void)state;
    _Static_assert(sizeof(tgi_wgmma_args) <= sizeof((fake_driver){0}.argument),
                   "the fake driver records all of the argument");
    fake_reset()->argument_bytes = sizeof(tgi_wgmma_args);
    tg_context *context = fake_open_context("cuda");
    tg_plan *plan = make_plan(context, "256x256x64:nt:bf16:d=bf16:beta=1", KERNEL);
    assert_string_equal(run(plan, OFFSET_BYTES), "64x128,64x128,64x64,");
    assert_null(find_staged_c());
    assert_string_equal(run(plan, 0), "64x64,");
    assert_ptr_equal(find_staged_c(), memory[2]);
    assert_string_equal(run(plan, OFFSET_BYTES), "");
    assert_null(find_staged_c());
    tg_destroy_plan(plan);
    plan = make_plan(context, "256x256x64:nt:bf16:d=bf16:beta=1", KERNEL);
    assert_string_equal(run(plan, 0), "64x128,64x128,64x64,64x64,");
    assert_ptr_equal(find_staged_c(), memory[2]);
    assert_string_equal(run(plan, 256), "");
    assert_ptr_equal(find_staged_c(), memory[2] + 256);
    assert_string_equal(run(plan, OFFSET_BYTES), "");
    assert_null(find_staged_c());
    fake_reach()->argument_bytes = 0;
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* A plan of dmma_tma has threads copy operands that begin between units of 16 bytes, also if the
 * caller named its kernel. */
static void test_offset_operands_of_fp64(void **state)
{
    (void)state;
    static const char problem[] = "2400x64x144:tn:fp64", family[] = "cuda_dmma_tma_";
    fake_driver *fake = fake_reset();
    tg_context *context = fake_open_context("cuda");
    tg_plan *plan = make_plan(context, problem, "cuda_dmma_tma");
    for (int turn = 0; turn < 6; turn++) {
        const int is_offset = turn % 3;
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = memory[0] + (is_offset == 1 ? 8 : 0),
                                    .b = memory[1] + (is_offset == 2 ? 8 : 0),
                                    .d = memory[3] + 8};
        fake->kernel[0] = '\0';
        assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
        assert_int_equal(strncmp(fake->kernel, family, strlen(family)), 0);
        assert_int_equal(strstr(fake->kernel, "_copied") != NULL, is_offset != 0);
    }
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* Family dmma_tma takes every layout, those that no tensor map describes by copies of threads. */
static void test_layouts_of_fp64(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        int is_copied; /* -1: the problem is refused */
        const char *detail;
    } cases[] = {{"64x64x64:fp64:batch=3:bsa=0", 0, NULL},
                 {"64x64x64:fp64:batch=3:bsb=4097", 1, NULL},
                 {"64x64x64:fp64:batch=3:bsa=-4096", 1, NULL},
                 {"64x64x64:fp64:batch=3:bsa=137438953472", 1, NULL},
                 {"64x64x64:fp64:lda=65", 1, NULL},
                 {"64x64x64:fp64:rsa=32:csa=1", 1, NULL},
                 {"64x64x64:fp64:ldb=66", 0, NULL},
                 {"64x64x64:fp64:ldb=137438953472", 1, NULL},
                 {"64x64x64:fp64:rsb=-64:csb=1", 1, NULL},
                 {"64x64x64:fp64:rsa=128:csa=2", 1, NULL},
                 {"1x63x63:fp64:ldb=64", 0, NULL},
                 {"2147482000x16x16:nt:fp64", 0, NULL},
                 {"2147483000x16x16:nt:fp64", -1, "TMA counts to 2147482624"},
                 {"16x16x2147483000:nt:fp64", -1, "TMA counts to 2147482624"},
                 {"10000000x1000000x16:nt:fp64", -1, "tiles is 9765625000"}};
    static const tg_plan_options options = {.struct_bytes = sizeof options,
                                            .kernel = "cuda_dmma_tma_sm90a_fp64_32x32x32"};
    fake_driver *fake = fake_reset();
    const uintptr_t apart = (uintptr_t)1 << 60; /* bytes from operand to operand */
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_problem problem;
        tg_plan *plan = NULL;
        assert_int_equal(tg_parse_problem(cases[i].problem, &problem, sizeof problem), 0);
        const tg_status status = tg_create_plan(context, &problem, &options, &plan);
        if ((status == TG_STATUS_OK) != (cases[i].is_copied >= 0))
            fail_msg("%s: status %d, %s", cases[i].problem, status, tg_get_error_detail());
        if (cases[i].detail) {
            FAKE_ASSERT_DETAIL(cases[i].detail);
            continue;
        }
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = (void *)apart,
                                    .b = (void *)(2 * apart),
                                    .d = (void *)(4 * apart)};
        if (tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
            fail_msg("%s: %s", cases[i].problem, tg_get_error_detail());
        assert_int_equal(strstr(fake->kernel, "_copied") != NULL, cases[i].is_copied);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* All lines of a single batch entry may span more bytes than the batch stride of a tensor map. */
static void test_far_lines(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel;
    } cases[] = {
        {"64x64x64:fp64:lda=8589934592", "cuda_dmma_tma_sm90a_fp64_32x32x32"},
        {"64x64x64:fp64:rsb=1:csb=8589934592", "cuda_dmma_tma_sm90a_fp64_32x32x32"},
        {"256x256x64:nt:bf16:d=bf16:beta=1:lda=8589934592", KERNEL},
        {"256x256x64:nt:bf16:d=bf16:beta=1:ldc=8589934592:ldd=8589934592", KERNEL},
    };
    const uintptr_t apart = (uintptr_t)1 << 48; /* bytes from operand to operand */
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, cases[i].kernel);
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = (void *)apart,
                                    .b = (void *)(2 * apart),
                                    .c = (void *)(3 * apart),
                                    .d = (void *)(4 * apart)};
        if (tg_execute_plan(plan, &buffers) != TG_STATUS_OK)
            fail_msg("%s: %s", cases[i].problem, tg_get_error_detail());
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* The next kernel waits for all blocks of a product that takes a third of L2 without a pass, if few
 * blocks read each line of the larger operand. */
static void test_start_of_the_next_kernel(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel;
        int is_next_early;
    } cases[] = {{"47x5880x3840:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 0},
                 {"3840x48x5880:tn:fp16:d=fp16", "cuda_wgmma_sm90a_fp16_128x64x64", 0},
                 {"47x1440x3840:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 1},
                 {"47x5880x3839:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 1},
                 {"2704x2704x2704:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_128x128x64", 1}};
    tg_buffers buffers = {.struct_bytes = sizeof buffers};
    fake_reset()->argument_bytes = sizeof(tgi_wgmma_args);
    fake_reach()->argument_kernels = "cuda_wgmma"; /* a repack's argument is shorter */
    tg_context *context = fake_open_context("cuda");
    buffers.a = (void *)((uintptr_t)1 << 32); /* the fake driver reads no operand */
    buffers.b = (void *)((uintptr_t)2 << 32);
    buffers.d = (void *)((uintptr_t)3 << 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, cases[i].kernel);
        tgi_wgmma_args args;
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        memcpy(&args, fake_reach()->argument, sizeof args);
        if (args.is_next_early != cases[i].is_next_early)
            fail_msg("%s: is_next_early is %d", cases[i].problem, args.is_next_early);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
    fake_reach()->argument_bytes = 0;
    fake_reach()->argument_kernels = NULL;
}

/* A batch-invariant bias is no product where k is split: it would be added before other splits, but
 * behind them if it begins between units of 16 bytes. */
static void test_bias_as_a_product(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        tg_bias bias;
    } cases[] = {{"64x128x512:nt:fp8_e4m3:d=bf16:bias=col:batch_invariant", TG_BIAS_COL},
                 {"200x128x16384:nt:fp8_e4m3:d=bf16:bias=col", TG_BIAS_ROW},
                 {"200x128x16384:nt:fp8_e4m3:d=bf16:bias=col:batch_invariant", TG_BIAS_NONE},
                 {"64x128x16384:nt:fp8_e4m3:d=bf16:bias=col:batch_invariant", TG_BIAS_NONE}};
    tg_buffers buffers = {.struct_bytes = sizeof buffers};
    fake_reset()->argument_bytes = sizeof(tgi_wgmma_args);
    tg_context *context = fake_open_context("cuda");
    buffers.a = (void *)((uintptr_t)1 << 32); /* the fake driver reads no operand */
    buffers.b = (void *)((uintptr_t)2 << 32);
    buffers.d = (void *)((uintptr_t)3 << 32);
    buffers.bias = (void *)((uintptr_t)4 << 32);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, "cuda_wgmma_sm90a_fp8_e4m3_64x16x128");
        tgi_wgmma_args args;
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        memcpy(&args, fake_reach()->argument, sizeof args);
        if (args.c.bias != (int32_t)cases[i].bias)
            fail_msg("%s: the bias is %d", cases[i].problem, (int)args.c.bias);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
    fake_reach()->argument_bytes = 0;
}

/* Two blocks of tiles of 64 rows share a multiprocessor if there are more tiles than those. */
static void test_two_blocks(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        unsigned block_count;
    } cases[] = {{"64x64x64:nt:bf16:d=bf16:batch=1000", 264},
                 {"64x64x64:nt:bf16:d=bf16:batch=200", 200},
                 {"64x64x64:nt:bf16:d=bf16:batch=132", 132},
                 {"64x64x64:nt:bf16:d=bf16:batch=1000:batch_invariant", 132}};
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, "cuda_few_sm90a_bf16_64x64x64");
        run(plan, 0);
        if (fake_reach()->grid[0] != cases[i].block_count)
            fail_msg("%s has %u blocks", cases[i].problem, fake_reach()->grid[0]);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* Family small loads two neighbours in k, or of one k, at once if all such pairs are aligned and
 * units of 16 bytes along k are not. */
static void test_pairs(void **state)
{
    (void)state;
    static const struct {
        const char *problem;
        size_t a_offset_bytes;
        int a_elems, b_elems;
    } cases[] = {{"16x3840x322:nt:bf16:d=bf16", 0, 2, 2},
                 {"16x3840x322:nt:bf16:d=bf16", 4, 2, 2},
                 {"16x3840x322:nt:bf16:d=bf16", 2, 1, 2},
                 {"16x3840x320:nt:bf16:d=bf16", 0, 8, 8},
                 {"16x3840x323:nt:bf16:d=bf16", 0, 1, 1},
                 {"16x3842x320:nn:bf16:d=bf16", 0, 8, 2},
                 {"17x3842x320:tn:bf16:d=bf16", 0, 1, 2},
                 {"16x3842x320:nn:bf16:d=bf16:ldb=3843", 0, 8, 1},
                 {"16x3840x321:nt:bf16:d=bf16:lda=322", 0, 1, 1},
                 {"16x3840x322:nt:bf16:d=bf16:batch=2", 0, 2, 2},
                 {"16x3840x322:nt:bf16:d=bf16:batch=2:bsa=5153", 0, 1, 2}};
    fake_reset()->argument_bytes = sizeof(tgi_gemm_args);
    fake_reach()->argument_kernels = "cuda_small";
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        tg_plan *plan = make_plan(context, cases[i].problem, "cuda_small_sm80_bf16_16x16x256");
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = memory[0] + cases[i].a_offset_bytes,
                                    .b = memory[1],
                                    .d = memory[3]};
        tgi_gemm_args args;
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        memcpy(&args, fake_reach()->argument, sizeof args);
        if (args.a_vector_elems != cases[i].a_elems || args.b_vector_elems != cases[i].b_elems)
            fail_msg("%s: %d of A and %d of B at once", cases[i].problem, args.a_vector_elems,
                     args.b_vector_elems);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
    fake_reach()->argument_bytes = 0;
    fake_reach()->argument_kernels = NULL;
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_boxes_of_c),
                                       cmocka_unit_test(test_map_of_a_later_c),
                                       cmocka_unit_test(test_offset_operands_of_fp64),
                                       cmocka_unit_test(test_layouts_of_fp64),
                                       cmocka_unit_test(test_far_lines),
                                       cmocka_unit_test(test_start_of_the_next_kernel),
                                       cmocka_unit_test(test_bias_as_a_product),
                                       cmocka_unit_test(test_two_blocks),
                                       cmocka_unit_test(test_pairs)};
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
