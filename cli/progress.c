/*
 * The progress line appears after half a second of work, and then changes at most ten times a
 * second.
 *
 * SPDX-License-Identifier: MIT
 */
#include "progress.h"

#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define FIRST_SHOWN_S 0.5
#define SHOWN_INTERVAL_S 0.1

double cli_read_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

cli_progress cli_make_progress(int is_quiet)
{
    cli_progress progress = {.label = "", .is_terminal = !is_quiet && isatty(STDERR_FILENO)};
    return progress;
}

void cli_start_progress(cli_progress *progress, const char *label)
{
    if (!progress)
        return;
    cli_end_progress(progress);
    progress->label = label;
    progress->start_share = progress->gflop_count = 0;
    progress->start_s = progress->shown_s = cli_read_clock();
}

void cli_show_progress(cli_progress *progress, int64_t done, int64_t total)
{
    if (!progress || !progress->is_terminal)
        return;
    double now_s = cli_read_clock();
    if (now_s - progress->start_s < FIRST_SHOWN_S || now_s - progress->shown_s < SHOWN_INTERVAL_S)
        return;
    double share = total > 0 ? (double)done / (double)total : 1;
    fprintf(stderr, "\r%s: %3.0f %%", progress->label, 100 * share);
    const double share_per_s = (share - progress->start_share) / (now_s - progress->start_s);
    if (share_per_s > 0 && progress->gflop_count > 0)
        fprintf(stderr, ", %.4g GFLOP/s", share_per_s * progress->gflop_count);
    if (share_per_s > 0)
        fprintf(stderr, ", %.0f s left", (1 - share) / share_per_s);
    fprintf(stderr, "\033[K");
    fflush(stderr);
    progress->shown_s = now_s;
    progress->is_shown = 1;
}

void cli_end_progress(cli_progress *progress)
{
    if (!progress || !progress->is_shown)
        return;
    fprintf(stderr, "\r\033[K");
    fflush(stderr);
    progress->is_shown = 0;
}
