/*
 * Tests division by a product and a shift against the operator, for divisors of every size and the
 * numbers about their multiples.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "check/check.h"
#include "kernels/divisor.h"

/* Judges n, the multiples of the divisor next to it and their neighbours, and the range's ends. */
static void judge(int32_t value, int64_t n)
{
    const tgi_divisor divisor = tgi_make_divisor(value);
    const int64_t multiple = n / value * value;
    const int64_t tried[] = {
        n, multiple - 1,  multiple, multiple + 1, multiple + value - 1, multiple + value, 0,
        1, INT32_MAX - 1, INT32_MAX};
    assert_int_equal(divisor.value, value);
    for (size_t i = 0; i < sizeof tried / sizeof tried[0]; i++) {
        if (tried[i] >= 0 && tried[i] <= INT32_MAX)
            assert_int_equal(tgi_divide((int32_t)tried[i], divisor), tried[i] / value);
    }
}

static void test_small(void **state)
{
    (void)state;
    for (int32_t value = 1; value <= 4096; value++)
        for (int64_t n = 0; n <= INT32_MAX; n += INT32_MAX / 7)
            judge(value, n);
}

static void test_powers(void **state)
{
    (void)state;
    for (int bit = 0; bit < 31; bit++)
        for (int64_t value = ((int64_t)1 << bit) - 1; value <= ((int64_t)1 << bit) + 1; value++)
            for (int64_t n = 0; n <= INT32_MAX; n += INT32_MAX / 99)
                if (value > 0)
                    judge((int32_t)value, n);
    judge(INT32_MAX, INT32_MAX);
}

static void test_random(void **state)
{
    (void)state;
    uint64_t random = 3;
    for (int i = 0; i < 200000; i++) {
        const int32_t value = (int32_t)(check_next_random(&random) % INT32_MAX) + 1;
        judge(value, (int64_t)(check_next_random(&random) % INT32_MAX));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_small), cmocka_unit_test(test_powers),
                                       cmocka_unit_test(test_random)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
