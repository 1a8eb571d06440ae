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

/* Returns the memory that the user allows, or if `limit_bytes` is 0 what the machine and the
 * control groups of the process can give at this moment without swapping. */
cli_memory cli_read_memory(int64_t limit_bytes);

/* Returns the bytes that the memory limits of the process's control group and of the groups around
 * it leave, or INT64_MAX if there is none. Pages of files, which the system drops at need, count
 * as free. `root` is where control groups are mounted, and `membership` is the text of
 * /proc/self/cgroup. */
int64_t cli_find_group_memory(const char *root, const char *membership);

/* Takes `bytes` (>= 0) for good; the caller allocates them afterwards. Returns CLI_EXIT_WRONG if
 * fewer are left; the message says that `name` needs them. */
int cli_reserve_memory(cli_memory *memory, int64_t bytes, const char *name, cli_file_error *error);

#endif /* TG_CLI_MATRIX_MEMORY_H */
