/*
 * tilegemm bench: reads the options and loops over shapes and thread counts.
 */
#include "bench/bench.h"

#include "json_output.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum bench_option {
    key_device = 0x100,
    key_attention,
    key_isa,
    key_hot,
    key_cold,
    key_min_time,
    key_max_time,
    key_within,
    key_rounds,
    key_precision,
    key_batch_invariant,
    key_sustained,
    key_graph,
    key_turns,
    key_brief,
    key_type
};

static const struct argp_option option_list[] = {
    {"shape", 's', "SPEC", 0, "Measure MxNxK, or a longer text such as 512x512x64:nt:bf16", 0},
    {"attention", key_attention, "TEXT", 0,
     "Measure attention: B,H,HKV,M,N,D, or a longer text such as "
     "1,8,8,1024,1024,64:causal",
     0},
    {"suite", 'S', "NAME|FILE", 0,
     "Measure the shapes of a suite (square, cubes, layouts, odd, skinny, llm, "
     "tokens, cliff, rounded, seeds) or of a file with one shape in each line "
     "(default: square if there is no --shape); for a file with the name of a suite, write "
     "./square",
     0},
    {"type", key_type, "TYPES", 0,
     "Element types, separated by commas, instead of the shape's own: fp32, fp64, "
     "bf16, fp16, fp8_e4m3 or fp8_e5m2 (with D in bf16)",
     0},
    {"precision", key_precision, "NAME", 0,
     "default, ieee_fp32, ieee_fp64, tf32, bf16x3, bf16x6, bf16x9 or fp16x3", 0},
    {"batch-invariant", key_batch_invariant, NULL, 0,
     "Give a row of D the same bits for every m and every batch", 0},
    {"kernel", 'k', "NAME", 0,
     "best (the planner's choice, the default), ladder, all, unfused, or a name that tilegemm "
     "kernels lists; may be repeated",
     0},
    {"peer", 'p', "NAME", 0,
     "openblas, blis, onednn, onednn_sgemm, libxsmm, mkl, on a GPU cublas, cublas_lt, "
     "cublas_best, for attention onednn or on a GPU cudnn, all that are installed (the default) "
     "or none; may be repeated",
     0},
    {"threads", 't', "COUNTS", 0, "Thread counts, separated by commas, such as 1,2", 0},
    {"device", key_device, "NAME", 0,
     "cpu, cuda (the first GPU), cuda:N, or sim, which counts the memory accesses of the "
     "ladder's kernels instead of timing them (default: TILEGEMM_DEVICE, else cpu)",
     0},
    {"isa", key_isa, "NAME", 0,
     "Highest instruction set of our kernels: generic, avx2, ..., sm75, ...", 0},
    {"json", 'j', "FILE", 0,
     "Write samples, medians and the machine to FILE; - writes them to standard "
     "output instead of the table",
     0},
    {"rounds", key_rounds, "N", 0, "Samples of each contender (default 15)", 0},
    {"min-time", key_min_time, "SECONDS", 0,
     "Shortest sample; calls repeat to fill it (default 0.005)", 0},
    {"max-time", key_max_time, "SECONDS", 0,
     "Stop sampling a contender after this time if it has 3 samples (default 5); with ladder or "
     "all, also leave out kernels whose call is predicted to take longer",
     0},
    {"sustained", key_sustained, "SECONDS", 0,
     "Also time back-to-back calls of each contender for this long (default 0: off)", 0},
    {"within", key_within, "FACTOR", 0,
     "Leave out kernels of ladder or all whose predicted time is over FACTOR times "
     "that of the planner's choice (default: none)",
     0},
    {"graph", key_graph, NULL, 0, "Time calls on a GPU as CUDA graphs, without the host's work", 0},
    {"turns", key_turns, "FILE", 0,
     "Share the GPU in turn with other benches that name FILE; operands are prepared while "
     "another bench runs",
     0},
    {"brief", key_brief, NULL, 0,
     "Take only the samples: no peak, no time of planning, no clocks, no pauses on a GPU; check "
     "fewer elements of D",
     0},
    {"hot", key_hot, NULL, 0, "Use the same operands for every call (default)", 0},
    {"cold", key_cold, NULL, 0,
     "Rotate operands over twice the last-level cache, so that each call reads from memory", 0},
    {0},
};

