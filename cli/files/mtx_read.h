/*
 * MatrixMarket input (math.nist.gov/MatrixMarket/formats.html):
 *     %%MatrixMarket matrix coordinate|array real|integer general|symmetric|skew-symmetric
 *     % comments
 *     rows cols [entries]
 *     row col value                coordinate, 1-based
 *     value                        array, column by column
 * Banner words may have any case, lines may end in LF or CRLF, and lines may be empty. A symmetric
 * file holds the lower triangle only. The format says nothing of entries at the same position; they
 * are added up, as SciPy and most readers do.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MTX_READ_H
#define TG_CLI_MTX_READ_H

#include "files/file_error.h"
#include "progress.h"

#define CLI_MTX_MAGIC "%%MatrixMarket" /* the file's first characters, in any case */

/* Parses a whole .mtx file in memory into a dense matrix of `type`: column-major for the array
 * format, row-major for the coordinate format. A matrix above `limit_bytes`, the memory there is,
 * gives CLI_EXIT_WRONG. On success the caller frees *owned. `progress` may be NULL. Returns a
 * cli_exit. */
int cli_parse_mtx(const void *bytes, int64_t byte_count, tg_type type, int64_t limit_bytes,
                  cli_progress *progress, tg_matrix *view, void **owned, cli_file_error *error);

#endif /* TG_CLI_MTX_READ_H */
