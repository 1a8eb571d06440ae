/*
 * Prints the summary of tilegemm attention.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"
#include "json_output.h"

#include <stdio.h>

/* Counts the operations of the keys that are seen. */
static double get_gflop_per_s(const cli_attention_result *result)
{
    const double flop_count = check_count_attention_flops(&result->attention);
    return result->time_s > 0 ? 1e-9 * flop_count / result->time_s : 0;
}

static double count_rows(const tg_attention *a)
{
    double query_count = 0;
    for (int64_t b = 0; b < a->batch_count; b++)
        query_count += (double)check_count_queries(a, b);
    return (double)a->head_count * query_count;
}

void cli_print_attention(const cli_attention_options *options, const cli_attention_result *result)
{
    const check_attention_result *check = &result->check;
    printf("%s: %s, %s; %s, %s, %d thread%s, %.4g ms, %.4g GFLOP/s\n", options->output_path,
           result->text, tg_get_type_name(result->attention.type), result->device.device,
           result->kernel, result->device.thread_count, result->device.thread_count == 1 ? "" : "s",
           1e3 * result->time_s, get_gflop_per_s(result));
    if (result->has_check)
        printf("check: %s, %lld of %.0f rows compared with FP64; worst element at %.3g of its "
               "bound\n",
               check->bad_row < 0 ? "right" : "WRONG", (long long)check->row_count,
               count_rows(&result->attention), check->worst_share);
}

static json_t *make_check(const cli_attention_result *result)
{
    const check_attention_result *check = &result->check;
    if (!result->has_check)
        return json_null();
    return json_pack("{s:s, s:b, s:o, s:I, s:I, s:I, s:I}", "method", "fp64", "ok",
                     check->bad_row < 0, "worst_share", cli_make_real_json(check->worst_share),
                     "compared_rows", (json_int_t)check->row_count, "bad_batch",
                     (json_int_t)check->bad_batch, "bad_head", (json_int_t)check->bad_head,
                     "bad_row", (json_int_t)check->bad_row);
}

char *cli_format_attention(const cli_attention_options *options, const cli_attention_result *result)
{
    const tg_attention *a = &result->attention;
    return cli_format_json(json_pack(
        "{s:o, s:o, s:b, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:i, s:o, "
        "s:o, s:o}",
        "output", cli_make_text_json(options->output_path), "log_sum_exp",
        options->log_sum_exp_path ? cli_make_text_json(options->log_sum_exp_path) : json_null(),
        "written", result->is_written, "attention", result->text, "batch_count",
        (json_int_t)a->batch_count, "head_count", (json_int_t)a->head_count, "kv_head_count",
        (json_int_t)a->kv_head_count, "m", (json_int_t)a->m, "n", (json_int_t)a->n, "head_size",
        (json_int_t)a->head_size, "v_head_size", (json_int_t)a->v_head_size, "type",
        tg_get_type_name(a->type), "device", result->device.device, "kernel", result->kernel,
        "threads", result->device.thread_count, "time_s", cli_make_real_json(result->time_s),
        "gflop_per_s", cli_make_real_json(get_gflop_per_s(result)), "check", make_check(result)));
}
