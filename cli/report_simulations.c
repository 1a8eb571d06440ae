/*
 * What only the simulator can tell, for the page: counts by line, requests of a warp, walks.
 */
#include "report.h"

#include "json_output.h"
#include "simulate.h"

#include <string.h>

/* Work that keeps a report within seconds: multiply-adds up to which all blocks run, and in the
 * blocks that stand for the others. Longer k is cut; rows stay as aligned as they are. */
enum { whole_products = 1 << 20, block_products = 1 << 24, block_count_most = 9 };
enum { alignment_elems = 32 };

static const struct {
    int m, n, k;
} small_sizes[] = {{64, 64, 64}, {55, 43, 48}};

/* Where every row has a whole block, so that each place of its tile has an owner. */
static const explain_case whole_tiles = {.m = 256, .n = 256, .k = 32};

static const struct {
    const char *kernel;
    int tile, m, n, k;
} walks[] = {{"tiled", 2, 4, 4, 4},     {"tiled", 4, 4, 4, 4},    {"edges", 2, 3, 5, 3},
             {"edges", 4, 6, 7, 5},     {"naive", 2, 4, 4, 4},    {"naive", 4, 4, 4, 4},
             {"coalesced", 2, 4, 4, 4}, {"coalesced", 4, 4, 4, 4}};

typedef struct job {
    const char *kernel; /* with `tile`, as tg_simulate_kernel takes them */
    int tile;
    int64_t m, n, k;
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
        .work_limit = whole_products,
        .progress = show_progress,
        .progress_state = report->progress,
        .trace = work->phases ? cli_keep_phase : NULL,
        .trace_state = work->phases,
        .watch = work->log ? cli_keep_request : NULL,
        .watch_state = work->log,
    };
    cli_start_progress(report->progress, work->kernel);
    tg_status status = tg_simulate_kernel(&options, work->m, work->n, work->k, simulation);
    cli_end_progress(report->progress);
    return status;
}

/* Appends a simulation to `list`; what the kernel does not take is left out. 0 on failure. */
static int append(const report_case *report, const job *work, json_t *list, int *exit_code)
{
    simulated_operands operands;
    const tg_simulation *simulation = NULL;
    int is_done = 1;
    if (!cli_make_simulated_operands(work->m, work->n, work->k, work->phases != NULL, &operands))
        *exit_code = CLI_EXIT_WRONG;
    if (*exit_code == CLI_EXIT_OK) {
        tg_status status = simulate(report, work, &operands, &simulation);
        if (status == TG_STATUS_OK)
            is_done =
                cli_append_json(list, cli_make_simulation_json(simulation, work->m, work->n,
                                                               work->k, work->phases, work->log));
        else if (status != TG_STATUS_UNSUPPORTED)
            *exit_code = cli_report_status(status);
    }
    tg_destroy_simulation(simulation);
    cli_free_simulated_operands(&operands);
    return is_done && *exit_code == CLI_EXIT_OK;
}

static int64_t min_count(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* k, or less where the blocks that run would take too long. */
static int64_t cut_depth(const tg_kernel_info *info, int64_t m, int64_t n, int64_t k)
{
    const int64_t block_rows = (m + info->tile_rows - 1) / info->tile_rows;
    const int64_t block_cols = (n + info->tile_cols - 1) / info->tile_cols;
    /* Whole tiles are multiplied, however little of D lies in them. */
    const int64_t area =
        min_count(block_rows * block_cols, block_count_most) * info->tile_rows * info->tile_cols;
    const int64_t whole = block_products / area / alignment_elems;
    return area * k <= block_products || whole * alignment_elems >= k
               ? k
               : whole * alignment_elems + k % alignment_elems;
}

/* 1 where the simulator counts the elements of each matrix. */
static int is_countable(const job *work)
{
    const int64_t counts[] = {work->m * work->n, work->m * work->k, work->k * work->n};
    return counts[0] <= INT32_MAX && counts[1] <= INT32_MAX && counts[2] <= INT32_MAX;
}

/* Rows at larger sizes are left out: the page then has what the model says of them. */
static int append_rows(const report_case *report, const explain_case *sizes, int has_requests,
                       json_t *list, int *exit_code)
{
    int is_done = 1;
    for (int i = 0; i < tg_get_kernel_count() && is_done; i++) {
        tg_kernel_info info;
        if (tg_get_kernel_info(NULL, i, &info) != TG_STATUS_OK || info.ladder_rung < 0 ||
            strcmp(info.device, "cuda") != 0)
            continue;
        job work = {.kernel = info.name, .m = sizes->m, .n = sizes->n};
        work.k = cut_depth(&info, work.m, work.n, sizes->k);
        if (!is_countable(&work))
            continue;
        if (has_requests)
            is_done = (work.log = cli_open_request_log(work.n)) != NULL;
        is_done = is_done && append(report, &work, list, exit_code);
        cli_close_request_log(work.log);
    }
    return is_done;
}

json_t *cli_make_simulations(const report_case *report, int *exit_code)
{
    json_t *list = json_array();
    int is_done = list && append_rows(report, &report->shown, 1, list, exit_code) &&
                  append_rows(report, &whole_tiles, 1, list, exit_code);
    for (size_t i = 0; i < sizeof small_sizes / sizeof small_sizes[0] && is_done; i++) {
        const explain_case sizes = {
            .m = small_sizes[i].m, .n = small_sizes[i].n, .k = small_sizes[i].k};
        is_done = append_rows(report, &sizes, 0, list, exit_code);
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
                          .k = walks[i].k,
                          .phases = &phases,
                          .log = cli_open_request_log(walks[i].n)};
        is_done = phases.list && work.log && append(report, &work, list, exit_code);
        json_decref(phases.list);
        cli_close_request_log(work.log);
    }
    return cli_keep_whole_json(list, is_done);
}
