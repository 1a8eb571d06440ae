/* Tests the walk over the rows that tiles prefetch: the lines it touches, its pace and its end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/checked.h"
#include "cpu/prefetch.h"

#define LINE_BYTES 64

static _Alignas(LINE_BYTES) char memory[1 << 14];

/* Rows of `memory`; the first one begins at byte `start`. */
typedef struct row_set {
    int64_t start, row_bytes, row_stride, row_count;
} row_set;

static int64_t find_line(const tgi_prefetch *walk)
{
    return (walk->at - memory) / LINE_BYTES;
}

/* Walks over one row and returns the number of prefetches. The lines follow one another from the
 * first one that begins in the row. The last one is the row's or, after strides of less than a
 * line, the next one. */
static int64_t check_row(tgi_prefetch *walk, int64_t start, int64_t row_bytes)
{
    const int64_t last_line = (start + row_bytes - 1) / LINE_BYTES;
    const int64_t count = tgi_divide_up(row_bytes, walk->stride);
    int64_t line = tgi_divide_up(start, LINE_BYTES);
    assert_int_equal(find_line(walk), line);
    for (int64_t i = 0; i < count; i++) {
        assert_in_range(find_line(walk), line, line + 1);
        line = find_line(walk);
        tgi_cpu_prefetch_next(walk);
    }
    assert_in_range(line, last_line, last_line + 1);
    return count;
}

/* Walks over the rows of all sets, paced for `iterations` iterations of a loop. Returns the number
 * of prefetches. */
static int64_t check_walk(const row_set *sets, int count, int64_t iterations)
{
    tgi_prefetch prefetches[TGI_PREFETCH_COUNT];
    int64_t prefetch_count = 0;
    for (int i = 0; i < count; i++)
        tgi_cpu_start_prefetch(&prefetches[i], memory + sets[i].start, sets[i].row_bytes,
                               sets[i].row_stride, sets[i].row_count);
    tgi_prefetch *walk = tgi_cpu_pace_prefetches(prefetches, count, iterations);
    for (int i = 0; i < count; i++)
        for (int64_t row = 0; row < sets[i].row_count; row++)
            prefetch_count +=
                check_row(walk, sets[i].start + row * sets[i].row_stride, sets[i].row_bytes);
    const char *end = walk->at;
    for (int i = 0; i < 2 * LINE_BYTES; i++) {
        tgi_cpu_prefetch_next(walk);
        assert_ptr_equal(walk->at, end);
    }
    return prefetch_count;
}

static const row_set aligned = {0, 256, 512, 5};
static const row_set falling = {8192, 256, -512, 5};
static const row_set unaligned = {20, 200, 404, 7};

/* 20 lines take an iteration each, several each, or as many as there are. */
static void test_pace(void **state)
{
    (void)state;
    assert_int_equal(check_walk(&aligned, 1, 20), 20);
    assert_int_equal(check_walk(&aligned, 1, 40), 40);
    assert_int_equal(check_walk(&aligned, 1, 160), 160);
    assert_int_equal(check_walk(&aligned, 1, 10000), 160);
    assert_int_equal(check_walk(&aligned, 1, 7), 20);
    assert_int_equal(check_walk(&aligned, 1, 0), 20);
}

static void test_rows(void **state)
{
    static const row_set one_row = {128, 64, 0, 1};
    (void)state;
    for (int64_t iterations = 0; iterations < 300; iterations++) {
        check_walk(&falling, 1, iterations);
        check_walk(&unaligned, 1, iterations);
        check_walk(&one_row, 1, iterations);
    }
}

static void test_linked_sets(void **state)
{
    const row_set sets[TGI_PREFETCH_COUNT] = {unaligned, falling, aligned};
    (void)state;
    for (int64_t iterations = 0; iterations < 300; iterations++)
        check_walk(sets, TGI_PREFETCH_COUNT, iterations);
    assert_null(tgi_cpu_pace_prefetches(NULL, 0, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_pace), cmocka_unit_test(test_rows),
                                       cmocka_unit_test(test_linked_sets)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
