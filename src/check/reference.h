/*
 * Runs the triple loop in a wider type, a block of elements at a time. This file is private to
 * src/check.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CHECK_REFERENCE_H
#define TG_CHECK_REFERENCE_H

#include "expected_epilogue.h"

/* The exact value of an element of D before the activation, and the terms of its error bound. */
typedef struct check_expected {
    long double exact;           /* alpha s (A B) + beta C + bias, s the product of the scales */
    long double product_size;    /* |A||B| */
    long double scale;           /* |alpha s| */
    long double magnitude;       /* |alpha s| (|A||B|) + |beta| |C| + |bias| */
    double row_max_a, col_max_b; /* largest |a| of the row of op(A), |b| of the column of op(B) */
} check_expected;

/* Some indices of a dimension, or 0 .. count - 1 if `items` is NULL. */
typedef struct check_indices {
    const int64_t *items;
    int64_t count;
} check_indices;

typedef void check_visitor(void *state, int64_t row, int64_t col, const check_expected *expected);

/* Returns the relative error of products over |A||B|, in addition to the rounding of sums. */
double check_get_product_error(const tg_problem *problem);

/* Returns 1 if instructions may take subnormal inputs and sums as zero. */
int check_may_flush(const tg_problem *problem);

/* Returns the largest loss of `products` products by FP16 instructions, which align subnormal
 * inputs as 2^-14. For other types it is 0, even if gamma is infinite. */
double check_bound_alignment(const tg_problem *problem, double gamma, double products, double max_a,
                             double max_b);

/* Returns how many of `limit` items, of `flops_each` operations each, to compare for about `flops`
 * operations: all if possible, and at least the first and the last. */
int64_t check_count_sample(double flops, double flops_each, int64_t limit);

/* Returns one index at random from each of `count` equal parts of 0 .. limit - 1, and both ends;
 * NULL when out of memory. The caller frees it. */
int64_t *check_sample_indices(int64_t limit, int64_t count, uint64_t *random);

/* Calls `visit` for every element of rows x cols of batch entry `batch`. FP64 inputs are summed in
 * long double, the others in double. Returns 0 when out of memory. */
int check_visit_reference(const tg_problem *problem, int64_t batch, check_indices rows,
                          check_indices cols, check_visitor *visit, void *state);

#endif /* TG_CHECK_REFERENCE_H */
