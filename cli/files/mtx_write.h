/*
 * Writes MatrixMarket output: a real general array, column by column.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MTX_WRITE_H
#define TG_CLI_MTX_WRITE_H

#include "progress.h"
#include "tilegemm.h"

#include <stdio.h>

/* Writes the view with enough digits that reading gives the same bits. Returns 0 if the stream
 * failed; errno tells why. */
int cli_write_mtx(FILE *stream, const tg_matrix *view, cli_progress *progress);

#endif /* TG_CLI_MTX_WRITE_H */
