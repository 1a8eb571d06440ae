/*
 * Multiplies in panels of rows.
 *
 * SPDX-License-Identifier: MIT
 */
#include "multiply/multiply_panels.h"

/* A panel takes two seconds of work on a small machine. It has enough rows to make the repeated
 * packing of B a small part of them. */
#define PANEL_FLOPS 1e11
#define PANEL_ROWS_MIN 128

int64_t cli_choose_panel_rows(const tg_problem *problem, const cli_progress *progress)
{
    int64_t m = problem->d.row_count;
    int64_t k =
        problem->op_a == TG_OPERATION_TRANSPOSE ? problem->a.row_count : problem->a.col_count;
    double row_flops = 2.0 * (double)problem->d.col_count * (double)k;
    if (!progress->is_terminal || problem->batch_count != 1 || problem->bias != TG_BIAS_NONE ||
        m < 2 * PANEL_ROWS_MIN || row_flops * (double)m < 2 * PANEL_FLOPS)
        return m > 0 ? m : 1;
    double rows = PANEL_FLOPS / row_flops;
    int64_t panel_rows = rows > PANEL_ROWS_MIN ? (int64_t)rows : PANEL_ROWS_MIN;
    /* The panels are of equal height, so that the last is not left with a few rows. */
    int64_t panel_count = m / panel_rows > 0 ? m / panel_rows : 1;
    return (m + panel_count - 1) / panel_count;
}

static void *get_row(const tg_matrix *view, tg_operation operation, int64_t row)
{
    int64_t stride = operation == TG_OPERATION_TRANSPOSE ? view->col_stride : view->row_stride;
    return (char *)view->data + row * stride * tg_get_type_bytes(view->type);
}

static tg_problem make_panel(const tg_problem *problem, int64_t first_row, int64_t row_count)
{
    tg_problem panel = *problem;
    panel.a.data = get_row(&problem->a, problem->op_a, first_row);
    if (problem->op_a == TG_OPERATION_TRANSPOSE)
        panel.a.col_count = row_count;
    else
        panel.a.row_count = row_count;
    panel.c.data = get_row(&problem->c, TG_OPERATION_NONE, first_row);
    panel.d.data = get_row(&problem->d, TG_OPERATION_NONE, first_row);
    panel.c.row_count = panel.d.row_count = row_count;
    return panel;
}

static tg_status execute(const tg_plan *plan, const tg_problem *problem)
{
    tg_buffers buffers;
    tg_status status = tg_init_buffers(&buffers, sizeof buffers, problem);
    return status == TG_STATUS_OK ? tg_execute_plan(plan, &buffers) : status;
}

tg_status cli_execute_panels(tg_context *context, const tg_plan *plan, const tg_problem *problem,
                             int64_t panel_rows, cli_progress *progress)
{
    int64_t m = problem->d.row_count;
    tg_plan_info info;
    if (panel_rows >= m)
        return execute(plan, problem);
    tg_status status = tg_get_plan_info(plan, &info, sizeof info);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info.kernel};
    for (int64_t row = 0; status == TG_STATUS_OK && row < m; row += panel_rows) {
        int64_t row_count = m - row < panel_rows ? m - row : panel_rows;
        tg_problem panel = make_panel(problem, row, row_count);
        tg_plan *panel_plan = NULL;
        status = tg_create_plan(context, &panel, &options, &panel_plan);
        if (status == TG_STATUS_OK)
            status = execute(panel_plan, &panel);
        tg_destroy_plan(panel_plan);
        cli_show_progress(progress, row + row_count, m);
    }
    return status;
}
