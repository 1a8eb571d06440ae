/*
 * Measures the memory that one run may fill with elements.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MATRIX_MEMORY_H
#define TG_CLI_MATRIX_MEMORY_H

#include "files/file_error.h"

#include <stdint.h>

typedef struct cli_memory {
    int64_t left_bytes;
} cli_memory;

/* Returns what the machine can give at this moment without swapping. */
cli_memory cli_read_memory(void);

/* Takes `bytes` (>= 0) for good; the caller allocates them afterwards. Returns CLI_EXIT_WRONG if
 * fewer are left; the message says that `name` needs them. */
int cli_reserve_memory(cli_memory *memory, int64_t bytes, const char *name, cli_file_error *error);

#endif /* TG_CLI_MATRIX_MEMORY_H */
