/*
 * This file holds the error of a file and its exit code.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_FILE_ERROR_H
#define TG_CLI_FILE_ERROR_H

#include "cli.h"

#include <stddef.h>

/* The text names what is wrong, its value, the limit and the remedy; "" if nothing failed. */
typedef struct cli_file_error {
    char text[1024];
} cli_file_error;

/* Writes the text and returns `code`, one of cli_exit, for the caller to return. */
int cli_fail_file(cli_file_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Writes the library's detail of the last failure, or the text of the status if there is none.
 * Returns cli_exit_code(status). */
int cli_fail_status(cli_file_error *error, tg_status status);

/* Returns the exit code for errno `number` of a file: CLI_EXIT_MISSING if the file is not there,
 * CLI_EXIT_WRONG if disk, memory or descriptors ran out, CLI_EXIT_USAGE otherwise. */
int cli_get_file_exit(int number);

/* Copies at most `text_bytes - 1` bytes; '?' replaces each that no terminal should see. */
void cli_copy_printable(char *text, size_t text_bytes, const char *bytes, size_t byte_count);

#endif /* TG_CLI_FILE_ERROR_H */
