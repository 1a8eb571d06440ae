/*
 * Makes a long multiplication in panels of rows, which lets its progress be shown.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_CLI_MULTIPLY_PANELS_H
#define TG_CLI_MULTIPLY_PANELS_H

#include "progress.h"
#include "tilegemm.h"

/* Returns the rows of a panel: all of D, unless the work is long and a terminal shows its
 * progress. A batch and a product with a bias are made at once. */
int64_t cli_choose_panel_rows(const tg_problem *problem, const cli_progress *progress);

/* Executes `plan`, made for `problem`, on `panel_rows` (>= 1) rows of D at a time, always with the
 * plan's kernel. The order of an element's sum depends on k alone, so D has the bits of a single
 * execution. Less
 * than all rows need a batch of one without bias. Errors: those of tg_create_plan and
 * tg_execute_plan. */
tg_status cli_execute_panels(tg_context *context, const tg_plan *plan, const tg_problem *problem,
                             int64_t panel_rows, cli_progress *progress);

#endif /* TG_CLI_MULTIPLY_PANELS_H */
