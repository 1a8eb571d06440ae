/*
 * tilegemm multiply: D = activation(alpha op(A) op(B) + beta C + bias) on files.
 *
 * The order of work is: refuse wrong options, headers, types and shapes, before anything else is
 * done; reserve the space of the output; multiply, for .npy directly into the mapped output; check
 * the result; then give the output its name.
 *
 * SPDX-License-Identifier: MIT
 */
#include "multiply/multiply.h"
#include "check.h"
#include "files/element_type.h"
#include "files/matrix_convert.h"
#include "files/run_summary.h"
#include "multiply/multiply_panels.h"

#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHECK_ROUND_COUNT 20 /* a wrong row passes with probability 1e-6 */
#define CHECK_SEED UINT64_C(0x7469)
#define PROGRESS_STEP_COUNT 1000
/* If D outlives an interrupted run, a panel takes twenty seconds on a small machine, and some
 * seconds on a GPU. It is written to the disk before the next panel. */
#define STAYING_FLOPS 1e12
#define STAYING_FLOPS_GPU 1e14

/* Everything that one run owns. */
typedef struct multiply_job {
    cli_multiply_options options;
    cli_multiply_files files;
    cli_array_output output;
    tg_context *context;
    tg_problem problem;
    cli_multiply_result result;
    cli_run_summary summary;
    cli_memory memory;
    int64_t memory_bytes; /* for the operands at once */
    tg_panels panels;
    cli_partial partial;
    cli_progress progress;
    cli_file_error error;
} multiply_job;

static int open_inputs(multiply_job *job)
{
    const cli_multiply_options *options = &job->options;
    int code = cli_name_array_output(options->output_path, "D", &job->output, &job->error);
    if (code == CLI_EXIT_OK)
        code = cli_open_matrix(options->a_path, &job->files.a, &job->error);
    if (code == CLI_EXIT_OK)
        code = cli_open_matrix(options->b_path, &job->files.b, &job->error);
    /* The file of C is opened even if beta = 0 leaves its elements unread: a mistyped name is an
     * error. */
    if (code == CLI_EXIT_OK && options->c_path)
        code = cli_open_matrix(options->c_path, &job->files.c, &job->error);
    if (code == CLI_EXIT_OK && options->bias_path)
        code = cli_open_matrix(options->bias_path, &job->files.bias, &job->error);
    return code;
}

/* Chooses the type of A and B: --type, else their type in the files, else C's type if both are text
 * or integers, else FP64. */
static int choose_type(multiply_job *job, tg_type *type)
{
    const cli_matrix_file *const files[] = {&job->files.a, &job->files.b};
    if (!job->options.has_type)
        return cli_choose_type(
            files, 2, job->files.has_c ? job->files.c.array.view.type : TG_TYPE_FP64,
            "--type fp8_e4m3 or --type fp8_e5m2, or --type fp32 for integers", type, &job->error);
    *type = job->options.type;
    return CLI_EXIT_OK;
}

static int choose_output_type(multiply_job *job, tg_type type, tg_type *output_type)
{
    const cli_multiply_options *options = &job->options;
    const int may_be_fp8 = check_is_fp8(type);
    const int has_others = may_be_fp8 || tg_get_type_bytes(type) == 2;
    const char *others = may_be_fp8   ? " or fp32, bf16, fp16, the other fp8"
                         : has_others ? " or fp32, bf16, fp16"
                                      : "";
    *output_type = options->has_output_type ? options->output_type : type;
    const char *output_name = tg_get_type_name(*output_type);
    const int is_fp8 = check_is_fp8(*output_type);
    if (*output_type != type &&
        (!has_others || *output_type == TG_TYPE_FP64 || (is_fp8 && !may_be_fp8)))
        return cli_fail_file(&job->error, CLI_EXIT_USAGE,
                             "--output-type = %s is not possible where A and B are %s; pass %s%s",
                             output_name, tg_get_type_name(type), tg_get_type_name(type), others);
    if (options->is_checked && is_fp8)
        return cli_fail_file(&job->error, CLI_EXIT_USAGE,
                             "--check takes no D in %s, which stops at %g; pass --output-type bf16",
                             output_name, cli_get_type_max(*output_type));
    if (options->is_checked && options->activation != TG_ACTIVATION_NONE)
        return cli_fail_file(&job->error, CLI_EXIT_USAGE,
                             "--check takes no --activation, after which sums are not linear; "
                             "check the product without it");
    int is_converted = options->has_type || options->has_output_type;
    if (job->files.has_c && cli_has_type(&job->files.c) &&
        job->files.c.array.view.type != *output_type && !is_converted)
        return cli_fail_file(
            &job->error, CLI_EXIT_USAGE,
            "%.300s holds %s and D is %s; pass --output-type %s to convert it, with "
            "rounding where that is narrower",
            job->files.c.path, tg_get_type_name(job->files.c.array.view.type), output_name,
            output_name);
    return CLI_EXIT_OK;
}

