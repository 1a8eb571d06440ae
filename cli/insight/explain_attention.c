/*
 * tilegemm explain shows an attention's operations and bytes, compared with a score matrix in
 * memory, and its rungs on a chip.
 */
#include "insight/explain.h"

#include "attention_check.h"
#include "json_output.h"

#include <stdio.h>
#include <string.h>

/* The counts of an attention. Lists of offsets and lengths are ignored: every batch entry counts
 * with m queries and n keys. */
typedef struct attention_counts {
    double flops, exponential_count;
    double operand_bytes; /* Q, K, V and D, each element once */
    double score_bytes;   /* one score for each query and key */
} attention_counts;

/* A score matrix in memory is written by the first product, read and written by the softmax, and
 * read by the second product. */
static const double score_pass_count = 4;

static attention_counts count(const tg_attention *given)
{
    tg_attention a = *given;
    a.has_query_offsets = a.has_key_offsets = a.has_key_lengths = 0;
    const double queries = (double)a.batch_count * (double)a.head_count * (double)a.m;
    const double keys = (double)a.batch_count * (double)a.kv_head_count * (double)a.n;
    const double sizes = (double)(a.head_size + a.v_head_size);
    const double flops = check_count_attention_flops(&a);
    return (attention_counts){
        .flops = flops,
        .exponential_count = flops / (2.0 * sizes),
        .operand_bytes = (queries + keys) * sizes * (double)tg_get_type_bytes(a.type),
        .score_bytes = queries * (double)a.n * (a.type == TG_TYPE_FP64 ? 8.0 : 4.0)};
}

static double find_intensity(double flops, double bytes)
{
    return bytes > 0 ? flops / bytes : 0;
}

static void print_counts(const char *text, const tg_device_info *device, const char *kernel,
                         int64_t workspace_bytes, const attention_counts *c)
{
    const double with_scores = c->operand_bytes + score_pass_count * c->score_bytes;
    char bytes[COUNT_TEXT_BYTES];
    printf("attention %s on %s, %s, %d thread%s\n", text, device->device, device->isa,
           device->thread_count, device->thread_count == 1 ? "" : "s");
    printf("  kernel         %s\n", kernel);
    printf("  workspace      %s bytes\n", cli_format_count(workspace_bytes, bytes));
    printf("  operations     %.4g GFLOP in two products, for the keys that queries see\n",
           1e-9 * c->flops);
    printf("  exponentials   %.4g million\n", 1e-6 * c->exponential_count);
    printf("  operands       %.4g MB of Q, K, V and D: %.4g FLOP a byte\n", 1e-6 * c->operand_bytes,
           find_intensity(c->flops, c->operand_bytes));
    printf("  score matrix   %.4g MB, never in memory; written and read twice it would leave %.4g "
           "FLOP a byte\n",
           1e-6 * c->score_bytes, find_intensity(c->flops, with_scores));
}

static json_t *make_counts_json(const char *text, const tg_device_info *device, const char *kernel,
                                int64_t workspace_bytes, const attention_counts *c)
{
    return json_pack("{s:s, s:s, s:s, s:i, s:s, s:I, s:f, s:f, s:f, s:f}", "attention", text,
                     "device", device->device, "isa", device->isa, "threads", device->thread_count,
                     "kernel", kernel, "workspace_bytes", (json_int_t)workspace_bytes, "flops",
                     c->flops, "exponentials", c->exponential_count, "operand_bytes",
                     c->operand_bytes, "score_bytes", c->score_bytes);
}

static int show(tg_context *context, const tg_attention *attention, int has_json)
{
    tg_attention_plan *plan = NULL;
    tg_device_info device;
    char text[1024];
    tg_status status = tg_create_attention_plan(context, attention, &plan);
    if (status == TG_STATUS_OK)
        status = tg_get_device_info(context, &device, sizeof device);
    if (status == TG_STATUS_OK)
        status = tg_format_attention(attention, text, sizeof text);
    int exit_code = CLI_EXIT_OK;
    if (status != TG_STATUS_OK) {
        exit_code = cli_report_status(status);
    } else {
        const attention_counts counts = count(attention);
        const char *kernel = tg_get_attention_kernel(plan);
        const int64_t workspace_bytes = tg_get_attention_workspace_bytes(plan);
        if (has_json)
            exit_code =
                cli_print_json(make_counts_json(text, &device, kernel, workspace_bytes, &counts));
        else
            print_counts(text, &device, kernel, workspace_bytes, &counts);
    }
    tg_destroy_attention_plan(plan);
    return exit_code;
}

