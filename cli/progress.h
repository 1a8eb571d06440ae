/*
 * Shows the progress of long work on a line of a terminal. The line stays away from pipes and
 * files.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_PROGRESS_H
#define TG_CLI_PROGRESS_H

#include <stdint.h>

/* Elements between two calls of cli_show_progress, which reads the clock. */
#define CLI_PROGRESS_INTERVAL 0x10000

typedef struct cli_progress {
    const char *label; /* "reading A.mtx"; not owned */
    double start_s, shown_s;
    double start_share; /* share that was done before the start */
    double gflop_count; /* operations of the whole work; 0: no rate is shown */
    int is_terminal, is_shown;
} cli_progress;

/* Returns seconds of the monotonic clock. */
double cli_read_clock(void);

/* Makes a progress line. `is_quiet` keeps the line away from a terminal too. */
cli_progress cli_make_progress(int is_quiet);

/* Begins new work, and wipes the line of the previous work. */
void cli_start_progress(cli_progress *progress, const char *label);

/* Shows `done` of `total` (0 <= done <= total), the rate so far and the remaining seconds at that
 * rate, at most a few times a second. This function, cli_start_progress and cli_end_progress allow
 * a NULL progress. */
void cli_show_progress(cli_progress *progress, int64_t done, int64_t total);

/* Wipes the line. */
void cli_end_progress(cli_progress *progress);

#endif /* TG_CLI_PROGRESS_H */