/* Calls `parse` for each part of a text between commas; returns 0 at the first that fails. */
static int parse_list(const char *text, int (*parse)(bench_options *, const char *),
                      bench_options *options)
{
    char copy[BENCH_TEXT_BYTES];
    snprintf(copy, sizeof copy, "%s", text);
    char *rest = copy;
    for (char *part = strsep(&rest, ","); part; part = strsep(&rest, ",")) {
        if (!parse(options, part))
            return 0;
    }
    return 1;
}

static int parse_thread_count(bench_options *options, const char *text)
{
    if (options->thread_count_count == BENCH_THREADS_CAPACITY) {
        cli_print_error("--threads has more than %d counts; pass fewer", BENCH_THREADS_CAPACITY);
        return 0;
    }
    return cli_parse_threads(text, &options->thread_counts[options->thread_count_count++]);
}

static int parse_type(bench_options *options, const char *text)
{
    if (options->type_count == BENCH_TYPE_CAPACITY) {
        cli_print_error("--type has more than %d types; pass fewer", BENCH_TYPE_CAPACITY);
        return 0;
    }
    return cli_parse_type("--type", text, &options->types[options->type_count++]);
}

static int add_name(const char *option, const char **names, int *count, const char *name)
{
    if (*count == BENCH_NAME_CAPACITY) {
        cli_print_error("%s is given more than %d times; pass fewer", option, BENCH_NAME_CAPACITY);
        return 0;
    }
    names[(*count)++] = name;
    return 1;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    bench_options *options = state->input;
    int exit_code = CLI_EXIT_OK, is_right = 1;
    switch (key) {
    case 's':
        exit_code = cli_add_shape(options, arg, "");
        break;
    case key_attention:
        exit_code = cli_add_attention(options, arg);
        break;
    case 'S':
        exit_code = cli_add_suite(options, arg);
        break;
    case key_type:
        is_right = parse_list(arg, parse_type, options);
        break;
    case key_precision:
        is_right = cli_parse_precision("--precision", arg, &options->precision);
        options->has_precision = 1;
        break;
    case key_batch_invariant:
        options->is_batch_invariant = 1;
        break;
    case 'k':
        is_right = add_name("--kernel", options->kernel_names, &options->kernel_name_count, arg);
        break;
    case 'p':
        is_right = add_name("--peer", options->peer_names, &options->peer_name_count, arg);
        break;
    case 't':
        is_right = parse_list(arg, parse_thread_count, options);
        break;
    case 'j':
        options->json_path = arg;
        break;
    case key_device:
        options->device = arg;
        break;
    case key_isa:
        options->isa = arg;
        break;
    case key_hot:
        options->is_cold = 0;
        break;
    case key_cold:
        options->is_cold = 1;
        break;
    case key_rounds:
        is_right = cli_parse_int("--rounds", arg, 1, BENCH_SAMPLE_CAPACITY, &options->round_count);
        break;
    case key_min_time:
        is_right = cli_parse_double("--min-time", arg, 0.0, 10.0, &options->min_time_s);
        break;
    case key_max_time:
        is_right = cli_parse_double("--max-time", arg, 0.0, 86400.0, &options->max_time_s);
        break;
    case key_sustained:
        is_right = cli_parse_double("--sustained", arg, 0.0, 60.0, &options->sustained_time_s);
        break;
    case key_graph:
        options->is_graph = 1;
        break;
    case key_turns:
        exit_code = cli_open_turns(arg);
        break;
    case key_brief:
        options->is_brief = 1;
        break;
    case key_within:
        is_right = cli_parse_double("--within", arg, 1.0, 1e9, &options->within);
        break;
    case ARGP_KEY_ARG:
        argp_error(state, "'%s' is not an option; a shape is given as --shape %s", arg, arg);
        break;
    default:
        return ARGP_ERR_UNKNOWN;
    }
    options->refused_code = is_right ? exit_code : CLI_EXIT_USAGE;
    return options->refused_code == CLI_EXIT_OK ? 0 : EINVAL;
}

