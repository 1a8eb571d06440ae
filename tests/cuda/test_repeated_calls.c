/*
 * Counts what a repeated call costs: calls of the driver, allocations, plans. It does so in a GPU's
 * context on a fake driver, and in the processor's, where results are checked.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <string.h>

#include "alloc/wrapped_allocation.h"
#include "fake_control.h"
#include "tilegemm_lab.h"

static tg_problem parse(const char *text)
{
    tg_problem problem;
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    return problem;
}

/* Counts the calls of the driver since the last time. */
static fake_driver count_calls(void)
{
    static fake_driver last;
    fake_driver now = *fake_reach(), made = now;
    made.launch_count -= last.launch_count;
    made.get_current_count -= last.get_current_count;
    made.set_current_count -= last.set_current_count;
    made.encode_count -= last.encode_count;
    made.replace_count -= last.replace_count;
    made.get_capture_count -= last.get_capture_count;
    last = now;
    return made;
}

/* Fails unless one call did exactly this much. */
static void assert_calls(int launch_count, int replace_count, int encode_count)
{
    const fake_driver made = count_calls();
    assert_int_equal(made.get_current_count, 1);
    assert_int_equal(made.set_current_count, 0);
    assert_int_equal(made.get_capture_count, 0);
    assert_int_equal(made.launch_count, launch_count);
    assert_int_equal(made.replace_count, replace_count);
    assert_int_equal(made.encode_count, encode_count);
}

static _Alignas(64) float memory[3][256 * 256];

/* The first call of a plan encodes its tensor maps. A call with other pointers replaces their
 * addresses. A call with the pointers of the first does neither. Workspace asks the driver nothing
 * on the default stream, and stays where it is. */
static void test_driver_calls(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel;
        int launch_count, map_count, moved_count;
    } cases[] = {{"64x64x64:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 1, 3, 3},
                 {"100x64x64:nn:bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 1, 4, 4},
                 {"256x256x256:nt", "cuda_bf16x_sm90a_fp32_128x128x32", 2, 3, 1},
                 {"64x64x64:fp64", "cuda_dmma_sm80", 1, 0, 0},
                 {"65x64x64:fp64", "cuda_dmma_tma_sm90a_fp64_32x32x32", 1, 3, 3},
                 {"64x64x64:prec=ieee_fp32", "cuda_simt", 1, 0, 0},
                 {"64x64x64:alpha=0", "", 1, 0, 0}};
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_activate_device(context), 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem problem = parse(cases[i].problem);
        const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = cases[i].kernel};
        tg_plan *plan = NULL;
        tg_buffers buffers = {
            .struct_bytes = sizeof buffers, .a = memory[0], .b = memory[1], .d = memory[2]};
        if (tg_create_plan(context, &problem, cases[i].kernel[0] ? &options : NULL, &plan))
            fail_msg("%s: %s", cases[i].problem, tg_get_error_detail());
        count_calls();
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_calls(cases[i].launch_count, 0, cases[i].map_count);
        allocation_watch(0);
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_calls(cases[i].launch_count, 0, 0);
        buffers.a = (const char *)buffers.a + 256;
        buffers.b = (const char *)buffers.b + 256;
        buffers.d = (char *)buffers.d + 256;
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_calls(cases[i].launch_count, cases[i].moved_count, 0);
        assert_int_equal(allocation_unwatch().call_count, 0);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* Returns 1 if the last launch's argument has these bytes among its first ones. */
static int has_argument(const void *bytes, size_t byte_count)
{
    const fake_driver *driver = fake_reach();
    for (size_t i = 0; i + byte_count <= driver->argument_bytes; i++) {
        if (memcmp(driver->argument + i, bytes, byte_count) == 0)
            return 1;
    }
    return 0;
}

/* A plan keeps the arguments of its first call for the calls that repeat it. A call that differs
 * from it in one operand or in alpha has its own, and changes nothing for those that follow. */
static void test_each_call_has_its_arguments(void **state)
{
    (void)state;
    static const struct {
        const char *problem, *kernel;
        size_t argument_bytes; /* up to the pointer to D; the argument has more */
    } cases[] = {{"64x64x64:fp64:alpha=2", "cuda_dmma_sm80", 264},
                 {"64x64x64:fp64", "cuda_small", 264},
                 {"64x64x64:prec=ieee_fp32", "cuda_simt", 264},
                 {"1x256x256:nt:bf16", "cuda_dot", 264},
                 {"64x64x64:nt:bf16:d=bf16", "cuda_wgmma_sm90a_bf16_64x64x64", 1032}};
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const tg_problem problem = parse(cases[i].problem);
        const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = cases[i].kernel};
        tg_plan *plan = NULL;
        fake_reach()->argument_bytes = cases[i].argument_bytes;
        assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
        for (int turn = 0; turn < 6; turn++) {
            const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                        .a = memory[0] + (turn == 1 ? 256 : 0),
                                        .b = memory[1] + (turn == 2 ? 256 : 0),
                                        .d = memory[2] + (turn == 4 ? 256 : 0)};
            const void *const operands[] = {buffers.a, buffers.b, buffers.d};
            assert_int_equal(tg_execute_plan(plan, &buffers), 0);
            for (int operand = 0; operand < 3; operand++)
                assert_true(has_argument(&operands[operand], sizeof operands[operand]));
        }
        tg_destroy_plan(plan);
    }
    tg_problem problem = parse("64x64x64:fp64");
    fake_reach()->argument_bytes = cases[0].argument_bytes;
    problem.a.data = memory[0];
    problem.b.data = memory[1];
    problem.d.data = memory[2];
    for (int turn = 0; turn < 6; turn++) {
        problem.alpha = turn % 2 ? 5.0 : 3.0;
        assert_int_equal(tg_multiply(context, &problem), 0);
        assert_true(has_argument(&problem.alpha, sizeof problem.alpha));
    }
    fake_reach()->argument_bytes = 0;
    tg_destroy_context(context);
}

