/*
 * Every kernel beside a problem, as the planner sees it.
 */
#include "explain.h"

#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate_list {
    tg_device_info device;
    tg_candidate *candidates; /* in the order of the table; owned */
    int count;
    double flops, peak_flop_per_s;
} candidate_list;

static int64_t get_depth(const tg_problem *problem)
{
    return problem->op_a == TG_OPERATION_NONE ? problem->a.col_count : problem->a.row_count;
}

static tg_status fill(tg_context *context, const tg_problem *problem, candidate_list *list)
{
    list->flops = 2.0 * (double)problem->d.row_count * (double)problem->d.col_count *
                  (double)get_depth(problem) * (double)problem->batch_count;
    list->candidates = calloc((size_t)tg_get_kernel_count(), sizeof *list->candidates);
    if (!list->candidates)
        return TG_STATUS_OUT_OF_MEMORY;
    tg_status status = tg_get_device_info(context, &list->device);
    if (status == TG_STATUS_OK)
        status = tg_list_candidates(context, problem, list->candidates, tg_get_kernel_count(),
                                    &list->count);
    if (status == TG_STATUS_OK)
        status = tg_measure_peak(context, problem->a.type, list->device.thread_count,
                                 &list->peak_flop_per_s);
    if (status == TG_STATUS_UNSUPPORTED) { /* no loop measures this type's peak */
        list->peak_flop_per_s = 0.0;
        status = TG_STATUS_OK;
    }
    return status;
}

/* The chosen one, then the legal ones by their time, then the others by name. */
static int compare_candidates(const void *left, const void *right)
{
    const tg_candidate *a = left, *b = right;
    if (a->is_chosen != b->is_chosen)
        return b->is_chosen - a->is_chosen;
    if (a->is_legal != b->is_legal)
        return b->is_legal - a->is_legal;
    if (a->is_legal && a->predicted_s != b->predicted_s)
        return a->predicted_s < b->predicted_s ? -1 : 1;
    return strcmp(a->kernel, b->kernel);
}

static int runs_elsewhere(const tg_candidate *candidate)
{
    return strncmp(candidate->reason, "runs on ", 8) == 0;
}

static void print_list(const char *shape, candidate_list *list)
{
    int elsewhere_count = 0;
    printf("%s on %s, %s, %s, %d thread%s: %.4g GFLOP", shape, list->device.device,
           list->device.name, list->device.isa, list->device.thread_count,
           list->device.thread_count == 1 ? "" : "s", list->flops * 1e-9);
    if (list->peak_flop_per_s > 0.0)
        printf(", measured peak %.4g GFLOP/s", list->peak_flop_per_s * 1e-9);
    printf("\n%-39s %10s %9s  %s\n", "kernel", "predicted", "GFLOP/s", "why");
    qsort(list->candidates, (size_t)list->count, sizeof *list->candidates, compare_candidates);
    for (int i = 0; i < list->count; i++) {
        const tg_candidate *candidate = &list->candidates[i];
        char time[COUNT_TEXT_BYTES], rate[COUNT_TEXT_BYTES] = "-";
        if (runs_elsewhere(candidate)) {
            elsewhere_count++;
            continue;
        }
        if (candidate->is_legal && candidate->predicted_s > 0.0)
            snprintf(rate, sizeof rate, "%.1f", list->flops / candidate->predicted_s * 1e-9);
        printf("%-39s %10s %9s  %s\n", candidate->kernel,
               candidate->is_legal ? cli_format_time(candidate->predicted_s, time) : "-", rate,
               candidate->is_chosen ? "chosen" : candidate->reason);
    }
    if (elsewhere_count > 0)
        printf("%d kernels run on another device: see --device, --gpu\n", elsewhere_count);
}

static json_t *make_candidate_json(const tg_candidate *candidate, double flops)
{
    const int has_time = candidate->is_legal && candidate->predicted_s > 0.0;
    return json_pack("{s:s, s:b, s:b, s:f, s:f, s:s}", "kernel", candidate->kernel, "is_legal",
                     candidate->is_legal, "is_chosen", candidate->is_chosen, "predicted_s",
                     candidate->predicted_s, "gflop_per_s",
                     has_time ? flops / candidate->predicted_s * 1e-9 : 0.0, "reason",
                     candidate->reason);
}

static json_t *make_list_json(const char *shape, const tg_problem *problem,
                              const candidate_list *list)
{
    json_t *candidates = json_array();
    const char *chosen = "";
    for (int i = 0; i < list->count; i++) {
        cli_append_json(candidates, make_candidate_json(&list->candidates[i], list->flops));
        if (list->candidates[i].is_chosen)
            chosen = list->candidates[i].kernel;
    }
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:f, s:{s:s, s:o, s:s, s:i, s:I, s:I, s:I, s:f}, s:s, s:o}", "shape",
        cli_make_text_json(shape), "m", (json_int_t)problem->d.row_count, "n",
        (json_int_t)problem->d.col_count, "k", (json_int_t)get_depth(problem), "useful_flops",
        list->flops, "device", "device", list->device.device, "name",
        cli_make_text_json(list->device.name), "isa", list->device.isa, "thread_count",
        list->device.thread_count, "l1_bytes", (json_int_t)list->device.l1_bytes, "l2_bytes",
        (json_int_t)list->device.l2_bytes, "l3_bytes", (json_int_t)list->device.l3_bytes,
        "peak_flop_per_s", list->peak_flop_per_s, "chosen_kernel", chosen, "candidates",
        candidates);
}

int cli_explain_candidates(const char *shape, const tg_problem *problem, const char *device,
                           int has_json)
{
    const tg_context_options options = {.device = device};
    candidate_list list = {.candidates = NULL};
    tg_context *context = NULL;
    tg_status status = tg_create_context(&options, &context);
    if (status == TG_STATUS_OK)
        status = fill(context, problem, &list);
    int exit_code = CLI_EXIT_OK;
    if (status != TG_STATUS_OK)
        exit_code = cli_report_status(status);
    else if (has_json)
        exit_code = cli_print_json(make_list_json(shape, problem, &list));
    else
        print_list(shape, &list);
    free(list.candidates);
    tg_destroy_context(context);
    return exit_code;
}
