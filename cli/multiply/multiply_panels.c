#include "multiply/multiply_panels.h"

/* A panel takes two seconds of work on a small machine, or twenty if it is written to the disk
 * before the next one. */
#define SHOWN_FLOPS 1e11
#define STAYING_FLOPS 1e12

tg_status cli_choose_panels(const tg_problem *problem, int64_t memory_bytes, int is_terminal,
                            tg_panels *panels, int *is_out_of_core)
{
    tg_panel_limits limits = {.buffer_count = 1};
    *is_out_of_core = 0;
    tg_status status = tg_choose_panels(problem, &limits, panels);
    if (status != TG_STATUS_OK)
        return status;
    *is_out_of_core = panels->memory_bytes > (double)memory_bytes;
    if (*is_out_of_core)
        limits = (tg_panel_limits){memory_bytes, STAYING_FLOPS, 1};
    else if (is_terminal)
        limits.flop_count = SHOWN_FLOPS;
    return tg_choose_panels(problem, &limits, panels);
}

static tg_status execute(const tg_plan *plan, const tg_problem *problem)
{
    tg_buffers buffers;
    tg_status status = tg_init_buffers(&buffers, sizeof buffers, problem);
    return status == TG_STATUS_OK ? tg_execute_plan(plan, &buffers) : status;
}

static tg_status execute_panel(tg_context *context, const tg_plan_options *options,
                               const tg_problem *panel)
{
    tg_plan *plan = NULL;
    tg_status status = tg_create_plan(context, panel, options, &plan);
    if (status ==
        TG_STATUS_UNSUPPORTED) /* kernels of few rows or columns do not take every panel */
        status = tg_create_plan(context, panel, NULL, &plan);
    if (status == TG_STATUS_OK)
        status = execute(plan, panel);
    tg_destroy_plan(plan);
    return status;
}

tg_status cli_execute_panels(tg_context *context, const tg_plan *plan, const tg_problem *problem,
                             const tg_panels *panels, cli_partial *partial, cli_progress *progress,
                             int *number)
{
    tg_plan_info info;
    *number = 0;
    if (panels->panel_count <= 1 && !partial->journal)
        return execute(plan, problem);
    tg_status status = tg_get_plan_info(plan, &info, sizeof info);
    const tg_plan_options options = {.struct_bytes = sizeof options, .kernel = info.kernel};
    for (int64_t i = cli_count_done(partial); status == TG_STATUS_OK && i < panels->panel_count;
         i++) {
        tg_problem panel;
        status = tg_get_panel(problem, panels, i, &panel);
        if (status == TG_STATUS_OK)
            status = execute_panel(context, &options, &panel);
        if (status == TG_STATUS_OK)
            *number = cli_note_done(partial);
        if (*number)
            break;
        cli_show_progress(progress, i + 1, panels->panel_count);
    }
    return status;
}
