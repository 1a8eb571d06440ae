/*
 * Multiplies in panels of D: where memory does not hold the matrices at once, and where a terminal
 * shows the progress of a long multiplication.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_PANELS_H
#define TG_CLI_MULTIPLY_PANELS_H

#include "multiply/multiply_partial.h"
#include "progress.h"

/* Chooses the panels of a product. *is_out_of_core is 1 if its matrices take more than
 * `memory_bytes`; the panels are then those of the memory, of about `staying_flops` at most. Else a
 * terminal alone makes more than one panel. Errors: those of tg_choose_panels. */
tg_status cli_choose_panels(const tg_problem *problem, int64_t memory_bytes, double staying_flops,
                            int is_terminal, tg_panels *panels, int *is_out_of_core);

/* Forms one panel of D on the CPU by the kernel of that name, or by the best one where a kernel of
 * few rows or columns does not take the panel. By one kernel the order of an element's sum depends
 * on k alone, so the panels have the bits of D at once. Errors: those of tg_create_plan and
 * tg_execute_plan. */
tg_status cli_execute_panel(tg_context *context, const char *kernel, const tg_problem *panel);

/* Calls `execute` for one panel after another, from the first that `partial` has not done. *number
 * is 0, or the errno of a disk that failed. Errors: those of `execute`. */
typedef tg_status cli_panel_executor(void *state, const tg_problem *panel);
tg_status cli_execute_panels(const tg_problem *problem, const tg_panels *panels,
                             cli_panel_executor *execute, void *state, cli_partial *partial,
                             cli_progress *progress, int *number);

#endif /* TG_CLI_MULTIPLY_PANELS_H */
