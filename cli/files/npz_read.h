/*
 * Finds an array in a NumPy .npz file: a ZIP archive whose members are .npy files. numpy.savez
 * stores them as they are; members that are compressed are refused.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_NPZ_READ_H
#define TG_CLI_NPZ_READ_H

#include "files/file_error.h"

/* Splits FILE.npz:NAME, unless a file has the whole as its name. Returns NAME and copies the file's
 * path, or returns NULL if the path names no member. */
const char *cli_split_npz_path(const char *path, char *archive, size_t archive_bytes);

int cli_is_npz(const void *bytes, int64_t byte_count);

/* Finds the bytes of the .npy file of an array; `name` is NULL for the only one. Returns a
 * cli_exit. */
int cli_find_npz_array(const void *bytes, int64_t byte_count, const char *name, const void **array,
                       int64_t *array_bytes, cli_file_error *error);

#endif /* TG_CLI_NPZ_READ_H */
