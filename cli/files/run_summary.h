/*
 * The end of a run that writes an array: its output gets its name, its summary is told.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_RUN_SUMMARY_H
#define TG_CLI_RUN_SUMMARY_H

#include "files/array_output.h"

typedef struct cli_run_summary {
    int is_json, is_quiet;            /* neither: a line or two */
    const void *run;                  /* passed to the functions */
    int *is_written;                  /* set to 1 in the run once its output has its name */
    char *(*format)(const void *run); /* returns JSON, NULL when out of memory */
    void (*print)(const void *run);
    char *text; /* owned; the JSON */
} cli_run_summary;

/* Writes the elements, of which `d` is the view, and gives the file its name. Returns a cli_exit.
 * The caller always calls cli_free_run_summary. */
int cli_finish_array_output(cli_array_output *output, const tg_matrix *d, cli_run_summary *summary,
                            cli_progress *progress, cli_file_error *error);

/* Prints the summary of a written output, or of a check that found D wrong. Returns a cli_exit. */
int cli_print_run_summary(cli_run_summary *summary, cli_file_error *error);

void cli_free_run_summary(cli_run_summary *summary);

#endif /* TG_CLI_RUN_SUMMARY_H */
