/*
 * Shows the planner's proposal of every kernel for a problem.
 */
#include "insight/explain.h"

#include "fields_json.h"
#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct candidate_list {
    tg_context *context; /* owned; NULL for a chip that need not be present */
    char isa[16];        /* instruction set of the chip */
    tg_device_info device;
    tg_candidate *candidates; /* owned; in the order of the table */
    int count;
    const char *chosen; /* name of the chosen candidate; "" if none can run */
    char refusals[512]; /* the library's reasons by family, if none can run */
    double flops, peak_flop_per_s;
    const tg_chip *chip; /* NULL for a device */
} candidate_list;

static int64_t get_depth(const tg_problem *problem)
{
    return problem->op_a == TG_OPERATION_NONE ? problem->a.col_count : problem->a.row_count;
}

static tg_status fill(const tg_problem *problem, candidate_list *list)
{
    tg_context *context = list->context;
    tg_status status = tg_get_device_info(context, &list->device, sizeof list->device);
    if (status == TG_STATUS_OK)
        status = tg_list_candidates(context, problem, list->candidates, tg_get_kernel_count(),
                                    &list->count);
    snprintf(list->refusals, sizeof list->refusals, "%s", tg_get_error_detail());
    if (status != TG_STATUS_OK)
        return status;
    status = tg_measure_peak(context, problem->a.type, list->device.thread_count,
                             &list->peak_flop_per_s);
    if (status != TG_STATUS_UNSUPPORTED)
        return status;
    list->peak_flop_per_s = 0.0; /* no loop measures this type's peak */
    return TG_STATUS_OK;
}

/* Returns the peak of the type on the chip, with sums in FP32, or 0 if its figures lack it. */
static double find_chip_peak(const tg_chip *chip, const tg_problem *problem)
{
    switch (problem->a.type) {
    case TG_TYPE_FP32:
        return problem->precision == TG_PRECISION_TF32
                   ? chip->tf32_flop_per_s
                   : 2.0 * chip->sm_count * chip->fp32_lanes_per_sm * chip->clock_hz;
    case TG_TYPE_FP64:
        return chip->fp64_flop_per_s;
    case TG_TYPE_BF16:
    case TG_TYPE_FP16:
        return chip->fp16_flop_per_s;
    default:
        return 0.0;
    }
}

static tg_status fill_for_chip(const tg_problem *problem, const tg_chip *chip, candidate_list *list)
{
    snprintf(list->isa, sizeof list->isa, "sm_%d", chip->compute_capability);
    list->device = (tg_device_info){.device = chip->name,
                                    .name = chip->title,
                                    .isa = list->isa,
                                    .thread_count = 1,
                                    .l2_bytes = chip->l2_bytes,
                                    .sm_count = chip->sm_count};
    list->peak_flop_per_s = find_chip_peak(chip, problem);
    const tg_status status = tg_list_chip_candidates(chip, problem, list->candidates,
                                                     tg_get_kernel_count(), &list->count);
    snprintf(list->refusals, sizeof list->refusals, "%s", tg_get_error_detail());
    return status;
}

/* Orders the chosen kernel first, then the legal ones by their time, then the others by name. */
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

/* Prints blocks, splits, occupancy, requested bytes, and the share of useful operations. */
static void print_counts(const tg_candidate *candidate, double flops)
{
    char occupancy[COUNT_TEXT_BYTES] = "-";
    if (candidate->block_count == 0) {
        printf(" %10s %6s %9s %9s %7s", "-", "-", "-", "-", "-");
        return;
    }
    if (candidate->occupancy > 0.0)
        snprintf(occupancy, sizeof occupancy, "%.0f%%", 100.0 * candidate->occupancy);
    printf(" %10lld %6lld %9s %9.4g %6.2fx", (long long)candidate->block_count,
           (long long)candidate->split_count, occupancy, candidate->global_read_bytes * 1e-6,
           candidate->issued_flops / flops);
}

