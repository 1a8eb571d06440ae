/*
 * Every kernel beside a problem, as the planner sees it.
 */
#include "explain.h"

#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate_list {
    tg_context *context; /* owned */
    tg_device_info device;
    tg_candidate *candidates; /* in the order of the table; owned */
    int count;
    double flops, peak_flop_per_s;
} candidate_list;

static int64_t get_depth(const tg_problem *problem)
{
    return problem->op_a == TG_OPERATION_NONE ? problem->a.col_count : problem->a.row_count;
}

static tg_status fill(const tg_problem *problem, candidate_list *list)
{
    tg_context *context = list->context;
    list->flops = 2.0 * (double)problem->d.row_count * (double)problem->d.col_count *
                  (double)get_depth(problem) * (double)problem->batch_count;
    list->candidates = calloc((size_t)tg_get_kernel_count(), sizeof *list->candidates);
    if (!list->candidates)
        return TG_STATUS_OUT_OF_MEMORY;
    tg_status status = tg_get_device_info(context, &list->device);
    if (status == TG_STATUS_OK)
        status = tg_list_candidates(context, problem, list->candidates, tg_get_kernel_count(),
                                    &list->count);
    if (status != TG_STATUS_OK)
        return status;
    status = tg_measure_peak(context, problem->a.type, list->device.thread_count,
                             &list->peak_flop_per_s);
    if (status != TG_STATUS_UNSUPPORTED)
        return status;
    list->peak_flop_per_s = 0.0; /* no loop measures this type's peak */
    return TG_STATUS_OK;
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

/* Blocks, parts of k, occupancy, bytes that threads ask for, operations over those that count. */
static void print_counts(const tg_candidate *candidate, double flops)
{
    char occupancy[COUNT_TEXT_BYTES] = "-";
    if (candidate->block_count == 0) {
        printf(" %10s %5s %9s %9s %7s", "-", "-", "-", "-", "-");
        return;
    }
    if (candidate->occupancy > 0.0)
        snprintf(occupancy, sizeof occupancy, "%.0f%%", 100.0 * candidate->occupancy);
    printf(" %10lld %5lld %9s %9.4g %6.2fx", (long long)candidate->block_count,
           (long long)candidate->k_part_count, occupancy, candidate->global_read_bytes * 1e-6,
           candidate->issued_flops / flops);
}

static void print_list(const char *shape, candidate_list *list)
{
    int elsewhere_count = 0;
    printf("%s on %s, %s, %s, %d thread%s: %.4g GFLOP", shape, list->device.device,
           list->device.name, list->device.isa, list->device.thread_count,
           list->device.thread_count == 1 ? "" : "s", list->flops * 1e-9);
    if (list->peak_flop_per_s > 0.0)
        printf(", measured peak %.4g GFLOP/s", list->peak_flop_per_s * 1e-9);
    const int has_counts = list->device.sm_count > 0 || strcmp(list->device.device, "sim") == 0;
    printf("\n%-39s %10s %9s%s  %s\n", "kernel", "predicted", "GFLOP/s",
           has_counts ? "     blocks parts occupancy   read MB  issued" : "", "why");
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
        printf("%-39s %10s %9s", candidate->kernel,
               candidate->is_legal ? cli_format_time(candidate->predicted_s, time) : "-", rate);
        if (has_counts)
            print_counts(candidate, list->flops);
        printf("  %s\n", candidate->is_chosen ? "chosen" : candidate->reason);
    }
    if (elsewhere_count > 0)
        printf("%d kernels run on another device: see --device, --gpu\n", elsewhere_count);
}

static json_t *make_candidate_json(const tg_candidate *candidate, double flops)
{
    const int has_time = candidate->is_legal && candidate->predicted_s > 0.0;
    return json_pack("{s:s, s:b, s:b, s:f, s:f, s:s, s:I, s:I, s:i, s:f, s:f, s:f, s:f}", "kernel",
                     candidate->kernel, "is_legal", candidate->is_legal, "is_chosen",
                     candidate->is_chosen, "predicted_s", candidate->predicted_s, "gflop_per_s",
                     has_time ? flops / candidate->predicted_s * 1e-9 : 0.0, "reason",
                     candidate->reason, "block_count", (json_int_t)candidate->block_count,
                     "k_part_count", (json_int_t)candidate->k_part_count, "threads_per_block",
                     candidate->threads_per_block, "global_read_bytes",
                     candidate->global_read_bytes, "global_write_bytes",
                     candidate->global_write_bytes, "issued_flops", candidate->issued_flops,
                     "occupancy", candidate->occupancy);
}

static json_t *make_list_json(const char *shape, const tg_problem *problem,
                              const candidate_list *list)
{
    json_t *candidates = json_array();
    const char *chosen = "";
    int is_whole = candidates != NULL;
    for (int i = 0; i < list->count; i++) {
        json_t *made = is_whole ? make_candidate_json(&list->candidates[i], list->flops) : NULL;
        is_whole = is_whole && cli_append_json(candidates, made);
        if (list->candidates[i].is_chosen)
            chosen = list->candidates[i].kernel;
    }
    candidates = cli_keep_whole_json(candidates, is_whole);
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

/* Fills the list for a device (NULL: the default one). The caller passes it to release. */
static tg_status list_candidates(const tg_problem *problem, const char *device,
                                 candidate_list *list)
{
    const tg_context_options options = {.device = device};
    tg_status status = tg_create_context(&options, &list->context);
    return status == TG_STATUS_OK ? fill(problem, list) : status;
}

static void release(candidate_list *list)
{
    free(list->candidates);
    tg_destroy_context(list->context);
}

int cli_explain_candidates(const char *shape, const tg_problem *problem, const char *device,
                           int has_json)
{
    candidate_list list = {.context = NULL};
    tg_status status = list_candidates(problem, device, &list);
    int exit_code = CLI_EXIT_OK;
    if (status != TG_STATUS_OK)
        exit_code = cli_report_status(status);
    else if (has_json)
        exit_code = cli_print_json(make_list_json(shape, problem, &list));
    else
        print_list(shape, &list);
    release(&list);
    return exit_code;
}

json_t *cli_make_candidate_lists(const char *shape, const tg_problem *problem)
{
    static const char *const devices[] = {"cuda", "cpu"};
    json_t *lists = json_array();
    int is_done = lists != NULL;
    for (size_t i = 0; i < sizeof devices / sizeof devices[0] && is_done; i++) {
        candidate_list list = {.context = NULL};
        if (list_candidates(problem, devices[i], &list) == TG_STATUS_OK)
            is_done = cli_append_json(lists, make_list_json(shape, problem, &list));
        release(&list);
    }
    return cli_keep_whole_json(lists, is_done);
}
