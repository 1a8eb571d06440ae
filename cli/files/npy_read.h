/*
 * A .npy file, versions 1 to 3, begins with a header:
 *     "\x93NUMPY", major, minor, header length (2 bytes in version 1, else 4, little-endian),
 *     then a Python dict in text: {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }
 * (numpy.lib.format). The parser knows these keys and values alone; nothing in a file is ever
 * evaluated or unpickled.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_NPY_READ_H
#define TG_CLI_NPY_READ_H

#include "files/file_error.h"

#define CLI_NPY_MAGIC "\x93NUMPY" /* the file's first bytes */

/* The integers of a file. */
typedef struct cli_integer {
    int elem_bytes; /* 0: the elements are floating-point numbers of the view's type */
    int is_signed;
} cli_integer;

/* An array of one dimension is a row. With three dimensions it is a batch of matrices, whose
 * batch_stride the view has; with four it is a group of batches. */
typedef struct cli_array {
    tg_matrix view; /* the type of integers is FP64 */
    int dim_count;  /* 1 to 4 */
    int64_t group_count, group_stride;
    int64_t batch_count;
    cli_integer integer;
} cli_array;

/* Reads the header of a whole .npy file in memory; view->data points into `bytes` and may be
 * misaligned for its type. The file does not distinguish the two FP8 types, so that elements of one
 * byte become fp8_e4m3. Returns a cli_exit. */
int cli_parse_npy(const void *bytes, int64_t byte_count, cli_array *array, cli_file_error *error);

#endif /* TG_CLI_NPY_READ_H */