/* The bare launch of a plan launches its kernel as often as it is told, and asks nothing else. */
static void test_bare_launch(void **state)
{
    (void)state;
    const tg_problem problem = parse("64x64x64:nt:bf16:d=bf16");
    const tg_buffers buffers = {
        .struct_bytes = sizeof buffers, .a = memory[0], .b = memory[1], .d = memory[2]};
    tg_plan *plan = NULL;
    double elapsed_s = -1.0;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_activate_device(context), 0);
    assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), 0);
    assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    count_calls();
    assert_int_equal(tg_time_bare_launch(plan, &buffers, 100, &elapsed_s), 0);
    assert_calls(100, 0, 0);
    assert_true(elapsed_s > 0.0);
    assert_int_equal(tg_time_bare_launch(plan, &buffers, 0, &elapsed_s),
                     TG_STATUS_INVALID_ARGUMENT);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
    context = fake_open_context("cpu");
    assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), 0);
    assert_int_equal(tg_time_bare_launch(plan, &buffers, 1, &elapsed_s), TG_STATUS_UNSUPPORTED);
    FAKE_ASSERT_DETAIL("the plan's device is cpu");
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* A plan whose operands are less aligned than it was told is made for them once; calls after that
 * allocate nothing. */
static void test_unaligned_operands_are_planned_for_once(void **state)
{
    (void)state;
    const tg_problem problem = parse("64x64x64:nt:bf16:d=bf16");
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cuda_wgmma"};
    tg_plan *plan = NULL;
    fake_reset();
    tg_context *context = fake_open_context("cuda");
    assert_int_equal(tg_create_plan(context, &problem, &options, &plan), 0);
    tg_buffers buffers = {.struct_bytes = sizeof buffers,
                          .a = (const char *)memory[0] + 2,
                          .b = memory[1],
                          .d = memory[2]};
    assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    allocation_watch(0);
    for (int i = 0; i < 3; i++) {
        fake_reach()->kernels[0] = '\0';
        assert_int_equal(tg_execute_plan(plan, &buffers), 0);
        assert_true(strncmp(fake_reach()->kernels, "tgi_repack_2,cuda_wgmma_", 24) == 0);
    }
    buffers.a = memory[0];
    fake_reach()->kernels[0] = '\0';
    assert_int_equal(tg_execute_plan(plan, &buffers), 0);
    assert_true(strncmp(fake_reach()->kernels, "cuda_wgmma_", 11) == 0);
    assert_int_equal(allocation_unwatch().call_count, 0);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
}

