/*
 * Reads the lines, words and numbers of a MatrixMarket file in memory. The text may lack a NUL at
 * its end.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MTX_TEXT_H
#define TG_CLI_MTX_TEXT_H

#include "files/file_error.h"

typedef struct cli_mtx_text {
    const char *at, *end; /* rest of the file */
    const char *line_end; /* end of the line being read */
    int64_t line;         /* its number, from 1 */
    cli_file_error *error;
} cli_mtx_text;

/* The characters up to the next blank; the length is 0 at the end of the line. */
typedef struct cli_mtx_word {
    const char *start;
    int64_t length;
} cli_mtx_word;

cli_mtx_text cli_make_mtx_text(const void *bytes, int64_t byte_count, cli_file_error *error);

/* Moves to the next line that is not empty. Returns 0 at the end of the file. */
int cli_next_mtx_line(cli_mtx_text *text);

/* Returns 1 if the line starts with '%'. */
int cli_is_mtx_comment(const cli_mtx_text *text);

cli_mtx_word cli_next_mtx_word(cli_mtx_text *text);

/* Reads decimal digits with an optional sign. Returns 0 for any other word and for numbers outside
 * int64_t. */
int cli_read_mtx_integer(cli_mtx_word word, int64_t *value);

/* Reads a decimal number, nan or inf, rounded once to FP64, or to FP32. Returns 0 for any other
 * word. */
int cli_read_mtx_number(cli_mtx_word word, int is_fp32, double *value);

#endif /* TG_CLI_MTX_TEXT_H */
