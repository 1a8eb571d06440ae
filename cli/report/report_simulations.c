/*
 * The part of the page's data that only the simulator provides: counts by line, requests of a warp,
 * walks.
 */
#include "report/report.h"

#include "fields_json.h"
#include "json_output.h"
#include "insight/simulate.h"

#include <string.h>

static const struct {
    int m, n, k;
} small_sizes[] = {{64, 64, 64}, {55, 43, 48}};

/* Every row of the table runs at this size. */
static const explain_case whole_tiles = {.m = 128, .n = 128, .k = 32};

/* Tile sides without a row, whose accesses the page shows beside those of the rows: for families of
 * any tile, at sizes that the sides divide for which family tiled has no row. */
static const int further_tiles[] = {3, 5, 8, 12, 16, 20};
static const explain_case further_sizes = {.m = 60, .n = 120, .k = 60};

/* Walks, the last of them with a barrier taken out. */
static const struct {
    const char *kernel;
    int tile, m, n, k, without_barrier;
} walks[] = {{"tiled", 2, 4, 4, 4, 0}, {"tiled", 4, 4, 4, 4, 0},     {"edges", 2, 3, 5, 3, 0},
             {"edges", 4, 6, 7, 5, 0}, {"edges", 3, 5, 7, 9, 0},     {"naive", 2, 4, 4, 4, 0},
             {"naive", 4, 4, 4, 4, 0}, {"coalesced", 2, 4, 4, 4, 0}, {"coalesced", 4, 4, 4, 4, 0},
             {"tiled", 2, 4, 4, 4, 1}, {"tiled", 2, 4, 4, 4, 2}};

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

/* Appends every row of the ladder (tile 0), or every rung with a tile that has no row. */
static int append_ladder(const report_case *report, int tile, const explain_case *sizes,
                         int has_requests, json_t *list, int *exit_code)
{
    const char *names[LADDER_CAPACITY];
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

json_t *cli_make_simulations(const report_case *report, int *exit_code)
{
    json_t *list = json_array();
    int is_done = list && append_ladder(report, 0, &report->shown, 1, list, exit_code) &&
                  append_ladder(report, report->tile, &report->shown, 1, list, exit_code) &&
                  append_ladder(report, 0, &whole_tiles, 1, list, exit_code);
    for (size_t i = 0; i < sizeof further_tiles / sizeof further_tiles[0] && is_done; i++)
        is_done = append_ladder(report, further_tiles[i], &further_sizes, 1, list, exit_code);
    for (size_t i = 0; i < sizeof small_sizes / sizeof small_sizes[0] && is_done; i++) {
        const explain_case sizes = {
            .m = small_sizes[i].m, .n = small_sizes[i].n, .k = small_sizes[i].k};
        is_done = append_ladder(report, 0, &sizes, 0, list, exit_code);
    }
    return cli_keep_whole_json(list, is_done);
}

json_t *cli_make_traces(const report_case *report, int *exit_code)
{
    json_t *list = json_array();
    int is_done = list != NULL;
    for (size_t i = 0; i < sizeof walks / sizeof walks[0] && is_done; i++) {
        cli_phase_list phases = {.list = json_array()};
        const job work = {.kernel = walks[i].kernel,
                          .tile = walks[i].tile,
                          .m = walks[i].m,
                          .n = walks[i].n,
                          .depth = {.whole_k = walks[i].k, .k = walks[i].k},
                          .without_barrier = walks[i].without_barrier,
                          .phases = &phases,
                          .log = cli_open_request_log(walks[i].n)};
        is_done = phases.list && work.log && append(report, &work, list, exit_code);
        json_decref(phases.list);
        cli_close_request_log(work.log);
    }
    return cli_keep_whole_json(list, is_done);
}
