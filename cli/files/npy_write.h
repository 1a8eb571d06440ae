/*
 * Makes the header of the .npy files that the command writes.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_NPY_WRITE_H
#define TG_CLI_NPY_WRITE_H

#include "tilegemm.h"

/* Bytes of the header that cli_format_npy_header writes; a multiple of 64. */
#define CLI_NPY_HEADER_BYTES 128

/* Writes the header (version 1, C order) of an m x n matrix. */
void cli_format_npy_header(tg_type type, const int64_t *sizes, int dim_count,
                           char header[CLI_NPY_HEADER_BYTES]);

#endif /* TG_CLI_NPY_WRITE_H */
