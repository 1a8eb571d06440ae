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
 * `memory_bytes`; the panels are then those of the memory, and of at most a minute of work on a
 * small machine. Else a terminal alone makes more than one panel. Errors: those of
 * tg_choose_panels. */
tg_status cli_choose_panels(const tg_problem *problem, int64_t memory_bytes, int is_terminal,
                            tg_panels *panels, int *is_out_of_core);

/* Executes `plan`, made for `problem`, on one panel after another, from the first that `partial`
 * has not done, with the plan's kernel where it takes the panel. The order of an element's sum then
 * depends on k alone, so D has the bits of a single execution. *number is 0, or the errno of a
 * disk that failed. Errors: those of tg_create_plan and tg_execute_plan. */
tg_status cli_execute_panels(tg_context *context, const tg_plan *plan, const tg_problem *problem,
                             const tg_panels *panels, cli_partial *partial, cli_progress *progress,
                             int *number);

#endif /* TG_CLI_MULTIPLY_PANELS_H */
