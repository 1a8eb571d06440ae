/*
 * tilegemm attention computes D = softmax(scale Q K^T + bias) V on files.
 *
 * The order of the work is that of tilegemm multiply: refuse what is wrong, reserve the outputs,
 * compute into them, check them, and only then give them their names.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"
#include "attention_memory.h"
#include "files/element_type.h"
#include "files/run_summary.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK_FLOPS 2e8 /* multiply-adds of the rows that --check compares, about a second */

/* Everything that one run owns. */
typedef struct attention_job {
    cli_attention_options options;
    cli_attention_inputs inputs;
    cli_array_output output, log_sum_exp;
    tg_context *context;
    tg_attention_plan *plan;
    cli_attention_result result;
    cli_run_summary summary;
    cli_memory memory;
    cli_progress progress;
    cli_file_error error;
} attention_job;

static int open_inputs(attention_job *job)
{
    const cli_attention_options *options = &job->options;
    int code = cli_name_array_output(options->output_path, "D", &job->output, &job->error);
    if (code == CLI_EXIT_OK && options->log_sum_exp_path)
        code = cli_name_array_output(options->log_sum_exp_path, "the log-sum-exp",
                                     &job->log_sum_exp, &job->error);
    for (int i = 0; i < CLI_ATTENTION_FILE_COUNT && code == CLI_EXIT_OK; i++) {
        if (options->paths[i])
            code = cli_open_array(options->paths[i], &job->inputs.files[i], &job->error);
    }
    return code;
}

static int load_input(attention_job *job, int id, tg_type type)
{
    cli_matrix_file *file = &job->inputs.files[id];
    if (id >= CLI_ATTENTION_QUERY_OFFSETS)
        return cli_load_attention_list(file, &job->memory, &job->progress, &job->inputs.lists[id],
                                       &job->error);
    const tg_type sum_type = type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
    return cli_load_matrix(file, id <= CLI_ATTENTION_V ? type : sum_type, &job->memory,
                           &job->progress, &job->error);
}

static int load_inputs(attention_job *job, tg_type *type)
{
    const cli_matrix_file *opened = job->inputs.files;
    const cli_matrix_file *const files[] = {&opened[CLI_ATTENTION_Q], &opened[CLI_ATTENTION_K],
                                            &opened[CLI_ATTENTION_V]};
    int code = CLI_EXIT_OK;
    *type = job->options.type;
    if (!job->options.has_type)
        code =
            cli_choose_type(files, 3, TG_TYPE_FP64, "--type fp32 for integers", type, &job->error);
    job->memory = cli_read_memory(0);
    for (int i = 0; i < CLI_ATTENTION_FILE_COUNT && code == CLI_EXIT_OK; i++) {
        if (job->options.paths[i])
            code = load_input(job, i, *type);
    }
    return code;
}

static int check_output(attention_job *job)
{
    cli_attention_result *result = &job->result;
    cli_start_progress(&job->progress, "checking");
    const int is_done = check_compare_attention(&result->attention, result->device.device,
                                                CHECK_FLOPS, &result->check);
    cli_end_progress(&job->progress);
    if (!is_done)
        return cli_fail_file(&job->error, CLI_EXIT_WRONG,
                             "out of memory for --check; D is not written");
    result->has_check = 1;
    if (result->check.bad_row < 0)
        return CLI_EXIT_OK;
    return cli_fail_file(&job->error, CLI_EXIT_WRONG,
                         "the result is wrong: row %lld of head %lld of batch entry %lld is beyond "
                         "its bound, the worst row by %.3g times; %.300s is not written",
                         (long long)result->check.bad_row, (long long)result->check.bad_head,
                         (long long)result->check.bad_batch, result->check.worst_share,
                         job->options.output_path);
}

static char *format_job(const void *run)
{
    const attention_job *job = run;
    return cli_format_attention(&job->options, &job->result);
}

static void print_job(const void *run)
{
    const attention_job *job = run;
    cli_print_attention(&job->options, &job->result);
}

static int execute(attention_job *job)
{
    tg_attention *a = &job->result.attention;
    a->d.data = job->output.data;
    a->log_sum_exp.data = job->log_sum_exp.data;
    cli_placed_attention placed;
    tg_status status = cli_place_attention(job->context, a, &placed);
    const double start_s = cli_read_clock();
    if (status == TG_STATUS_OK)
        status = tg_execute_attention(job->plan, &placed.attention, NULL, 0, NULL);
    if (status == TG_STATUS_OK)
        status = tg_synchronize(job->context, NULL);
    job->result.time_s = cli_read_clock() - start_s;
    if (status == TG_STATUS_OK)
        status = cli_fetch_attention(&placed, a);
    cli_release_attention(&placed);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_fail_status(&job->error, status);
}

