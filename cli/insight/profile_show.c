/*
 * Shows counted, predicted and simulated values side by side, as text and as JSON.
 */
#include "insight/profile.h"

#include "json_output.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const keys[PROFILE_COUNTER_COUNT] = {
#define PROFILE_COUNTER(key, metric, rule) #key,
#include "insight/profile_counters.def"
#undef PROFILE_COUNTER
};

double cli_get_counted_turns(const profile_entry *entry)
{
    return entry->counted[PROFILE_load_turns] + entry->counted[PROFILE_store_turns] +
           entry->counted[PROFILE_matrix_load_turns];
}

double cli_get_added_turns(const profile_entry *entry)
{
    return entry->counted[PROFILE_bank_load_turns] + entry->counted[PROFILE_bank_store_turns] -
           cli_get_counted_turns(entry);
}

double cli_get_counted_conflicts(const profile_entry *entry)
{
    /* The hardware's counter includes both kinds. The difference may be slightly below 0 if the two
     * were counted in different runs of the kernel. A value that was not counted stays NaN, which
     * fmax would turn into 0. */
    const double conflicts = entry->counted[PROFILE_load_conflicts] +
                             entry->counted[PROFILE_store_conflicts] - cli_get_added_turns(entry);
    return conflicts < 0.0 ? 0.0 : conflicts;
}

int cli_list_triples(const profile_entry *entry, profile_triple triples[PROFILE_TRIPLE_CAPACITY])
{
    const tg_traffic *model = &entry->model.traffic, *simulated = &entry->simulated;
    const tg_prediction *prediction = &entry->model.prediction;
    const double *counted = entry->counted;
    const double none = (double)NAN;
    /* Attention has other operations beside multiply-adds, which alone are counted. */
    const int is_attention = strncmp(entry->kernel, "attention_", 10) == 0;
    const double flops = is_attention ? none : 2.0 * counted[PROFILE_fp32_multiply_adds];
    const double loads = counted[PROFILE_shared_loads] + counted[PROFILE_matrix_loads];
#define SHARED(key, field, value)                                                                  \
    {                                                                                              \
        key, (double)model->field, (double)simulated->field, value                                 \
    }
    const profile_triple all[] = {
        SHARED("global_load_requests", global_load_requests, counted[PROFILE_global_load_requests]),
        SHARED("global_load_sectors", global_load_sectors, counted[PROFILE_global_load_sectors]),
        SHARED("global_store_requests", global_store_requests,
               counted[PROFILE_global_store_requests]),
        SHARED("global_store_sectors", global_store_sectors, counted[PROFILE_global_store_sectors]),
        SHARED("counter_shared_loads", counter_shared_loads, loads),
        SHARED("counter_shared_turns", counter_shared_turns, cli_get_counted_turns(entry)),
        SHARED("counter_bank_conflicts", counter_bank_conflicts, cli_get_counted_conflicts(entry)),
        SHARED("issued_flops", issued_flops, flops),
        {"dram_read_bytes", prediction->dram_read_bytes, none, counted[PROFILE_dram_read_bytes]},
        {"dram_write_bytes", prediction->dram_write_bytes, none, counted[PROFILE_dram_write_bytes]},
        {"occupancy", prediction->occupancy, none, 0.01 * counted[PROFILE_occupancy_percent]},
        {"time_s", entry->predicted_s, none, 1e-9 * counted[PROFILE_time_ns]},
    };
#undef SHARED
    const int count = (int)(sizeof all / sizeof all[0]);
    for (int i = 0; i < count; i++) {
        triples[i] = all[i];
        if (!entry->has_model && strcmp(all[i].key, "time_s") != 0)
            triples[i].model = none;
        if (!entry->is_simulated)
            triples[i].simulated = none;
    }
    return count;
}

static void print_number(double value, int is_whole)
{
    char text[COUNT_TEXT_BYTES];
    if (isnan(value))
        printf(" %20s", "-");
    else if (is_whole)
        printf(" %20s", cli_format_count((int64_t)value, text));
    else
        printf(" %20.4g", value);
}

