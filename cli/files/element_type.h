/*
 * Chooses the type in which a command computes from what its files hold.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_ELEMENT_TYPE_H
#define TG_CLI_ELEMENT_TYPE_H

#include "files/matrix_file.h"

/* Returns 1 if the file has a floating-point type, which text and integers have not. */
int cli_has_type(const cli_matrix_file *file);

/* Sets *type to the type of the files, or to `other` if all are text or integers. Refuses files of
 * different types, and elements of one byte; the message says what to pass. Returns a cli_exit. */
int cli_choose_type(const cli_matrix_file *const *files, int file_count, tg_type other,
                    const char *byte_remedy, tg_type *type, cli_file_error *error);

#endif /* TG_CLI_ELEMENT_TYPE_H */
