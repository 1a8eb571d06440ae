/*
 * Products of the processor's memory on a GPU: panels go in, are multiplied and come back in the
 * right order on streams that do nothing before they must. The fake driver computes the products.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "fake_control.h"
#include "fake_products.h"
#include "harness/panel_product.h"
#include "harness/stride.h"
#include "tilegemm_attention.h"

/* The fake computes what kernels of sm_75 do. */
static tg_context *open_context(int64_t limit_bytes)
{
    const tg_context_options options = {.struct_bytes = sizeof options,
                                        .device = "cuda",
                                        .isa = "sm75",
                                        .workspace_limit_bytes = limit_bytes};
    tg_context *context = NULL;
    fake_driver *fake = fake_reset();
    if (tg_create_context(&options, &context))
        fail_msg("%s", tg_get_error_detail());
    fake->has_host_memory = 1;
    fake_compute_products(fake);
    fake->is_deferred = 1;
    return context;
}

static tg_panel_run multiply(tg_context *context, const char *text, int64_t memory_bytes,
                             int is_in_place)
{
    tg_panel_run run = {.elapsed_s = 0};
    const char *fault =
        panel_product_find_fault(context, text, memory_bytes, is_in_place, PLACE_AT_END, &run);
    if (fault)
        fail_msg("%s", fault);
    return run;
}

static void test_panels(void **state)
{
    static const struct {
        const char *text;
        int is_in_place;
    } cases[] = {{"90x70x80", 0},
                 {"90x70x80:tt:fp64:beta=1", 1},
                 {"70x90x80:nt:bias=col:act=relu", 0},
                 {"90x70x80:tn:lda=101:ldb=77:ldd=75:bias=row:beta=-0.5", 0},
                 {"90x70x80:dcol:beta=1", 1},
                 {"20x30x40:batch=19:beta=1", 1},
                 {"20x30x40:batch=3:bsa=0:lda=44", 0},
                 {"50x30x40:rsa=-40:csb=3:rsb=200:rsd=2:csd=101", 0},
                 {"50x30x40:rsa=0:beta=1:rsc=0:csc=0", 0},
                 {"1x900x30", 0},
                 {"900x1x30:nt", 0},
                 {"30x20x0:beta=1", 1},
                 {"30x20x5:alpha=0:beta=1", 0},
                 {"1x1x1", 0}};
    tg_context *context = open_context(0);
    int64_t panel_count = 0;
    (void)state;
    for (size_t j = 0; j < 2 * sizeof cases / sizeof cases[0]; j++) {
        const size_t i = j / 2;
        fake_reach()->is_deferred = 1 + (int)(j % 2);
        multiply(context, cases[i].text, 0, cases[i].is_in_place);
        for (int64_t bytes = 9001; bytes < 100000; bytes *= 3)
            panel_count +=
                multiply(context, cases[i].text, bytes, cases[i].is_in_place).panels.panel_count;
    }
    assert_true(panel_count > 1000);
    tg_destroy_context(context);
}

/* Panels of more than a pinned block go through several. Those in pinned memory go directly if they
 * are contiguous, and line by line if their lines are long. */
static void test_large_panels(void **state)
{
    static const struct {
        const char *text;
        int is_pinned, is_direct, has_lines;
    } cases[] = {{"1x2x2200000:tn:fp64:batch=2", 0, 0, 0},
                 {"1x2x2200000:tn:fp64:batch=2", 1, 1, 0},
                 {"2x2x2200000:nt:lda=2200007:ldb=2200005:ldd=5:fp64", 1, 0, 1},
                 {"2x1x2200000:lda=2200007:ldb=3:ldd=5:fp64", 0, 0, 0},
                 {"300x260x300:fp64:lda=304:ldb=262:ldd=265:beta=1", 1, 0, 1},
                 {"300x260x300:fp64:rsa=-304:ldb=262:ldd=265", 1, 0, 1},
                 {"8x530000x1:fp64", 0, 0, 0},
                 {"120x110x2:fp64:rsd=2:csd=241:lda=3:ldb=111", 1, 0, 0},
                 {"260x120x90:fp64:rsa=-93:ldb=121:ldd=122", 1, 0, 0}};
    tg_context *context = open_context(0);
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        fake_reach()->is_host_pinned = cases[i].is_pinned;
        fake_reach()->direct_copy_count = fake_reach()->line_copy_count = 0;
        multiply(context, cases[i].text, 200 << 20, 0);
        assert_int_equal(fake_reach()->line_copy_count > 0, cases[i].has_lines);
        assert_int_equal(fake_reach()->direct_copy_count > 0, cases[i].is_direct);
    }
    tg_destroy_context(context);
}