/* All types but FP64 are scaled in FP32. */
static int check_factor(multiply_job *job, const char *option, double factor, tg_type type)
{
    if (factor == 0 || type == TG_TYPE_FP64 || (float)factor != 0)
        return CLI_EXIT_OK;
    return cli_fail_file(&job->error, CLI_EXIT_USAGE,
                         "%s = %g becomes 0 in FP32, in which %s matrices are scaled (least "
                         "magnitude %g); pass --type fp64 or %s 0",
                         option, factor, tg_get_type_name(type), (double)FLT_TRUE_MIN, option);
}

static int load_inputs(multiply_job *job)
{
    cli_multiply_result *result = &job->result;
    int code = choose_type(job, &result->type);
    if (code == CLI_EXIT_OK)
        code = choose_output_type(job, result->type, &result->output_type);
    if (code == CLI_EXIT_OK)
        code = check_factor(job, "--alpha", job->options.alpha, result->type);
    if (code == CLI_EXIT_OK)
        code = check_factor(job, "--beta", job->options.beta, result->type);
    job->memory = cli_read_memory(job->options.memory_bytes);
    job->memory_bytes = job->memory.left_bytes;
    if (code == CLI_EXIT_OK)
        code =
            cli_load_matrix(&job->files.a, result->type, &job->memory, &job->progress, &job->error);
    if (code == CLI_EXIT_OK)
        code =
            cli_load_matrix(&job->files.b, result->type, &job->memory, &job->progress, &job->error);
    if (code == CLI_EXIT_OK && job->files.has_c)
        code = cli_load_matrix(&job->files.c, result->output_type, &job->memory, &job->progress,
                               &job->error);
    if (code == CLI_EXIT_OK && job->files.has_bias)
        code = cli_load_matrix(&job->files.bias, result->output_type, &job->memory, &job->progress,
                               &job->error);
    return code;
}

/* Opens a new file for D. If the matrices are larger than memory, D outlives an interrupted run. */
static int open_output(multiply_job *job, const char *facts, int is_out_of_core)
{
    const cli_multiply_result *result = &job->result;
    const int is_staying = is_out_of_core && job->output.format == CLI_FORMAT_NPY;
    int code = cli_open_array_output(
        &job->output, job->problem.d.type, result->sizes, result->dim_count,
        is_staying ? cli_get_journal_bytes(job->output.bytes) : 0, &job->memory, &job->error);
    if (code == CLI_EXIT_OK && is_staying)
        code = cli_start_partial(facts, &job->panels, &job->output, &job->partial, &job->error);
    return code;
}

/* Gives D its memory, in the file of an interrupted run or in a new one, and chooses its panels. */
static int make_output(multiply_job *job)
{
    cli_multiply_result *result = &job->result;
    const int is_on_device = result->device.sm_count > 0;
    char facts[CLI_FACTS_BYTES] = "";
    cli_write_facts(&job->options, &job->files, result, facts, sizeof facts);
    int code = CLI_EXIT_OK, is_out_of_core = 0;
    if (job->output.format == CLI_FORMAT_NPY)
        code = cli_find_partial(facts, &job->output, &job->partial, &job->panels, &job->error);
    if (code == CLI_EXIT_OK && !job->partial.journal) {
        const tg_status status = cli_choose_panels(
            &job->problem, job->memory_bytes, is_on_device ? STAYING_FLOPS_GPU : STAYING_FLOPS,
            !is_on_device && job->progress.is_terminal, &job->panels, &is_out_of_core);
        code = status == TG_STATUS_OK ? open_output(job, facts, is_out_of_core)
                                      : cli_fail_status(&job->error, status);
    }
    result->panel_count = job->panels.panel_count;
    result->resumed_count = job->partial.resumed_count;
    job->problem.d.data = job->output.data;
    if (!job->files.has_c)
        job->problem.c = job->problem.d;
    return code;
}

static void show_check(void *state, double share)
{
    cli_show_progress(state, (int64_t)(share * PROGRESS_STEP_COUNT), PROGRESS_STEP_COUNT);
}

static int check_output(multiply_job *job)
{
    cli_multiply_result *result = &job->result;
    const check_watcher watcher = {.show = show_check, .state = &job->progress};
    cli_start_progress(&job->progress, "checking");
    int status = check_watch_freivalds(&job->problem, CHECK_ROUND_COUNT, CHECK_SEED, &watcher,
                                       &result->check);
    cli_end_progress(&job->progress);
    if (status < 0)
        return cli_fail_file(&job->error, CLI_EXIT_WRONG,
                             "out of memory for --check; D is not written");
    result->round_count = CHECK_ROUND_COUNT;
    if (result->check.is_ok)
        return CLI_EXIT_OK;
    cli_give_up_output(&job->output.file);
    return cli_fail_file(&job->error, CLI_EXIT_WRONG,
                         "the result is wrong: row %lld is off by %.3g times its bound; %.300s is "
                         "not written",
                         (long long)result->check.bad_row, result->check.worst_share,
                         job->options.output_path);
}

static char *format_job(const void *run)
{
    const multiply_job *job = run;
    return cli_format_multiply(&job->options, &job->result);
}

static void print_job(const void *run)
{
    const multiply_job *job = run;
    cli_print_multiply(&job->options, &job->result);
}

