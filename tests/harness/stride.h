/*
 * This header says which of its cases a test with many cases runs. With TG_TEST_STRIDE=10 in the
 * environment it runs every tenth case, without the variable every case. TG_TEST_FIRST is the first
 * of them, 0 unless it is set, so that runs with TG_TEST_FIRST=0 to 9 share out all cases.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_STRIDE_H
#define TEST_STRIDE_H

#include <stdint.h>
#include <stdlib.h>

/* Returns the distance from one case to the next that runs: 1 if every case runs. */
static inline int stride_get(void)
{
    const char *text = getenv("TG_TEST_STRIDE");
    int stride = text ? atoi(text) : 1;
    return stride >= 1 ? stride : 1;
}

/* Returns the first case that runs. */
static inline int stride_get_first(void)
{
    const char *text = getenv("TG_TEST_FIRST");
    int first = text ? atoi(text) : 0;
    return first >= 0 && first < stride_get() ? first : 0;
}

/* Returns the seed of a random sequence of cases, another one for each first case. */
static inline uint64_t stride_choose_seed(uint64_t seed)
{
    return seed + 1000003 * (uint64_t)stride_get_first();
}

/* Returns how many of `count` cases run, which is at least one. */
static inline int stride_count_cases(int count)
{
    return (count + stride_get() - 1) / stride_get();
}

#endif