/* Measures one shape at one thread count, in a context of its own. */
static int measure_shape(const bench_options *options, bench_result *result, int thread_count,
                         cli_progress *progress)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = options->device,
                                                .isa = options->isa,
                                                .thread_count = thread_count};
    tg_context *context = NULL;
    tg_device_info info;
    int exit_code = cli_create_context(&context_options, &context);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    tg_get_device_info(context, &info, sizeof info);
    result->thread_count = info.thread_count;
    snprintf(result->device, sizeof result->device, "%s", info.device);
    snprintf(result->isa, sizeof result->isa, "%s", info.isa);
    snprintf(result->bus, sizeof result->bus, "%s", info.bus);
    /* The plan of an attention refuses the device. */
    exit_code = options->is_simulated && !result->shape->is_attention
                    ? cli_simulate_result(options, context, result, progress)
                    : cli_measure_result(options, context, result, progress);
    cli_free_contenders(result);
    tg_destroy_context(result->host_context);
    tg_destroy_context(context);
    return exit_code;
}

static int measure_all(const bench_options *options, bench_result *results, int *result_count)
{
    const int has_table = !options->json_path || strcmp(options->json_path, "-") != 0;
    cli_progress progress = cli_make_progress(0);
    int worst_code = CLI_EXIT_OK;
    if (has_table)
        cli_print_bench_head(options);
    for (int t = 0; t < options->thread_count_count; t++) {
        for (int s = 0; s < options->shape_count; s++) {
            bench_result *result = &results[*result_count];
            result->shape = &options->shapes[s];
            cli_start_progress(&progress, result->shape->text);
            int exit_code = measure_shape(options, result, options->thread_counts[t], &progress);
            cli_end_progress(&progress);
            if (exit_code != CLI_EXIT_OK)
                return exit_code;
            (*result_count)++;
            if (has_table)
                options->is_simulated ? cli_print_simulated_result(result)
                                      : cli_print_result(result);
            if (cli_judge_result(result) != CLI_EXIT_OK)
                worst_code = CLI_EXIT_WRONG;
        }
    }
    if (has_table && cli_print_summary(results, *result_count) != CLI_EXIT_OK)
        worst_code = CLI_EXIT_WRONG;
    return worst_code == CLI_EXIT_OK ? cli_judge_run(options, results, *result_count) : worst_code;
}

static int set_defaults(bench_options *options)
{
    if (options->shape_count == 0) {
        int exit_code = cli_add_suite(options, "square");
        if (exit_code != CLI_EXIT_OK)
            return exit_code;
    }
    int exit_code = cli_check_attentions(options);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    for (int i = 0; options->kernel_name_count == 0 && i < options->suite_kernel_name_count; i++)
        options->kernel_names[i] = options->suite_kernel_names[i];
    if (options->kernel_name_count == 0)
        options->kernel_name_count = options->suite_kernel_name_count;
    if (options->max_time_s < 0.0)
        options->max_time_s = options->suite_max_time_s > 0.0 ? options->suite_max_time_s : 5.0;
    if (options->kernel_name_count == 0)
        options->kernel_names[options->kernel_name_count++] = "best";
    if (options->peer_name_count == 0)
        options->peer_names[options->peer_name_count++] = "all";
    if (options->thread_count_count == 0)
        options->thread_count_count = 1; /* 0: the context's own */
    exit_code = cli_apply_types(options);
    if (exit_code == CLI_EXIT_OK)
        exit_code = cli_hold_context(options);
    if (exit_code == CLI_EXIT_OK)
        exit_code = cli_check_kernel_names(options);
    if (exit_code == CLI_EXIT_OK)
        exit_code = cli_open_bench_peers(options);
    if (exit_code == CLI_EXIT_OK && options->is_graph &&
        (!options->is_on_gpu || !cli_open_graphs(options->held))) {
        cli_print_error("--graph needs a GPU whose driver has CUDA graphs; pass --device cuda, or "
                        "leave --graph out");
        exit_code = CLI_EXIT_MISSING;
    }
    return exit_code;
}

