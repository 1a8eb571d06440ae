/*
 * Tests the CUDA backend's host code on a fake driver: its use of contexts, images, memory
 * and streams, and what it says if the driver fails.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "fake_control.h"
#include "tilegemm_lab.h"

/* Makes a problem of 4 x 4 with alpha = 0: it runs the epilogue alone, which every build has a
 * kernel for. */
static tg_problem make_scaling(void *d)
{
    tg_matrix view = tg_make_matrix(TG_TYPE_FP32, d, 4, 4);
    tg_problem problem = tg_make_problem(view, view, view);
    problem.a.data = problem.b.data = NULL;
    problem.alpha = 0.0;
    return problem;
}

static void test_devices_are_described(void **state)
{
    (void)state;
    int count = 0;
    tg_device_info info;
    assert_int_equal(tg_count_devices("cuda", &count), 0);
    assert_int_equal(count, 2);
    tg_context *context = fake_open_context("cuda:1");
    assert_int_equal(tg_get_device_info(context, &info, sizeof info), 0);
    assert_string_equal(info.device, "cuda:1");
    assert_string_equal(info.name, "Fake GPU 1");
    assert_string_equal(info.isa, "sm90a");
    assert_string_equal(info.bus, "0000:01:00.0");
    assert_int_equal(info.sm_count, 132);
    assert_int_equal(info.compute_capability, 90);
    assert_true(info.memory_bytes_per_s > 4.9e12 && info.memory_bytes_per_s < 4.93e12);
    tg_destroy_context(context);
}

static void test_wrong_devices_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *device;
        tg_status status;
        const char *word;
    } cases[] = {{"cuda:2", TG_STATUS_NO_DEVICE, "2 CUDA devices; pass cuda:0..cuda:1"},
                 {"cuda:x", TG_STATUS_UNKNOWN_NAME, "cuda:x"},
                 {"cuda:", TG_STATUS_UNKNOWN_NAME, "pass cpu, cuda"},
                 {"cuda:64", TG_STATUS_UNKNOWN_NAME, "cuda:63"},
                 {"cpu:0", TG_STATUS_UNKNOWN_NAME, "cpu:0"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        tg_context *context;
        tg_context_options options = {.struct_bytes = sizeof options, .device = cases[i].device};
        assert_int_equal(tg_create_context(&options, &context), cases[i].status);
        assert_null(context);
        FAKE_ASSERT_DETAIL(cases[i].word);
    }
}

static void test_context_is_retained_once_and_released(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    tg_context *first = fake_open_context("cuda"), *second = fake_open_context("cuda:0");
    assert_int_equal(fake->retain_count, 1);
    tg_destroy_context(first);
    assert_int_equal(fake->retain_count, 1);
    tg_destroy_context(second);
    assert_int_equal(fake->retain_count, 0);
    fake_fail_at("cuDevicePrimaryCtxRetain", 1, 2);
    tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    assert_int_equal(tg_create_context(&options, &first), TG_STATUS_OUT_OF_MEMORY);
    FAKE_ASSERT_DETAIL("cuda:0", "CUDA_ERROR_OUT_OF_MEMORY");
}

static void test_callers_context_comes_back(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    float d[16];
    tg_context *context = fake_open_context("cuda");
    tg_problem problem = make_scaling(d);
    int stream;
    assert_int_equal(tg_multiply_on_stream(context, &problem, &stream), 0);
    assert_string_equal(fake->kernel, "tgi_scale_fp32");
    assert_ptr_equal(fake->stream, &stream);
    assert_null(fake_reach()->current);
    assert_int_equal(tg_activate_device(context), 0);
    void *current = fake_reach()->current;
    assert_non_null(current);
    assert_int_equal(tg_multiply(context, &problem), 0);
    assert_ptr_equal(fake_reach()->current, current);
    tg_destroy_context(context);
}

static void test_images_are_loaded_once_a_device(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    float d[16];
    tg_problem problem = make_scaling(d);
    tg_context *first = fake_open_context("cuda:0"), *second = fake_open_context("cuda:0");
    tg_context *other = fake_open_context("cuda:1");
    assert_int_equal(fake->load_count, 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_multiply(first, &problem), 0);
        assert_int_equal(tg_multiply(second, &problem), 0);
    }
    assert_int_equal(fake->load_count, 1);
    assert_int_equal(tg_multiply(other, &problem), 0);
    assert_int_equal(fake->load_count, 2);
    tg_destroy_context(first);
    tg_destroy_context(second);
    tg_destroy_context(other);
    assert_int_equal(fake->load_count, 0);
}

