/*
 * The header of a .npy file, versions 1 to 3:
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

/* Reads the header of a whole .npy file in memory; view->data points into `bytes` and may be
 * misaligned for its type. The file does not distinguish the two FP8 types, so that elements of one
 * byte become fp8_e4m3. Returns a cli_exit. */
int cli_parse_npy(const void *bytes, int64_t byte_count, tg_matrix *view, cli_file_error *error);

#endif /* TG_CLI_NPY_READ_H */
