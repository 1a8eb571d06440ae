/* Tests what the planner promises of a blocking: bounded memory, and results that do not depend on
 * it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <fenv.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "check/check.h"
#include "cpu/cpu.h"
#include "model/cpu_model.h"
#include "plan/plan_object.h"

#define MOST_BYTES ((int64_t)32 << 20)

/* `kernel` is a kernel's name, or NULL for the planner's choice. */
static int64_t find_workspace_bytes(const char *shape, const char *kernel, int thread_count)
{
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = thread_count};
    tg_plan_options plan_options = {.struct_bytes = sizeof plan_options, .kernel = kernel};
    tg_context *context;
    tg_problem problem;
    tg_plan *plan;
    tg_plan_info info;
    assert_int_equal(tg_parse_problem(shape, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    assert_int_equal(tg_create_plan(context, &problem, &plan_options, &plan), TG_STATUS_OK);
    assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
    return info.workspace_bytes;
}

/* Whatever the shape and the threads, the plan needs less than 32 MB beyond the operands. */
static void test_workspace_is_bounded(void **state)
{
    static const char *const shapes[] = {
        "20000x20000x8000",      "8000x20000x1025:bf16", "8000x20000x5000:bf16",
        "20000x20000x8000:fp64", "64x64x10000000",       "16x64x10000000:fp64:nt",
        "1x1x1000000000",        "4000x3000x5000:fp16",  "3000x3000x9000:rsd=2:csd=6000",
        "500x500x500:batch=900", "16x100000x100000:nt",  "1500000x64x2:bf16",
        "1500000x200x1:fp16",    "700000x200x2:tn",      "700000x200000x2:tn",
    };
    static const char *const kernels[] = {NULL, "cpu_packed"};
    static const int thread_counts[] = {1, 2, 7, 64, 256, 1024};
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        for (size_t t = 0; t < 2 * sizeof thread_counts / sizeof thread_counts[0]; t++) {
            int thread_count = thread_counts[t / 2];
            int64_t bytes = find_workspace_bytes(shapes[i], kernels[t % 2], thread_count);
            if (bytes < 0 || bytes >= MOST_BYTES) {
                fail_msg("%s with %d threads: %lld bytes", shapes[i], thread_count,
                         (long long)bytes);
            }
        }
    }
}

/* The planner writes past the caches only a D that is larger than they are. */
static void stream_rows(tgi_packed_decision *decision)
{
    decision->is_streamed = decision->is_along_rows = 1;
}

/* Blocks of few tiles, which the planner chooses only for large problems. */
static void follow_rows_of_blocks(tgi_packed_decision *decision)
{
    decision->is_along_rows = decision->is_d_far = 1;
    decision->nc = 2 * decision->micropanel_cols;
    decision->mc = decision->mc < 17 ? decision->mc : 17;
}

/* Tiles that follow rows, whatever their number. */
static void follow_rows(tgi_packed_decision *decision)
{
    decision->is_along_rows = decision->is_d_far = 1;
}

/* Strips of one micropanel beside blocks of few rows: each strip packs A again. */
static void cut_strips_and_rows(tgi_packed_decision *decision)
{
    decision->strip_cols = decision->micropanel_cols;
    decision->mc = decision->mc < 17 ? decision->mc : 17;
}

/* Strips of one micropanel, and prefetches where the planner would choose none. */
static void cut_strips(tgi_packed_decision *decision)
{
    decision->strip_cols = decision->micropanel_cols;
    decision->is_along_rows = 0;
    decision->is_prefetched = 1;
}

/* Cuts strips if tiles follow rows, beside an A that is packed once. */
static void cut_strips_along_rows(tgi_packed_decision *decision)
{
    cut_strips(decision);
    decision->is_along_rows = 1;
}

/* Blocks of few rows beside a packed B whose micropanels are prefetched. */
static void prefetch_micropanels(tgi_packed_decision *decision)
{
    decision->is_along_rows = decision->is_prefetched = 0;
    decision->is_b_far = 1;
    decision->mc = decision->mc < 17 ? decision->mc : 17;
}

/* The planner lets tiles read a B along k in place, and transposes D. */
static void see_transposed(tgi_packed_decision *decision)
{
    assert_true(decision->is_transposed);
}

/* It also does so in blocks of few rows and in strips of one micropanel. */
static void cut_transposed(tgi_packed_decision *decision)
{
    see_transposed(decision);
    cut_strips_and_rows(decision);
}

/* Fills the problem of a text with operands, and the buffers with these, and returns a plan of
 * family packed. No other caller has it: plans by kernel name are not cached. */
static tg_plan *make_plan(tg_context *context, const char *text, tg_problem *problem,
                          check_operands *operands, tg_buffers *buffers)
{
    tg_plan_options options = {.struct_bytes = sizeof options, .kernel = "cpu_packed"};
    tg_plan *plan;
    assert_int_equal(tg_parse_problem(text, problem, sizeof *problem), TG_STATUS_OK);
    assert_true(check_make_operands(problem, 7, operands));
    assert_int_equal(tg_create_plan(context, problem, &options, &plan), TG_STATUS_OK);
    assert_int_equal(tg_init_buffers(buffers, sizeof *buffers, problem), TG_STATUS_OK);
    return plan;
}

