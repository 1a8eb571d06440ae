/*
 * A product cut into panels keeps the memory limit, reads the bytes that its plan says, and gives
 * every element of D once and right.
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
#include <cmocka.h>

#include "check.h"

enum { place_count = 17 }; /* more than panels are held at once */

/* Panels of an operand that are there. A new one takes the place that was filled first. */
typedef struct held_panels {
    const void *data[place_count];
    double bytes[place_count];
    int count, next;
} held_panels;

/* Bytes that the panels of a walk hold and have read. */
typedef struct panel_walk {
    double read_bytes, most_bytes;
    held_panels a, b;
} panel_walk;

static double count_bytes(const tg_matrix *matrix, int64_t batch_count)
{
    return (double)batch_count * (double)matrix->row_count * (double)matrix->col_count *
           (double)tg_get_type_bytes(matrix->type);
}

/* Returns the bytes to read for a panel of the operand, 0 if it is there. */
static double hold(held_panels *held, const tg_matrix *matrix, int64_t batch_count)
{
    for (int i = 0; i < held->count; i++) {
        if (held->data[i] == matrix->data)
            return 0;
    }
    held->data[held->next] = matrix->data;
    held->bytes[held->next] = count_bytes(matrix, batch_count);
    const double bytes = held->bytes[held->next];
    held->next = (held->next + 1) % held->count;
    return bytes;
}

static double count_held(const held_panels *held)
{
    double bytes = 0;
    for (int i = 0; i < held->count; i++)
        bytes += held->bytes[i];
    return bytes;
}

/* Counts what a panel reads, and what is there while it is multiplied. */
static void advance(panel_walk *walk, const tg_problem *panel)
{
    const double d = count_bytes(&panel->d, panel->batch_count);
    const double c = panel->beta != 0 ? d : 0;
    if (panel->alpha != 0)
        walk->read_bytes += hold(&walk->a, &panel->a, panel->batch_count) +
                            hold(&walk->b, &panel->b, panel->batch_count);
    walk->read_bytes += c;
    const double bytes = count_held(&walk->a) + count_held(&walk->b) + c + d;
    if (walk->most_bytes < bytes)
        walk->most_bytes = bytes;
}

static tg_panels check_panels(const char *text, int64_t memory_bytes, double flop_count,
                              int buffer_count)
{
    const tg_panel_limits limits = {memory_bytes, flop_count, buffer_count};
    tg_problem problem, panel;
    tg_panels panels;
    check_operands operands;
    check_result result;
    panel_walk walk = {0};
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(check_make_operands(&problem, 3, &operands), 1);
    if (tg_choose_panels(&problem, &limits, &panels))
        fail_msg("%s in %lld: %s", text, (long long)memory_bytes, tg_get_error_detail());
    assert_in_range(panels.held_count, 1, buffer_count > 1 ? place_count : 1);
    const int held = (int)panels.held_count, streamed = held > 1 ? 2 : 1;
    walk.a.count = panels.is_b_held ? streamed : held;
    walk.b.count = panels.is_b_held ? held : streamed;
    for (int64_t i = 0; i < panels.panel_count; i++) {
        assert_int_equal(tg_get_panel(&problem, &panels, i, &panel), TG_STATUS_OK);
        advance(&walk, &panel);
        if (tg_multiply(NULL, &panel))
            fail_msg("%s, panel %lld: %s", text, (long long)i, tg_get_error_detail());
    }
    assert_int_equal(check_compare(&problem, 1e9, &result), 1);
    if (!result.is_ok)
        fail_msg("%s in %lld bytes: element (%lld, %lld) of entry %lld is wrong", text,
                 (long long)memory_bytes, (long long)result.bad_row, (long long)result.bad_col,
                 (long long)result.bad_batch);
    const int is_shared = problem.batch_count > 1 && !problem.a.batch_stride;
    if (is_shared ? walk.read_bytes > panels.read_bytes : walk.read_bytes != panels.read_bytes)
        fail_msg("%s in %lld bytes reads %.0f bytes, not %.0f", text, (long long)memory_bytes,
                 walk.read_bytes, panels.read_bytes);
    if (memory_bytes &&
        (panels.memory_bytes > (double)memory_bytes || walk.most_bytes > panels.memory_bytes))
        fail_msg("%s: %.0f bytes at once, the plan says %.0f, the limit is %lld", text,
                 walk.most_bytes, panels.memory_bytes, (long long)memory_bytes);
    check_free_operands(&operands);
    return panels;
}