static void test_missing_image_says_what_is_there(void **state)
{
    (void)state;
    static const int errors[] = {200, 209, 222};
    float d[16];
    tg_problem problem = make_scaling(d);
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof errors / sizeof errors[0]; i++) {
        fake_fail_at("cuModuleLoadData", 1, errors[i]);
        assert_int_equal(tg_multiply(context, &problem), TG_STATUS_NO_DEVICE);
        FAKE_ASSERT_DETAIL("image \"scale\" is missing", "sm_90", "this build has");
    }
    fake_fail_at("cuModuleLoadData", 1, 2);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_OUT_OF_MEMORY);
    fake_fail_at("cuModuleLoadData", 1, 999);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_DEVICE_FAILURE);
    fake_fail_at("cuModuleGetFunction", 1, 500);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_DEVICE_FAILURE);
    FAKE_ASSERT_DETAIL("no function tgi_scale_fp32");
    assert_int_equal(tg_multiply(context, &problem), 0);
    tg_destroy_context(context);
}

static void test_failed_launch_is_described(void **state)
{
    (void)state;
    float d[16];
    tg_problem problem = make_scaling(d);
    tg_context *context = fake_open_context("cuda");
    const void *before = fake_reach()->current;
    fake_fail_at("cuLaunchKernelEx", 1, 701);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_DEVICE_FAILURE);
    FAKE_ASSERT_DETAIL("tgi_scale_fp32", "cuda:0", "grid 1 x 1 x 1", "block 32 x 1 x 1", "0 bytes",
                       "CUDA_ERROR_FAKE (701)", "as the test told");
    assert_ptr_equal(fake_reach()->current, before);
    fake_fail_at("cuCtxGetCurrent", 1, 4);
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_DEVICE_FAILURE);
    assert_int_equal(tg_multiply(context, &problem), 0);
    tg_destroy_context(context);
}

/* Returns 1 if the last launch of `kernel` for 64 x 64 x 64 may start early, or -1 if the build has
 * no image of it. */
static int is_launched_early(tg_context *context, tg_type type, const char *kernel)
{
    static float memory[64 * 64], d[64 * 64];
    const tg_matrix view = tg_make_matrix(type, NULL, 64, 64);
    const tg_problem problem = tg_make_problem(view, view, view);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    const tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = memory, .b = memory, .d = d};
    tg_plan *plan;
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
    const tg_status status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status == TG_STATUS_OK ? fake_reach()->is_early : -1;
}

/* Kernels wait for the stream themselves, except those of the ladder. */
static void test_kernels_that_start_early(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda:0");
    assert_int_not_equal(is_launched_early(context, TG_TYPE_BF16, "cuda_wgmma_sm90a_bf16_64x64x64"),
                         0);
    assert_int_not_equal(is_launched_early(context, TG_TYPE_FP32, "cuda_simt_sm75_fp32_32x64x32"),
                         0);
    assert_int_not_equal(is_launched_early(context, TG_TYPE_FP32, "cuda_naive_sm75_fp32_16x16x1"),
                         1);
    tg_destroy_context(context);
}

static void test_out_of_memory_tells_both_sizes(void **state)
{
    (void)state;
    fake_driver *fake = fake_reset();
    void *memory;
    tg_context *context = fake_open_context("cuda");
    const int opened_with = fake->live_allocation_count;
    fake->free_bytes = 1000;
    assert_int_equal(tg_allocate_memory(context, 1001, &memory), TG_STATUS_OUT_OF_MEMORY);
    assert_null(memory);
    FAKE_ASSERT_DETAIL("1001 bytes", "cuda:0", "1000 of the GPU's 2147483648");
    assert_int_equal(tg_allocate_memory(context, 1000, &memory), 0);
    tg_release_memory(context, memory);
    assert_int_equal(fake->live_allocation_count, opened_with);
    tg_destroy_context(context);
    assert_int_equal(fake->live_allocation_count, 0);
}

