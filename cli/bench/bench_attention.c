/*
 * Makes the contenders of an attention: the plan of its context and the peers, on the same operands
 * of uniform random numbers.
 */
#include "bench/bench.h"

#include "attention_check.h"
#include "attention_memory.h"
#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { cached_plans = 1000 };
static const double compare_flop_limit = 3e7;

struct bench_attention {
    tg_attention attention;
    tg_attention_plan *plan;
    void *memory[cli_attention_tensors + 1]; /* tensors, slopes */
    cli_placed_attention placed;
};

/* Allocates an operand. Inputs are filled with numbers in [-1, 1), outputs with NaN. */
static void *make_operand(tg_type type, int64_t elem_count, int is_output, uint64_t *random)
{
    const size_t bytes = (size_t)elem_count * (size_t)tg_get_type_bytes(type);
    void *memory = NULL;
    if (posix_memalign(&memory, 64, bytes > 0 ? bytes : 1) != 0)
        return NULL;
    memset(memory, 0xff, bytes);
    for (int64_t i = 0; i < elem_count && !is_output; i++)
        check_set_element(type, memory, i, check_next_uniform(random));
    return memory;
}

/* Makes the operands. Returns a cli_exit; a contender whose operands do not fit is skipped. */
static int make_operands(bench_attention *made, bench_result *result)
{
    tg_attention *a = &made->attention;
    cli_attention_tensor tensors[cli_attention_tensors];
    double needed_bytes = 0;
    uint64_t random = 1;
    int64_t low;
    cli_list_attention(a, tensors);
    for (int i = 0; i < cli_attention_tensors; i++) {
        if (tensors[i].is_used)
            needed_bytes += (double)cli_find_attention_reach(&tensors[i], &low) *
                            (double)tg_get_type_bytes(tensors[i].type);
    }
    if (!cli_check_memory(result, needed_bytes))
        return CLI_EXIT_OK;
    for (int i = 0; i <= cli_attention_tensors; i++) {
        const int is_list = i == cli_attention_tensors;
        if (is_list ? !a->has_slopes : !tensors[i].is_used)
            continue;
        const tg_type type = is_list ? cli_get_attention_sum_type(a) : tensors[i].type;
        const int64_t count = is_list ? a->head_count : cli_find_attention_reach(&tensors[i], &low);
        made->memory[i] = make_operand(type, count, !is_list && tensors[i].is_output, &random);
        if (!made->memory[i]) {
            cli_print_error("out of memory for the operands of %s (%.0f MB)", result->shape->text,
                            needed_bytes * 1e-6);
            return CLI_EXIT_WRONG;
        }
        if (is_list)
            a->slopes = made->memory[i];
        else
            tensors[i].heads->data = (char *)made->memory[i] - low * tg_get_type_bytes(type);
    }
    return CLI_EXIT_OK;
}

/* Makes the plan, and measures the first one and later ones. */
static tg_status make_plan(tg_context *context, bench_attention *made, bench_result *result)
{
    tg_attention_plan *plan = NULL;
    double start_s = cli_read_clock();
    tg_status status = tg_create_attention_plan(context, &made->attention, &made->plan);
    result->plan_first_us = (cli_read_clock() - start_s) * 1e6;
    start_s = cli_read_clock();
    for (int i = 0; i < cached_plans && status == TG_STATUS_OK; i++) {
        status = tg_create_attention_plan(context, &made->attention, &plan);
        tg_destroy_attention_plan(plan);
    }
    result->plan_cached_us = (cli_read_clock() - start_s) * 1e6 / cached_plans;
    return status;
}

/* Runs a contender once, on outputs of NaN, and fetches what it wrote. */
static tg_status run_first(bench_contender *contender, int is_on_gpu)
{
    const bench_attention *made = contender->attention;
    tg_status status = cli_poison_attention(&made->placed, &made->attention);
    const double start_s = cli_read_clock();
    if (status == TG_STATUS_OK)
        status = cli_run_attention_contender(contender, NULL);
    if (status == TG_STATUS_OK)
        status = tg_synchronize(contender->context, NULL);
    contender->call_s = is_on_gpu ? 0.0 : cli_read_clock() - start_s; /* a GPU's is the loading */
    return status == TG_STATUS_OK ? cli_fetch_attention(&made->placed, &made->attention) : status;
}

/* Runs a contender once and judges its outputs. A peer may round weights to the type of D, as our
 * kernels do on a GPU, whose bound allows it. Returns a cli_exit; a peer that fails is skipped. */