int cli_list_attention_rungs(const char *kernel, const char *names[LADDER_CAPACITY])
{
    int count = 0;
    names[0] = kernel;
    for (int i = 0; i < tg_get_attention_rung_count() && strcmp(kernel, "all") == 0; i++) {
        tg_kernel_info info;
        if (tg_get_attention_rung(NULL, i, &info) == TG_STATUS_OK &&
            (count == 0 || strcmp(names[count - 1], info.family) != 0))
            names[count++] = info.family;
    }
    return count ? count : 1;
}

tg_status cli_parse_rung_attention(const char *text, const char *kernel, const char *rung,
                                   tg_attention *attention)
{
    const tg_status status = tg_parse_attention(text, attention, sizeof *attention);
    if (status != TG_STATUS_OK || strcmp(kernel, "all") != 0)
        return status;
    tg_kernel_info info;
    int has_type = 0;
    tg_type type = attention->type;
    for (int i = tg_get_attention_rung_count() - 1; i >= 0 && !has_type; i--) {
        if (tg_get_attention_rung(NULL, i, &info) != TG_STATUS_OK ||
            (strcmp(info.name, rung) != 0 && strcmp(info.family, rung) != 0))
            continue;
        has_type = info.type == attention->type;
        type = info.type; /* at the end that of the first row */
    }
    attention->type = type;
    return status;
}

/* Fills the chip's list with the rungs that the query names. */
static int explain_rungs(const cli_query *query, explain_chip *chip)
{
    const char *names[LADDER_CAPACITY], *kernel = query->kernel ? query->kernel : "all";
    const int name_count = cli_list_attention_rungs(kernel, names);
    tg_status status = TG_STATUS_OK;
    for (int i = 0; i < name_count; i++) {
        tg_attention attention;
        status = cli_parse_rung_attention(query->shape, kernel, names[i], &attention);
        if (status == TG_STATUS_OK)
            status = tg_explain_attention(&chip->shown.chip, names[i], &attention,
                                          &chip->list[chip->count]);
        chip->shown.m = attention.m;
        chip->shown.n = attention.n;
        chip->shown.k = attention.head_size;
        chip->count += status == TG_STATUS_OK;
        if (status != TG_STATUS_OK && status != TG_STATUS_UNSUPPORTED)
            return cli_report_status(status);
    }
    return chip->count > 0 ? CLI_EXIT_OK : cli_report_status(status);
}

static int explain_on_chips(const cli_query *query)
{
    static explain_chip chips[CLI_GPU_MOST]; /* too large for a stack */
    const int chip_count = query->gpu_count > 0 ? query->gpu_count : 1;
    int exit_code = CLI_EXIT_OK;
    for (int c = 0; c < chip_count && exit_code == CLI_EXIT_OK; c++) {
        chips[c].shown = (explain_case){.attention = query->shape};
        chips[c].count = 0;
        exit_code = cli_find_chip(query->gpus[c], NULL, &chips[c].shown);
        if (exit_code == CLI_EXIT_OK)
            exit_code = explain_rungs(query, &chips[c]);
    }
    return exit_code == CLI_EXIT_OK ? cli_show_explained(chips, chip_count, 0, query->has_json)
                                    : exit_code;
}

int cli_explain_attention(const cli_query *query)
{
    tg_attention attention;
    tg_context *context = NULL;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = query->device};
    if (query->tile) {
        cli_print_error("--tile is not for an attention, whose rungs have one tile each; leave it "
                        "out");
        return CLI_EXIT_USAGE;
    }
    if (query->kernel || query->gpu_count > 0)
        return explain_on_chips(query);
    tg_status status = tg_parse_attention(query->shape, &attention, sizeof attention);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    int exit_code = cli_create_context(&options, &context);
    if (exit_code == CLI_EXIT_OK)
        exit_code = show(context, &attention, query->has_json);
    tg_destroy_context(context);
    return exit_code;
}
