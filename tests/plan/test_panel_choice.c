/*
 * The panels that a GPU is predicted to form fastest keep the limit, read the bytes that their plan
 * says, and are predicted to be no slower than what either of copies and products takes.
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

#include "plan/panel_time.h"
#include "tilegemm_lab.h"

enum { place_max = TGI_PANEL_HELD_MAX };

/* The panels of an operand that are there. A new one takes the place that was filled first. */
typedef struct held_panels {
    const void *data[place_max];
    int64_t count, next;
} held_panels;

/* Returns the bytes to read for a panel of the operand, 0 if it is there. */
static double hold(held_panels *held, const tg_matrix *matrix, int64_t entries)
{
    for (int64_t i = 0; i < held->count; i++) {
        if (held->data[i] == matrix->data)
            return 0;
    }
    held->data[held->next] = matrix->data;
    held->next = (held->next + 1) % held->count;
    return (double)entries * (double)matrix->row_count * (double)matrix->col_count *
           (double)tg_get_type_bytes(matrix->type);
}

/* Notes the panel of D among those that were formed. Returns 1 if it was formed before. */
static int is_formed_again(const tg_problem *problem, const tg_panels *panels, int64_t index,
                           const tg_problem *panel, char *formed)
{
    const int64_t of_entry = panels->row_panel_count * panels->col_panel_count;
    const int64_t offset = (int64_t)((uintptr_t)panel->d.data - (uintptr_t)problem->d.data) /
                               tg_get_type_bytes(problem->d.type) -
                           index / of_entry * panels->batch_count * problem->d.batch_stride;
    const int64_t row = offset / problem->d.row_stride, col = offset % problem->d.row_stride;
    char *place =
        &formed[index / of_entry * of_entry + row / panels->row_count * panels->col_panel_count +
                col / panels->col_count];
    return (*place)++;
}

static void check_choice(const char *text, const char *chip_name, int64_t memory_bytes,
                         tg_panels *panels, tg_panel_times *times)
{
    tg_problem problem, panel;
    tg_chip chip;
    held_panels a = {.count = 0}, b = {.count = 0};
    double read_bytes = 0;
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_find_chip(chip_name, &chip), TG_STATUS_OK);
    problem.a.data = problem.b.data = problem.d.data = (void *)4096;
    if (tg_choose_gpu_panels(NULL, &chip, &problem, memory_bytes, panels, times))
        fail_msg("%s in %lld: %s", text, (long long)memory_bytes, tg_get_error_detail());
    assert_true(!memory_bytes || panels->memory_bytes <= (double)memory_bytes);
    assert_in_range(panels->held_count, 1, place_max);
    assert_non_null(times->kernel);
    assert_true(times->product_s > 0 && times->copy_s > 0);
    assert_true(times->total_s > times->product_s && times->total_s > times->copy_s);
    assert_in_range(panels->stream_count, 1, place_max);
    a.count = panels->is_b_held ? panels->stream_count : panels->held_count;
    b.count = panels->is_b_held ? panels->held_count : panels->stream_count;
    char *formed = calloc((size_t)panels->panel_count, 1);
    assert_non_null(formed);
    for (int64_t i = 0; i < panels->panel_count; i++) {
        assert_int_equal(tg_get_panel(&problem, panels, i, &panel), TG_STATUS_OK);
        assert_int_equal(is_formed_again(&problem, panels, i, &panel, formed), 0);
        read_bytes += hold(&a, &panel.a, panel.batch_count) + hold(&b, &panel.b, panel.batch_count);
    }
    free(formed);
    if (read_bytes != panels->read_bytes)
        fail_msg("%s reads %.0f bytes, not %.0f", text, read_bytes, panels->read_bytes);
}

static void test_choices(void **state)
{
    (void)state;
    static const char *const texts[] = {
        "16384x16384x16384",      "16384x16384x16384:bf16", "32768x32768x32768",
        "32768x32768x32768:tt",   "16384x16384x16384:fp64", "65536x65536x1024:bf16",
        "8192x8192x131072:bf16",  "65536x512x16384:nt",     "300x70000x20000:tn:fp16",
        "9000x7000x5000:batch=3", "100x100x100:batch=1000", "40000x30000x20000:fp8_e4m3:d=bf16",
        "1x1000000x1000",         "1024x1024x1024",         "33x47x90"};
    tg_panels panels;
    tg_panel_times times;
    int kept_count = 0; /* products of which all panels stay */
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        check_choice(texts[i], "h200", (int64_t)2 << 30, &panels, &times);
        check_choice(texts[i], "a100", (int64_t)600 << 20, &panels, &times);
        check_choice(texts[i], "t4", 0, &panels, &times);
        kept_count += panels.stream_count > 2 && panels.held_count > 2;
    }
    assert_true(kept_count > 2);
}

/* Panels that memory asks for are multiplied nearly as fast as those without a limit. Batch entries
 * stay whole, and a batch-invariant product, whose bits depend on its columns, has the panels that
 * read the fewest bytes. */
static void test_sizes(void **state)
{
    (void)state;
    tg_panels panels;
    tg_panel_times times;
    check_choice("32768x32768x32768", "h200", 0, &panels, &times);
    const double free_s = times.total_s;
    check_choice("32768x32768x32768", "h200", (int64_t)2 << 30, &panels, &times);
    assert_true(times.total_s < 1.2 * free_s);
    check_choice("64x64x64:batch=4096", "h200", 8 << 20, &panels, &times);
    assert_true(panels.batch_count > 1 && panels.row_count == 64 && panels.col_count == 64);
    tg_problem problem;
    tg_chip chip;
    assert_int_equal(tg_parse_problem("60000x4096x4096:bf16", &problem, sizeof problem),
                     TG_STATUS_OK);
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    problem.is_batch_invariant = 1;
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, (int64_t)1 << 30, &panels, &times),
                     TG_STATUS_OK);
    tg_panels fewest_bytes;
    const tg_panel_limits limits = {.memory_bytes = (int64_t)1 << 30, .buffer_count = 2};
    assert_int_equal(tg_choose_panels(&problem, &limits, &fewest_bytes), TG_STATUS_OK);
    assert_int_equal(panels.row_count, fewest_bytes.row_count);
    assert_int_equal(panels.col_count, fewest_bytes.col_count);
}

