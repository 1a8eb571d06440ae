/*
 * tilegemm profile: runs kernels under Nsight Compute, and compares with the model and the
 * simulator.
 */
#include "insight/profile.h"

#include "json_output.h"
#include "insight/simulate.h"

#include <argp.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { key_launch = CLI_KEY_OWN };

static const char example[] = "256x256x256";

/* The simulator runs all blocks of products up to whole_products_most; above that, some blocks
 * represent the others. Counts are exact if the tile consists of whole sectors, as in every row of
 * the table. */
static const int64_t whole_products_most = 1 << 20;

static const struct argp_option option_list[] = {
    {"kernel", CLI_KEY_KERNEL, "NAMES", 0,
     "GPU kernels, separated by commas: names that `tilegemm kernels` lists, or "
     "families (edges), which stand for their first row; for an attention its rungs",
     0},
    {"device", CLI_KEY_DEVICE, "NAME", 0,
     "cuda (the first GPU, the default), cuda:N, or sim (only model and simulator)", 0},
    {"gpu", CLI_KEY_GPU, "NAME|FILE", 0,
     "Chip that the model predicts for, as explain takes it (default: the GPU here, else h200)", 0},
    {"json", CLI_KEY_JSON, NULL, 0, "Print JSON", 0},
    {"launch", key_launch, NULL, 0, "Only call each kernel once, like the profiled process", 0},
    {0},
};

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    profile_options *options = state->input;
    switch (key) {
    case key_launch:
        options->is_launch = 1;
        return 0;
    case ARGP_KEY_END:
        cli_require_shape(state, &options->query);
        if (!options->query.kernel)
            argp_error(state, "name kernels, such as --kernel edges,warp_tile");
        return 0;
    default:
        return cli_take_query_option(key, arg, state, &options->query);
    }
}

/* Sets *row to the row that a name of `length` bytes means: the row itself, or the first row of a
 * GPU family; NULL if there is none. */
static tg_status find_row(const char *name, size_t length, const char **row)
{
    tg_status status = TG_STATUS_OK;
    *row = NULL;
    for (int i = 0; i < tg_get_kernel_count() && !*row && status == TG_STATUS_OK; i++) {
        tg_kernel_info info;
        status = tg_get_kernel_info(NULL, i, &info);
        if (status != TG_STATUS_OK || strcmp(info.device, "cuda") != 0)
            continue;
        if ((strlen(info.name) == length && strncmp(info.name, name, length) == 0) ||
            (strlen(info.family) == length && strncmp(info.family, name, length) == 0))
            *row = info.name;
    }
    return status;
}

static int add_row(profile_options *options, const char *row)
{
    for (int i = 0; i < options->name_count; i++) {
        if (strcmp(options->names[i], row) == 0)
            return CLI_EXIT_OK; /* named twice: as a row and as the first of its family */
    }
    if (options->name_count == PROFILE_KERNEL_CAPACITY) {
        cli_print_error("--kernel names more than %d kernels; pass fewer", PROFILE_KERNEL_CAPACITY);
        return CLI_EXIT_USAGE;
    }
    options->names[options->name_count++] = row;
    return CLI_EXIT_OK;
}

static int find_rows(profile_options *options)
{
    int exit_code = CLI_EXIT_OK;
    for (const char *name = options->query.kernel; name && exit_code == CLI_EXIT_OK;) {
        size_t length = strcspn(name, ",");
        const char *row;
        tg_status status = options->is_attention
                               ? cli_find_rung(options->query.shape, name, length, &row)
                               : find_row(name, length, &row);
        if (status != TG_STATUS_OK)
            return cli_report_status(status);
        if (!row) {
            cli_print_error("--kernel = '%.*s' is not a kernel or family of a GPU; `tilegemm "
                            "kernels` lists the names",
                            (int)length, name);
            return CLI_EXIT_MISSING;
        }
        exit_code = add_row(options, row);
        name = name[length] ? name + length + 1 : NULL;
    }
    return exit_code;
}

static int is_on_sim(const profile_options *options)
{
    return strcmp(options->query.device, "sim") == 0;
}