static void print_list(const char *shape, candidate_list *list)
{
    int type_count = 0, device_count = 0; /* rows of other types and devices, not shown */
    printf("%s on %s, %s, %s, ", shape, list->device.device, list->device.name, list->device.isa);
    if (list->context)
        printf("%d thread%s: ", list->device.thread_count,
               list->device.thread_count == 1 ? "" : "s");
    else
        printf("planned from its figures: ");
    printf("%.4g GFLOP", list->flops * 1e-9);
    if (list->peak_flop_per_s > 0.0)
        printf(", %speak %.4g GFLOP/s", list->context ? "measured " : "",
               list->peak_flop_per_s * 1e-9);
    const int has_counts = list->device.sm_count > 0 || strcmp(list->device.device, "sim") == 0;
    printf("\n%-39s %10s %9s%s  %s\n", "kernel", "predicted", "GFLOP/s",
           has_counts ? "     blocks splits occupancy   read MB  issued" : "", "why");
    qsort(list->candidates, (size_t)list->count, sizeof *list->candidates, compare_candidates);
    for (int i = 0; i < list->count; i++) {
        const tg_candidate *candidate = &list->candidates[i];
        char time[COUNT_TEXT_BYTES], rate[COUNT_TEXT_BYTES] = "-";
        type_count += candidate->refusal == TG_REFUSAL_OTHER_TYPE;
        device_count += candidate->refusal == TG_REFUSAL_OTHER_DEVICE;
        if (candidate->refusal == TG_REFUSAL_OTHER_TYPE ||
            candidate->refusal == TG_REFUSAL_OTHER_DEVICE)
            continue;
        if (candidate->is_legal && candidate->predicted_s > 0.0)
            snprintf(rate, sizeof rate, "%.1f", list->flops / candidate->predicted_s * 1e-9);
        printf("%-39s %10s %9s", candidate->kernel,
               candidate->is_legal ? cli_format_time(candidate->predicted_s, time) : "-", rate);
        if (has_counts)
            print_counts(candidate, list->flops);
        printf("  %s\n", candidate->is_chosen ? "chosen" : candidate->reason);
    }
    if (!list->chosen[0])
        printf("%s\n", list->refusals);
    if (strcmp(list->device.device, "cpu") == 0)
        printf(
            "times come from figures of a Zen 5: they rank kernels, and were not measured here\n");
    if (type_count + device_count > 0)
        printf("%d kernels multiply other types, %d run on another device: see --device, --gpu\n",
               type_count, device_count);
}

static json_t *make_candidate_json(const tg_candidate *candidate, double flops)
{
    const int has_time = candidate->is_legal && candidate->predicted_s > 0.0;
    json_t *object = json_object();
    return cli_keep_whole_json(
        object,
        cli_set_fields_json(object, cli_candidate_fields, candidate) &&
            cli_set_json(object, "gflop_per_s",
                         json_real(has_time ? flops / candidate->predicted_s * 1e-9 : 0.0)));
}

static json_t *make_list_json(const char *shape, const tg_problem *problem,
                              const candidate_list *list)
{
    json_t *candidates = json_array();
    int is_whole = candidates != NULL;
    for (int i = 0; i < list->count; i++) {
        json_t *made = is_whole ? make_candidate_json(&list->candidates[i], list->flops) : NULL;
        is_whole = is_whole && cli_append_json(candidates, made);
    }
    candidates = cli_keep_whole_json(candidates, is_whole);
    json_t *gpu = list->chip ? json_object() : json_null();
    if (list->chip)
        gpu = cli_keep_whole_json(gpu, cli_set_fields_json(gpu, cli_chip_fields, list->chip));
    return json_pack(
        "{s:o, s:I, s:I, s:I, s:f, s:{s:s, s:o, s:s, s:i, s:I, s:I, s:I, s:f}, s:o, s:s, s:o}",
        "shape", cli_make_text_json(shape), "m", (json_int_t)problem->d.row_count, "n",
        (json_int_t)problem->d.col_count, "k", (json_int_t)get_depth(problem), "useful_flops",
        list->flops, "device", "device", list->device.device, "name",
        cli_make_text_json(list->device.name), "isa", list->device.isa, "thread_count",
        list->device.thread_count, "l1_bytes", (json_int_t)list->device.l1_bytes, "l2_bytes",
        (json_int_t)list->device.l2_bytes, "l3_bytes", (json_int_t)list->device.l3_bytes,
        "peak_flop_per_s", list->peak_flop_per_s, "gpu", gpu, "chosen_kernel", list->chosen,
        "candidates", candidates);
}

/* Fills the list for a device (NULL: the default one), or for the chip if that is not NULL. The
 * caller passes the list to release. Returns a cli_exit. */
static int list_candidates(const tg_problem *problem, const char *device, const tg_chip *chip,
                           candidate_list *list)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    list->flops = 2.0 * (double)problem->d.row_count * (double)problem->d.col_count *
                  (double)get_depth(problem) * (double)problem->batch_count;
    list->candidates = calloc((size_t)tg_get_kernel_count(), sizeof *list->candidates);
    if (!list->candidates) {
        cli_print_error("out of memory for %d candidates", tg_get_kernel_count());
        return CLI_EXIT_WRONG;
    }
    tg_status status;
    list->chip = chip;
    if (chip)
        status = fill_for_chip(problem, chip, list);
    else if ((status = tg_create_context(&options, &list->context)) == TG_STATUS_OK)
        status = fill(problem, list);
    list->chosen = "";
    for (int i = 0; i < list->count; i++) {
        if (list->candidates[i].is_chosen)
            list->chosen = list->candidates[i].kernel;
    }
    return status == TG_STATUS_OK ? CLI_EXIT_OK : cli_report_status(status);
}

static void release(candidate_list *list)
{
    free(list->candidates);
    tg_destroy_context(list->context);
}

