/*
 * Tests that a problem of FP32 or FP64 with an epilogue keeps the row that its product alone takes
 * on an H200, unless another row is predicted to be clearly faster, that the other rows say so, and
 * that other problems take the row that is predicted to be the fastest.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "tilegemm_lab.h"

enum { TEXT_BYTES = 160, CANDIDATES_MAX = 512 };
#define MARGIN 1.05

static const char *const shapes[] = {"64x824x913:nt",
                                     "64x139x1472",
                                     "912x476x338",
                                     "384x8512x417",
                                     "2498x128x1344",
                                     "128x152x1280",
                                     "51x2688x218:nt:fp64",
                                     "896x76x832:fp64",
                                     "1280x336x441:nt:fp64",
                                     "832x4432x430:fp64",
                                     "2333x844x1418:prec=ieee_fp32"};
static const char *const other_shapes[] = {
    "206x560x2679:nt:fp16",          "1260x65x5872:fp16",
    "53x1392x6169:nt:bf16",          "206x560x2679:nt:fp8_e4m3:d=bf16",
    "64x824x913:nt:batch_invariant", "896x76x832:fp64:batch_invariant",
};
static const char *const epilogues[] = {":bias=col", ":bias=row:act=gelu_tanh", ":beta=1",
                                        ":act=silu", ":alpha=2"};
enum {
    SHAPE_COUNT = sizeof shapes / sizeof *shapes,
    OTHER_COUNT = sizeof other_shapes / sizeof *other_shapes,
    EPILOGUE_COUNT = sizeof epilogues / sizeof *epilogues
};

/* The candidates for a problem on an H200, of which number `chosen` is the choice. */
typedef struct row_list {
    tg_candidate candidates[CANDIDATES_MAX];
    int count, chosen;
} row_list;

static void list_rows(const char *text, row_list *rows)
{
    tg_chip chip;
    tg_problem problem;
    assert_int_equal(tg_find_chip("h200", &chip), TG_STATUS_OK);
    assert_int_equal(tg_parse_problem(text, &problem, sizeof problem), TG_STATUS_OK);
    assert_int_equal(
        tg_list_chip_candidates(&chip, &problem, rows->candidates, CANDIDATES_MAX, &rows->count),
        TG_STATUS_OK);
    rows->chosen = -1;
    for (int i = 0; i < rows->count; i++)
        if (rows->candidates[i].is_chosen)
            rows->chosen = i;
    assert_true(rows->chosen >= 0);
}

/* Returns how many rows are predicted to be faster than the choice, and tests what they say. */
static int count_faster(const row_list *rows)
{
    const double chosen_s = rows->candidates[rows->chosen].predicted_s;
    int faster = 0;
    for (int i = 0; i < rows->count; i++) {
        const tg_candidate *row = &rows->candidates[i];
        if (!row->is_legal || row->predicted_s >= chosen_s || row->refusal != TG_REFUSAL_SLOWER)
            continue;
        assert_non_null(strstr(row->reason, "chosen without an epilogue"));
        assert_true(chosen_s <= MARGIN * row->predicted_s);
        faster++;
    }
    return faster;
}

static void test_rows_are_kept(void **state)
{
    static row_list plain, rows;
    int kept = 0, left = 0;
    (void)state;
    for (int i = 0; i < SHAPE_COUNT; i++) {
        list_rows(shapes[i], &plain);
        assert_int_equal(count_faster(&plain), 0);
        for (int j = 0; j < EPILOGUE_COUNT; j++) {
            char text[TEXT_BYTES];
            snprintf(text, sizeof text, "%s%s", shapes[i], epilogues[j]);
            list_rows(text, &rows);
            const tg_candidate *before = &rows.candidates[plain.chosen];
            const double chosen_s = rows.candidates[rows.chosen].predicted_s;
            const int faster = count_faster(&rows);
            if (rows.chosen == plain.chosen) {
                kept += faster > 0;
            } else {
                left++;
                assert_int_equal(faster, 0);
                assert_true(!before->is_legal || before->predicted_s > MARGIN * chosen_s);
            }
        }
    }
    assert_true(kept > 0);
    assert_true(left > 0);
}

static void test_others(void **state)
{
    static row_list rows;
    (void)state;
    for (int i = 0; i < OTHER_COUNT; i++)
        for (int j = 0; j < EPILOGUE_COUNT; j++) {
            char text[TEXT_BYTES];
            snprintf(text, sizeof text, "%s%s", other_shapes[i], epilogues[j]);
            list_rows(text, &rows);
            for (int k = 0; k < rows.count; k++)
                assert_null(strstr(rows.candidates[k].reason, "without an epilogue"));
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_rows_are_kept),
                                       cmocka_unit_test(test_others)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
