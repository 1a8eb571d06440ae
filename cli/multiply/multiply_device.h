/*
 * Multiplies matrices in host memory on a GPU.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_DEVICE_H
#define TG_CLI_MULTIPLY_DEVICE_H

#include "tilegemm.h"

/* Copies the operands of `problem` to the context's GPU, executes `plan` there and copies D back.
 * The problem's matrices have no gaps. *execute_s is the time
 * of the product alone. Errors: those of tg_execute_plan and of the copies. */
tg_status cli_execute_on_device(const tg_context *context, const tg_plan *plan,
                                const tg_problem *problem, double *execute_s);

#endif /* TG_CLI_MULTIPLY_DEVICE_H */
