/*
 * Tests what the CUDA backend plans. A plan is the same for a chip that is here and for its figures
 * alone. It is made again for operands that lie otherwise than was planned for. Plans serve as many
 * tiles as can be counted, FP32 by slices, and batch-invariant products. TMA brings no more lines
 * than the operands have.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fake_control.h"
#include "tilegemm_lab.h"

static tg_problem parse(const char *text)
{
    tg_problem problem;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    return problem;
}

/* Fails unless both are the same, except for the bytes behind the end of `reason`. */
static void assert_same_candidate(const tg_candidate *one, const tg_candidate *other)
{
    assert_string_equal(one->kernel, other->kernel);
    assert_string_equal(one->reason, other->reason);
    assert_int_equal(one->is_legal, other->is_legal);
    assert_int_equal(one->is_chosen, other->is_chosen);
    assert_int_equal(one->block_count, other->block_count);
    assert_int_equal(one->split_count, other->split_count);
    assert_true(one->predicted_s == other->predicted_s);
    assert_true(one->issued_flops == other->issued_flops);
    assert_true(one->occupancy == other->occupancy);
}

static void test_chip_plans_as_its_context_does(void **state)
{
    (void)state;
    static const char *const shapes[] = {"1000x1200x800",
                                         "64x64x65536:tn",
                                         "1x4096x4096:nt:bf16",
                                         "2048x2048x2048:nt:fp8_e4m3:b=fp8_e5m2:d=bf16",
                                         "4095x4097x4099:fp16",
                                         "512x512x512:fp64:batch=3",
                                         "1024x1024x1024:prec=tf32",
                                         "1024x2000x1000:prec=fp16x3",
                                         "256x256x256:bf16:batch_invariant",
                                         "64x64x64:alpha=0"};
    fake_reset();
    tg_chip chip;
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_describe_chip(context, &chip), 0);
    const int capacity = tg_get_kernel_count();
    tg_candidate *here = calloc((size_t)capacity, sizeof *here);
    tg_candidate *there = calloc((size_t)capacity, sizeof *there);
    assert_true(here && there);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        const tg_problem problem = parse(shapes[i]);
        int here_count = 0, there_count = 0, chosen_count = 0;
        assert_int_equal(tg_list_candidates(context, &problem, here, capacity, &here_count), 0);
        assert_int_equal(tg_list_chip_candidates(&chip, &problem, there, capacity, &there_count),
                         0);
        assert_int_equal(here_count, capacity);
        assert_int_equal(there_count, capacity);
        for (int row = 0; row < capacity; row++) {
            assert_same_candidate(&here[row], &there[row]);
            chosen_count += there[row].is_chosen;
        }
        assert_int_equal(chosen_count, 1);
    }
    free(here);
    free(there);
    tg_destroy_context(context);
}

/* Calls a plan, made without pointers, with A at a multiple of 16 bytes and then one element behind
 * it. `kernels` receives the launches of the second call. */
static void call_with_offset(tg_context *context, const char *kernel, char kernels[512])
{
    static uint16_t a[4096 * 512 + 16], b[512 * 512], d[4096 * 512];
    const tg_problem problem = parse("4096x512x512:nt:bf16:d=bf16");
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_plan *plan = NULL;
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
    for (int shift = 0; shift < 2; shift++) {
        const uintptr_t start = ((uintptr_t)a + 15) / 16 * 16 + 2 * (uintptr_t)shift;
        const tg_buffers buffers = {
            .struct_bytes = sizeof buffers, .a = (const void *)start, .b = b, .d = d};
        fake_driver *fake = fake_reset();
        fake->kernels[0] = '\0';
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        strcpy(kernels, fake->kernels);
        if (shift == 0)
            assert_true(strncmp(kernels, "cuda_wgmma", 10) == 0);
    }
    tg_destroy_plan(plan);
}

/* Asserts that the last line of the log tells that kernel. */
static void assert_logged(FILE *log, const char *kernel)
{
    char line[1024] = "", key[256];
    clearerr(log);
    while (fgets(line, sizeof line, log))
        continue;
    snprintf(key, sizeof key, " kernel=%s", kernel);
    if (!strstr(line, key))
        fail_msg("\"%s\" lacks \"%s\"", line, key);
}