/* The file is opened before the measurement, so that a path that cannot be written costs no
 * time. */
static int measure_and_write(const bench_options *options, int argc, char **argv)
{
    const int capacity = options->shape_count * options->thread_count_count;
    bench_result *results = calloc((size_t)capacity, sizeof *results);
    if (!results) {
        cli_print_error("out of memory for %d results", capacity);
        return CLI_EXIT_WRONG;
    }
    json_output output;
    int result_count = 0;
    int exit_code = cli_open_json(options->json_path, &output);
    if (exit_code == CLI_EXIT_OK) {
        exit_code = measure_all(options, results, &result_count);
        /* Results from before a failure are worth keeping. */
        char *text = NULL;
        int write_code = CLI_EXIT_OK;
        if (options->json_path && result_count > 0) {
            text = cli_format_json(cli_make_bench_json(options, results, result_count, argc, argv));
            if (!text) {
                cli_print_error("no JSON was written to %s: out of memory for the run",
                                options->json_path);
                write_code = CLI_EXIT_WRONG;
            }
        }
        if (cli_write_json(&output, text) != CLI_EXIT_OK)
            write_code = CLI_EXIT_WRONG;
        exit_code = exit_code == CLI_EXIT_OK ? write_code : exit_code;
        free(text);
    }
    for (int i = 0; i < capacity; i++)
        cli_free_result(&results[i]);
    free(results);
    return exit_code;
}

const struct argp cli_argp_bench = {
    .options = option_list,
    .parser = parse_option,
    .doc = "Measure kernels in turn with other libraries, and check every result.\v"
           "Contenders run one after the other in every round, so that a change of clock "
           "or load hits all of them. The time shown is the median of the samples. A "
           "ratio over 1 means that our fastest kernel beats the fastest peer.\n\n"
           "Examples:\n"
           "  tilegemm bench --shape 1024x1024x1024 --threads 1,2\n"
           "  tilegemm bench --suite skinny --type fp32,fp64 --json skinny.json\n"
           "  tilegemm bench --shape 2048x2048x2048:bf16 --peer onednn --cold\n"
           "  tilegemm bench --attention 1,8,8,1024,1024,64:causal\n"
           "  tilegemm bench --device sim --shape 256x256x256 --kernel ladder\n\n"
           "TILEGEMM_OPENBLAS, TILEGEMM_CUBLAS, ... name the folder or the file of a peer's "
           "library.",
};

int cli_run_bench(int argc, char **argv)
{
    bench_options options = {
        .min_time_s = 0.005, .max_time_s = -1.0 /* not given */, .round_count = 15};
    int exit_code = CLI_EXIT_OK;
    if (cli_parse_words(argc, argv, &cli_argp_bench, &options) != CLI_EXIT_OK)
        exit_code = options.refused_code != CLI_EXIT_OK ? options.refused_code : CLI_EXIT_USAGE;
    cli_read_machine(&options.machine);
    if (exit_code == CLI_EXIT_OK)
        exit_code = set_defaults(&options);
    if (exit_code == CLI_EXIT_OK)
        exit_code = measure_and_write(&options, argc, argv);
    tg_destroy_context(options.held);
    free(options.shapes);
    return exit_code;
}
