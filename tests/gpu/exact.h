/*
 * Products that FP32 holds exactly, and what D must then be: A and B repeat a few values in the
 * order of memory, so that each element of D is one of few sums, rounded to D's type once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_EXACT_H
#define TEST_EXACT_H

#include "tilegemm.h"

/* "ones", whose sums are k, or "integers", of -7 to 7. Returns 0 where `name` is neither. */
int exact_choose_values(const char *name);

/* Element `index` of an operand's memory, and after how many they are repeated. */
double exact_value(int64_t index);
int exact_value_count(void);

/* The first element of `host`, a copy of batch entry `entry` of D, row after row, that is not alpha
 * times the sum, rounded to D's type; -1: none. alpha: a power of two. Sets *want to that value. */
int64_t exact_find_wrong(const tg_problem *problem, int entry, int64_t k, const char *host,
                         double *want);

/* Fails the test, with `text`, where an element of `host`, a copy of D, is wrong. */
void exact_assert(const tg_problem *problem, int64_t k, const char *host, const char *text);

#endif