static tg_status multiply_small(tg_context *context, const void *a, const void *b, void *d)
{
    const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, b, 8, 8),
                                               tg_make_matrix(TG_TYPE_FP32, d, 8, 8));
    return tg_multiply(context, &problem);
}

/* Work of the stream ahead of the product writes A. */
static void test_stream(void **state)
{
    float a[64], b[64], d[64];
    int (*copy_from_device)(void *, uint64_t, size_t, void *);
    (void)state;
    *(void **)&copy_from_device =
        dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuMemcpyDtoHAsync_v2");
    assert_non_null(copy_from_device);
    for (int is_pinned = 0; is_pinned < 2; is_pinned++) {
        tg_context *context = open_context(0);
        const tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 8, 8),
                                                   tg_make_matrix(TG_TYPE_FP32, b, 8, 8),
                                                   tg_make_matrix(TG_TYPE_FP32, d, 8, 8));
        void *device, *stream = a; /* the fake takes any address */
        for (int i = 0; i < 64; i++)
            a[i] = b[i] = 1;
        assert_int_equal(tg_allocate_memory(context, sizeof a, &device), 0);
        assert_int_equal(tg_copy_to_device(context, device, a, sizeof a), 0);
        memset(a, 0, sizeof a);
        fake_reach()->is_host_pinned = is_pinned;
        fake_reach()->is_deferred = 2;
        copy_from_device(a, (uint64_t)(uintptr_t)device, sizeof a, stream);
        assert_int_equal(tg_multiply_on_stream(context, &problem, stream), 0);
        for (int i = 0; i < 64; i++)
            assert_true(d[i] == 8);
        tg_release_memory(context, device);
        tg_destroy_context(context);
    }
}

/* The workspace of the product at once, 128 MiB, is more than there is. */
static void test_workspace(void **state)
{
    tg_problem problem;
    tg_context *context;
    (void)state;
    fake_reset();
    assert_int_equal(tg_parse_problem("4097x4097x4097:bf16", &problem, sizeof problem), 0);
    context = fake_open_context("cuda");
    void *memory = calloc(3, 4097 * 4097 * 2);
    assert_non_null(memory);
    problem.a.data = memory;
    problem.b.data = (char *)memory + 4097 * 4097 * 2;
    problem.d.data = (char *)memory + 2 * 4097 * 4097 * 2;
    fake_reach()->has_host_memory = 1;
    fake_reach()->free_bytes = 100 << 20;
    fake_reach()->argument_bytes = 0; /* a repack's argument is shorter than a product's */
    if (tg_multiply_in_panels(context, &problem, 16 << 20, NULL))
        fail_msg("%s", tg_get_error_detail());
    free(memory);
    tg_destroy_context(context);
}

