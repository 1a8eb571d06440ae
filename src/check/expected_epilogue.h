/*
 * Declares the oracle's own epilogue: what becomes of an exact sum of products. The triple loop,
 * Freivalds' check and the comparison use it. It shares no code with the epilogue of the library
 * (core/epilogue.h), which it judges. This file is private to src/check.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CHECK_EXPECTED_EPILOGUE_H
#define TG_CHECK_EXPECTED_EPILOGUE_H

#include "check.h"

/* Holds the terms that the epilogue adds to alpha s (A B) in one element of D: beta C and the
 * bias. */
typedef struct check_added {
    long double sum;  /* beta C + bias */
    long double size; /* |beta C| + |bias| */
} check_added;

/* Returns alpha or beta as the library uses it: rounded to FP32 unless the inputs are FP64. */
double check_round_scalar(const tg_problem *problem, double scalar);

/* Return the scale of a row of op(A), and of a column of op(B); 1 if there is none. */
double check_get_row_scale(const tg_problem *problem, int64_t row);
double check_get_col_scale(const tg_problem *problem, int64_t col);

/* Returns the terms that are added in an element of D of batch entry `batch`. */
check_added check_find_added(const tg_problem *problem, int64_t batch, int64_t row, int64_t col);

/* Returns 1 if a term that every row adds in column `col` is NaN or Inf. */
int check_is_col_special(const tg_problem *problem, int64_t col);

/* Returns the number of roundings of one element: over k and in the epilogue. */
double check_get_rounding_count(const tg_problem *problem, int64_t k);

/* Returns the activation of x, and the largest magnitude of its slope. */
long double check_activate(tg_activation activation, long double x);
long double check_get_slope(tg_activation activation);

/* Returns the scale of D, 1 if there is none. */
long double check_get_d_scale(const tg_problem *problem);

/* Returns the offset in elements of (row, col) of batch entry `batch`. */
int64_t check_get_offset(const tg_matrix *view, int64_t batch, int64_t row, int64_t col);

#endif /* TG_CHECK_EXPECTED_EPILOGUE_H */