static void test_copies_go_both_ways(void **state)
{
    (void)state;
    static char from[20 << 20], to[20 << 20];
    static const int64_t sizes[] = {0, 1, 1000, 8 << 20, (8 << 20) + 1, (16 << 20) + 77, 20 << 20};
    fake_reset();
    void *memory;
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_allocate_memory(context, sizeof from, &memory), 0);
    for (size_t i = 0; i < sizeof from; i++)
        from[i] = (char)(i * 31 + i / 999);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        memset(to, 0, sizeof to);
        assert_int_equal(tg_copy_to_device(context, memory, from, sizes[i]), 0);
        assert_int_equal(tg_copy_from_device(context, to, memory, sizes[i]), 0);
        assert_memory_equal(to, from, (size_t)sizes[i]);
        memset(memory, 0, sizeof from);
    }
    fake_fail_at("cuMemcpyDtoHAsync_v2", 2, 999);
    assert_int_equal(tg_copy_from_device(context, to, memory, sizeof to), TG_STATUS_DEVICE_FAILURE);
    fake_reset();
    tg_release_memory(context, memory);
    tg_destroy_context(context);
}

/* Pinned blocks are made by the first copy of a device, and the next ones use them again. */
static void test_copies_fail(void **state)
{
    (void)state;
    static const struct {
        const char *symbol;
        int call;
    } failing[] = {{"cuMemHostAlloc", 1},       {"cuEventCreate", 1},
                   {"cuEventCreate", 2},        {"cuEventRecord", 1},
                   {"cuEventRecord", 2},        {"cuEventSynchronize", 1},
                   {"cuEventSynchronize", 2},   {"cuMemcpyHtoDAsync_v2", 1},
                   {"cuMemcpyHtoDAsync_v2", 2}, {"cuStreamSynchronize", 1}};
    static char from[20 << 20];
    for (size_t i = 0; i < sizeof failing / sizeof failing[0]; i++) {
        void *memory;
        tg_context *context = fake_open_context("cuda");
        assert_int_equal(tg_allocate_memory(context, sizeof from, &memory), 0);
        fake_fail_at(failing[i].symbol, failing[i].call, 999);
        assert_int_not_equal(tg_copy_to_device(context, memory, from, sizeof from), 0);
        fake_reset();
        assert_int_equal(tg_copy_to_device(context, memory, from, sizeof from), 0);
        fake_fail_at("cuMemHostAlloc", 1, 999);
        assert_int_equal(tg_copy_to_device(context, memory, from, sizeof from), 0);
        fake_reset();
        tg_release_memory(context, memory);
        tg_destroy_context(context);
    }
}

static tg_status count_call(void *state, int64_t index)
{
    int64_t *sum = state;
    *sum += index;
    return *sum > 100 ? TG_STATUS_UNSUPPORTED : TG_STATUS_OK;
}

static void test_calls_are_timed(void **state)
{
    (void)state;
    int64_t sum = 0;
    double elapsed_s, flop_per_s;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_time_calls(context, count_call, &sum, 5, NULL, &elapsed_s), 0);
    assert_int_equal(sum, 10);
    assert_true(elapsed_s > 0.0049 && elapsed_s < 0.0051);
    assert_int_equal(tg_time_calls(context, count_call, &sum, 50, NULL, &elapsed_s),
                     TG_STATUS_UNSUPPORTED);
    fake_fail_at("cuEventCreate", 2, 999);
    assert_int_equal(tg_time_calls(context, count_call, &sum, 1, NULL, &elapsed_s),
                     TG_STATUS_DEVICE_FAILURE);
    fake_reset();
    assert_int_equal(tg_measure_peak(context, TG_TYPE_FP64, 1, &flop_per_s), 0);
    assert_true(flop_per_s > 0.0);
    assert_int_equal(tg_measure_peak(context, TG_TYPE_FP16, 1, &flop_per_s), TG_STATUS_UNSUPPORTED);
    fake_fail_at("cuStreamSynchronize", 1, 700);
    assert_int_equal(tg_synchronize(context, NULL), TG_STATUS_DEVICE_FAILURE);
    FAKE_ASSERT_DETAIL("(700)");
    tg_destroy_context(context);
}