/* An attention takes no operand from ordinary memory, nor a list. */
static void test_attention(void **state)
{
    static uint16_t memory[4][2 * 64];
    static int32_t lengths[1] = {2};
    tg_attention a;
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    tg_init_attention(&a, sizeof a, TG_TYPE_BF16, 1, 1, 1, 2, 2, 64);
    a.q.data = memory[0], a.k.data = memory[1], a.v.data = memory[2], a.d.data = memory[3];
    fake_reach()->argument_bytes = 0;
    assert_int_equal(tg_attend(context, &a), TG_STATUS_OK);
    fake_reach()->has_host_memory = 1;
    assert_int_equal(tg_attend(context, &a), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("q at", "is the processor's memory", "cuda:0");
    void *device;
    assert_int_equal(tg_allocate_memory(context, sizeof memory, &device), 0);
    a.q.data = a.k.data = a.v.data = device;
    a.d.data = (char *)device + sizeof memory[0];
    assert_int_equal(tg_attend(context, &a), TG_STATUS_OK);
    a.has_key_lengths = 1;
    a.key_lengths = lengths;
    assert_int_equal(tg_attend(context, &a), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("key_lengths at");
    tg_release_memory(context, device);
    tg_destroy_context(context);
}

static void test_refusals(void **state)
{
    tg_context *context = open_context(10000), *cpu;
    float host[64] = {0}, d[64];
    void *device = NULL;
    tg_panel_run run;
    tg_panel_times times;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, host, 8, 8),
                                         tg_make_matrix(TG_TYPE_FP32, host, 8, 8),
                                         tg_make_matrix(TG_TYPE_FP32, d, 8, 8));
    (void)state;
    assert_int_equal(tg_allocate_memory(context, sizeof host, &device), 0);
    assert_int_equal(multiply_small(context, host, device, d), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("D at", "is the processor's memory", "B at", "cuda:0");
    assert_int_equal(multiply_small(context, host, host, device), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(multiply_small(context, device, device, d), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(multiply_small(context, host, host, host), TG_STATUS_OVERLAP);
    assert_int_equal(multiply_small(context, NULL, host, d), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("a = NULL");
    assert_int_equal(multiply_small(context, host, host, d), TG_STATUS_OK);
    /* Kernels reach pinned memory, so it may stand beside the device's. */
    fake_reach()->is_host_pinned = 1;
    assert_int_equal(multiply_small(context, host, device, d), TG_STATUS_OK);
    assert_int_equal(tg_multiply_in_panels(context, &problem, 100, &run),
                     TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("a memory limit of 100 bytes");
    assert_int_equal(tg_multiply_in_panels(context, &problem, -1, &run),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_multiply_in_panels(context, NULL, 0, &run), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_gpu_panels(context, NULL, NULL, 0, &run.panels, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("problem = NULL");
    problem.d.data = device;
    assert_int_equal(tg_multiply_in_panels(context, &problem, 0, &run), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("D at", "cuda:0");
    problem.d.data = d;
    problem.is_batch_invariant = 1;
    assert_int_equal(tg_multiply_in_panels(context, &problem, 0, &run), TG_STATUS_OK);
    assert_int_equal(tg_multiply_in_panels(context, &problem, 600, &run), TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("is_batch_invariant = 1", "of its 8 columns");
    fake_reach()->is_capturing = 1;
    assert_int_equal(tg_multiply_on_stream(context, &problem, device), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("captured");
    fake_reset();
    assert_int_equal(tg_create_context(NULL, &cpu), TG_STATUS_OK);
    assert_int_equal(tg_multiply_in_panels(cpu, &problem, 0, NULL), TG_STATUS_UNSUPPORTED);
    tg_destroy_context(cpu);
    tg_release_memory(context, device);
    tg_destroy_context(context);
}

/* Each function of the driver fails at each of its calls, or at one of each stride of them. Nothing
 * is left behind, and the next product is right. */
static void test_failures(void **state)
{
    static const char *const symbols[] = {
        "cuMemAlloc_v2",        "cuMemHostAlloc",       "cuStreamCreate",     "cuEventCreate",
        "cuMemcpyHtoDAsync_v2", "cuMemcpyDtoHAsync_v2", "cuEventRecord",      "cuEventQuery",
        "cuStreamWaitEvent",    "cuLaunchKernelEx",     "cuEventSynchronize", "cuStreamSynchronize",
        "cuMemcpy2DAsync_v2"};
    static float a[40 * 30], b[30 * 300], d[40 * 300];
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, a, 40, 30),
                                         tg_make_matrix(TG_TYPE_FP32, b, 30, 256),
                                         tg_make_matrix(TG_TYPE_FP32, d, 40, 256));
    problem.b.row_stride = problem.d.row_stride = 300;
    (void)state;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++) {
        int call = 1 + stride_get_first(), failed_count = 0;
        tg_status status = TG_STATUS_DEVICE_FAILURE;
        for (; status; call += stride_get()) {
            tg_context *context = open_context(0);
            fake_driver *fake = fake_reach();
            const int opened_with = fake->live_allocation_count;
            assert_true(call < 1000);
            strcpy(fake->failing, symbols[i]);
            fake->failing_call = call;
            fake->error = 999;
            /* Only long lines of pinned memory go as they are. */
            fake->is_host_pinned = strcmp(symbols[i], "cuMemcpy2DAsync_v2") == 0;
            problem.b.col_count = problem.d.col_count = fake->is_host_pinned ? 256 : 20;
            status =
                tg_multiply_in_panels(context, &problem, fake->is_host_pinned ? 0 : 2000, NULL);
            assert_true(status == TG_STATUS_OK || status == TG_STATUS_DEVICE_FAILURE);
            if (status) {
                FAKE_ASSERT_DETAIL("999");
                failed_count++;
            }
            fake->failing[0] = '\0';
            multiply(context, "40x30x20", 2000, 0);
            assert_in_range(fake->live_allocation_count, opened_with, opened_with + 1);
            tg_destroy_context(context);
            assert_int_equal(fake->live_allocation_count, 0);
        }
        assert_true(failed_count > 0 || stride_get_first() > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_panels),    cmocka_unit_test(test_large_panels),
        cmocka_unit_test(test_stream),    cmocka_unit_test(test_workspace),
        cmocka_unit_test(test_attention), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_failures)};
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