/* Checks D under a decision of family packed that `change` has changed. */
static void check_decision(const char *shape, void (*change)(tgi_packed_decision *), int is_run)
{
    tg_problem problem;
    check_operands operands;
    check_result result;
    tg_buffers buffers;
    tg_plan *plan = make_plan(NULL, shape, &problem, &operands, &buffers);
    change(&((tgi_cpu_prepared *)plan->prepared)->decision.packed);
    if (is_run) {
        assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    }
    check_compare(&problem, 1e9, &result);
    assert_int_equal(result.is_ok, is_run);
    tg_destroy_plan(plan);
    check_free_operands(&operands);
}

static void test_streamed_rows(void **state)
{
    (void)state;
    check_decision("64x96x16", stream_rows, 1);
    check_decision("103x100x32:ldd=112", stream_rows, 1); /* each row ends in a partial vector */
    check_decision("50x333x7:ldd=336:batch=2", stream_rows, 1);
    check_decision("50x333x7:ldd=335", stream_rows, 1); /* unaligned rows go through the caches */
    check_decision("33x40x9:fp64", stream_rows, 1);
}

static void test_rows_of_blocks(void **state)
{
    (void)state;
    check_decision("103x517x45:tn", follow_rows_of_blocks, 1);
    check_decision("40x301x100:nt:beta=1", follow_rows_of_blocks, 1);
    check_decision("61x250x17:tt:fp64:bias=col", follow_rows_of_blocks, 1);
    check_decision("77x450x33:tn:bf16", follow_rows_of_blocks, 1);
    check_decision("103x517x1200:tn:batch=2", follow_rows_of_blocks, 1);
}

/* Rows of D of one micropanel, of fewer and of more tiles than are prefetched. */
static void test_rows(void **state)
{
    static const char *const shapes[] = {
        "61x40x9:tn",
        "300x45x5",
        "35x131x9:bias=row",
        "45x1001x7:tt:bias=col:act=relu",
        "29x1500x3:nt:beta=1",
        "41x777x21:fp64:bias=col",
        "37x900x30:bf16:ldd=905",
        "300x12x40:act=gelu_erf",
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        check_decision(shapes[i], follow_rows, 1);
}

static void test_strips(void **state)
{
    static const char *const shapes[] = {
        "103x517x45:tn",
        "61x250x2101:tt:bias=col",
        "77x450x1033:tn:bf16",
        "70x333x2050:nn:fp64:beta=1",
        "70x301x2050:tn:fp64:rsd=2:csd=200", /* D cannot hold running sums */
        "40x301x1100:nt:batch=2",
        "9x1x3001:tn",
        "40x7x2101:bf16", /* these have narrow tiles if the instruction set does */
        "40x5x2101:bias=col:act=gelu_erf",
        "40x15x2101:bf16",
        "61x13x2101:tn:act=gelu_erf",
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_decision(shapes[i], cut_strips, 1);
        check_decision(shapes[i], cut_strips_along_rows, 1);
        check_decision(shapes[i], cut_strips_and_rows, 1);
        check_decision(shapes[i], prefetch_micropanels, 1);
    }
}

static void test_transposed(void **state)
{
    static const char *const shapes[] = {
        "48x412x200:nt",          "48x523x323:tt",
        "24x215x2100:tt:fp64",    "48x300x1100:nt:batch=2",
        "48x201x3000:nt:ldd=203", "24x133x150:tt:fp64:batch=3:lda=27",
        "48x9x2100:tn:fp64",      "96x9x514:tn",
    };
    (void)state;
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        check_decision(shapes[i], see_transposed, 1);
        check_decision(shapes[i], cut_transposed, 1);
    }
}

/* The check notices a D that was never written. */
static void test_missing_result_is_caught(void **state)
{
    (void)state;
    check_decision("64x96x16", stream_rows, 0);
}

/* Rows of D that family rank finishes one by one cost more than a tile's products do where k is
 * short: whatever the instruction set, small products of a batch go to register tiles. */
static void test_small_products_take_tiles(void **state)
{
    static const char *const shapes[] = {"13x17x19:batch=5000", "16x16x16:batch=5000",
                                         "16x33x7:batch=2000", "13x17x19:fp64"};
    static const char *const isas[] = {"avx2", "avx512"};
    (void)state;
    for (int i = 0; i < 8; i++) {
        tg_context_options options = {
            .struct_bytes = sizeof options, .isa = isas[i / 4], .thread_count = 1};
        tg_context *context;
        tg_problem problem;
        tg_plan *plan;
        tg_plan_info info;
        if (tg_create_context(&options, &context) != TG_STATUS_OK)
            continue; /* the processor lacks it */
        assert_int_equal(tg_parse_problem(shapes[i % 4], &problem, sizeof problem), TG_STATUS_OK);
        assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), TG_STATUS_OK);
        assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
        if (!strstr(info.kernel, "cpu_direct"))
            fail_msg("%s is given to %s", shapes[i % 4], info.kernel);
        tg_destroy_plan(plan);
        tg_destroy_context(context);
    }
}