/* A row without launch code would fail only a caller who asks for it. */
static void test_every_row_has_its_family(void **state)
{
    (void)state;
    fake_reset();
    int row_count = 0;
    tg_context *context = fake_open_context("cuda");
    for (int i = 0; i < tg_get_kernel_count(); i++) {
        tg_kernel_info info;
        assert_int_equal(tg_get_kernel_info(context, i, &info), 0);
        if (!info.is_available)
            continue;
        row_count++;
        tg_matrix square = tg_make_matrix(info.type, NULL, 256, 256);
        tg_problem problem = tg_make_problem(square, square, square);
        tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info.name};
        tg_plan *plan = NULL;
        if (tg_create_plan(context, &problem, &options, &plan) != TG_STATUS_OK)
            assert_null(strstr(tg_get_error_detail(), "no launch code"));
        tg_destroy_plan(plan);
    }
    assert_true(row_count > 0);
    tg_destroy_context(context);
}

/* Rows dot and rank of narrow types take few rows or few columns, and form no IEEE sums. */
static void test_skinny_rows_of_narrow_types(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    static const tg_type types[] = {TG_TYPE_BF16, TG_TYPE_FP16, TG_TYPE_FP8_E4M3, TG_TYPE_FP8_E5M2};
    static const char *const families[] = {"cuda_rank", "cuda_dot"};
    for (int i = 0; i < 8; i++) {
        const tg_type type = types[i / 2];
        const int is_dot = i % 2;
        tg_plan_options options = {.struct_bytes = sizeof options, .kernel = families[is_dot]};
        tg_plan *plan = NULL;
        tg_matrix b = is_dot ? tg_make_matrix(type, NULL, 4096, 2048)
                             : tg_make_matrix(type, NULL, 2048, 4096);
        tg_problem problem = tg_make_problem(tg_make_matrix(type, NULL, 16, 2048), b,
                                             tg_make_matrix(TG_TYPE_FP32, NULL, 16, 4096));
        problem.op_b = is_dot ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
        tg_destroy_plan(plan);
        problem.precision = TG_PRECISION_IEEE_FP32;
        assert_int_equal(tg_create_plan(context, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
        FAKE_ASSERT_DETAIL("do not round every sum");
        problem.precision = TG_PRECISION_DEFAULT;
        problem.a = tg_make_matrix(type, NULL, 65, 2048);
        problem.d = tg_make_matrix(TG_TYPE_FP32, NULL, 65, 4096);
        assert_int_equal(tg_create_plan(context, &problem, &options, &plan), TG_STATUS_UNSUPPORTED);
        FAKE_ASSERT_DETAIL("shorter side is 65");
    }
    tg_destroy_context(context);
}

static void test_instruction_sets(void **state)
{
    (void)state;
    fake_reset();
    tg_context *context;
    tg_device_info info;
    tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda", .isa = "sm80"};
    assert_int_equal(tg_create_context(&options, &context), 0);
    assert_int_equal(tg_get_device_info(context, &info, sizeof info), 0);
    assert_string_equal(info.isa, "sm80");
    tg_destroy_context(context);
    options.isa = "avx2";
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_UNKNOWN_NAME);
    FAKE_ASSERT_DETAIL("sm75, sm80, sm89 or sm90a");
    options.device = "cpu";
    options.isa = "sm75";
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_UNKNOWN_NAME);
    FAKE_ASSERT_DETAIL("generic, avx2");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_devices_are_described),
        cmocka_unit_test(test_wrong_devices_are_refused),
        cmocka_unit_test(test_context_is_retained_once_and_released),
        cmocka_unit_test(test_callers_context_comes_back),
        cmocka_unit_test(test_images_are_loaded_once_a_device),
        cmocka_unit_test(test_missing_image_says_what_is_there),
        cmocka_unit_test(test_failed_launch_is_described),
        cmocka_unit_test(test_kernels_that_start_early),
        cmocka_unit_test(test_out_of_memory_tells_both_sizes),
        cmocka_unit_test(test_copies_go_both_ways),
        cmocka_unit_test(test_copies_fail),
        cmocka_unit_test(test_calls_are_timed),
        cmocka_unit_test(test_every_row_has_its_family),
        cmocka_unit_test(test_skinny_rows_of_narrow_types),
        cmocka_unit_test(test_instruction_sets),
    };
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
