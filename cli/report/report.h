/* Declares the types and functions that the files of `tilegemm report` share. */
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
 * records that the page shows. Returns NULL on failure: *exit_code is as cli_append_ladder sets it.
 */
json_t *cli_read_bench_file(const char *path, int *exit_code);

/* Reads the output of `tilegemm profile --json`, or Nsight Compute's CSV of kernels that ran at the
 * report's sizes, and appends the counts of the kernels to `list`. Returns 0 on failure. */
int cli_append_profile(const char *path, const explain_case *shown, json_t *list, int *exit_code);

/* Appends the simulations of the ladder at m, n and k of `sizes`, as `simulate --json` prints them:
 * of all rows if `tile` is 0, else of each rung with that tile that has no row of it. has_requests
 * adds the requests of a warp. If k was shortened, "whole_k" holds k and the counts of the whole.
 * Returns 0 on failure: *exit_code is unchanged when memory ran out, else it is a cli_exit and the
 * error has been printed. */
int cli_append_ladder(const report_case *report, int tile, const explain_case *sizes,
                      int has_requests, json_t *list, int *exit_code);

/* A small product whose phases and requests are kept. */
typedef struct cli_walk {
    const char *kernel;
    int tile, m, n, k;
    int without_barrier; /* the barrier that is taken out, from 1; 0: none */
} cli_walk;

/* Appends the simulation of a walk. Returns 0 on failure, as cli_append_ladder does. */
int cli_append_walk(const report_case *report, const cli_walk *walk, json_t *list, int *exit_code);

/* Returns the lessons, the simulations that are the same in every report: an object of the arrays
 * "simulations" and "traces", which make_lessons wrote when the command was built. The caller frees
 * it. Returns NULL when out of memory, or if the build has no page. */
json_t *cli_read_lessons(void);

/* Finds the page in the program: the text before the data, and the text after it. Returns 0 after
 * printing what the build lacked, if there is no page. */
int cli_find_page(const char **head, size_t *head_bytes, const char **tail);

#endif /* TG_CLI_REPORT_H */