int cli_is_named(const tg_kernel_info *info, const char *kernel)
{
    const size_t length = strlen(kernel);
    return strcmp(info->family, kernel) == 0 ||
           (strncmp(info->name, kernel, length) == 0 &&
            (info->name[length] == '_' || info->name[length] == '\0'));
}

int cli_list_ladder(const char *kernel, int tile, const char *names[LADDER_CAPACITY])
{
    const char *family = strncmp(kernel, "cuda_", 5) == 0 ? kernel + 5 : kernel;
    const int is_all = strcmp(kernel, "all") == 0;
    int count = 0;
    for (int i = 0; i < tg_get_kernel_count() && count < LADDER_CAPACITY; i++) {
        tg_kernel_info info;
        if (tg_get_kernel_info(NULL, i, &info) != TG_STATUS_OK || info.ladder_rung < 0 ||
            strcmp(info.device, "cuda") != 0 || !(is_all || strcmp(info.family, family) == 0))
            continue;
        if (!tile)
            names[count++] = info.name;
        else if (count == 0 || strcmp(names[count - 1], info.family) != 0)
            names[count++] = info.family;
    }
    if (count == 0)
        names[count++] = kernel;
    return count;
}

/* Keeps the candidates that `kernel` names, in the order of the table. */
static int keep_named(const char *kernel, candidate_list *list)
{
    int kept_count = 0;
    for (int i = 0; i < list->count; i++) {
        tg_kernel_info info;
        tg_status status = tg_get_kernel_info(list->context, i, &info);
        if (status != TG_STATUS_OK)
            return cli_report_status(status);
        if (cli_is_named(&info, kernel))
            list->candidates[kept_count++] = list->candidates[i];
    }
    list->count = kept_count;
    return CLI_EXIT_OK;
}

/* Returns the predicted time on each chip; 0 where the kernel is not legal. The lists of all chips
 * have the order of the table. */
static int print_lists(const explain_case *cases, const candidate_list *lists, int list_count)
{
    explain_row *rows = calloc((size_t)lists[0].count + 1, sizeof *rows);
    int row_count = 0;
    if (!rows) {
        cli_print_error("out of memory for %d candidates", lists[0].count);
        return CLI_EXIT_WRONG;
    }
    for (int i = 0; i < lists[0].count; i++) {
        explain_row row = {.kernel = lists[0].candidates[i].kernel};
        int is_legal = 0;
        for (int c = 0; c < list_count; c++) {
            const tg_candidate *candidate = &lists[c].candidates[i];
            row.predicted_s[c] = candidate->is_legal ? candidate->predicted_s : 0.0;
            is_legal |= candidate->is_legal;
        }
        if (is_legal)
            rows[row_count++] = row;
    }
    cli_print_side_by_side(cases, list_count, NULL, rows, row_count);
    free(rows);
    return CLI_EXIT_OK;
}

static int show_lists(const char *shape, const tg_problem *problem, const explain_case *cases,
                      candidate_list *lists, int list_count, int has_json)
{
    if (has_json && list_count == 1)
        return cli_print_json(make_list_json(shape, problem, &lists[0]));
    if (has_json) {
        json_t *made = json_array();
        int is_whole = made != NULL;
        for (int c = 0; c < list_count; c++)
            is_whole = cli_append_json(made, make_list_json(shape, problem, &lists[c])) && is_whole;
        return cli_print_json(json_pack("{s:o}", "gpus", cli_keep_whole_json(made, is_whole)));
    }
    if (list_count > 1)
        return print_lists(cases, lists, list_count);
    print_list(shape, &lists[0]);
    return CLI_EXIT_OK;
}

int cli_explain_candidates(const char *shape, const tg_problem *problem, const char *device,
                           const explain_case *cases, int case_count, const char *kernel,
                           int has_json)
{
    candidate_list lists[CLI_GPU_MOST] = {{.context = NULL}};
    const int list_count = case_count > 0 ? case_count : 1;
    int exit_code = CLI_EXIT_OK;
    for (int c = 0; c < list_count && exit_code == CLI_EXIT_OK; c++) {
        exit_code =
            list_candidates(problem, device, case_count > 0 ? &cases[c].chip : NULL, &lists[c]);
        if (exit_code == CLI_EXIT_OK && kernel)
            exit_code = keep_named(kernel, &lists[c]);
    }
    if (exit_code == CLI_EXIT_OK)
        exit_code = show_lists(shape, problem, cases, lists, list_count, has_json);
    for (int c = 0; c < list_count; c++)
        release(&lists[c]);
    return exit_code;
}

json_t *cli_make_cpu_candidates_json(const char *shape, const tg_problem *problem, int *exit_code)
{
    candidate_list list = {.context = NULL};
    json_t *object = NULL;
    *exit_code = list_candidates(problem, "cpu", NULL, &list);
    if (*exit_code == CLI_EXIT_OK)
        object = make_list_json(shape, problem, &list);
    release(&list);
    return object;
}