/* Two held panels of 3 bytes and a streamed one of 5, on a bus of a byte a second. */
static void test_walk(void **state)
{
    (void)state;
    const tgi_panel_rates rates = {.alone_bytes_per_s = 1,
                                   .both_bytes_per_s = 1,
                                   .fill_bytes_per_s = 1e9,
                                   .empty_bytes_per_s = 1e9};
    const tgi_panel_cut cut = {
        .held_length = 2, .stream_length = 1, .held_bytes = 3, .stream_bytes = 5, .d_bytes = 2};
    tg_panels panels = {.batch_count = 1,
                        .row_count = 1,
                        .col_count = 1,
                        .row_panel_count = 1,
                        .col_panel_count = 2,
                        .panel_count = 2,
                        .is_b_held = 1,
                        .held_count = 2,
                        .stream_count = 2,
                        .d_count = 2,
                        .read_bytes = 11,
                        .written_bytes = 4};
    /* Copied until 8, multiplied until 18 and 28, back at 30. */
    assert_float_equal(tgi_panels_predict(&cut, &panels, 1, &rates, 10), 30, 0.01);
    assert_float_equal(tgi_panels_copy_seconds(&cut, &panels, &rates), 11, 1e-3);
    /* The second panel of B is copied from 18 to 21, when the first one is done. */
    panels.held_count = 1;
    assert_float_equal(tgi_panels_predict(&cut, &panels, 1, &rates, 10), 33, 0.01);
    /* Copies alone: the last element of D goes behind the last product. */
    assert_float_equal(tgi_panels_predict(&cut, &panels, 1, &rates, 0.001), 13, 0.01);
}

/* A panel of B and one of D with lines of `columns` elements of 2 bytes, 128 KiB apart, on a bus of
 * a byte a second. Threads take four times as long. Returns the seconds of the copies for each byte
 * of a panel. */
static double time_lines(int64_t columns, double pitch, int is_pinned)
{
    const tgi_panel_rates rates = {.alone_bytes_per_s = 1,
                                   .both_bytes_per_s = 1,
                                   .fill_bytes_per_s = 0.25,
                                   .empty_bytes_per_s = 0.25,
                                   .is_pinned = is_pinned};
    const tgi_panel_cut cut = {.held_length = columns,
                               .stream_length = 1,
                               .held_bytes = 2,
                               .d_bytes = 2,
                               .held_lines = 1,
                               .is_d_along_held = 1,
                               .held_pitch = pitch,
                               .d_pitch = pitch};
    const double bytes = 2 * (double)columns;
    const tg_panels panels = {.batch_count = 1,
                              .row_count = 1,
                              .col_count = columns,
                              .row_panel_count = 1,
                              .col_panel_count = 1,
                              .panel_count = 1,
                              .is_b_held = 1,
                              .held_count = 1,
                              .stream_count = 1,
                              .d_count = 1,
                              .read_bytes = bytes,
                              .written_bytes = bytes};
    return tgi_panels_copy_seconds(&cut, &panels, &rates) / bytes;
}

/* Threads move all that is pageable, and of pinned memory short lines. */
static void test_pinned_lines(void **state)
{
    (void)state;
    assert_float_equal(time_lines(16384, 131072, 0), 8, 0.01);
    assert_float_equal(time_lines(16384, 131072, 1), 1, 0.01); /* 32 KiB */
    assert_float_equal(time_lines(16000, 131072, 1), 8, 0.01);
    assert_float_equal(time_lines(16000, 64000, 1), 1, 0.01); /* half of their pitch */
    assert_float_equal(time_lines(500, 1024, 1), 8, 0.01);
    assert_float_equal(time_lines(500, 1000, 1), 1, 0.01); /* contiguous */
    assert_float_equal(time_lines(16384, 0, 1), 8, 0.01);  /* elements apart */
}

static void test_refusals(void **state)
{
    (void)state;
    tg_problem problem;
    tg_panels panels;
    tg_panel_times times;
    tg_chip chip;
    assert_int_equal(tg_parse_problem("2x2x100", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, 100, &panels, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, -1, &panels, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, NULL, 0, &panels, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, 0, NULL, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, 0, &panels, NULL),
                     TG_STATUS_INVALID_ARGUMENT);
    chip.sm_count = 0;
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, 0, &panels, &times),
                     TG_STATUS_INVALID_ARGUMENT);
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    tg_context *cpu;
    assert_int_equal(tg_create_context(&options, &cpu), TG_STATUS_OK);
    assert_int_equal(tg_choose_gpu_panels(cpu, NULL, &problem, 0, &panels, &times),
                     TG_STATUS_UNSUPPORTED);
    tg_destroy_context(cpu);
    assert_int_equal(tg_parse_problem("0x2x100", &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_choose_gpu_panels(NULL, &chip, &problem, 0, &panels, &times), TG_STATUS_OK);
    assert_int_equal(panels.panel_count, 0);
    assert_null(times.kernel);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_choices),  cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_walk),     cmocka_unit_test(test_pinned_lines),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