static int open_outputs(attention_job *job)
{
    const cli_attention_result *result = &job->result;
    const tg_attention *a = &result->attention;
    int code = cli_open_array_output(&job->output, a->type, result->sizes, result->dim_count, 0,
                                     &job->memory, &job->error);
    if (code != CLI_EXIT_OK || !a->has_log_sum_exp)
        return code;
    const int is_vector = result->dim_count == 1;
    const int64_t one = 1;
    code = cli_open_array_output(
        &job->log_sum_exp, cli_get_attention_sum_type(a), is_vector ? &one : result->sizes,
        is_vector ? 1 : result->dim_count - 1, 0, &job->memory, &job->error);
    if (code == CLI_EXIT_OK && cli_is_same_output(&job->output.file, &job->log_sum_exp.file))
        return cli_fail_file(&job->error, CLI_EXIT_USAGE,
                             "--log-sum-exp = %.300s is the file of D; pass another",
                             job->log_sum_exp.path);
    return code;
}

/* Writes both outputs to the disk before one of them gets its name. */
static int finish_outputs(attention_job *job)
{
    const cli_attention_result *result = &job->result;
    const tg_attention *a = &result->attention;
    cli_array_output *lse = &job->log_sum_exp;
    const int64_t *sizes = result->sizes;
    /* Views for text, which has two dimensions. */
    const tg_matrix d = tg_make_matrix(a->type, a->d.data, sizes[0], sizes[1]);
    const tg_matrix logs =
        tg_make_matrix(cli_get_attention_sum_type(a), lse->data, sizes[0], sizes[1]);
    int code = CLI_EXIT_OK;
    if (a->has_log_sum_exp)
        code = cli_write_array_output(lse, &logs, &job->progress, &job->error);
    if (code == CLI_EXIT_OK && a->has_log_sum_exp)
        code = cli_settle_array_output(lse, &job->error);
    if (code == CLI_EXIT_OK)
        code =
            cli_finish_array_output(&job->output, &d, &job->summary, &job->progress, &job->error);
    if (code == CLI_EXIT_OK && a->has_log_sum_exp)
        code = cli_commit_array_output(lse, &job->error);
    return code;
}

/* Takes the run from loaded inputs to the written output. The plan comes first, because it bounds
 * the sizes. */
static int run_attention(attention_job *job)
{
    cli_attention_result *result = &job->result;
    tg_status status = tg_create_attention_plan(job->context, &result->attention, &job->plan);
    if (status == TG_STATUS_OK)
        status = tg_format_attention(&result->attention, result->text, sizeof result->text);
    if (status != TG_STATUS_OK)
        return cli_fail_status(&job->error, status);
    result->kernel = tg_get_attention_kernel(job->plan);
    int code = open_outputs(job);
    if (code == CLI_EXIT_OK)
        code = execute(job);
    if (code == CLI_EXIT_OK && job->options.is_checked)
        code = check_output(job);
    if (code == CLI_EXIT_OK)
        code = finish_outputs(job);
    if (code == CLI_EXIT_OK || result->has_check) {
        const int summary_code = cli_print_run_summary(&job->summary, &job->error);
        code = code == CLI_EXIT_OK ? summary_code : code;
    }
    return code;
}

static int run_job(attention_job *job)
{
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = job->options.device,
                                                .thread_count = job->options.thread_count};
    tg_type type;
    int code = open_inputs(job);
    if (code == CLI_EXIT_OK)
        code = cli_create_context(&context_options, &job->context);
    if (code != CLI_EXIT_OK)
        return code;
    tg_get_device_info(job->context, &job->result.device, sizeof job->result.device);
    code = load_inputs(job, &type);
    if (code == CLI_EXIT_OK)
        code = cli_make_attention(&job->options, &job->inputs, type, &job->result, &job->error);
    return code == CLI_EXIT_OK ? run_attention(job) : code;
}

int cli_run_attention(int argc, char **argv)
{
    attention_job job = {.context = NULL};
    int code = cli_parse_attention(argc, argv, &job.options);
    if (code != CLI_EXIT_OK)
        return code;
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
    cli_discard_array_output(&job.log_sum_exp);
    cli_free_run_summary(&job.summary);
    for (int i = 0; i < CLI_ATTENTION_FILE_COUNT; i++) {
        cli_close_matrix(&job.inputs.files[i]);
        free(job.inputs.lists[i]);
    }
    tg_destroy_attention_plan(job.plan);
    tg_destroy_context(job.context);
    return code;
}