static void print_counters(const profile_report *report)
{
    printf("\n%-28s", "counted");
    for (int i = 0; i < report->entry_count; i++)
        printf(" %38s", report->entries[i].kernel);
    putchar('\n');
    for (int key = 0; key < PROFILE_COUNTER_COUNT; key++) {
        printf("%-28s", keys[key]);
        for (int i = 0; i < report->entry_count; i++) {
            double value = report->entries[i].counted[key];
            char text[COUNT_TEXT_BYTES] = "-";
            if (!isnan(value) && strstr(keys[key], "percent"))
                snprintf(text, sizeof text, "%.1f", value);
            else if (!isnan(value))
                cli_format_count((int64_t)value, text);
            printf(" %38s", text);
        }
        putchar('\n');
    }
}

void cli_print_profile(const profile_report *report)
{
    if (report->command) {
        printf("%s\n", report->command);
        print_counters(report);
    } else {
        printf("device sim: nothing is counted on a GPU; the model predicts for %s\n",
               report->shown.chip.title);
    }
    for (int i = 0; i < report->entry_count; i++) {
        const profile_entry *entry = &report->entries[i];
        profile_triple triples[PROFILE_TRIPLE_CAPACITY];
        const int count = cli_list_triples(entry, triples);
        printf("\n%s", entry->kernel);
        if (report->command)
            printf(", %d launch%s", entry->launch_count, entry->launch_count == 1 ? "" : "es");
        putchar('\n');
        printf("  %-24s %20s %20s %20s\n", "", "model", "simulated", "counted");
        for (int t = 0; t < count; t++) {
            const profile_triple *triple = &triples[t];
            const int is_whole = strcmp(triple->key, "time_s") && strcmp(triple->key, "occupancy");
            printf("  %-24s", triple->key);
            print_number(triple->model, is_whole);
            print_number(triple->simulated, is_whole);
            print_number(triple->counted, is_whole);
            putchar('\n');
        }
        if (entry->note && entry->note[0])
            printf("  %s\n", entry->note);
        if (cli_get_added_turns(entry) > 0.0)
            printf("  %.0f turns more than the instructions need: shared memory waited for the "
                   "banks while global loads had them\n",
                   cli_get_added_turns(entry));
    }
}

static json_t *make_number(double value)
{
    return isnan(value)                                  ? json_null()
           : value == floor(value) && fabs(value) < 1e18 ? json_integer((json_int_t)value)
                                                         : json_real(value);
}

static json_t *make_entry(const profile_entry *entry)
{
    json_t *counted = json_object(), *compared = json_object();
    profile_triple triples[PROFILE_TRIPLE_CAPACITY];
    const int count = cli_list_triples(entry, triples);
    int is_whole = counted && compared;
    for (int i = 0; i < PROFILE_COUNTER_COUNT && is_whole; i++)
        is_whole = cli_set_json(counted, keys[i], make_number(entry->counted[i]));
    is_whole =
        is_whole && cli_set_json(counted, "added_turns", make_number(cli_get_added_turns(entry)));
    for (int i = 0; i < count && is_whole; i++)
        is_whole = cli_set_json(compared, triples[i].key,
                                json_pack("{s:o, s:o, s:o}", "model", make_number(triples[i].model),
                                          "simulated", make_number(triples[i].simulated), "counted",
                                          make_number(triples[i].counted)));
    counted = cli_keep_whole_json(counted, is_whole);
    compared = cli_keep_whole_json(compared, is_whole);
    return json_pack("{s:s, s:i, s:s, s:o, s:o}", "kernel", entry->kernel, "launch_count",
                     entry->launch_count, "note", entry->note ? entry->note : "", "counted",
                     counted, "compared", compared);
}

json_t *cli_make_profile_json(const profile_report *report)
{
    json_t *list = json_array();
    int is_whole = list != NULL;
    for (int i = 0; i < report->entry_count && is_whole; i++)
        is_whole = cli_append_json(list, make_entry(&report->entries[i]));
    list = cli_keep_whole_json(list, is_whole);
    return json_pack(
        "{s:I, s:I, s:I, s:s?, s:s, s:o, s:o, s:o, s:o}", "m", (json_int_t)report->shown.m, "n",
        (json_int_t)report->shown.n, "k", (json_int_t)report->shown.k, "attention",
        report->shown.attention, "gpu", report->shown.chip.name, "gpu_title",
        cli_make_text_json(report->shown.chip.title), "gpu_source",
        cli_make_text_json(report->shown.chip_source), "command",
        report->command ? cli_make_text_json(report->command) : json_null(), "kernels", list);
}
