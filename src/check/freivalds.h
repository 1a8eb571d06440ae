/*
 * Runs Freivalds' check and reports everything it found; check_freivalds of check.h is its short
 * form.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CHECK_FREIVALDS_H
#define TG_CHECK_FREIVALDS_H

#include "check.h"

/* One check draws at most this many random vectors. */
#define CHECK_ROUND_COUNT_MAX 64

typedef struct check_freivalds_report {
    int is_ok;
    double worst_share; /* largest |difference| / bound of a row; INFINITY for a wrong class */
    double max_bound;   /* largest bound of a compared row, in units of D */
    int64_t bad_batch, bad_row; /* first row that failed; -1 if none */
    int64_t compared_row_count; /* rows compared in number */
    int64_t class_elem_count;   /* elements that must be NaN or Inf, and were checked to be so */
    int64_t skipped_row_count;  /* rows that no linear check can judge: NaN or Inf in the row of A,
                                   C or bias, or sums that may overflow */
} check_freivalds_report;

/* Checks D of `problem` by `rounds` (1..CHECK_ROUND_COUNT_MAX) random vectors of +-1 drawn from
 * `seed`. C must hold what it held before the multiplication. Returns 1 and fills *report, or
 * returns -1 if the problem has an activation or an FP8 D, rounds is out of range, or memory ran
 * out. */
int check_report_freivalds(const tg_problem *problem, int rounds, uint64_t seed,
                           check_freivalds_report *report);

/* A watcher: `show` is called from time to time with the share (0 to 1) of the check that is
 * done. */
typedef struct check_watcher {
    void (*show)(void *state, double share);
    void *state;
} check_watcher;

/* Checks as check_report_freivalds does and calls a watcher, which may be NULL. */
int check_watch_freivalds(const tg_problem *problem, int rounds, uint64_t seed,
                          const check_watcher *watcher, check_freivalds_report *report);

#endif /* TG_CHECK_FREIVALDS_H */
