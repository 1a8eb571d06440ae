/*
 * Multiplies in panels of D, if memory does not hold all matrices or if a terminal shows the
 * progress of a long multiplication.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_PANELS_H
#define TG_CLI_MULTIPLY_PANELS_H

#include "multiply/multiply_partial.h"
#include "progress.h"

/* Chooses the panels of a product. *is_out_of_core is 1 if its matrices take more than
 * `memory_bytes`. The panels then fit that memory and have at most about `staying_flops`. Otherwise
 * there is more than one panel only if a terminal shows progress. Errors: those of
 * tg_choose_panels. */
tg_status cli_choose_panels(const tg_problem *problem, int64_t memory_bytes, double staying_flops,
                            int is_terminal, tg_panels *panels, int *is_out_of_core);

/* Forms one panel of D on the CPU by the kernel of that name, or by the best kernel if a kernel for
 * few rows or columns refuses the panel. In one kernel the order of an element's sum depends on k
 * alone, so that the panels have the bits of an undivided product. Errors: those of tg_create_plan
 * and tg_execute_plan. */
tg_status cli_execute_panel(tg_context *context, const char *kernel, const tg_problem *panel);

/* Calls `execute` for one panel after another, from the first that `partial` has not done. *number
 * is 0, or the errno of a disk that failed. Errors: those of `execute`. */
typedef tg_status cli_panel_executor(void *state, const tg_problem *panel);
tg_status cli_execute_panels(const tg_problem *problem, const tg_panels *panels,
                             cli_panel_executor *execute, void *state, cli_partial *partial,
                             cli_progress *progress, int *number);

#endif /* TG_CLI_MULTIPLY_PANELS_H */