/* Threads share out the rows of a D that tiles write along its rows, if there are enough. */
static void test_long_rows_stay_whole(void **state)
{
    static const char *const shapes[] = {"128x1067x11:nt", "216x1392x17", "300x2000x32:fp64",
                                         "8x3766x4:tt", "64x14720x32:nt"};
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = 2};
    tg_plan_options plan_options = {.struct_bytes = sizeof plan_options, .kernel = "cpu_packed"};
    tg_context *context;
    tg_problem problem;
    tg_plan *plan;
    (void)state;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(tg_parse_problem(shapes[i], &problem, sizeof problem), TG_STATUS_OK);
        assert_int_equal(tg_create_plan(context, &problem, &plan_options, &plan), TG_STATUS_OK);
        const tgi_cpu_prepared *prepared = plan->prepared;
        const tgi_packed_decision *decision = &prepared->decision.packed;
        if (prepared->thread_count == 2)
            assert_int_equal(decision->row_portions, i < 3 ? 2 : 1);
        tg_destroy_plan(plan);
    }
    tg_destroy_context(context);
}

/* Threads are woken for work that takes longer than to wake them, and no more than pay. */
static void test_thread_counts(void **state)
{
    (void)state;
    assert_int_equal(tgi_model_cpu_threads(0.0, 8), 1);
    assert_int_equal(tgi_model_cpu_threads(0.7e-6, 8), 1);
    assert_int_equal(tgi_model_cpu_threads(4e-6, 8), 6);
    assert_int_equal(tgi_model_cpu_threads(11e-6, 1), 1);
    assert_int_equal(tgi_model_cpu_threads(11e-6, 64), 10);
    assert_int_equal(tgi_model_cpu_threads(1.0, 64), 64);
}

/* Executes a plan on a workspace of NaN, and returns which of `flags` it raises. */
static int find_flags(tg_context *context, const char *text, int flags)
{
    check_operands operands;
    tg_problem problem;
    tg_plan_info info;
    tg_buffers buffers;
    tg_plan *plan = make_plan(context, text, &problem, &operands, &buffers);
    assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
    buffers.workspace_bytes = tgi_round_up(info.workspace_bytes + 1, 64);
    buffers.workspace = aligned_alloc(64, (size_t)buffers.workspace_bytes);
    assert_non_null(buffers.workspace);
    memset(buffers.workspace, 0xff, (size_t)buffers.workspace_bytes);
    feclearexcept(FE_ALL_EXCEPT);
    assert_int_equal(tg_execute_plan(plan, &buffers), TG_STATUS_OK);
    const int raised = fetestexcept(flags);
    free(buffers.workspace);
    tg_destroy_plan(plan);
    check_free_operands(&operands);
    return raised;
}

/* Numbers that a packed block holds behind its columns raise no flag that a caller may trap. */
static void test_workspace_raises_no_flags(void **state)
{
    static const char *const shapes[] = {"100x5x64", "40x21x33", "37x3x130:act=relu",
                                         "64x50x48:bias=col", "33x7x40:beta=1"};
    static const char *const forms[] = {"", ":nt", ":tn"};
    static const char *const types[] = {"", ":fp64", ":bf16", ":bf16:d=fp32", ":fp16"};
    tg_context_options options = {.struct_bytes = sizeof options, .thread_count = 1};
    tg_context *context;
    (void)state;
    assert_int_equal(tg_create_context(&options, &context), TG_STATUS_OK);
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
        for (size_t f = 0; f < sizeof forms / sizeof forms[0]; f++)
            for (size_t t = 0; t < sizeof types / sizeof types[0]; t++) {
                char text[80];
                snprintf(text, sizeof text, "%s%s%s", shapes[i], forms[f], types[t]);
                if (find_flags(context, text, FE_INVALID | FE_DIVBYZERO | FE_OVERFLOW))
                    fail_msg("%s raises flags of its workspace", text);
            }
    tg_destroy_context(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_workspace_is_bounded),
                                       cmocka_unit_test(test_streamed_rows),
                                       cmocka_unit_test(test_rows_of_blocks),
                                       cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_strips),
                                       cmocka_unit_test(test_transposed),
                                       cmocka_unit_test(test_long_rows_stay_whole),
                                       cmocka_unit_test(test_thread_counts),
                                       cmocka_unit_test(test_workspace_raises_no_flags),
                                       cmocka_unit_test(test_missing_result_is_caught),
                                       cmocka_unit_test(test_small_products_take_tiles)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
