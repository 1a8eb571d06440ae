/*
 * Declares the array that a command computes into: the mapped .npy file itself, or a block of
 * memory that is written as a .mtx file at the end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_ARRAY_OUTPUT_H
#define TG_CLI_ARRAY_OUTPUT_H

#include "files/matrix_file.h"
#include "files/output_file.h"

typedef struct cli_array_output {
    const char *path, *name; /* not owned; the array's name in messages, such as D */
    cli_file_format format;
    cli_output file;
    int64_t bytes; /* bytes of the elements; valid once the output has its size */
    void *owned;   /* the elements of a .mtx file */
    void *data;    /* the elements, in C order; valid once the output is open */
} cli_array_output;

/* Sets *output to the output of an array, not yet open. Returns CLI_EXIT_USAGE if the path has no
 * known extension. */
int cli_name_array_output(const char *path, const char *name, cli_array_output *output,
                          cli_file_error *error);

/* Finds the output's bytes for an array of 1 to 4 dimensions. Refuses one that the format or 63
 * bits do not hold. Returns a cli_exit. */
int cli_size_array_output(cli_array_output *output, tg_type type, const int64_t *sizes,
                          int dim_count, cli_file_error *error);

/* Opens the output for such an array. A .npy file gets `tail_bytes` more behind the elements, which
 * cli_keep_array_output gives to the caller. Returns a cli_exit; the caller always calls
 * cli_discard_array_output. */
int cli_open_array_output(cli_array_output *output, tg_type type, const int64_t *sizes,
                          int dim_count, int64_t tail_bytes, cli_memory *memory,
                          cli_file_error *error);

/* Gives an open .npy file the name under which it stays (cli_keep_output). Its commit cuts off the
 * tail. Returns a cli_exit. */
int cli_keep_array_output(cli_array_output *output, cli_file_error *error);

/* Opens the file that stayed of an earlier run (cli_reopen_output): output->file.map is NULL if
 * there is none. The caller checks it and goes on by cli_resume_array_output, which needs the
 * output's size. Returns a cli_exit. */
int cli_reopen_array_output(cli_array_output *output, cli_file_error *error);
void cli_resume_array_output(cli_array_output *output);

/* Writes the elements of `d` to a .mtx file. Does nothing for a .npy file, which is mapped, so that
 * its elements are written already. Returns a cli_exit. */
int cli_write_array_output(cli_array_output *output, const tg_matrix *d, cli_progress *progress,
                           cli_file_error *error);

/* Writes all to the disk (cli_settle_output). Returns a cli_exit. */
int cli_settle_array_output(cli_array_output *output, cli_file_error *error);

/* Gives the file its name. Returns a cli_exit. */
int cli_commit_array_output(cli_array_output *output, cli_file_error *error);

/* Frees the output, and removes the temporary file if it has not got its name. */
void cli_discard_array_output(cli_array_output *output);

#endif /* TG_CLI_ARRAY_OUTPUT_H */
