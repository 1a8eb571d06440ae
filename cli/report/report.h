/*
 * The types and functions that the files of `tilegemm report` share.
 */
#ifndef TG_CLI_REPORT_H
#define TG_CLI_REPORT_H

#include "insight/explain.h"
#include "progress.h"

#include <jansson.h>

typedef struct report_case {
    const char *shape;
    tg_problem problem; /* problem of the shape, without data */
    explain_case shown; /* sizes and chip that the page opens with */
    int tile;           /* side of the tile that the page opens with */
    const char *const *bench_paths, *const *profile_paths;
    int bench_count, profile_count;
    cli_progress *progress;
} report_case;

/* Reads a result of `tilegemm bench`: returns an object of its head and of the fields of its
 * records that the page shows. Returns NULL on failure, as cli_make_simulations does. */
json_t *cli_read_bench_file(const char *path, int *exit_code);

/* Reads the output of `tilegemm profile --json`, or Nsight Compute's CSV of kernels that ran at the
 * report's sizes, and appends the counts of the kernels to `list`. Returns 0 on failure. */
int cli_append_profile(const char *path, const explain_case *shown, json_t *list, int *exit_code);

/* Return the output of `simulate --json`. The simulations cover every row of the ladder and the
 * rungs with the report's tile: at the report's shape with the requests of a warp, and at small
 * sizes that every kernel takes without them. The traces are small products with their phases and
 * requests. If k was shortened, "whole_k" holds k and the counts of the whole. NULL on failure:
 * *exit_code is unchanged when memory ran out, else it is a cli_exit and the error has been
 * printed. */
json_t *cli_make_simulations(const report_case *report, int *exit_code);
json_t *cli_make_traces(const report_case *report, int *exit_code);

/* Finds the page in the program: the text before the data, and the text after it. Returns 0 after
 * printing what the build lacked, if there is no page. */
int cli_find_page(const char **head, size_t *head_bytes, const char **tail);

#endif /* TG_CLI_REPORT_H */
