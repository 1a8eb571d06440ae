/*
 * Shows the panels of a product that is larger than memory, and their bound.
 */
#include "insight/explain.h"

#include "json_output.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define GIGA 1e-9

/* The facts about a product in panels. */
typedef struct panel_facts {
    const char *shape, *device, *kernel;
    int64_t memory_bytes;
    tg_panels panels;
    double predicted_s;         /* time of the products; 0 if no kernel can form them */
    double balance_bytes_per_s; /* rate at which copies take as long as the products */
    tg_panel_times times;       /* zeros if no bus leads to the device */
} panel_facts;

/* Returns the longer of copies on the bus and products, "" if there is no bus. */
static const char *find_bound(const panel_facts *facts)
{
    if (!facts->times.kernel)
        return "";
    return facts->times.copy_s > facts->times.product_s ? "copies" : "products";
}

/* Finds the kernel of a panel, with operands on the device, and the time of all panels. */
static tg_status find_kernel(tg_context *context, const tg_problem *problem, panel_facts *facts)
{
    const int capacity = tg_get_kernel_count();
    int count = 0;
    tg_candidate *candidates = calloc((size_t)capacity, sizeof *candidates);
    if (!candidates)
        return TG_STATUS_OUT_OF_MEMORY;
    const tg_status status = tg_list_candidates(context, problem, candidates, capacity, &count);
    for (int i = 0; i < count; i++) {
        if (candidates[i].is_chosen) {
            facts->kernel = candidates[i].kernel;
            facts->predicted_s = (double)facts->panels.panel_count * candidates[i].predicted_s;
        }
    }
    free(candidates);
    return status;
}

static json_t *make_json(const panel_facts *facts)
{
    const tg_panels *panels = &facts->panels;
    return json_pack(
        "{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:s, s:I, s:o, s:o, s:o, s:s, s:o, s:o, s:o, s:s}",
        "shape", facts->shape, "device", facts->device, "memory_limit_bytes",
        (json_int_t)facts->memory_bytes, "panel_count", (json_int_t)panels->panel_count,
        "batch_count", (json_int_t)panels->batch_count, "row_count", (json_int_t)panels->row_count,
        "col_count", (json_int_t)panels->col_count, "held", panels->is_b_held ? "b" : "a",
        "held_count", (json_int_t)panels->held_count, "memory_bytes",
        cli_make_real_json(panels->memory_bytes), "read_bytes",
        cli_make_real_json(panels->read_bytes), "written_bytes",
        cli_make_real_json(panels->written_bytes), "kernel", facts->kernel, "predicted_s",
        cli_make_real_json(facts->predicted_s), "total_s", cli_make_real_json(facts->times.total_s),
        "balance_bytes_per_s", cli_make_real_json(facts->balance_bytes_per_s), "bound",
        find_bound(facts));
}

static void print_text(const panel_facts *facts)
{
    const tg_panels *panels = &facts->panels;
    char time[COUNT_TEXT_BYTES];
    printf("%s on %s in %.4g GB: %lld panel%s of %lld x %lld", facts->shape, facts->device,
           GIGA * (double)facts->memory_bytes, (long long)panels->panel_count,
           panels->panel_count == 1 ? "" : "s", (long long)panels->row_count,
           (long long)panels->col_count);
    printf(panels->batch_count > 1 ? ", %lld batch entries each\n" : "\n",
           (long long)panels->batch_count);
    printf("held      %lld panel%s of %s stream\n", (long long)panels->held_count,
           panels->held_count == 1 ? "" : "s",
           panels->is_b_held ? "columns of op(B), past which rows of op(A)"
                             : "rows of op(A), past which columns of op(B)");
    printf("memory    %.4g GB at once\n", GIGA * panels->memory_bytes);
    printf("copies    %.4g GB of A, B and C are read, %.4g GB of D are written\n",
           GIGA * panels->read_bytes, GIGA * panels->written_bytes);
    printf("products  %s, predicted for %s\n", cli_format_time(facts->predicted_s, time),
           facts->kernel);
    if (find_bound(facts)[0]) {
        const tg_panel_times *times = &facts->times;
        printf("bound     %s: copies take %s, %.4g GB/s each way alone on %s\n", find_bound(facts),
               cli_format_time(times->copy_s, time), GIGA * times->bus_bytes_per_s, times->bus);
        printf("total     %s, with what copies and products wait for\n",
               cli_format_time(times->total_s, time));
    }
    if (facts->balance_bytes_per_s > 0)
        printf("balance   copies bound below %.4g GB/s, above it products\n",
               GIGA * facts->balance_bytes_per_s);
}

/* Finds the panels on the CPU, which reads and writes them one after the other. */
static tg_status find_cpu_facts(tg_context *context, const tg_problem *problem, panel_facts *facts)
{
    const tg_panel_limits limits = {.memory_bytes = facts->memory_bytes, .buffer_count = 1};
    tg_problem panel = *problem;
    tg_status status = tg_choose_panels(problem, &limits, &facts->panels);
    if (status == TG_STATUS_OK && facts->panels.panel_count > 0)
        status = tg_get_panel(problem, &facts->panels, 0, &panel);
    return status == TG_STATUS_OK ? find_kernel(context, &panel, facts) : status;
}

static tg_status find_facts(tg_context *context, const explain_case *shown,
                            const tg_problem *problem, panel_facts *facts)
{
    tg_device_info device = {.device = ""};
    tg_status status = shown ? TG_STATUS_OK : tg_get_device_info(context, &device, sizeof device);
    facts->device = shown ? shown->chip.name : device.device;
    const int is_gpu = shown || device.compute_capability > 0;
    if (status == TG_STATUS_OK && !is_gpu)
        status = find_cpu_facts(context, problem, facts);
    else if (status == TG_STATUS_OK)
        status = tg_choose_gpu_panels(context, shown ? &shown->chip : NULL, problem,
                                      facts->memory_bytes, &facts->panels, &facts->times);
    if (status != TG_STATUS_OK)
        return status;
    if (facts->times.kernel) {
        facts->kernel = facts->times.kernel;
        facts->predicted_s = facts->times.product_s;
    }
    const double read_bytes = facts->panels.read_bytes, written_bytes = facts->panels.written_bytes;
    if (facts->predicted_s > 0)
        facts->balance_bytes_per_s =
            (is_gpu ? fmax(read_bytes, written_bytes) : read_bytes + written_bytes) /
            facts->predicted_s;
    return status;
}

int cli_explain_panels(const char *shape, const tg_problem *problem, const char *device,
                       const explain_case *shown, int64_t memory_bytes, int has_json)
{
    const tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    panel_facts facts = {.shape = shape, .kernel = "no kernel", .memory_bytes = memory_bytes};
    tg_context *context = NULL;
    int exit_code = shown ? CLI_EXIT_OK : cli_create_context(&options, &context);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    const tg_status status = find_facts(context, shown, problem, &facts);
    if (status != TG_STATUS_OK)
        exit_code = cli_report_status(status);
    else if (has_json)
        exit_code = cli_print_json(make_json(&facts));
    else
        print_text(&facts);
    tg_destroy_context(context);
    return exit_code;
}
