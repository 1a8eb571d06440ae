/*
 * This header says which of its cases a test with many cases runs. With TG_TEST_STEP=10 in the
 * environment it runs every tenth case, without the variable every case. TG_TEST_FIRST is the first
 * of them, 0 unless it is set, so that runs with TG_TEST_FIRST=0 to 9 share out all cases.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_STEP_H
#define TEST_STEP_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the distance from one case to the next that runs: 1 if every case runs. */
static inline int step_get(void)
{
    const char *text = getenv("TG_TEST_STEP");
    int step = text ? atoi(text) : 1;
    return step >= 1 ? step : 1;
}

/* Returns the first case that runs. */
static inline int step_get_first(void)
{
    const char *text = getenv("TG_TEST_FIRST");
    int first = text ? atoi(text) : 0;
    return first >= 0 && first < step_get() ? first : 0;
}

/* Returns the seed of a random sequence of cases, another one for each first case. */
static inline uint64_t step_choose_seed(uint64_t seed)
{
    return seed + 1000003 * (uint64_t)step_get_first();
}

/* Returns how many of `count` cases run, which is at least one. */
static inline int step_count_cases(int count)
{
    return (count + step_get() - 1) / step_get();
}

#endif
