/*
 * Reads the step of a test with many cases, the environment variable TG_TEST_STEP. With
 * TG_TEST_STEP=10 the test runs every tenth case, without the variable every case.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_STEP_H
#define TEST_STEP_H

#include <stdlib.h>

/* Returns the distance from one case to the next that runs: 1 if every case runs. */
static inline int step_get(void)
{
    const char *text = getenv("TG_TEST_STEP");
    int step = text ? atoi(text) : 1;
    return step >= 1 ? step : 1;
}

/* Returns how many of `count` cases run, which is at least one. */
static inline int step_count_cases(int count)
{
    return (count + step_get() - 1) / step_get();
}

#endif