static void test_offset_operands_are_planned_for_again(void **state)
{
    (void)state;
    char path[] = P_tmpdir "/tilegemm-test-XXXXXX", kernels[512];
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *log = fdopen(descriptor, "r");
    setenv("TILEGEMM_LOG", path, 1);
    tg_context *context = fake_open_context("cuda");
    unsetenv("TILEGEMM_LOG");
    /* Another kernel is quicker if A would have to be repacked; that one ran. */
    call_with_offset(context, NULL, kernels);
    assert_true(strncmp(kernels, "cuda_loose_", 11) == 0);
    assert_logged(log, "cuda_loose_");
    /* A caller who has named the kernel gets it. */
    call_with_offset(context, "cuda_wgmma", kernels);
    assert_true(strncmp(kernels, "tgi_repack_2,cuda_wgmma_sm90a_bf16_", 35) == 0);
    assert_logged(log, "cuda_wgmma_sm90a_bf16_");
    tg_destroy_context(context);
    fclose(log);
    unlink(path);
}

/* Returns how a plan of the problem for the kernel is made. */
static tg_status try_kernel(tg_context *context, const char *text, const char *kernel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_problem problem = parse(text);
    tg_plan *plan = NULL;
    const tg_status status = tg_create_plan(context, &problem, &options, &plan);
    tg_destroy_plan(plan);
    return status;
}

/* A problem of 3 million tiles runs; problems that the kernel cannot count or read are refused. */
static void test_many_tiles(void **state)
{
    static const char kernel[] = "cuda_wgmma_sm90a_bf16_64x32x64";
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(try_kernel(context, "100000x64000x64:nt:bf16", kernel), TG_STATUS_OK);
    assert_int_equal(try_kernel(context, "10000000x1000000x64:nt:bf16", kernel),
                     TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("4882812500 tiles of 64 x 32", "larger tile");
    assert_int_equal(try_kernel(context, "2147483000x64x64:nt:bf16", kernel),
                     TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("2147483000");
    tg_destroy_context(context);
}

/* Small products on matrix instructions take every k whose splits can be counted. */
static void test_long_splits(void **state)
{
    static const char kernel[] = "cuda_small_sm80_bf16_16x16x256";
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(try_kernel(context, "16x16x4000000000:nt:bf16", kernel), TG_STATUS_OK);
    assert_int_equal(try_kernel(context, "16x16x3000000000000:nt:bf16", kernel),
                     TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("the kernel counts to 2147483647; a split has ");
    tg_destroy_context(context);
}

/* Checks which precisions compute FP32 by slices, and with how much workspace. */
static void test_sliced_rows(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    static const struct {
        const char *problem, *family;
        int64_t elem_bytes; /* bytes of workspace an element */
    } cases[] = {{"2048x2048x2048", "cuda_bf16x", 6},
                 {"2048x2048x2048:prec=ieee_fp32", "cuda_simt", 0},
                 {"2048x2048x2048:prec=bf16x3", "cuda_bf16x", 4},
                 {"2048x2048x2048:prec=bf16x6", "cuda_bf16x", 6},
                 {"2048x2048x2048:prec=fp16x3", "cuda_fp16x", 4}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem problem = parse(cases[i].problem);
        tg_plan_info info;
        tg_plan *plan;
        assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), 0);
        assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), 0);
        assert_memory_equal(info.kernel, cases[i].family, strlen(cases[i].family));
        const int64_t slice_bytes = 2 * 2048 * 2048 * cases[i].elem_bytes;
        assert_true(info.workspace_bytes >= slice_bytes);
        assert_true(info.workspace_bytes <= slice_bytes + 20000000); /* and the sums of runs */
        tg_destroy_plan(plan);
    }
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cuda_bf16x"};
    tg_plan *plan = NULL;
    tg_problem problem = parse("63x63x63");
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("from k = 64 on");
    problem = parse("2048x2048x2048:prec=ieee_fp32");
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("only in precision default, bf16x3, bf16x6 or bf16x9");
    tg_destroy_context(context);
}

/* If slices, or splits of a batch-invariant problem, would need more workspace than the
 * context allows, D is computed in panels, or in bands of rows. */
