/*
 * The array that a command computes into: the mapped .npy file itself, or a block of memory that is
 * written as a .mtx file at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_ARRAY_OUTPUT_H
#define TG_CLI_ARRAY_OUTPUT_H

#include "files/matrix_file.h"
#include "files/output_file.h"

typedef struct cli_array_output {
    const char *path; /* not owned */
    cli_file_format format;
    cli_output file;
    void *owned; /* the elements of a .mtx file */
    void *data;  /* the elements, in C order; valid once the output is open */
} cli_array_output;

/* Sets *output to one of that path, which is not open. Returns CLI_EXIT_USAGE if its name has no
 * known extension. */
int cli_name_array_output(const char *path, cli_array_output *output, cli_file_error *error);

/* Opens the output for an array of 1 to 4 dimensions. Returns a cli_exit; the caller always calls
 * cli_discard_array_output. */
int cli_open_array_output(cli_array_output *output, tg_type type, const int64_t *sizes,
                          int dim_count, cli_memory *memory, cli_file_error *error);

/* Writes the elements of `d` to a .mtx file. Does nothing for a .npy file, which is mapped, so that
 * its elements are written already. Returns a cli_exit. */
int cli_write_array_output(cli_array_output *output, const tg_matrix *d, cli_progress *progress,
                           cli_file_error *error);

/* Gives the file its name. Returns a cli_exit. */
int cli_commit_array_output(cli_array_output *output, cli_file_error *error);

/* Frees the output, and removes the temporary file if it has not got its name. */
void cli_discard_array_output(cli_array_output *output);

#endif /* TG_CLI_ARRAY_OUTPUT_H */
