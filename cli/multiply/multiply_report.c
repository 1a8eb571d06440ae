/*
 * Prints the summary of tilegemm multiply.
 *
 * SPDX-License-Identifier: MIT
 */
#include "multiply/multiply.h"
#include "json_output.h"

#include <stdio.h>

double cli_count_gflop(const cli_multiply_result *result)
{
    return 2e-9 * (double)result->batch_count * (double)result->m * (double)result->n *
           (double)result->k;
}

/* Returns the rate of the panels that this run has formed. */
static double get_gflop_per_s(const cli_multiply_result *result)
{
    const double share = result->panel_count > 0
                             ? 1 - (double)result->resumed_count / (double)result->panel_count
                             : 1;
    return result->time_s > 0 ? share * cli_count_gflop(result) / result->time_s : 0;
}

static void print_check(const cli_multiply_result *result)
{
    const check_freivalds_report *check = &result->check;
    printf("check: %s in %d rounds of Freivalds' method; worst row at %.3g of its bound, largest "
           "bound %.3g; %lld rows compared, %lld skipped (NaN, Inf or overflow), %lld elements "
           "NaN or Inf as they must be\n",
           check->is_ok ? "right" : "WRONG", result->round_count, check->worst_share,
           check->max_bound, (long long)check->compared_row_count,
           (long long)check->skipped_row_count, (long long)check->class_elem_count);
}

void cli_print_multiply(const cli_multiply_options *options, const cli_multiply_result *result)
{
    printf("%s: ", options->output_path);
    if (result->batch_count != 1)
        printf("%lld times ", (long long)result->batch_count);
    printf("%lldx%lld %s = %lldx%lld times %lldx%lld %s; %s, %s, %d thread%s, %.4g ms, "
           "%.4g GFLOP/s\n",
           (long long)result->m, (long long)result->n, tg_get_type_name(result->output_type),
           (long long)result->m, (long long)result->k, (long long)result->k, (long long)result->n,
           tg_get_type_name(result->type), result->device.device, result->kernel,
           result->thread_count, result->thread_count == 1 ? "" : "s", 1e3 * result->time_s,
           get_gflop_per_s(result));
    if (result->resumed_count > 0)
        printf("%lld of %lld panels were done before\n", (long long)result->resumed_count,
               (long long)result->panel_count);
    if (result->round_count)
        print_check(result);
}

static json_t *make_check(const cli_multiply_result *result)
{
    const check_freivalds_report *check = &result->check;
    if (!result->round_count)
        return json_null();
    return json_pack("{s:s, s:b, s:i, s:o, s:o, s:I, s:I, s:I, s:I}", "method", "freivalds", "ok",
                     check->is_ok, "rounds", result->round_count, "worst_share",
                     cli_make_real_json(check->worst_share), "max_bound",
                     cli_make_real_json(check->max_bound), "bad_row", (json_int_t)check->bad_row,
                     "compared_rows", (json_int_t)check->compared_row_count, "skipped_rows",
                     (json_int_t)check->skipped_row_count, "class_elements",
                     (json_int_t)check->class_elem_count);
}

char *cli_format_multiply(const cli_multiply_options *options, const cli_multiply_result *result)
{
    return cli_format_json(json_pack(
        "{s:o, s:b, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:o, s:o, s:b, s:s, s:s, s:s, s:i, s:I, "
        "s:I, s:o, s:o, s:o}",
        "output", cli_make_text_json(options->output_path), "written", result->is_written, "m",
        (json_int_t)result->m, "n", (json_int_t)result->n, "k", (json_int_t)result->k,
        "batch_count", (json_int_t)result->batch_count, "type", tg_get_type_name(result->type),
        "output_type", tg_get_type_name(result->output_type), "precision",
        tg_get_precision_name(options->precision), "alpha", cli_make_real_json(options->alpha),
        "beta", cli_make_real_json(options->beta), "has_bias", options->bias_path != NULL,
        "activation", tg_get_activation_name(options->activation), "device", result->device.device,
        "kernel", result->kernel, "threads", result->thread_count, "panels",
        (json_int_t)result->panel_count, "resumed_panels", (json_int_t)result->resumed_count,
        "time_s", cli_make_real_json(result->time_s), "gflop_per_s",
        cli_make_real_json(get_gflop_per_s(result)), "check", make_check(result)));
}
