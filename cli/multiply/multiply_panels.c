#include "multiply/multiply_panels.h"

/* If a terminal shows progress, a panel takes two seconds on a small machine. */
#define SHOWN_FLOPS 1e11

tg_status cli_choose_panels(const tg_problem *problem, int64_t memory_bytes, double staying_flops,
                            int is_terminal, tg_panels *panels, int *is_out_of_core)
{
    tg_panel_limits limits = {.buffer_count = 1};
    *is_out_of_core = 0;
    tg_status status = tg_choose_panels(problem, &limits, panels);
    if (status != TG_STATUS_OK)
        return status;
    *is_out_of_core = panels->memory_bytes > (double)memory_bytes;
    if (*is_out_of_core)
        limits = (tg_panel_limits){memory_bytes, staying_flops, 1};
    else if (is_terminal)
        limits.flop_count = SHOWN_FLOPS;
    return tg_choose_panels(problem, &limits, panels);
}

tg_status cli_execute_panel(tg_context *context, const char *kernel, const tg_problem *panel)
{
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = kernel};
    tg_plan *plan = NULL;
    tg_buffers buffers;
    tg_status status = tg_create_plan(context, panel, &options, &plan);
    if (status == TG_STATUS_UNSUPPORTED)
        status = tg_create_plan(context, panel, NULL, &plan);
    if (status == TG_STATUS_OK)
        status = tg_init_buffers(&buffers, sizeof buffers, panel);
    if (status == TG_STATUS_OK)
        status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status;
}

tg_status cli_execute_panels(const tg_problem *problem, const tg_panels *panels,
                             cli_panel_executor *execute, void *state, cli_partial *partial,
                             cli_progress *progress, int *number)
{
    tg_status status = TG_STATUS_OK;
    *number = 0;
    for (int64_t i = cli_count_done(partial); i < panels->panel_count; i++) {
        tg_problem panel;
        status = tg_get_panel(problem, panels, i, &panel);
        if (status == TG_STATUS_OK)
            status = execute(state, &panel);
        if (status == TG_STATUS_OK)
            *number = cli_note_done(partial);
        if (status != TG_STATUS_OK || *number)
            break;
        cli_show_progress(progress, i + 1, panels->panel_count);
    }
    return status;
}
