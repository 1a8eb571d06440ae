/*
 * A multiplication in panels of rows gives the bits of one in one piece. Its progress line has the
 * time that is left.
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
#include <unistd.h>
#include <cmocka.h>

#include "multiply/multiply_panels.h"
#include "check.h"

/* A product of which panels are formed by the kernel of the whole. */
typedef struct panel_run {
    tg_context *context;
    const char *kernel;
} panel_run;

static tg_status execute(void *state, const tg_problem *panel)
{
    const panel_run *run = state;
    return cli_execute_panel(run->context, run->kernel, panel);
}

/* Multiplies in panels of each of the limits, and compares D with that of one multiplication, which
 * the oracle checks. */
static void compare_panels(const char *text, const tg_panel_limits *limits, int limits_count)
{
    check_operands operands;
    check_result result;
    tg_problem problem;
    tg_plan *plan;
    tg_plan_info info;
    panel_run run = {NULL};
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(check_make_operands(&problem, 3, &operands), 1);
    assert_int_equal(tg_create_context(NULL, &run.context), TG_STATUS_OK);
    assert_int_equal(tg_create_plan(run.context, &problem, NULL, &plan), TG_STATUS_OK);
    assert_int_equal(tg_get_plan_info(plan, &info, sizeof info), TG_STATUS_OK);
    run.kernel = info.kernel;
    size_t d_bytes = (size_t)(problem.batch_count * problem.d.row_count * problem.d.col_count *
                              tg_get_type_bytes(problem.d.type));
    void *whole = malloc(d_bytes);
    assert_non_null(whole);
    assert_int_equal(tg_multiply(run.context, &problem), TG_STATUS_OK);
    assert_int_equal(check_compare(&problem, 1e9, &result), 1);
    if (!result.is_ok)
        fail_msg("%s: element (%lld, %lld) of entry %lld is wrong", text, (long long)result.bad_row,
                 (long long)result.bad_col, (long long)result.bad_batch);
    memcpy(whole, problem.d.data, d_bytes);
    for (int i = 0; i < limits_count; i++) {
        tg_panels panels;
        cli_partial partial = {NULL};
        int number;
        assert_int_equal(tg_choose_panels(&problem, &limits[i], &panels), TG_STATUS_OK);
        memset(problem.d.data, 0xff, d_bytes);
        if (cli_execute_panels(&problem, &panels, execute, &run, &partial, NULL, &number))
            fail_msg("%s: %s", text, tg_get_error_detail());
        if (memcmp(whole, problem.d.data, d_bytes) != 0)
            fail_msg("%s: %lld panels of %d x %d give other bits", text,
                     (long long)panels.panel_count, (int)panels.row_count, (int)panels.col_count);
    }
    free(whole);
    tg_destroy_plan(plan);
    tg_destroy_context(run.context);
    check_free_operands(&operands);
}

static void test_same_bits(void **state)
{
    (void)state;
    static const char *texts[] = {"300x200x700",
                                  "300x200x700:tt",
                                  "300x200x700:fp64:tn",
                                  "300x200x700:bf16",
                                  "300x200x700:nt:fp16:d=fp32",
                                  "300x200x700:fp8_e4m3:d=bf16:sa=vector:sb=vector",
                                  "300x200x700:alpha=2:beta=-1:bias=col",
                                  "300x200x700:dcol:bias=row:act=relu",
                                  "7x3000x300:fp64",
                                  "1x9000x100:nt",
                                  "40x30x70:batch=20:beta=1"};
    static const tg_panel_limits limits[] = {{0, 1e6, 1}, {20000, 0, 1}, {60000, 1e6, 2}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        compare_panels(texts[i], limits, sizeof limits / sizeof limits[0]);
}

static void choose(const char *text, int64_t memory_bytes, int is_terminal, tg_panels *panels,
                   int expected_out_of_core)
{
    tg_problem problem;
    int is_out_of_core;
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(
        cli_choose_panels(&problem, memory_bytes, 1e12, is_terminal, panels, &is_out_of_core),
        TG_STATUS_OK);
    assert_int_equal(is_out_of_core, expected_out_of_core);
}

static void test_choice(void **state)
{
    (void)state;
    const int64_t gib = INT64_C(1) << 30;
    tg_panels panels;
    choose("8192x8192x8192", gib, 0, &panels, 0);
    assert_int_equal(panels.panel_count, 1);
    choose("8192x8192x8192", gib, 1, &panels, 0);
    assert_int_equal(panels.col_count, 8192);
    assert_in_range(panels.row_count, 400, 1000);
    choose("1000x16384x16384", 2 * gib, 1, &panels, 0);
    assert_in_range(panels.panel_count, 5, 10);
    choose("200x300x400", gib, 1, &panels, 0);
    assert_int_equal(panels.panel_count, 1);
    choose("8192x8192x8192", gib / 4, 0, &panels, 1);
    assert_true(panels.panel_count > 1 && panels.memory_bytes <= (double)gib / 4);
    choose("0x8x8", 1, 1, &panels, 0);
    assert_int_equal(panels.panel_count, 0);
}

/* A quarter of 100 GFLOP is done after 10 seconds, a twentieth of it before them. */
static void test_time_left(void **state)
{
    (void)state;
    char text[128] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    const int stderr_copy = dup(STDERR_FILENO);
    const double start_s = cli_read_clock() - 10;
    cli_progress progress = {.label = "multiplying",
                             .is_terminal = 1,
                             .start_s = start_s,
                             .shown_s = start_s,
                             .start_share = 0.05,
                             .gflop_count = 100};
    dup2(fileno(file), STDERR_FILENO);
    cli_show_progress(&progress, 1, 4);
    dup2(stderr_copy, STDERR_FILENO);
    close(stderr_copy);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    int percent, left_s; /* a busy machine may lengthen the 10 seconds */
    double gflop_per_s;
    assert_int_equal(sscanf(text, "\rmultiplying: %d %%, %lf GFLOP/s, %d s left", &percent,
                            &gflop_per_s, &left_s),
                     3);
    assert_int_equal(percent, 25);
    assert_in_range((int)(100 * gflop_per_s), 20, 201);
    assert_in_range(left_s, 37, 375);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_bits),
        cmocka_unit_test(test_choice),
        cmocka_unit_test(test_time_left),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