/* Asserts that D = alpha A B + beta C of ones, 8 x 8 x 8, is 8 alpha + beta in every element. */
static void assert_product(tg_context *context, double alpha, double beta)
{
    float a[64], b[64], c[64], d[64];
    const tg_matrix square = tg_make_matrix(TG_TYPE_FP32, NULL, 8, 8);
    tg_problem problem = tg_make_problem(square, square, square);
    for (int i = 0; i < 64; i++)
        a[i] = b[i] = c[i] = 1.0F;
    problem.a.data = a;
    problem.b.data = b;
    problem.c.data = c;
    problem.d.data = d;
    problem.alpha = alpha;
    problem.beta = beta;
    assert_int_equal(tg_multiply(context, &problem), 0);
    for (int i = 0; i < 64; i++)
        assert_true(d[i] == (float)(8.0 * alpha + beta));
}

/* Values of alpha and beta of one class share a plan. The first call of a class makes it. */
static void test_factors_share_a_plan(void **state)
{
    (void)state;
    static const double factors[][2] = {{2.0, 0.5}, {3.0, 0.25}, {-1.5, 4.0}};
    tg_context *context = fake_open_context("cpu");
    assert_product(context, factors[0][0], factors[0][1]);
    allocation_watch(0);
    for (size_t i = 0; i < sizeof factors / sizeof factors[0]; i++)
        assert_product(context, factors[i][0], factors[i][1]);
    assert_int_equal(allocation_get_counts().call_count, 0);
    assert_product(context, 1.0, 0.0); /* needs a plan of another class */
    assert_true(allocation_unwatch().call_count > 0);
    assert_product(context, 0.0, 2.0);
    assert_product(context, 1.0 + 1e-12, 0.0); /* is 1 in FP32 */
    allocation_watch(0);
    for (int i = 0; i < 3; i++) {
        assert_product(context, 1.0, 0.0);
        assert_product(context, 1.0 + 1e-12, 0.0);
        assert_product(context, 0.0, 2.0);
        assert_product(context, 3.0, 0.25);
    }
    assert_int_equal(allocation_unwatch().call_count, 0);
    /* A factor that overflows FP32 is refused whether its class is known or not. */
    tg_problem problem = parse("8x8x8:alpha=1e39");
    float d[64];
    problem.a.data = problem.b.data = problem.d.data = d;
    assert_int_equal(tg_multiply(context, &problem), TG_STATUS_INVALID_ARGUMENT);
    FAKE_ASSERT_DETAIL("alpha = 1e+39 overflows FP32");
    tg_destroy_context(context);
}

/* A plan keeps the factors that it was created with. */
static void test_plans_keep_their_factors(void **state)
{
    (void)state;
    static const double alphas[] = {2.0, 3.0, 2.0};
    float ones[64], d[64];
    tg_plan *plans[3];
    tg_context *context = fake_open_context("cpu");
    tg_problem problem = parse("8x8x8");
    for (int i = 0; i < 64; i++)
        ones[i] = 1.0F;
    for (int i = 0; i < 3; i++) {
        problem.alpha = alphas[i];
        assert_int_equal(tg_create_plan(context, &problem, NULL, &plans[i]), 0);
    }
    assert_ptr_equal(plans[0], plans[2]);
    const tg_buffers buffers = {.struct_bytes = sizeof buffers, .a = ones, .b = ones, .d = d};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(tg_execute_plan(plans[i], &buffers), 0);
        assert_true(d[0] == (float)(8.0 * alphas[i]) && d[63] == d[0]);
        tg_destroy_plan(plans[i]);
    }
    tg_destroy_context(context);
}

