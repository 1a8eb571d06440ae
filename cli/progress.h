/*
 * One line on a terminal that says how far long work is; silent in a pipe.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_PROGRESS_H
#define TG_CLI_PROGRESS_H

#include <stdint.h>

typedef struct cli_progress {
    const char *label; /* "reading A.mtx"; not owned */
    double start_s, shown_s;
    int is_terminal, is_shown;
} cli_progress;

/* Seconds of the monotonic clock. */
double cli_read_clock(void);

/* `is_quiet` keeps the line away from a terminal too. */
cli_progress cli_make_progress(int is_quiet);

/* A new piece of work; the line of the one before is wiped. */
void cli_start_progress(cli_progress *progress, const char *label);

/* Shows `done` of `total` (0 <= done <= total) if the last time is some time ago. All three allow
 * a NULL progress. */
void cli_show_progress(cli_progress *progress, int64_t done, int64_t total);

/* Wipes the line. */
void cli_end_progress(cli_progress *progress);

#endif /* TG_CLI_PROGRESS_H */
