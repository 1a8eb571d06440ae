/*
 * Matrices in files: NumPy .npy (mapped, not copied, where its type is the one asked for) and
 * MatrixMarket .mtx (text, parsed into memory). Depends on include/ and src/check alone.
 *
 * Opening has two steps, since the element type of a text file is chosen by what it is multiplied
 * with: cli_open_matrix reads the header, cli_load_matrix gives the elements in a type.
 *
 * A mapped input must not be shortened by others while the command runs: the kernel then ends the
 * command with SIGBUS, which removes the unfinished output. Written to, it gives a mixed result.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MATRIX_FILE_H
#define TG_CLI_MATRIX_FILE_H

#include "cli.h"
#include "progress.h"

#include <stdio.h>

/* How files of either format start; a MatrixMarket banner in any case. */
#define CLI_NPY_MAGIC "\x93NUMPY"
#define CLI_MTX_MAGIC "%%MatrixMarket"

/* What is wrong, the value, the limit and the remedy; "" where nothing failed. */
typedef struct cli_file_error {
    char text[1024];
} cli_file_error;

/* Writes the text and returns `code`, one of cli_exit, for the caller to return. */
int cli_fail_file(cli_file_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The exit code for errno `number` of a file: CLI_EXIT_MISSING where it is not there,
 * CLI_EXIT_WRONG where disk, memory or descriptors ran out, CLI_EXIT_USAGE otherwise. */
int cli_get_file_exit(int number);

/* Memory that one run may fill with elements. */
typedef struct cli_memory {
    int64_t left_bytes;
} cli_memory;

/* What the machine can give at this moment. */
cli_memory cli_read_memory(void);

/* Takes `bytes` (>= 0) for good, to be called before they are allocated. Returns CLI_EXIT_WRONG
 * where fewer are left; `name` says in the message what needs them. */
int cli_reserve_memory(cli_memory *memory, int64_t bytes, const char *name, cli_file_error *error);

/* Copies at most `text_bytes - 1` bytes, those that no terminal should see replaced by '?'. */
void cli_copy_printable(char *text, size_t text_bytes, const char *bytes, size_t byte_count);

typedef enum cli_file_format { CLI_FORMAT_NPY = 0, CLI_FORMAT_MTX = 1 } cli_file_format;

/* An open input. */
typedef struct cli_matrix_file {
    const char *path; /* not owned */
    cli_file_format format;
    void *map; /* the file, read-only */
    int64_t map_bytes;
    void *owned;    /* elements that could not stay in the map, or NULL */
    tg_matrix view; /* .npy: as stored after opening; any: in the type asked for after loading */
} cli_matrix_file;

/* The format that a path's extension names. Returns CLI_EXIT_USAGE where it names none. */
int cli_find_format(const char *path, cli_file_format *format, cli_file_error *error);

/* Maps the file and reads its header; what the file holds decides its format, not its name. On
 * success the caller passes *file to cli_close_matrix. Returns a cli_exit. */
int cli_open_matrix(const char *path, cli_matrix_file *file, cli_file_error *error);

/* Makes file->view a view of elements of `type`; those that cannot stay in the map are taken from
 * `memory`. Elements of one byte are taken as FP8 of `type` and never converted. A finite number
 * that `type` could only hold as Inf, or cut off, is an error. `progress` may be NULL. Returns a
 * cli_exit. */
int cli_load_matrix(cli_matrix_file *file, tg_type type, cli_memory *memory, cli_progress *progress,
                    cli_file_error *error);

void cli_close_matrix(cli_matrix_file *file);

/* Reads the header of a whole .npy file in memory; view->data points into `bytes` and may be
 * misaligned for its type. Elements of one byte may be of either FP8 type, which the file does not
 * tell: the view's is fp8_e4m3. Returns a cli_exit. */
int cli_parse_npy(const void *bytes, int64_t byte_count, tg_matrix *view, cli_file_error *error);

/* Bytes of the header that cli_format_npy_header writes; a multiple of 64. */
#define CLI_NPY_HEADER_BYTES 128

/* Writes the header (version 1, C order) of an m x n matrix. */
void cli_format_npy_header(tg_type type, int64_t m, int64_t n, char header[CLI_NPY_HEADER_BYTES]);

/* Parses a whole .mtx file in memory into elements of `type`: dense, column-major for the array
 * format, row-major for the coordinate format, whose entries of equal position are added up. A
 * dense matrix above `limit_bytes`, the memory there is, gives CLI_EXIT_WRONG. On success the
 * caller frees *owned. Returns a cli_exit. */
int cli_parse_mtx(const void *bytes, int64_t byte_count, tg_type type, int64_t limit_bytes,
                  cli_progress *progress, tg_matrix *view, void **owned, cli_file_error *error);

/* Writes the view as a real general array, with the digits that give the same bits when read
 * again. Returns 0 where the stream failed; errno tells why. */
int cli_write_mtx(FILE *stream, const tg_matrix *view, cli_progress *progress);

/* Rounds once, to nearest even, from FP64 to `type` (no second rounding through FP32), and stores
 * the element. Returns 0 where a finite value became Inf, 1 otherwise. */
int cli_store_element(tg_type type, void *data, int64_t index, double value);

/* Element (row, col) of the view as FP64. */
double cli_load_element(const tg_matrix *view, int64_t row, int64_t col);

/* Largest finite number of the type. */
double cli_get_type_max(tg_type type);

/* Copies the view, converted to `type`, into *owned, row-major, and makes the view one of it. On
 * success the caller frees *owned. `progress` may be NULL. Returns a cli_exit. */
int cli_convert_matrix(tg_matrix *view, tg_type type, cli_progress *progress, void **owned,
                       cli_file_error *error);

#endif /* TG_CLI_MATRIX_FILE_H */