static int verify(bench_contender *contender, const char *device)
{
    check_attention_result result;
    const tg_status status = run_first(contender, strncmp(device, "cuda", 4) == 0);
    if (status != TG_STATUS_OK && contender->is_peer) {
        snprintf(contender->skip_reason, sizeof contender->skip_reason,
                 "the library reports a failure at this shape");
        return CLI_EXIT_OK;
    }
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (!check_compare_attention(&contender->attention->attention,
                                 contender->is_peer ? "cuda" : device, compare_flop_limit,
                                 &result)) {
        cli_print_error("out of memory to verify %s", contender->name);
        return CLI_EXIT_WRONG;
    }
    contender->is_verified = 1;
    contender->is_right = result.worst_share <= 1;
    contender->max_error = result.max_error;
    contender->max_bound_share = result.worst_share;
    return CLI_EXIT_OK;
}

/* Makes the contender of the plan. Returns a cli_exit. */
static int make_kernel(tg_context *context, bench_result *result)
{
    bench_attention *made = calloc(1, sizeof *made);
    if (!made) {
        cli_print_error("out of memory for a contender");
        return CLI_EXIT_WRONG;
    }
    bench_contender *contender = cli_add_contender(result, "", context);
    contender->attention = made;
    made->attention = result->shape->attention;
    tg_status status = make_plan(context, made, result);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    contender->is_planned = 1;
    snprintf(contender->name, sizeof contender->name, "%s", tg_get_attention_kernel(made->plan));
    const int exit_code = make_operands(made, result);
    if (exit_code != CLI_EXIT_OK || contender->skip_reason[0])
        return exit_code;
    status = cli_place_attention(context, &made->attention, &made->placed);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

int cli_make_attention_contenders(const bench_options *options, tg_context *context,
                                  bench_result *result)
{
    int peer_count = 0;
    while (cli_get_peer(peer_count))
        peer_count++;
    result->flop_count = check_count_attention_flops(&result->shape->attention);
    result->contenders = calloc((size_t)(1 + peer_count), sizeof *result->contenders);
    if (!result->contenders) {
        cli_print_error("out of memory for %d contenders", 1 + peer_count);
        return CLI_EXIT_WRONG;
    }
    int exit_code = make_kernel(context, result);
    if (exit_code != CLI_EXIT_OK || result->contenders[0].skip_reason[0])
        return exit_code;
    cli_add_peers(options, context, result);
    for (int i = 0; i < result->contender_count && exit_code == CLI_EXIT_OK; i++) {
        if (!result->contenders[i].skip_reason[0])
            exit_code = verify(&result->contenders[i], result->device);
    }
    return exit_code;
}

tg_status cli_run_attention_contender(const bench_contender *contender, void *stream)
{
    const bench_attention *made = contender->attention;
    if (contender->is_peer)
        return cli_run_peer_attention(&contender->call, stream) ? TG_STATUS_OK
                                                                : TG_STATUS_DEVICE_FAILURE;
    return tg_execute_attention(made->plan, &made->placed.attention, NULL, 0, stream);
}

const tg_attention *cli_get_placed_attention(const bench_attention *attention)
{
    return &attention->placed.attention;
}

void cli_free_bench_attention(bench_attention *attention)
{
    if (!attention)
        return;
    tg_destroy_attention_plan(attention->plan);
    cli_release_attention(&attention->placed);
    for (int i = 0; i <= cli_attention_tensors; i++)
        free(attention->memory[i]);
    free(attention);
}

static int refuse(const char *option, const bench_shape *shape, const char *remedy)
{
    cli_print_error("%s is not for --attention %s; %s", option, shape->text, remedy);
    return CLI_EXIT_USAGE;
}

int cli_check_attentions(const bench_options *options)
{
    for (int i = 0; i < options->shape_count; i++) {
        const bench_shape *shape = &options->shapes[i];
        const tg_attention *a = &shape->attention;
        if (!shape->is_attention)
            continue;
        if (options->type_count > 0)
            return refuse("--type", shape, "write the type in the text, such as ...:bf16");
        if (options->has_precision)
            return refuse("--precision", shape, "leave it out: the type tells it");
        if (options->kernel_name_count > 0)
            return refuse("--kernel", shape, "leave it out: there is one kernel");
        if (options->is_cold)
            return refuse("--cold", shape, "leave it out: operands are hot");
        if (a->has_query_offsets || a->has_key_offsets || a->has_key_lengths || a->page_rows > 0)
            return refuse("a list", shape,
                          "leave out offsets, lengths and pages, whose values the text lacks");
    }
    return CLI_EXIT_OK;
}
