/*
 * Makes the part of the page's data that only the simulator provides: counts by line, requests of a
 * warp, walks.
 */
#include "report/report.h"

#include "fields_json.h"
#include "json_output.h"
#include "insight/simulate.h"

#include <string.h>

typedef struct job {
    const char *kernel; /* kernel and tile for tg_simulate_kernel */
    int tile;
    int64_t m, n;
    cli_depth depth;
    int without_barrier;
    cli_phase_list *phases; /* NULL: none are kept */
    cli_request_log *log;
} job;

static int show_progress(void *state, int64_t done_count, int64_t block_count)
{
    cli_show_progress(state, done_count, block_count);
    return 0;
}

static tg_status simulate(const report_case *report, const job *work,
                          const simulated_operands *operands, const tg_simulation **simulation)
{
    const tg_simulation_options options = {
        .kernel = work->kernel,
        .tile = work->tile,
        .a = operands->memory[0],
        .b = operands->memory[1],
        .d = operands->memory[2],
        .l2_bytes = report->shown.chip.l2_bytes,
        .work_limit = CLI_SAMPLE_WORK,
        .progress = show_progress,
        .progress_state = report->progress,
        .trace = work->phases ? cli_keep_phase : NULL,
        .trace_state = work->phases,
        .watch = work->log ? cli_keep_request : NULL,
        .watch_state = work->log,
        .without_barrier = work->without_barrier,
    };
    cli_start_progress(report->progress, work->kernel);
    tg_status status = tg_simulate_kernel(&options, work->m, work->n, work->depth.k, simulation);
    cli_end_progress(report->progress);
    return status;
}

/* Runs a job. *simulation is NULL if the kernel does not take it. Returns 0 after printing an
 * error. */
static int run(const report_case *report, const job *work, const tg_simulation **simulation,
               int *exit_code)
{
    simulated_operands operands;
    *simulation = NULL;
    if (!cli_make_kernel_operands(work->kernel, work->m, work->n, work->depth.k,
                                  work->phases != NULL, &operands)) {
        *exit_code = CLI_EXIT_WRONG;
    } else {
        const tg_status status = simulate(report, work, &operands, simulation);
        if (status != TG_STATUS_OK && status != TG_STATUS_UNSUPPORTED)
            *exit_code = cli_report_status(status);
    }
    cli_free_simulated_operands(&operands);
    return *exit_code == CLI_EXIT_OK;
}

/* Sets "whole_k" of a simulation if its k was shortened. */
static int set_whole(const report_case *report, const job *work, const tg_traffic *part,
                     json_t *object, int *exit_code)
{
    job less_work = *work;
    const tg_simulation *less = NULL;
    tg_traffic whole;
    less_work.depth.k = work->depth.less_k;
    less_work.log = NULL;
    if (!run(report, &less_work, &less, exit_code) || !less)
        return 0;
    cli_extend_counts(&work->depth, part, &less->traffic, &whole);
    tg_destroy_simulation(less);
    json_t *counts = json_pack("{s:I}", "k", (json_int_t)work->depth.whole_k);
    return cli_set_json(
        object, "whole_k",
        cli_keep_whole_json(counts, cli_set_fields_json(counts, cli_count_fields, &whole)));
}

/* Appends a simulation to `list`, unless the kernel does not take it. Returns 0 on failure. */
static int append(const report_case *report, const job *work, json_t *list, int *exit_code)
{
    const tg_simulation *simulation;
    if (!run(report, work, &simulation, exit_code))
        return 0;
    if (!simulation)
        return 1;
    json_t *object = cli_make_simulation_json(simulation, work->m, work->n, work->depth.k,
                                              work->phases, work->log);
    json_object_del(object, "owners"); /* the page has them from the model */
    const int is_done =
        cli_set_json(object, "without_barrier", json_integer(work->without_barrier)) &&
        (work->depth.whole_k == work->depth.k ||
         set_whole(report, work, &simulation->traffic, object, exit_code));
    tg_destroy_simulation(simulation);
    return cli_append_json(list, cli_keep_whole_json(object, is_done));
}

/* Returns 1 if the simulator can count the elements of each matrix. */
static int is_countable(const job *work)
{
    const int64_t counts[] = {work->m * work->n, work->m * work->depth.k, work->depth.k * work->n};
    return counts[0] <= INT32_MAX && counts[1] <= INT32_MAX && counts[2] <= INT32_MAX;
}

/* Appends a kernel of the ladder. It leaves out a kernel without such a tile or with a row of
 * it, and sizes beyond what the simulator counts: the page then shows the model. Returns 0 on
 * failure. */
static int append_kernel(const report_case *report, job work, int has_requests, json_t *list,
                         int *exit_code)
{
    tg_explanation explained;
    int is_done = 1;
    if (tg_explain_kernel(&report->shown.chip, work.kernel, work.tile, work.m, work.n,
                          work.depth.whole_k, &explained) != TG_STATUS_OK ||
        (work.tile && explained.is_in_table))
        return 1;
    work.depth = cli_cut_depth(&explained.traffic, work.depth.whole_k);
    if (!is_countable(&work))
        return 1;
    if (has_requests)
        is_done = (work.log = cli_open_request_log(work.n)) != NULL;
    is_done = is_done && append(report, &work, list, exit_code);
    cli_close_request_log(work.log);
    return is_done;
}

int cli_append_ladder(const report_case *report, int tile, const explain_case *sizes,
                      int has_requests, json_t *list, int *exit_code)
{
    const char *names[LADDER_CAPACITY];
    tg_kernel_info info;
    /* The table is the default device's, which may be missing. */
    const tg_status status = tg_get_kernel_info(NULL, 0, &info);
    if (status != TG_STATUS_OK) {
        *exit_code = cli_report_status(status);
        return 0;
    }
    const int count = cli_list_ladder("all", tile, names);
    int is_done = 1;
    for (int i = 0; i < count && is_done; i++) {
        const job work = {.kernel = names[i],
                          .tile = tile,
                          .m = sizes->m,
                          .n = sizes->n,
                          .depth.whole_k = sizes->k};
        is_done = append_kernel(report, work, has_requests, list, exit_code);
    }
    return is_done;
}

int cli_append_walk(const report_case *report, const cli_walk *walk, json_t *list, int *exit_code)
{
    cli_phase_list phases = {.list = json_array()};
    const job work = {.kernel = walk->kernel,
                      .tile = walk->tile,
                      .m = walk->m,
                      .n = walk->n,
                      .depth = {.whole_k = walk->k, .k = walk->k},
                      .without_barrier = walk->without_barrier,
                      .phases = &phases,
                      .log = cli_open_request_log(walk->n)};
    const int is_done = phases.list && work.log && append(report, &work, list, exit_code);
    json_decref(phases.list);
    cli_close_request_log(work.log);
    return is_done;
}