/* Members without a meaning do not count: C if beta is 0, and the pointers of operands that are as
 * aligned as the kernels may ask. */
static void test_keys_leave_out_what_is_not_read(void **state)
{
    (void)state;
    static const char *const devices[] = {"cpu", "cuda"};
    fake_reset();
    for (int i = 0; i < 2; i++) {
        tg_plan *first = NULL, *second = NULL, *third = NULL;
        tg_context *context = fake_open_context(devices[i]);
        tg_problem problem = parse("16x16x16:bf16");
        assert_int_equal(tg_create_plan(context, &problem, NULL, &first), 0);
        memset(&problem.c, 0x77, sizeof problem.c);
        problem.a.data = memory[0];
        problem.b.data = memory[1];
        problem.d.data = memory[2] + 1;
        assert_int_equal(tg_create_plan(context, &problem, NULL, &second), 0);
        assert_ptr_equal(first, second);
        problem.a.data = (char *)memory[0] + 2;
        assert_int_equal(tg_create_plan(context, &problem, NULL, &third), 0);
        assert_int_equal(first == third, i == 0);
        tg_destroy_plan(first);
        tg_destroy_plan(second);
        tg_destroy_plan(third);
        tg_destroy_context(context);
    }
}

/* Every bit of the key counts: problems that differ in one member have other plans, or are refused
 * as they are without a cache. */
static void test_keys_tell_problems_apart(void **state)
{
    (void)state;
    static const char *const texts[] = {"16x16x16",
                                        "16x16x17",
                                        "17x16x16",
                                        "16x17x16",
                                        "16x16x16:tn",
                                        "16x16x16:nt",
                                        "16x16x16:lda=20",
                                        "16x16x16:ldd=20",
                                        "16x16x16:beta=2",
                                        "16x16x16:beta=2:ldc=20",
                                        "16x16x16:ldb=20",
                                        "16x16x16:bias=row",
                                        "16x16x16:bias=col",
                                        "16x16x16:act=relu",
                                        "16x16x16:batch=2",
                                        "16x16x16:fp64",
                                        "16x16x16:bf16",
                                        "16x16x16:batch_invariant",
                                        "16x16x16:alpha=2",
                                        "16x16x16:alpha=0",
                                        "16x16x16:prec=ieee_fp32"};
    enum { text_count = sizeof texts / sizeof texts[0] };
    tg_plan *plans[text_count];
    tg_context *context = fake_open_context("cpu");
    for (int i = 0; i < text_count; i++) {
        const tg_problem problem = parse(texts[i]);
        assert_int_equal(tg_create_plan(context, &problem, NULL, &plans[i]), 0);
        for (int other = 0; other < i; other++)
            assert_ptr_not_equal(plans[i], plans[other]);
    }
    /* An enum outside its range is not the value that its low 8 bits would give. */
    tg_problem problem = parse("16x16x16");
    problem.activation = (tg_activation)256;
    tg_plan *plan;
    assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), TG_STATUS_INVALID_ARGUMENT);
    for (int i = 0; i < text_count; i++)
        tg_destroy_plan(plans[i]);
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_driver_calls),
        cmocka_unit_test(test_each_call_has_its_arguments),
        cmocka_unit_test(test_bare_launch),
        cmocka_unit_test(test_unaligned_operands_are_planned_for_once),
        cmocka_unit_test(test_factors_share_a_plan),
        cmocka_unit_test(test_plans_keep_their_factors),
        cmocka_unit_test(test_keys_leave_out_what_is_not_read),
        cmocka_unit_test(test_keys_tell_problems_apart),
    };
    return cmocka_run_group_tests(tests, fake_open, NULL);
}
