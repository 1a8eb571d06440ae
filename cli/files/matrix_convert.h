/*
 * Reads elements of a matrix as FP64, and converts a matrix from one element type to another.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MATRIX_CONVERT_H
#define TG_CLI_MATRIX_CONVERT_H

#include "files/npy_read.h"
#include "progress.h"

/* Returns the largest finite number of the type. */
double cli_get_type_max(tg_type type);

/* Returns element (row, col) of the view as FP64. */
double cli_load_element(const tg_matrix *view, int64_t row, int64_t col);

/* Rounds once from FP64 to `type`, to nearest even and not through FP32, and stores the element.
 * Returns 0 if a finite value became Inf, 1 otherwise. */
int cli_store_element(tg_type type, void *data, int64_t index, double value);

/* Copies the elements of an array, converted to `type`, into *owned, row-major, and makes the array
 * one of it. An integer that is not exact in `type` is an error. On success the caller frees
 * *owned. `progress` may be NULL. Returns a cli_exit. */
int cli_convert_array(cli_array *array, tg_type type, cli_progress *progress, void **owned,
                      cli_file_error *error);

#endif /* TG_CLI_MATRIX_CONVERT_H */