static int fail_unless_ok(multiply_job *job, tg_status status)
{
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_fail_status(&job->error, status);
}

/* Adds the place of the finished panels to the error. If no panel is finished, nothing is kept. */
static void tell_partial(multiply_job *job)
{
    if (cli_count_done(&job->partial) == 0) {
        cli_give_up_output(&job->output.file);
        return;
    }
    const size_t length = strlen(job->error.text);
    snprintf(job->error.text + length, sizeof job->error.text - length,
             "; %lld of %lld panels are in %.300s.partial, and the same command goes on from there",
             (long long)cli_count_done(&job->partial), (long long)job->panels.panel_count,
             job->output.file.target);
}

/* Forms one panel and times it, on a GPU with the copies. The simulated GPU has no bus and reads
 * the panel in place. */
static tg_status execute_panel(void *state, const tg_problem *panel)
{
    multiply_job *job = state;
    cli_multiply_result *result = &job->result;
    const double start_s = cli_read_clock();
    const tg_status status =
        result->device.bus[0]
            ? tg_multiply_in_panels(job->context, panel, job->options.device_bytes, NULL)
            : cli_execute_panel(job->context, result->kernel, panel);
    result->time_s += cli_read_clock() - start_s;
    return status;
}

static int execute_panels(multiply_job *job)
{
    int number;
    const tg_status status = cli_execute_panels(&job->problem, &job->panels, execute_panel, job,
                                                &job->partial, &job->progress, &number);
    const int code = number ? cli_fail_output(&job->output.file, number, &job->error)
                            : fail_unless_ok(job, status);
    if (code != CLI_EXIT_OK && job->partial.journal)
        tell_partial(job);
    return code;
}

/* Takes the run from loaded inputs to the written output. */
static int run_problem(multiply_job *job)
{
    cli_multiply_result *result = &job->result;
    tg_plan *plan = NULL;
    tg_plan_info info;
    int code = cli_size_array_output(&job->output, job->problem.d.type, result->sizes,
                                     result->dim_count, &job->error);
    if (code != CLI_EXIT_OK)
        return code;
    tg_status status = tg_create_plan(job->context, &job->problem, NULL, &plan);
    if (status == TG_STATUS_OK)
        status = tg_get_plan_info(plan, &info, sizeof info);
    code = fail_unless_ok(job, status);
    if (code == CLI_EXIT_OK) {
        result->kernel = info.kernel;
        result->thread_count = info.thread_count;
        code = make_output(job);
    }
    if (code == CLI_EXIT_OK) {
        cli_start_progress(&job->progress, "multiplying");
        job->progress.gflop_count = cli_count_gflop(result);
        job->progress.start_share =
            (double)result->resumed_count / (double)(result->panel_count + !result->panel_count);
        code = execute_panels(job);
        cli_end_progress(&job->progress);
    }
    if (code == CLI_EXIT_OK && job->options.is_checked)
        code = check_output(job);
    if (code == CLI_EXIT_OK)
        code = cli_finish_array_output(&job->output, &job->problem.d, &job->summary, &job->progress,
                                       &job->error);
    if (code == CLI_EXIT_OK || result->round_count) {
        int summary_code = cli_print_run_summary(&job->summary, &job->error);
        code = code == CLI_EXIT_OK ? summary_code : code;
    }
    tg_destroy_plan(plan); /* the name of the kernel lives as long as its plan */
    return code;
}

static int run_job(multiply_job *job)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = job->options.device,
                                                .thread_count = job->options.thread_count};
    int code = open_inputs(job);
    if (code != CLI_EXIT_OK)
        return code;
    code = cli_create_context(&context_options, &job->context);
    if (code != CLI_EXIT_OK)
        return code;
    tg_get_device_info(job->context, &job->result.device, sizeof job->result.device);
    code = load_inputs(job);
    if (code == CLI_EXIT_OK)
        code = cli_make_multiply_problem(&job->options, &job->files, &job->result, &job->problem,
                                         &job->error);
    return code == CLI_EXIT_OK ? run_problem(job) : code;
}

int cli_run_multiply(int argc, char **argv)
{
    multiply_job job = {.files = {.has_c = 0}};
    int code = cli_parse_multiply(argc, argv, &job.options);
    if (code != CLI_EXIT_OK)
        return code;
    job.files.has_c = job.options.c_path && job.options.beta != 0;
    job.files.has_bias = job.options.bias_path != NULL;
    job.progress = cli_make_progress(job.options.is_quiet);
    job.summary = (cli_run_summary){.is_json = job.options.is_json,
                                    .is_quiet = job.options.is_quiet,
                                    .run = &job,
                                    .is_written = &job.result.is_written,
                                    .format = format_job,
                                    .print = print_job};
    code = run_job(&job);
    if (job.error.text[0])
        cli_print_error("%s", job.error.text);
    cli_discard_array_output(&job.output);
    cli_free_run_summary(&job.summary);
    cli_close_matrix(&job.files.a);
    cli_close_matrix(&job.files.b);
    cli_close_matrix(&job.files.c);
    cli_close_matrix(&job.files.bias);
    tg_destroy_context(job.context);
    return code;
}
