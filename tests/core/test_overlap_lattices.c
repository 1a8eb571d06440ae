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
#define COUNT_MAX 5
#define DIMS TGI_OVERLAP_DIMS_MAX
#define REACH_BYTES (DIMS * (COUNT_MAX - 1) * STRIDE_MAX * 8) /* to either side of the data */
#define PLACE_MAX 400
#define MEMORY_BYTES (2 * REACH_BYTES + PLACE_MAX + 8)

static unsigned char memory[MEMORY_BYTES];

static int64_t draw(int64_t count)
{
    static uint64_t state = 1;
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (int64_t)((state >> 33) % (uint64_t)count);
}

typedef struct lattice {
    int64_t counts[DIMS], strides[DIMS], element_bytes;
} lattice;

/* Draws the strides of two operands. Half of them are those of blocks of one matrix: they repeat or
 * nest. */
static void draw_strides(int64_t strides[2 * DIMS])
{
    for (int i = 0; i < 2 * DIMS; i++) {
        int64_t stride = draw(2) ? draw(5) : draw(STRIDE_MAX + 1);
        if (i > 0 && draw(2)) {
            const int64_t earlier = llabs(strides[draw(i)]) * (1 + draw(3));
            stride = earlier <= STRIDE_MAX ? earlier : stride;
        }
        strides[i] = draw(4) ? stride : -stride;
    }
}

static lattice draw_lattice(const int64_t strides[DIMS])
{
    lattice drawn = {.element_bytes = INT64_C(1) << draw(4)};
    memcpy(drawn.strides, strides, sizeof drawn.strides);
    for (int i = 0; i < DIMS; i++)
        drawn.counts[i] = 1 + draw(COUNT_MAX);
    return drawn;
}

static tgi_span measure(const lattice *l)
{
    return tgi_overlap_measure(DIMS, l->counts, l->strides, l->element_bytes);
}

/* Sets the bytes of an operand whose data begin at `place` to `value`. Returns 1 if one of them was
 * set before. */
static int mark(const lattice *l, int64_t place, unsigned char value)
{
    const int64_t total = l->counts[0] * l->counts[1] * l->counts[2] * l->counts[3];
    int found = 0;
    for (int64_t index = 0; index < total; index++) {
        int64_t at = place, rest = index;
        for (int i = 0; i < DIMS; i++) {
            at += rest % l->counts[i] * l->strides[i] * l->element_bytes;
            rest /= l->counts[i];
        }
        for (int64_t byte = at; byte < at + l->element_bytes; byte++)
            found |= memory[byte];
        memset(memory + at, value, (size_t)l->element_bytes);
    }
    return found;
}

static void test_small(void **state)
{
    (void)state;
    int sharing_count = 0, between_count = 0;
    for (int i = 0; i < CASE_COUNT; i++) {
        int64_t strides[2 * DIMS];
        draw_strides(strides);
        const lattice x = draw_lattice(strides), y = draw_lattice(strides + DIMS);
        const tgi_span x_span = measure(&x), y_span = measure(&y);
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