static void test_panels(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel;
        const char *counted; /* a kernel that each panel launches once */
        int64_t limit_bytes;
        int call_count; /* 0 if refused */
    } cases[] = {
        {"1000x900x4000", "cuda_bf16x_sm90a_fp32_128x128x32", "tgi_slice_bf16", 0, 1},
        {"1000x900x4000", "cuda_bf16x_sm90a_fp32_128x128x32", "tgi_slice_bf16", 68000000, 4},
        {"1000x900x4000", "cuda_bf16r_sm90a_fp32_128x128x32", "tgi_slice_bf16", 56000000, 4},
        {"3000x300x4000:nt:batch_invariant", "cuda_bf16r_sm90a_fp32_128x64x32", "tgi_slice_bf16",
         60000000, 4},
        {"1000x900x4000:batch=3", "cuda_bf16x_sm90a_fp32_128x128x32", "tgi_slice_bf16", 120000000,
         3},
        {"1000x900x4000", "cuda_mma_bf16x_sm80_fp32_64x128x32", "tgi_slice_bf16", 0, 1},
        {"1000x900x4000", "cuda_mma_bf16x_sm80_fp32_64x128x32", "tgi_slice_bf16", 68000000, 2},
        {"1000x900x4000:batch=3", "cuda_mma_bf16x_sm80_fp32_64x128x32", "tgi_slice_bf16", 120000000,
         3},
        {"1000x900x4000", "cuda_bf16x_sm90a_fp32_128x128x32", "tgi_slice_bf16", 50000000, 0},
        {"700x900x3000:fp64:batch=2:batch_invariant", "cuda_dmma_sm80_fp64_64x64x32",
         "tgi_add_sums_fp64", 65000000, 2},
        {"700x900x3000:fp64:batch=2:batch_invariant", "cuda_dmma_sm80_fp64_64x64x32",
         "tgi_add_sums_fp64", 30000000, 3},
        {"700x900x3000:fp64:bias=col:act=relu", "cuda_dmma_sm80_fp64_64x64x32",
         "tgi_add_terms_fp64", 0, 1},
        {"700x128x30000:nt:bf16:batch_invariant", "cuda_wgmma_sm90a_bf16_128x128x64",
         "tgi_wgmma_add_parts", 2000000, 3}};
    static float a[3 * 1000 * 4000], b[3 * 900 * 4000], d[3 * 1000 * 900];
    const tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = d, .bias = b};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_driver *fake = fake_reset();
        const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                    .device = "cuda",
                                                    .workspace_limit_bytes = cases[i].limit_bytes};
        const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = cases[i].kernel};
        const tg_problem problem = parse(cases[i].problem);
        tg_context *context;
        tg_plan *plan = NULL;
        tg_plan_info info;
        assert_int_equal(tg_create_context(&context_options, &context), 0);
        const tg_status status = tg_create_plan(context, &problem, &options, &plan);
        if (cases[i].call_count == 0) {
            assert_int_equal(status, TG_STATUS_UNSUPPORTED);
            FAKE_ASSERT_DETAIL("more than 50000000 bytes of workspace");
        } else {
            if (status)
                fail_msg("case %d: %s", (int)i, tg_get_error_detail());
            assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), 0);
            assert_true(!cases[i].limit_bytes || info.workspace_bytes <= cases[i].limit_bytes);
            fake->kernels[0] = '\0';
            assert_int_equal(tg_execute_plan(plan, &buffers), 0);
            int call_count = 0;
            for (const char *at = fake->kernels; (at = strstr(at, cases[i].counted)); at++)
                call_count++;
            assert_int_equal(call_count, cases[i].call_count);
        }
        tg_destroy_plan(plan);
        tg_destroy_context(context);
    }
}

/* TMA brings no more lines than an operand has, in groups of eight. If two blocks share a tile's
 * lines, each brings a share of them. Across k, it brings blocks of 64. */
