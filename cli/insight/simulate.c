/*
 * tilegemm simulate: runs kernels of the GPU ladder on the CPU, and counts and checks every access.
 */
#include "insight/simulate.h"

#include "insight/explain.h"
#include "json_output.h"
#include "progress.h"

#include <argp.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct simulate_options {
    cli_query query;
    int has_trace, has_lines, has_requests, without_barrier;
    int is_sampled;
} simulate_options;

enum { key_trace = CLI_KEY_OWN, key_sample, key_lines, key_requests, key_without_barrier };
enum { barrier_most = 16 }; /* the largest number of a barrier */
/* The largest number of elements of D and of multiply-adds with --trace, which a person reads. */
enum { trace_elems_most = 4096, trace_macs_most = 1 << 20 };

static const char default_chip[] = "h200", example[] = "256x256x256";

static const struct argp_option option_list[] = {
    {"kernel", CLI_KEY_KERNEL, "NAME", 0,
     "Kernel of the GPU ladder: a name that `tilegemm kernels` lists, its family "
     "(edges), or all",
     0},
    {"tile", CLI_KEY_TILE, "T", 0,
     "Side of the tile, as for explain: 1 to 32 for rungs 1 to 6; 8, 16, 32 or 64 for rung 7; "
     "64 or 128 for rung 8",
     0},
    {"gpu", CLI_KEY_GPU, "NAME|FILE", 0,
     "Chip whose L2 is modelled (default: h200); if repeated, up to 4 times, one table shows the "
     "counts and the times that explain predicts for each chip",
     0},
    {"sample", key_sample, NULL, 0,
     "Run some blocks and a part of k, and scale the counts up; takes seconds for any shape", 0},
    {"trace", key_trace, NULL, 0,
     "Print every step of every block: each thread's reads and writes, the tiles, the "
     "partial sums; A is then 0, 1, 2, ... and B 100, 101, ...",
     0},
    {"lines", key_lines, NULL, 0, "List the counts of each source line", 0},
    {"requests", key_requests, NULL, 0,
     "List the memory requests of the first warp: each lane's element, sectors, "
     "turns of shared memory; JSON also has the thread of the first block that "
     "writes each element",
     0},
    {"without-barrier", key_without_barrier, "N", 0,
     "Disable the kernel's N-th barrier, and see what the simulator finds", 0},
    {"json", CLI_KEY_JSON, NULL, 0, "Print JSON", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    simulate_options *options = state->input;
    switch (key) {
    case key_trace:
        options->has_trace = 1;
        return 0;
    case key_lines:
        options->has_lines = 1;
        return 0;
    case key_requests:
        options->has_requests = 1;
        return 0;
    case key_sample:
        options->is_sampled = 1;
        return 0;
    case key_without_barrier:
        return cli_parse_int("--without-barrier", arg, 1, barrier_most, &options->without_barrier)
                   ? 0
                   : EINVAL;
    case ARGP_KEY_END:
        cli_require_shape(state, &options->query);
        if (!options->query.kernel)
            argp_error(state, "name a kernel, such as --kernel edges, or --kernel all");
        if (options->is_sampled &&
            (options->has_trace || options->has_lines || options->has_requests))
            argp_error(state, "--sample scales counts up, which --trace, --lines and --requests "
                              "do not show; pass it alone");
        if (strchr(options->query.shape, ',') && (options->has_trace || options->has_requests ||
                                                  options->is_sampled || options->query.tile))
            argp_error(state, "--trace, --requests, --sample and --tile are for products; an "
                              "attention takes --gpu, --lines, --without-barrier and --json");
        return 0;
    default:
        return cli_take_query_option(key, arg, state, &options->query);
    }
}

/* The state of a run beside its kernel. */
typedef struct simulate_case {
    const simulate_options *options;
    int64_t m, n, k;
    char sizes[80];            /* as text */
    cli_simulated_table table; /* its chips are those of --gpu */
    simulated_operands operands;
    cli_progress progress;
    json_t *list;          /* list of --json; NULL if memory ran out */
    cli_phase_list phases; /* phases of the kernel that runs */
    cli_request_log *log;  /* NULL: no requests */
    int has_findings;
    int has_told; /* an error line tells why the kernel was not simulated */
} simulate_case;

static int show_progress(void *state, int64_t done_count, int64_t block_count)
{
    simulate_case *run = state;
    cli_show_progress(&run->progress, done_count, block_count);
    return 0;
}

static void show(simulate_case *run, const tg_simulation *simulation)
{
    run->has_findings |= simulation->finding_count > 0;
    if (run->options->query.has_json) {
        json_t *made = cli_make_simulation_json(simulation, run->m, run->n, run->k,
                                                run->phases.list ? &run->phases : NULL, run->log);
        if (run->table.chip_count > 1)
            made = cli_keep_whole_json(
                made,
                cli_set_json(made, "predicted_s", cli_make_times_json(&run->table, simulation)));
        run->list = cli_keep_whole_json(run->list, cli_append_json(run->list, made));
        return;
    }
    if (run->table.chip_count > 1) {
        cli_keep_simulated_row(&run->table, simulation);
        if (simulation->finding_count == 0 && !run->options->has_lines && !run->log)
            return;
    }
    cli_print_simulation(simulation, run->sizes, run->options->has_lines);
    if (run->log)
        cli_print_requests(run->log);
}

/* Finds the tile and the stages of the row for the trace. The row may be one of the simulator's
 * own. */
static cli_trace make_trace(const simulate_case *run, const tg_chip *chip, const char *kernel)
{
    cli_trace trace = {.n = run->n, .k = run->k, .tile_rows = 1, .tile_depth = 1};
    tg_explanation explained;
    trace.stage_count = 1;
    if (tg_explain_kernel(chip, kernel, run->options->query.tile, run->m, run->n, run->k,
                          &explained) == TG_STATUS_OK) {
        const tg_traffic *traffic = &explained.traffic;
        trace.tile_rows = traffic->tile_rows;
        trace.tile_depth = traffic->tile_depth;
        /* A stage holds two tiles; more shared memory means more than one stage. */
        int64_t stage_bytes = (int64_t)tg_get_type_bytes(explained.type) * traffic->tile_depth *
                              (traffic->tile_rows + traffic->tile_cols);
        if (explained.prediction.shared_bytes >= 2 * stage_bytes && stage_bytes)
            trace.stage_count = (int)(explained.prediction.shared_bytes / stage_bytes);
    }
    return trace;
}

/* Opens `phases` and `log`, which gather the reports of a run. Returns 0 when out of memory. */
static int open_logs(simulate_case *run)
{
    const simulate_options *options = run->options;
    run->phases = (cli_phase_list){.list = NULL};
    if (options->has_trace && options->query.has_json && !(run->phases.list = json_array()))
        return 0;
    return !options->has_requests || (run->log = cli_open_request_log(run->n));
}

static void close_logs(simulate_case *run)
{
    json_decref(run->phases.list);
    cli_close_request_log(run->log);
    run->log = NULL;
}

/* Runs the kernel for the first k columns of A. */
static tg_status run_kernel(simulate_case *run, const tg_chip *chip, const char *kernel, int64_t k,
                            const tg_simulation **simulation)
{
    cli_trace trace = make_trace(run, chip, kernel);
    const tg_simulation_options options = {
        .kernel = kernel,
        .tile = run->options->query.tile,
        .a = run->operands.memory[0],
        .b = run->operands.memory[1],
        .d = run->operands.memory[2],
        .l2_bytes = chip->l2_bytes,
        .work_limit = run->options->is_sampled ? CLI_SAMPLE_WORK : 0,
        .progress = show_progress,
        .progress_state = run,
        .trace = run->phases.list          ? cli_keep_phase
                 : run->options->has_trace ? cli_print_phase
                                           : NULL,
        .trace_state = run->phases.list ? (void *)&run->phases : (void *)&trace,
        .without_barrier = run->options->without_barrier,
        .watch = run->log ? cli_keep_request : NULL,
        .watch_state = run->log,
    };
    cli_start_progress(&run->progress, kernel);
    tg_status status = tg_simulate_kernel(&options, run->m, run->n, k, simulation);
    cli_end_progress(&run->progress);
    return status;
}

/* Runs the kernel with two smaller k and shows the counts of the whole. */
static tg_status sample_kernel(simulate_case *run, const tg_chip *chip, const char *kernel,
                               const cli_depth *depth)
{
    const tg_simulation *part = NULL, *less = NULL;
    tg_status status = run_kernel(run, chip, kernel, depth->k, &part);
    if (status == TG_STATUS_OK)
        status = run_kernel(run, chip, kernel, depth->less_k, &less);
    if (status == TG_STATUS_OK) {
        tg_simulation whole = *part;
        cli_extend_counts(depth, &part->traffic, &less->traffic, &whole.traffic);
        whole.is_exact = 0;
        whole.l2_bytes = whole.l2_requests = whole.l2_hits = -1;
        show(run, &whole);
    }
    tg_destroy_simulation(part);
    tg_destroy_simulation(less);
    return status;
}

static tg_status simulate_one(simulate_case *run, const tg_chip *chip, const char *kernel,
                              const cli_depth *depth)
{
    const tg_simulation *simulation = NULL;
    if (depth->k < run->k)
        return sample_kernel(run, chip, kernel, depth);
    tg_status status = run_kernel(run, chip, kernel, run->k, &simulation);
    if (status == TG_STATUS_OK)
        show(run, simulation);
    tg_destroy_simulation(simulation);
    return status;
}

static cli_depth choose_depth(const simulate_case *run, const tg_chip *chip, const char *kernel)
{
    tg_explanation explained;
    if (run->options->is_sampled &&
        tg_explain_kernel(chip, kernel, run->options->query.tile, run->m, run->n, run->k,
                          &explained) == TG_STATUS_OK)
        return cli_cut_depth(&explained.traffic, run->k);
    return (cli_depth){.whole_k = run->k, .k = run->k};
}

static tg_status simulate(simulate_case *run, const tg_chip *chip, const char *kernel)
{
    const cli_depth depth = choose_depth(run, chip, kernel);
    tg_status status = TG_STATUS_OUT_OF_MEMORY;
    run->has_told = 1;
    if (!open_logs(run)) {
        cli_print_error("out of memory; pass a smaller shape");
    } else if (cli_make_kernel_operands(kernel, run->m, run->n, depth.k, run->options->has_trace,
                                        &run->operands)) {
        run->has_told = 0;
        status = simulate_one(run, chip, kernel, &depth);
    }
    cli_free_simulated_operands(&run->operands);
    close_logs(run);
    return status;
}

/* Reports why a kernel was not simulated. A tile that no chip takes gets the reason that `explain`
 * gives. */
static int report_refusal(const simulate_case *run, tg_status status)
{
    const cli_query *query = &run->options->query;
    tg_explanation explained;
    if (run->has_told)
        return CLI_EXIT_WRONG;
    if (status != TG_STATUS_UNSUPPORTED || !query->tile ||
        tg_explain_kernel(&run->table.chips[0].chip, query->kernel, query->tile, run->m, run->n,
                          run->k, &explained) != TG_STATUS_OK ||
        explained.prediction.is_legal)
        return cli_report_status(status);
    cli_print_error("--tile = %d: %s", query->tile, explained.prediction.reason);
    return CLI_EXIT_USAGE;
}

/* Runs every kernel of the ladder that takes the tile and the sizes, and gives the reason for the
 * others. */
static int simulate_all(simulate_case *run, const tg_chip *chip)
{
    const char *names[LADDER_CAPACITY];
    const int count = cli_list_ladder("all", run->options->query.tile, names);
    for (int i = 0; i < count; i++) {
        const tg_status status = simulate(run, chip, names[i]);
        if (status == TG_STATUS_UNSUPPORTED && !run->options->query.has_json &&
            run->table.chip_count == 1)
            printf("%s\n\n", tg_get_error_detail());
        else if (status != TG_STATUS_OK && status != TG_STATUS_UNSUPPORTED)
            return report_refusal(run, status);
    }
    return CLI_EXIT_OK;
}

static int parse_shape(simulate_case *run)
{
    tg_problem problem;
    const int exit_code = cli_parse_plain_shape(run->options->query.shape,
                                                "the ladder's kernels form", INT32_MAX, &problem);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    run->m = problem.d.row_count;
    run->n = problem.d.col_count;
    run->k = problem.a.col_count;
    snprintf(run->sizes, sizeof run->sizes, "%lld x %lld x %lld", (long long)run->m,
             (long long)run->n, (long long)run->k);
    const double elems = (double)run->m * (double)run->n;
    if (run->options->has_trace &&
        (elems > trace_elems_most || elems * (double)run->k > trace_macs_most)) {
        cli_print_error("shape = '%s' is too large for --trace, which prints every step; pass one "
                        "with at most %d elements of D and %d multiply-adds",
                        run->options->query.shape, trace_elems_most, trace_macs_most);
        return CLI_EXIT_USAGE;
    }
    return CLI_EXIT_OK;
}

static int read_chips(simulate_case *run)
{
    const cli_query *query = &run->options->query;
    int exit_code = CLI_EXIT_OK;
    run->table.chip_count = query->gpu_count > 0 ? query->gpu_count : 1;
    run->table.tile = query->tile;
    for (int c = 0; c < run->table.chip_count && exit_code == CLI_EXIT_OK; c++) {
        run->table.chips[c] = (explain_case){.m = run->m, .n = run->n, .k = run->k};
        exit_code = cli_find_chip(query->gpu_count > 0 ? query->gpus[c] : default_chip, NULL,
                                  &run->table.chips[c]);
    }
    return exit_code;
}

static int run_case(simulate_case *run)
{
    const simulate_options *options = run->options;
    int exit_code = parse_shape(run);
    if (exit_code == CLI_EXIT_OK)
        exit_code = read_chips(run);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    const tg_chip *chip = &run->table.chips[0].chip;
    run->list = options->query.has_json ? json_array() : NULL;
    const int is_all = strcmp(options->query.kernel, "all") == 0;
    if (is_all) {
        exit_code = simulate_all(run, chip);
    } else {
        tg_status status = simulate(run, chip, options->query.kernel);
        exit_code = status == TG_STATUS_OK ? CLI_EXIT_OK : report_refusal(run, status);
    }
    if (options->query.has_json && exit_code == CLI_EXIT_OK)
        exit_code = cli_print_json(is_all ? json_incref(run->list)
                                          : json_incref(json_array_get(run->list, 0)));
    else if (exit_code == CLI_EXIT_OK && run->table.chip_count > 1)
        cli_print_simulated_table(&run->table);
    json_decref(run->list);
    return exit_code == CLI_EXIT_OK && run->has_findings ? CLI_EXIT_WRONG : exit_code;
}

const struct argp cli_argp_simulate = {
    .options = option_list,
    .parser = parse_option,
    .args_doc = "MxNxK|B,H,HKV,M,N,D",
    .doc = "Run kernels of the GPU ladder on the CPU, from their own source, and count and "
           "check every memory access.\v"
           "The simulator finds data races, accesses out of bounds or misaligned, reads of shared "
           "memory that was never written, reads of copies before they are complete, and barriers "
           "that some threads do not reach; the exit code is then 1. A product of more than "
           "2^28 multiply-adds runs only some of its blocks, with --sample also only a part of k. "
           "The text of an attention has commas; its kernels are attention_naive, attention_tiled "
           "and attention_mma.\n\n"
           "Examples:\n"
           "  tilegemm simulate 256x256x256 --kernel transposed --lines\n"
           "  tilegemm simulate 250x130x70 --kernel all --json\n"
           "  tilegemm simulate 2048x2048x2048 --kernel all --sample --gpu t4 --gpu h100\n"
           "  tilegemm simulate 4x4x4 --kernel tiled --tile 2 --trace\n"
           "  tilegemm simulate 1,2,2,100,100,64 --kernel all --gpu a100 --gpu h100",
};

int cli_run_simulate(int argc, char **argv)
{
    simulate_options options = {
        .query = {.shape_example = example, .tile_max = INT_MAX, .has_several_gpus = 1}};
    if (cli_parse_words(argc, argv, &cli_argp_simulate, &options) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    if (strchr(options.query.shape, ','))
        return cli_simulate_attention(&options.query, options.has_lines, options.without_barrier);
    static simulate_case run; /* too large for a stack */
    run =
        (simulate_case){.options = &options, .progress = cli_make_progress(options.query.has_json)};
    return run_case(&run);
}
