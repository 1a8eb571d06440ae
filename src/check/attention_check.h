/*
 * Compares attention with its definition in FP64 (long double for FP64), by the bound of
 * tilegemm_attention.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CHECK_ATTENTION_H
#define TG_CHECK_ATTENTION_H

#include "tilegemm_attention.h"

/* The place of a query or key of a batch entry: a row of an entry of its tensor. */
typedef struct check_place {
    int64_t entry, row;
} check_place;

/* Return the places of query i and key j of batch entry `batch`. */
check_place check_find_query(const tg_attention *attention, int64_t batch, int64_t i);
check_place check_find_key(const tg_attention *attention, int64_t batch, int64_t j);

/* Return the numbers of queries and keys of a batch entry. */
int64_t check_count_queries(const tg_attention *attention, int64_t batch);
int64_t check_count_keys(const tg_attention *attention, int64_t batch);

/* Sets *low and *high to the keys low .. high - 1 that query i of a batch entry sees; low = high if
 * it sees none. */
void check_find_keys(const tg_attention *attention, int64_t batch, int64_t i, int64_t *low,
                     int64_t *high);

/* Returns the operations of both products for visible keys: two for each element of K and V. */
double check_count_attention_flops(const tg_attention *attention);

/* Returns the offset of an element in elements. */
int64_t check_find_element(const tg_heads *heads, check_place place, int64_t head, int64_t e);

/* The verdict on D and log_sum_exp. */
typedef struct check_attention_result {
    /* The largest |error| / bound: at most 1 if the outputs are right, Inf if a NaN, Inf or zero is
     * wrong. */
    double worst_share;
    double max_error;  /* the largest |d - exact| / (weights times |V|); Inf as for worst_share */
    int64_t row_count; /* rows of D that were compared */
    int64_t bad_batch, bad_head, bad_row; /* first row out of bounds, -1 if none */
} check_attention_result;

/* Compares D, and log_sum_exp if there is one. It compares all rows if they take at most
 * `flop_limit` multiply-adds, otherwise a fixed random sample of rows with the first and the last.
 * `device` ("cpu", "cuda:0") is the device that computed them, because a GPU rounds weights.
 * Returns 1, or 0 if memory ran out. */
int check_compare_attention(const tg_attention *attention, const char *device, double flop_limit,
                            check_attention_result *result);

#endif /* TG_CHECK_ATTENTION_H */