static void test_boxes_end_with_their_operand(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel, *boxes; /* TMA boxes of A, of B, of D */
    } cases[] = {
        {"5x4096x512:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", "64x8,64x64,64x64,"},
        {"37x4096x512:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", "64x40,64x64,64x64,"},
        {"65536x104x2048:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_128x128x64",
         "64x128,64x56,64x64,"},
        {"4096x40x512:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x128x64", "64x64,64x40,64x64,"},
        {"4096x4096x4096:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_128x256x64",
         "64x128,64x128,64x64,"},
        {"300x300x512:tn:bf16:d=fp32", "cuda_wgmma_sm90a_bf16_128x128x64", "64x64,64x64,32x64,"},
        {"4096x8x512:tt:fp8_e4m3:d=bf16", "cuda_wgmma_sm90a_fp8_e4m3_64x16x128",
         "128x64,128x8,16x64,"},
        {"128x4096x512:nt:fp8_e4m3:d=fp8_e5m2", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,64x64,"},
        {"128x4088x512:nt:fp8_e4m3:d=fp8_e5m2", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,128x120,"},
        {"64x4096x512:nt:fp8_e4m3:d=fp8_e4m3", "cuda_wgmma_sm90a_fp8_e4m3_64x16x128",
         "128x64,128x16,16x64,"},
        {"128x320x512:nt:fp8_e4m3:d=fp8_e4m3", "cuda_wgmma_sm90a_fp8_e4m3_128x160x128",
         "128x128,128x160,32x64,"},
        {"128x4096x512:nt:fp8_e4m3:d=fp8_e4m3:ldd=4104", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,"},
        {"128x4096x512:nt:fp8_e4m3:d=fp8_e4m3:ldd=4112", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,64x64,"},
        {"4096x128x512:nt:fp8_e4m3:d=fp8_e4m3:dcol", "cuda_wgmma_sm90a_fp8_e4m3_128x128x128",
         "128x128,128x128,64x64,"},
        {"100x200x64:nt:fp64", "cuda_dmma_tma_sm90a_fp64_64x64x16", "16x64,16x40,16x64,16x8,"},
        {"72x40x512:prec=bf16x6", "cuda_bf16x_sm90a_fp32_128x128x32", "256x9,256x5,32x64,"},
    };
    static float a[4096 * 2048], b[4096 * 2048], d[4096 * 2048];
    fake_driver *fake = fake_reset();
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem problem = parse(cases[i].problem);
        const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = cases[i].kernel};
        const tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = a, .b = b, .d = d};
        tg_plan *plan = NULL;
        if (tg_create_plan(context, &problem, &options, &plan) != TG_STATUS_OK)
            fail_msg("%s: %s", cases[i].problem, tg_get_error_detail());
        fake->boxes[0] = '\0';
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_string_equal(fake->boxes, cases[i].boxes);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* Lines of A and B may begin anywhere. One operand is read where it lies, with a TMA box for each
 * alignment; a pass repacks the other one. */
static void test_unaligned_lines(void **state)
{
    (void)state;
#define UNALIGNED "cuda_loose_sm90a_bf16_128x128x64"
    static const struct {
        const char *problem, *kernels, *boxes;
        int offset; /* elements in front of A */
    } cases[] = {{"1024x2048x1001:nn:bf16", UNALIGNED "_n,",
                  "72x8,72x8,72x8,72x8,72x8,72x8,72x8,72x8,64x64,64x48,64x64,", 0},
                 {"512x2001x768:nn:bf16:d=bf16", UNALIGNED "_k,",
                  "72x8,72x8,72x8,72x8,72x8,72x8,72x8,72x8,64x128,", 0},
                 {"1001x1003x1005:nt:bf16", "tgi_repack_2," UNALIGNED "_k,",
                  "72x8,72x8,72x8,72x8,72x8,72x8,72x8,72x8,64x128,64x112,", 0},
                 {"1024x1024x1024:nn:bf16", UNALIGNED "_n,",
                  "72x8,72x8,72x8,72x8,72x8,72x8,72x8,72x8,64x64,64x64,", 1},
                 {"1024x1024x1024:nn:bf16", NULL, NULL, 0}};
    static _Alignas(16) float a[2048 * 1024], b[2048 * 1024], d[2048 * 1024];
    static const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = UNALIGNED};
    fake_driver *fake = fake_reset();
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_problem problem = parse(cases[i].problem);
        const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                    .a = (const uint16_t *)a + cases[i].offset,
                                    .b = b,
                                    .d = d};
        problem.a.data = (void *)(uintptr_t)buffers.a;
        tg_plan *plan = NULL;
        const tg_status status = tg_create_plan(context, &problem, &options, &plan);
        assert_int_equal(status, cases[i].boxes ? TG_STATUS_OK : TG_STATUS_UNSUPPORTED);
        if (status) {
            FAKE_ASSERT_DETAIL("multiples of 16 bytes", "family wgmma");
            continue;
        }
        fake->boxes[0] = fake->kernels[0] = '\0';
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_string_equal(fake->kernels, cases[i].kernels);
        assert_string_equal(fake->boxes, cases[i].boxes);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chip_plans_as_its_context_does),
        cmocka_unit_test(test_offset_operands_are_planned_for_again),
        cmocka_unit_test(test_many_tiles),
        cmocka_unit_test(test_long_splits),
        cmocka_unit_test(test_sliced_rows),
        cmocka_unit_test(test_panels),
        cmocka_unit_test(test_boxes_end_with_their_operand),
        cmocka_unit_test(test_unaligned_lines),
    };
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
