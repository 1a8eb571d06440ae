/*
 * Compares the answer whether two operands share memory with a map of their bytes, for random
 * strides of small operands. The answer must be exact: the search of core/overlap.c ends early for
 * larger operands alone.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "core/overlap.h"

#define CASE_COUNT 100000
#define STRIDE_MAX 60
#define COUNT_MAX 7
#define REACH_BYTES (3 * (COUNT_MAX - 1) * STRIDE_MAX * 8) /* to either side of an operand's data */
#define PLACE_MAX 400
#define MEMORY_BYTES (2 * REACH_BYTES + PLACE_MAX + 8)

static unsigned char memory[MEMORY_BYTES];

static int64_t draw(int64_t count)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)count);
}

/* Draws the strides of two operands. Half of them are those of blocks of one matrix: they repeat or
 * nest. */
static void draw_strides(int64_t strides[6])
{
    for (int i = 0; i < 6; i++) {
        int64_t stride = draw(2) ? draw(5) : draw(STRIDE_MAX + 1);
        if (i > 0 && draw(2)) {
            const int64_t earlier = llabs(strides[draw(i)]) * (1 + draw(3));
            stride = earlier <= STRIDE_MAX ? earlier : stride;
        }
        strides[i] = draw(4) ? stride : -stride;
    }
}

static tgi_operand_view draw_view(const int64_t strides[3])
{
    static const tg_type types[] = {TG_TYPE_FP8_E4M3, TG_TYPE_BF16, TG_TYPE_FP32, TG_TYPE_FP64};
    return (tgi_operand_view){1 + draw(COUNT_MAX),
                              1 + draw(COUNT_MAX),
                              1 + draw(COUNT_MAX),
                              {strides[0], strides[1], strides[2]},
                              types[draw(4)]};
}

/* Sets the bytes of an operand whose data begin at `place` to `value`. Returns 1 if one of them was
 * set before. */
static int mark(const tgi_operand_view *view, int64_t place, unsigned char value)
{
    const int64_t element_bytes = tgi_type_bytes(view->type);
    int found = 0;
    for (int64_t batch = 0; batch < view->batch_count; batch++) {
        for (int64_t i = 0; i < view->row_count; i++) {
            for (int64_t j = 0; j < view->col_count; j++) {
                const int64_t at =
                    place + element_bytes * (batch * view->layout.batch + i * view->layout.row +
                                             j * view->layout.col);
                for (int64_t byte = at; byte < at + element_bytes; byte++)
                    found |= memory[byte];
                memset(memory + at, value, (size_t)element_bytes);
            }
        }
    }
    return found;
}

static void test_small(void **state)
{
    (void)state;
    int sharing_count = 0, between_count = 0;
    for (int i = 0; i < CASE_COUNT; i++) {
        int64_t strides[6];
        draw_strides(strides);
        const tgi_operand_view x = draw_view(strides), y = draw_view(strides + 3);
        const tgi_span x_span = tgi_overlap_find_span(&x), y_span = tgi_overlap_find_span(&y);
        const int64_t x_place = REACH_BYTES, y_place = REACH_BYTES + draw(PLACE_MAX);
        mark(&x, x_place, 1);
        const int is_shared = mark(&y, y_place, 0);
        mark(&x, x_place, 0);
        const int answer =
            tgi_overlap_may_share(memory + x_place, &x_span, memory + y_place, &y_span);
        if (answer != is_shared)
            fail_msg("case %d: the answer is %d for operands that share %s", i, answer,
                     is_shared ? "memory" : "nothing");
        assert_int_equal(
            tgi_overlap_may_share(memory + y_place, &y_span, memory + x_place, &x_span), answer);
        sharing_count += is_shared;
        between_count += !is_shared && y_place + y_span.low < x_place + x_span.high &&
                         x_place + x_span.low < y_place + y_span.high;
    }
    /* Both answers were asked for, and the address ranges did not decide. */
    assert_true(sharing_count > CASE_COUNT / 20 && between_count > CASE_COUNT / 20);
}

/* Two strides of many places each need the closed form. One entry more or less in a row decides. */
static void test_long(void **state)
{
    (void)state;
    const int64_t count = INT64_C(1) << 30;
    const tgi_operand_view one = {1, 1, 1, {1, 1, 0}, TG_TYPE_FP8_E4M3};
    tgi_operand_view grid = {count, count, 1, {1000003, 998244353, 0}, TG_TYPE_FP8_E4M3};
    const tgi_span span = tgi_overlap_find_span(&one);
    const int64_t row = 123456789, col = 987654321;
    const int64_t place = row * grid.layout.row + col * grid.layout.col;
    for (int i = 0; i < 2; i++) { /* row 123456789, column 987654321, and its neighbour */
        const tgi_span grid_span = tgi_overlap_find_span(&grid);
        assert_int_equal(tgi_overlap_may_meet(place, &grid_span, &span), 1);
        assert_int_equal(tgi_overlap_may_meet(place % 1000003, &grid_span, &span), 0);
        grid.row_count = row + 1;
    }
    grid.row_count = row; /* no other row and column have that sum */
    const tgi_span grid_span = tgi_overlap_find_span(&grid);
    assert_int_equal(tgi_overlap_may_meet(place, &grid_span, &span), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_long)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
