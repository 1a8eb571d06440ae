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

static void compare_panels(const char *text, int64_t panel_rows)
{
    check_operands operands;
    tg_problem problem;
    tg_context *context;
    tg_plan *plan;
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(check_make_operands(&problem, 3, &operands), 1);
    assert_int_equal(tg_create_context(NULL, &context), TG_STATUS_OK);
    assert_int_equal(tg_create_plan(context, &problem, NULL, &plan), TG_STATUS_OK);
    size_t d_bytes =
        (size_t)(problem.d.row_count * problem.d.col_count * tg_get_type_bytes(problem.d.type));
    void *whole = malloc(d_bytes);
    assert_non_null(whole);
    assert_int_equal(cli_execute_panels(context, plan, &problem, problem.d.row_count, NULL),
                     TG_STATUS_OK);
    memcpy(whole, problem.d.data, d_bytes);
    memset(problem.d.data, 0xff, d_bytes);
    assert_int_equal(cli_execute_panels(context, plan, &problem, panel_rows, NULL), TG_STATUS_OK);
    if (memcmp(whole, problem.d.data, d_bytes) != 0)
        fail_msg("%s: panels of %d rows give other bits", text, (int)panel_rows);
    free(whole);
    tg_destroy_plan(plan);
    tg_destroy_context(context);
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
                                  "300x200x700:alpha=2:beta=-1"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        compare_panels(texts[i], 150);
        compare_panels(texts[i], 101);
    }
}

static void test_choice(void **state)
{
    (void)state;
    tg_problem problem;
    cli_progress terminal = {.is_terminal = 1}, pipe = {.is_terminal = 0};
    assert_int_equal(tg_parse_problem("8192x8192x8192", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(cli_choose_panel_rows(&problem, &pipe), 8192);
    int64_t rows = cli_choose_panel_rows(&problem, &terminal);
    assert_true(rows >= 400 && rows <= 1000);
    assert_int_equal(tg_parse_problem("1000x8192x8192", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(cli_choose_panel_rows(&problem, &terminal), 1000);
    assert_int_equal(tg_parse_problem("1000x16384x16384", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(cli_choose_panel_rows(&problem, &terminal), 200);
    assert_int_equal(cli_choose_panel_rows(&problem, &pipe), 1000);
    assert_int_equal(tg_parse_problem("200x65536x65536", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(cli_choose_panel_rows(&problem, &terminal), 200);
    assert_int_equal(tg_parse_problem("0x8x8", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(cli_choose_panel_rows(&problem, &terminal), 1);
}

/* A quarter is done after 10 seconds. */
static void test_time_left(void **state)
{
    (void)state;
    char text[128] = "";
    FILE *file = tmpfile();
    assert_non_null(file);
    const int stderr_copy = dup(STDERR_FILENO);
    const double start_s = cli_read_clock() - 10;
    cli_progress progress = {
        .label = "multiplying", .is_terminal = 1, .start_s = start_s, .shown_s = start_s};
    dup2(fileno(file), STDERR_FILENO);
    cli_show_progress(&progress, 1, 4);
    dup2(stderr_copy, STDERR_FILENO);
    close(stderr_copy);
    rewind(file);
    assert_non_null(fgets(text, sizeof text, file));
    fclose(file);
    int percent, left_s; /* a busy machine may lengthen the 10 seconds */
    assert_int_equal(sscanf(text, "\rmultiplying: %d %%, %d s left", &percent, &left_s), 2);
    assert_int_equal(percent, 25);
    assert_in_range(left_s, 30, 300);
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
