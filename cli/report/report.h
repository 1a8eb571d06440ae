/*
 * What the files of `tilegemm report` share.
 */
#ifndef TG_CLI_REPORT_H
#define TG_CLI_REPORT_H

#include "insight/explain.h"
#include "progress.h"

#include <jansson.h>

typedef struct report_case {
    const char *shape;
    tg_problem problem; /* of the shape, without data */
    explain_case shown; /* sizes and chip that the page opens with, */
    int tile;           /* and the side of its tile */
    const char *const *bench_paths, *const *profile_paths;
    int bench_count, profile_count;
    cli_progress *progress;
} report_case;

/* Reads a result of `tilegemm bench`: an object of its head, and the records' fields that the page
 * shows. NULL on failure, as below. */
json_t *cli_read_bench_file(const char *path, int *exit_code);

/* Reads what `tilegemm profile --json` printed, or Nsight Compute's CSV of kernels that were run at
 * the report's sizes, and appends the kernels' counts to `list`. Returns 0 on failure. */
int cli_append_profile(const char *path, const explain_case *shown, json_t *list, int *exit_code);

/* What `simulate --json` prints: of every row of the ladder, and of the rungs with the report's
 * tile, with the requests of a warp at the shape of the report and where every kernel takes the
 * size, without them at small ones; and of small products with their phases and requests. Where k
 * was cut "whole_k" has k and the counts of the whole. NULL on failure: *exit_code is then as it
 * was where memory ran out, else a cli_exit, after printing what is wrong. */
json_t *cli_make_simulations(const report_case *report, int *exit_code);
json_t *cli_make_traces(const report_case *report, int *exit_code);

/* The page as it was built, up to where the data go and from there on. Returns 0, after printing
 * what the build lacked, where it has none. */
int cli_find_page(const char **head, size_t *head_bytes, const char **tail);

#endif /* TG_CLI_REPORT_H */
