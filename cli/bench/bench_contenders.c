/*
 * Chooses the contenders of a product: the kernels asked for, then the peers, each prepared once.
 */
#include "bench/bench.h"
#include "files/matrix_memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_group(const char *name)
{
    return strcmp(name, "best") == 0 || strcmp(name, "ladder") == 0 || strcmp(name, "all") == 0 ||
           strcmp(name, "unfused") == 0;
}

int cli_hold_context(bench_options *options)
{
    const tg_context_options asked = {
        .struct_bytes = sizeof asked, .device = options->device, .isa = options->isa};
    tg_device_info info;
    int exit_code = cli_create_context(&asked, &options->held);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    tg_get_device_info(options->held, &info, sizeof info);
    options->is_simulated = strcmp(info.device, "sim") == 0;
    return CLI_EXIT_OK;
}

int cli_check_kernel_names(const bench_options *options)
{
    for (int i = 0; i < options->kernel_name_count; i++) {
        const char *name = options->kernel_names[i];
        int is_known = is_group(name);
        for (int row = 0; row < tg_get_kernel_count() && !is_known; row++) {
            tg_kernel_info info;
            tg_status status = tg_get_kernel_info(NULL, row, &info);
            if (status != TG_STATUS_OK)
                return cli_report_status(status);
            is_known = strcmp(name, info.name) == 0;
        }
        if (!is_known) {
            cli_print_error(
                "--kernel = '%s' is not a kernel; pass best, ladder, all, unfused, or a "
                "name that tilegemm kernels lists",
                name);
            return CLI_EXIT_MISSING;
        }
    }
    return CLI_EXIT_OK;
}

/* Returns the next free contender; there is room for every kernel and peer. */
bench_contender *cli_add_contender(bench_result *result, const char *name,
                                   const tg_context *context)
{
    for (int i = 0; i < result->contender_count; i++) {
        if (strcmp(result->contenders[i].name, name) == 0)
            return NULL; /* asked for twice, as by "best" and "all" */
    }
    bench_contender *added = &result->contenders[result->contender_count++];
    snprintf(added->name, sizeof added->name, "%s", name);
    added->ladder_rung = -1;
    added->context = context;
    return added;
}

/* Adds one candidate, planned, or skipped with its reason. A kernel other than the planner's choice
 * is skipped if one call would take over `limit_s`. */