static void test_products(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "60x50x40",
        "60x50x40:tt:fp64",
        "50x60x40:nt:bf16:d=fp32",
        "60x50x40:tn:alpha=2:beta=-1",
        "60x50x40:dcol:beta=1",
        "60x50x40:bias=row:act=relu",
        "60x50x40:bias=col:act=silu:lda=43:ldb=57:ldd=61",
        "60x50x40:fp8_e4m3:d=bf16:sa=vector:sb=vector",
        "60x50x40:batch=7:beta=1",
        "60x50x40:batch=3:bsa=0:tn",
        "60x50x40:rsa=-40:csb=-1:rsb=50",
        "60x50x40:alpha=0:beta=1",
        "1x300x40",
        "300x1x40:fp64",
        "1x1x200",
        "300x5x1",
        "20x30x0:beta=1",
    };
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        for (int buffer_count = 1; buffer_count <= 2; buffer_count++) {
            check_panels(texts[i], 4096, 0, buffer_count);
            check_panels(texts[i], 16384, 0, buffer_count);
            check_panels(texts[i], 1000000, 1e4, buffer_count);
        }
        assert_int_equal(check_panels(texts[i], 0, 0, 1).panel_count, 1);
        check_panels(texts[i], 0, 0, 2);
    }
    /* Three streamed panels. */
    check_panels("20x3x40", 1000, 0, 2);
    check_panels("20x3x53", 1000, 0, 2);
}

/* The larger operand is held where that saves reads, and sizes are even. */
static void test_choice(void **state)
{
    (void)state;
    tg_problem problem;
    tg_panels panels;
    tg_panel_limits limits = {(int64_t)8 << 30, 0, 2};
    assert_int_equal(tg_parse_problem("65536x65536x65536", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_true(panels.is_b_held);
    assert_in_range(panels.col_count * panels.held_count, 20000, 24000);
    assert_int_equal(panels.col_count % 128, 0);
    assert_int_equal(panels.row_count % 128, 0);
    assert_true(panels.held_count > 2 && panels.row_count >= 1024);
    assert_true(panels.memory_bytes <= (double)limits.memory_bytes);
    /* B once and A three times, of which two panels of A stay at each of two turns. */
    const double kept = 2 * panels.row_count + 65536 - 12.0 * panels.row_count;
    assert_int_equal(panels.row_panel_count, 14);
    assert_true(panels.read_bytes == (4.0 * 65536 - kept) * 65536 * 4);
    assert_true(panels.written_bytes == 65536.0 * 65536 * 4);
    /* One buffer leaves room for more, and is not filled while it is in use. */
    limits.buffer_count = 1;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.held_count, 1);
    assert_in_range(panels.col_count, 20000, 32000);
    assert_true(panels.memory_bytes <= (double)limits.memory_bytes);
    /* A product that memory holds is cut too if copies run beside products. */
    limits = (tg_panel_limits){0, 0, 2};
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.panel_count, 32);
    assert_true(panels.read_bytes == 2.0 * 65536 * 65536 * 4);
    limits.buffer_count = 1;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.panel_count, 1);
    limits.buffer_count = 2;
    /* A of 40 rows stays whole while B streams. */
    assert_int_equal(tg_parse_problem("40x100000x5000", &problem, sizeof problem), TG_STATUS_OK);
    limits.memory_bytes = 100 << 20;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.row_panel_count, 1);
    assert_true(panels.read_bytes == 4.0 * (40.0 + 100000.0) * 5000.0);
}

