/*
 * Makes JSON of a simulation. The counts have the keys of tg_traffic, as `explain` prints them;
 * lines and findings are arrays.
 */
#include "insight/simulate.h"

#include "fields_json.h"
#include "json_output.h"

#include <string.h>

typedef struct count {
    const char *key;
    int64_t value; /* -1: not counted, null */
} count;

static int set_counts(json_t *object, const count *counts, size_t count_count)
{
    int is_done = object != NULL;
    for (size_t i = 0; i < count_count && is_done; i++)
        is_done = cli_set_json(object, counts[i].key,
                               counts[i].value < 0 ? json_null() : json_integer(counts[i].value));
    return is_done;
}

static int set_traffic(json_t *object, const tg_simulation *shown)
{
    const count counts[] = {
        {"threads_x", shown->threads_x},       {"threads_y", shown->threads_y},
        {"shared_bytes", shown->shared_bytes}, {"compulsory_bytes", shown->compulsory_bytes},
        {"l2_bytes", shown->l2_bytes},         {"l2_requests", shown->l2_requests},
        {"l2_hits", shown->l2_hits},
    };
    return cli_set_fields_json(object, cli_count_fields, &shown->traffic) &&
           set_counts(object, counts, sizeof counts / sizeof counts[0]);
}

static json_t *make_line(const tg_simulated_line *line)
{
    const count counts[] = {
#define COUNT(field) {#field, line->field}
        COUNT(global_load_requests),
        COUNT(global_load_sectors),
        COUNT(global_read_bytes),
        COUNT(global_store_requests),
        COUNT(global_store_sectors),
        COUNT(global_write_bytes),
        COUNT(shared_load_requests),
        COUNT(shared_store_requests),
        COUNT(bank_conflicts),
        COUNT(barriers),
        COUNT(flops),
        COUNT(l2_hits),
#undef COUNT
    };
    json_t *object = json_pack("{s:s, s:i, s:s%}", "file", line->file, "line", line->line, "source",
                               line->source, (size_t)line->source_length);
    return cli_keep_whole_json(object,
                               set_counts(object, counts, sizeof counts / sizeof counts[0]));
}

static json_t *make_finding(const tg_finding *finding)
{
    json_t *object =
        json_pack("{s:s, s:s, s:i, s:I, s:[I, I], s:[I, I], s:s, s:s}", "kind", finding->kind_name,
                  "file", finding->file, "line", finding->line, "count", (json_int_t)finding->count,
                  "block", (json_int_t)finding->block_x, (json_int_t)finding->block_y, "thread",
                  (json_int_t)finding->thread_x, (json_int_t)finding->thread_y, "place",
                  finding->place, "text", finding->text);
    int is_whole = object != NULL;
    if (is_whole && finding->has_other_thread)
        is_whole = cli_set_json(object, "other_thread",
                                json_pack("[I, I]", (json_int_t)finding->other_thread_x,
                                          (json_int_t)finding->other_thread_y));
    if (is_whole && finding->other_line)
        is_whole = cli_set_json(object, "other_line", json_integer(finding->other_line));
    return cli_keep_whole_json(object, is_whole);
}

json_t *cli_make_simulation_json(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                                 const cli_phase_list *phases, const cli_request_log *log)
{
    json_t *lines = json_array(), *findings = json_array();
    int is_done = 1;
    for (int i = 0; i < simulation->line_count; i++)
        is_done = cli_append_json(lines, make_line(&simulation->lines[i])) && is_done;
    for (int i = 0; i < simulation->finding_count; i++)
        is_done = cli_append_json(findings, make_finding(&simulation->findings[i])) && is_done;
    json_t *object = json_pack(
        "{s:s, s:s, s:i, s:I, s:I, s:I, s:b, s:I, s:f, s:f, s:f}", "kernel", simulation->kernel,
        "family", simulation->family, "ladder_rung", simulation->ladder_rung, "m", (json_int_t)m,
        "n", (json_int_t)n, "k", (json_int_t)k, "is_exact", simulation->is_exact,
        "simulated_block_count", (json_int_t)simulation->simulated_block_count, "flop_per_byte",
        simulation->traffic.flop_per_byte, "load_efficiency", simulation->load_efficiency,
        "store_efficiency", simulation->store_efficiency);
    is_done = is_done && object && set_traffic(object, simulation);
    is_done = cli_set_json(object, "lines", lines) && is_done;
    is_done = cli_set_json(object, "findings", findings) && is_done;
    if (phases)
        is_done =
            cli_set_json(object, "phases", json_incref(phases->list)) && !phases->is_cut && is_done;
    if (log) {
        is_done = cli_set_json(object, "requests", cli_make_requests_json(log)) && is_done;
        is_done = cli_set_json(object, "owners", cli_make_owners_json(log)) && is_done;
    }
    return cli_keep_whole_json(object, is_done);
}