/* Only GPUs have counters. On device sim, model and simulator are compared without them. */
static int check_device(const profile_options *options)
{
    if (strncmp(options->query.device, "cuda", 4) == 0 ||
        (is_on_sim(options) && !options->is_launch))
        return CLI_EXIT_OK;
    cli_print_error("--device = '%s' has no counters that this command reads; pass cuda%s",
                    options->query.device,
                    is_on_sim(options) ? ", or leave --launch out" : ", or sim to do without");
    return CLI_EXIT_USAGE;
}

static int check_sizes(const profile_options *options)
{
    const tg_problem *problem = &options->problem;
    if (problem->d.row_count > 0 && problem->d.col_count > 0 && problem->a.row_count > 0 &&
        problem->a.col_count > 0 && problem->batch_count > 0 && problem->alpha != 0.0)
        return CLI_EXIT_OK;
    cli_print_error("shape = '%s': no product is formed, so no kernel runs; pass sizes of at least "
                    "1 and an alpha other than 0",
                    options->query.shape);
    return CLI_EXIT_USAGE;
}

static int is_plain(const char *shape)
{
    return strchr(shape, ':') == NULL;
}

/* Fills in the simulator's counts, if it takes the kernel and the work is short. */
static int simulate(const explain_case *shown, profile_entry *entry)
{
    simulated_operands operands;
    const tg_simulation *simulation = NULL;
    if ((double)shown->m * (double)shown->n * (double)shown->k > PROFILE_PRODUCTS_MOST) {
        entry->note = PROFILE_NOT_SIMULATED;
        return CLI_EXIT_OK;
    }
    if (!cli_make_kernel_operands(entry->kernel, shown->m, shown->n, shown->k, 0, &operands)) {
        cli_free_simulated_operands(&operands);
        return CLI_EXIT_WRONG;
    }
    const tg_simulation_options options = {.kernel = entry->kernel,
                                           .a = operands.memory[0],
                                           .b = operands.memory[1],
                                           .d = operands.memory[2],
                                           .l2_bytes = shown->chip.l2_bytes,
                                           .work_limit = whole_products_most};
    tg_status status = tg_simulate_kernel(&options, shown->m, shown->n, shown->k, &simulation);
    if (status == TG_STATUS_OK) {
        entry->is_simulated = 1;
        entry->simulated = simulation->traffic;
    }
    tg_destroy_simulation(simulation);
    cli_free_simulated_operands(&operands);
    return status == TG_STATUS_OK || status == TG_STATUS_UNSUPPORTED ? CLI_EXIT_OK
                                                                     : cli_report_status(status);
}

