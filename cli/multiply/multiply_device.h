/*
 * Multiplies on a device that has memory of its own.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_DEVICE_H
#define TG_CLI_MULTIPLY_DEVICE_H

#include "tilegemm.h"

/* Multiplies operands in ordinary memory on the context's device, in panels that take at most
 * `memory_bytes` (0: no limit) of its memory; workspaces come on top. Of each matrix rows or
 * columns are contiguous. Adds to *execute_s the seconds of the products, without copies. Errors:
 * those of tg_choose_panels, tg_create_plan, tg_execute_plan and of the copies. */
tg_status cli_execute_on_device(tg_context *context, const tg_problem *problem,
                                int64_t memory_bytes, double *execute_s);

#endif /* TG_CLI_MULTIPLY_DEVICE_H */
