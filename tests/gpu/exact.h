/*
 * Makes products that FP32 holds exactly, and tells what D must then be: A and B repeat a few
 * values in the order of memory, so that each element of D is one of few sums, rounded to D's type
 * once.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_EXACT_H
#define TEST_EXACT_H

#include "tilegemm.h"

/* Chooses the values: "ones", whose sums are k, or "integers" of -7 to 7. Returns 0 if `name` is
 * neither. */
int exact_choose_values(const char *name);

/* Return element `index` of an operand's memory, and the number of elements after which they
 * repeat. */
double exact_value(int64_t index);
int exact_value_count(void);

/* Returns the index of the first element of `host` that is not alpha times the sum, rounded to D's
 * type, or -1 if there is none. `host` is a copy of batch entry `entry` of D, row after row; alpha
 * is a power of two. Sets *want to the right value. */
int64_t exact_find_wrong(const tg_problem *problem, int entry, int64_t k, const char *host,
                         double *want);

/* Fails the test, with `text`, if an element of `host`, a copy of D, is wrong. */
void exact_assert(const tg_problem *problem, int64_t k, const char *host, const char *text);

#endif