/* Fills in the planner's time of a kernel outside the ladder on the chip, if it is legal there. */
static int plan(const profile_options *options, const explain_case *shown, profile_entry *entry)
{
    const int capacity = tg_get_kernel_count();
    int count = 0;
    tg_candidate *candidates = calloc((size_t)capacity, sizeof *candidates);
    if (!candidates) {
        cli_print_error("out of memory for %d candidates", capacity);
        return CLI_EXIT_WRONG;
    }
    tg_status status =
        tg_list_chip_candidates(&shown->chip, &options->problem, candidates, capacity, &count);
    for (int i = 0; i < count; i++) {
        if (strcmp(candidates[i].kernel, entry->kernel) == 0 && candidates[i].is_legal)
            entry->predicted_s = candidates[i].predicted_s;
    }
    free(candidates);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

/* Fills in the prediction. Kernels of the ladder have counts beside their time. */
static int predict(const profile_options *options, const explain_case *shown, profile_entry *entry)
{
    entry->predicted_s = (double)NAN;
    entry->note = "neither counted by the model nor simulated, which take the ladder's kernels and "
                  "MxNxK alone";
    if (is_plain(options->query.shape) &&
        tg_explain_kernel(&shown->chip, entry->kernel, 0, shown->m, shown->n, shown->k,
                          &entry->model) == TG_STATUS_OK) {
        entry->has_model = 1;
        entry->predicted_s = entry->model.prediction.predicted_s;
        entry->note = entry->model.prediction.reason;
        return entry->model.prediction.is_legal ? simulate(shown, entry) : CLI_EXIT_OK;
    }
    return plan(options, shown, entry);
}

static void leave_out_counters(profile_report *report)
{
    for (int i = 0; i < report->entry_count; i++) {
        for (int key = 0; key < PROFILE_COUNTER_COUNT; key++)
            report->entries[i].counted[key] = (double)NAN;
    }
}

static explain_case show_product(const tg_problem *problem)
{
    return (explain_case){.m = problem->d.row_count,
                          .n = problem->d.col_count,
                          .k = problem->op_a == TG_OPERATION_NONE ? problem->a.col_count
                                                                  : problem->a.row_count};
}

static explain_case show_attention(const profile_options *options)
{
    tg_attention attention; /* the text was read before */
    tg_parse_attention(options->query.shape, &attention, sizeof attention);
    return (explain_case){.m = attention.m,
                          .n = attention.n,
                          .k = attention.head_size,
                          .attention = options->query.shape};
}

static int report_kernels(const profile_options *options)
{
    profile_report report = {.entry_count = options->name_count,
                             .shown = options->is_attention ? show_attention(options)
                                                            : show_product(&options->problem)};
    for (int i = 0; i < options->name_count; i++)
        report.entries[i].kernel = options->names[i];
    int exit_code = cli_find_chip(options->query.gpus[0],
                                  is_on_sim(options) ? NULL : options->query.device, &report.shown);
    if (exit_code == CLI_EXIT_OK && is_on_sim(options))
        leave_out_counters(&report);
    else if (exit_code == CLI_EXIT_OK)
        exit_code = cli_count_kernels(options, &report);
    for (int i = 0; i < report.entry_count && exit_code == CLI_EXIT_OK; i++)
        exit_code = options->is_attention
                        ? cli_predict_rung(options->query.shape, &report.shown, &report.entries[i])
                        : predict(options, &report.shown, &report.entries[i]);
    if (exit_code == CLI_EXIT_OK && options->query.has_json)
        exit_code = cli_print_json(cli_make_profile_json(&report));
    else if (exit_code == CLI_EXIT_OK)
        cli_print_profile(&report);
    free(report.command);
    return exit_code;
}

const struct argp cli_argp_profile = {
    .options = option_list,
    .parser = parse_option,
    .args_doc = "MxNxK|B,H,HKV,M,N,D",
    .doc = "Measure the memory accesses and the time of kernels on a GPU by Nsight Compute, and "
           "compare them with the model and the simulator.\v"
           "Each kernel runs as often as the profiler needs, with empty caches. All shapes of "
           "`tilegemm bench` are accepted. The text of an attention has commas; its kernels are "
           "attention_naive and attention_tiled, which run in FP32, and attention_mma, which runs "
           "in BF16, or in FP16 if the text says so. The model's time includes 3 us for a launch, "
           "the counter's does not. The profiler is ncu, found on PATH or by TILEGEMM_NCU; it does "
           "not change the clocks.\n\n"
           "Examples:\n"
           "  tilegemm profile 256x256x256 --kernel edges,transposed\n"
           "  tilegemm profile 4096x4096x4096:nt --kernel simt --json\n"
           "  tilegemm profile 1,4,2,256,256,64:causal --kernel attention_tiled\n"
           "  tilegemm profile 256x256x256 --kernel edges,transposed --device sim",
};

int cli_run_profile(int argc, char **argv)
{
    profile_options options = {.query = {.device = "cuda", .shape_example = example}};
    if (cli_parse_words(argc, argv, &cli_argp_profile, &options) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    options.is_attention = strchr(options.query.shape, ',') != NULL;
    tg_status status = TG_STATUS_OK;
    if (!options.is_attention)
        status = tg_parse_problem(options.query.shape, &options.problem, sizeof options.problem);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    int exit_code = check_device(&options);
    if (exit_code == CLI_EXIT_OK && !options.is_attention)
        exit_code = check_sizes(&options);
    if (exit_code == CLI_EXIT_OK)
        exit_code = find_rows(&options);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    if (options.is_launch)
        return options.is_attention ? cli_launch_rungs(&options) : cli_launch_kernels(&options);
    return report_kernels(&options);
}