/* Entries that are a panel each take turns in places that the limit counts. A product without a
 * batch needs one place for an operand that is a single panel. */
static void test_places(void **state)
{
    static const int64_t entry_counts[] = {1, 4, 7};
    (void)state;
    for (size_t i = 0; i < sizeof entry_counts / sizeof *entry_counts; i++) {
        tg_problem problem;
        tg_panels panels;
        const tg_panel_limits limits = {13 << 20, 0, 2};
        assert_int_equal(tg_parse_problem("1024x1024x64", &problem, sizeof problem), TG_STATUS_OK);
        problem.batch_count = entry_counts[i];
        problem.a.batch_stride = problem.b.batch_stride = 1024 * 64;
        problem.d.batch_stride = 1024 * 1024;
        assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
        const int64_t held = panels.is_b_held ? panels.col_count : panels.row_count;
        const int64_t streamed = panels.is_b_held ? panels.row_count : panels.col_count;
        const int64_t bytes =
            4 * (64 * (panels.held_count * held + panels.stream_count * streamed) +
                 panels.d_count * held * streamed);
        assert_true((double)bytes == panels.memory_bytes && bytes <= limits.memory_bytes);
        assert_true(streamed < 1024 || (panels.stream_count == 1) == (entry_counts[i] == 1));
    }
}

/* A held panel is done long before the one that takes its place is needed, and only the first ones
 * are waited for. */
static void test_order(void **state)
{
    (void)state;
    static const char *const texts[] = {"65536x65536x65536", "65536x65536x65536:bf16",
                                        "32768x32768x32768", "9000x70000x30000:tt:fp64"};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        tg_problem problem, panel;
        tg_panels panels;
        const tg_panel_limits limits = {(int64_t)3 << 30, 0, 2};
        assert_int_equal(tg_parse_problem(texts[i], &problem, sizeof problem), TG_STATUS_OK);
        problem.a.data = problem.b.data = problem.d.data = (void *)4096;
        assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
        int64_t last[place_count] = {0}, next = 0;
        held_panels held = {.count = (int)panels.held_count};
        assert_true(panels.held_count > 2 && panels.row_panel_count > 3);
        for (int64_t at = 0; at < panels.panel_count; at++) {
            assert_int_equal(tg_get_panel(&problem, &panels, at, &panel), TG_STATUS_OK);
            const tg_matrix *matrix = panels.is_b_held ? &panel.b : &panel.a;
            const int is_first = held.data[next] == NULL;
            if (hold(&held, matrix, 1) > 0) {
                assert_true(is_first || at - last[next] >= panels.held_count * 3 / 2 - 1);
                next = held.next;
            }
            for (int j = 0; j < held.count; j++)
                last[j] = held.data[j] == matrix->data ? at : last[j];
        }
    }
}

static void test_refusals(void **state)
{
    (void)state;
    tg_problem problem, panel;
    tg_panels panels;
    tg_panel_limits limits = {.memory_bytes = 803, .buffer_count = 1};
    assert_int_equal(tg_parse_problem("2x2x100", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_INVALID_ARGUMENT);
    assert_non_null(strstr(tg_get_error_detail(), "less than the 804 that one row"));
    limits.memory_bytes = 804;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.panel_count, 4);
    assert_int_equal(tg_get_panel(&problem, &panels, 4, &panel), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_get_panel(&problem, &panels, -1, &panel), TG_STATUS_INVALID_ARGUMENT);
    panels.row_count = 0;
    assert_int_equal(tg_get_panel(&problem, &panels, 0, &panel), TG_STATUS_INVALID_ARGUMENT);
    limits.buffer_count = 3;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_INVALID_ARGUMENT);
    limits.buffer_count = 1;
    problem.b.row_count = 3;
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_panels(NULL, &limits, &panels), TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_parse_problem("0x2x100", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_choose_panels(&problem, &limits, &panels), TG_STATUS_OK);
    assert_int_equal(panels.panel_count, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_products), cmocka_unit_test(test_choice),
        cmocka_unit_test(test_places),   cmocka_unit_test(test_order),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
