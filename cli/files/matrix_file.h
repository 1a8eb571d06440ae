/*
 * Declares matrices in files: NumPy .npy and .npz, MatrixMarket .mtx. A .npy file of the type asked
 * for is mapped, not copied; a .mtx file is parsed into memory.
 *
 * Opening takes two calls, because the other operand decides the element type of a text file:
 * cli_open_array reads the header, cli_load_matrix gives the elements in a type.
 *
 * Other programs must not shorten a mapped input while the command runs: the operating system then
 * ends the command with SIGBUS, whose handler removes the unfinished output. If others write to the
 * input, the result mixes old and new elements.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MATRIX_FILE_H
#define TG_CLI_MATRIX_FILE_H

#include "files/matrix_memory.h"
#include "files/npy_read.h"
#include "progress.h"

typedef enum cli_file_format { CLI_FORMAT_NPY = 0, CLI_FORMAT_MTX = 1 } cli_file_format;

/* An open input. */
typedef struct cli_matrix_file {
    const char *path; /* not owned */
    cli_file_format format;
    void *map; /* the file, read-only */
    int64_t map_bytes;
    int64_t modified_ns; /* time of its last change, since 1970 */
    void *owned;         /* elements that could not stay in the map, or NULL */
    cli_array array; /* after opening a .npy file as stored; after loading in the type asked for */
} cli_matrix_file;

/* Finds the format that a path's extension names. Returns CLI_EXIT_USAGE if it names none. */
int cli_find_format(const char *path, cli_file_format *format, cli_file_error *error);

/* Maps the file and reads its header. The file's content decides its format, not its name;
 * FILE.npz:NAME is the array of that name. On success the caller passes *file to cli_close_matrix.
 * Returns a cli_exit. */
int cli_open_array(const char *path, cli_matrix_file *file, cli_file_error *error);

/* Does the same, and refuses an array of four dimensions. */
int cli_open_matrix(const char *path, cli_matrix_file *file, cli_file_error *error);

/* Makes file->array.view a view of elements of `type`; a copy is charged to `memory`. Bytes are
 * taken as FP8 of `type`, and unsigned integers of 16 bits as BF16 if that is `type`. A finite
 * number beyond the largest of `type` and an integer that is not exact in it are errors. `progress`
 * may be NULL. Returns a cli_exit. */
int cli_load_matrix(cli_matrix_file *file, tg_type type, cli_memory *memory, cli_progress *progress,
                    cli_file_error *error);

void cli_close_matrix(cli_matrix_file *file);

#endif /* TG_CLI_MATRIX_FILE_H */