static int add_kernel(tg_context *context, bench_result *result, const tg_candidate *candidate,
                      const tg_kernel_info *info, double limit_s)
{
    bench_contender *added = cli_add_contender(result, candidate->kernel, context);
    if (!added)
        return CLI_EXIT_OK;
    added->is_planned = candidate->is_chosen;
    added->ladder_rung = info->ladder_rung;
    added->is_illegal = !candidate->is_legal;
    if (!candidate->is_legal) {
        snprintf(added->skip_reason, sizeof added->skip_reason, "%s", candidate->reason);
        return CLI_EXIT_OK;
    }
    if (!candidate->is_chosen && candidate->predicted_s > limit_s) {
        snprintf(added->skip_reason, sizeof added->skip_reason,
                 "one call is predicted to take %.3g s, over %.3g s, the limit of --max-time and "
                 "--within; name it with --kernel",
                 candidate->predicted_s, limit_s);
        return CLI_EXIT_OK;
    }
    const tg_plan_options plan_options = {.struct_bytes = sizeof plan_options,
                                          .kernel = candidate->kernel};
    tg_status status =
        tg_create_plan(context, &result->shape->problem, &plan_options, &added->plan);
    if (status == TG_STATUS_OK && result->bus[0] && info->ladder_rung >= 0)
        status = cli_model_reads(context, &result->shape->problem, added);
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

typedef struct kernel_rows {
    const tg_candidate *candidates;
    const tg_kernel_info *infos;
    int count;
} kernel_rows;

/* Returns the row that stands for a rung of the ladder: the legal row of this type with the
 * shortest prediction, else the last illegal one, whose reason is then shown; -1 if the rung has
 * none. */
static int find_rung(const kernel_rows *rows, tg_type type, int rung)
{
    int found = -1;
    for (int row = 0; row < rows->count; row++) {
        const tg_candidate *candidate = &rows->candidates[row];
        if (rows->infos[row].ladder_rung != rung || rows->infos[row].type != type ||
            !rows->infos[row].is_available)
            continue;
        if (found < 0 || !rows->candidates[found].is_legal ||
            (candidate->is_legal && candidate->predicted_s < rows->candidates[found].predicted_s))
            found = row;
    }
    return found;
}

/* Adds the CPU's sequential loop, rung 0, beside the rungs of a GPU. */
static int add_host_baseline(bench_result *result, double limit_s)
{
    static const char name[] = "cpu_sequential_generic_fp32";
    const tg_context_options options = {.struct_bytes = sizeof options, .device = "cpu"};
    const tg_plan_options plan_options = {.struct_bytes = sizeof plan_options, .kernel = name};
    tg_plan_info info;
    if (result->shape->problem.a.type != TG_TYPE_FP32)
        return CLI_EXIT_OK;
    tg_status status = tg_create_context(&options, &result->host_context);
    bench_contender *added = cli_add_contender(result, name, result->host_context);
    if (status != TG_STATUS_OK || !added)
        return status != TG_STATUS_OK ? cli_report_status(status) : CLI_EXIT_OK;
    added->is_on_host = 1;
    added->ladder_rung = 0;
    status =
        tg_create_plan(result->host_context, &result->shape->problem, &plan_options, &added->plan);
    if (status == TG_STATUS_OK)
        status = tg_get_plan_info(added->plan, &info, sizeof info);
    if (status != TG_STATUS_OK)
        return cli_report_status(status);
    if (info.predicted_s > limit_s)
        snprintf(added->skip_reason, sizeof added->skip_reason,
                 "one call is predicted to take %.3g s, over --max-time", info.predicted_s);
    return CLI_EXIT_OK;
}

static int add_ladder(tg_context *context, bench_result *result, const kernel_rows *rows,
                      double limit_s)
{
    int baseline_code = result->bus[0] ? add_host_baseline(result, limit_s) : CLI_EXIT_OK;
    if (baseline_code != CLI_EXIT_OK)
        return baseline_code;
    for (int rung = 0; rung < rows->count; rung++) {
        int row = find_rung(rows, result->shape->problem.a.type, rung);
        int exit_code = CLI_EXIT_OK;
        if (row >= 0)
            exit_code =
                add_kernel(context, result, &rows->candidates[row], &rows->infos[row], limit_s);
        if (exit_code != CLI_EXIT_OK)
            return exit_code;
    }
    return CLI_EXIT_OK;
}

/* Returns 1 if the row is asked for. A named kernel that is not legal counts, so that its reason is
 * shown; "all" leaves out kernels of other types and of instruction sets that are not in use. */
static int is_asked(const char *name, const kernel_rows *rows, int row, tg_type type)
{
    if (strcmp(name, rows->candidates[row].kernel) == 0)
        return 1;
    if (strcmp(name, "best") == 0)
        return rows->candidates[row].is_chosen;
    return strcmp(name, "all") == 0 && rows->infos[row].type == type &&
           rows->infos[row].is_available;
}

/* Returns the seconds of a call up to which a kernel that a group stands for is measured. */
static double find_limit(const bench_options *options, const kernel_rows *rows)
{
    double limit_s = options->max_time_s;
    for (int row = 0; row < rows->count && options->within > 0.0; row++) {
        const tg_candidate *candidate = &rows->candidates[row];
        if (candidate->is_chosen)
            limit_s = fmin(limit_s, options->within * candidate->predicted_s);
    }
    return limit_s;
}

/* Adds the kernels of each --kernel name in turn; those of one name stand in table order. */
static int add_kernels(const bench_options *options, tg_context *context, bench_result *result,
                       const kernel_rows *rows)
{
    const double limit_s = find_limit(options, rows);
    for (int i = 0; i < options->kernel_name_count; i++) {
        const char *name = options->kernel_names[i];
        int exit_code =
            strcmp(name, "unfused") == 0 ? cli_add_unfused(context, result) : CLI_EXIT_OK;
        if (strcmp(name, "ladder") == 0)
            exit_code = add_ladder(context, result, rows, limit_s);
        for (int row = 0; row < rows->count && exit_code == CLI_EXIT_OK; row++) {
            if (is_asked(name, rows, row, result->shape->problem.a.type))
                exit_code = add_kernel(context, result, &rows->candidates[row], &rows->infos[row],
                                       is_group(name) ? limit_s : INFINITY);
        }
        if (exit_code != CLI_EXIT_OK)
            return exit_code;
    }
    return CLI_EXIT_OK;
}

int cli_make_contenders(const bench_options *options, tg_context *context, bench_result *result)
{
    const int row_count = tg_get_kernel_count();
    int peer_count = 0;
    while (cli_get_peer(peer_count))
        peer_count++;
    tg_candidate *candidates = calloc((size_t)row_count, sizeof *candidates);
    tg_kernel_info *infos = calloc((size_t)row_count, sizeof *infos);
    result->contenders = calloc((size_t)(row_count + 2 + peer_count), sizeof *result->contenders);
    int exit_code = CLI_EXIT_WRONG;
    if (!candidates || !infos || !result->contenders) {
        cli_print_error("out of memory for %d contenders", row_count + peer_count);
    } else {
        int count = 0;
        tg_status status =
            tg_list_candidates(context, &result->shape->problem, candidates, row_count, &count);
        for (int row = 0; row < row_count && status == TG_STATUS_OK; row++)
            status = tg_get_kernel_info(context, row, &infos[row]);
        const kernel_rows rows = {candidates, infos, row_count};
        exit_code = status == TG_STATUS_OK ? add_kernels(options, context, result, &rows)
                                           : cli_report_status(status);
    }
    free(candidates);
    free(infos);
    if (exit_code == CLI_EXIT_OK)
        cli_add_peers(options, context, result);
    return exit_code;
}

int cli_check_memory(bench_result *result, double needed_bytes)
{
    double free_bytes = (double)cli_read_memory(0).left_bytes;
    if (needed_bytes < 0.9 * free_bytes)
        return 1;
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        if (!contender->skip_reason[0])
            snprintf(contender->skip_reason, sizeof contender->skip_reason,
                     "operands of %.1f GB do not fit in the %.1f GB of free memory",
                     needed_bytes * 1e-9, free_bytes * 1e-9);
    }
    return 0;
}

void cli_free_contenders(bench_result *result)
{
    for (int i = 0; i < result->contender_count; i++) {
        bench_contender *contender = &result->contenders[i];
        cli_free_graph(&contender->graph);
        if (contender->is_peer)
            cli_release_peer_call(&contender->call);
        tg_destroy_plan(contender->plan);
        tg_destroy_plan(contender->pass);
        if (!contender->is_peer)
            cli_free_bench_attention(contender->attention);
    }
}

void cli_free_result(bench_result *result)
{
    for (int i = 0; i < result->contender_count; i++)
        tg_destroy_simulation(result->contenders[i].simulation);
    free(result->contenders);
}
