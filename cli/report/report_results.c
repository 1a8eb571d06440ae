/*
 * Reads results of `tilegemm bench` and `tilegemm profile` for the page. A file may come from
 * anybody. It is checked, and only the fields that the page shows are taken. Its texts stay texts.
 */
#include "insight/profile.h"
#include "report/report.h"

#include "json_output.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* The largest size of a file that is read, of its records that are embedded, and of a text in
 * them. */
enum { file_bytes_most = 32 << 20, record_count_most = 4000, text_bytes_most = 200 };

static int refuse(const char *path, const char *why, int *exit_code)
{
    cli_print_error(
        "'%s' %s; pass --bench a file of `tilegemm bench --json FILE`, --profile one of "
        "`tilegemm profile --json` or Nsight Compute's raw CSV of the report's sizes",
        path, why);
    *exit_code = CLI_EXIT_USAGE;
    return 0;
}

/* The fields of a record by key and kind: 's' text, 'f' a number of at least 0, 'e' such a number
 * or null (a wrong result has no error), 'b' a boolean. */
static const struct {
    const char *key;
    char kind;
} record_fields[] = {
    {"shape", 's'},       {"m", 'f'},         {"n", 'f'},
    {"k", 'f'},           {"layout", 's'},    {"type", 's'},
    {"threads", 'f'},     {"device", 's'},    {"name", 's'},
    {"kind", 's'},        {"median_s", 'f'},  {"spread", 'f'},
    {"gflop_per_s", 'f'}, {"max_error", 'e'}, {"max_bound_share", 'e'},
    {"is_right", 'b'},
};

/* Returns the value as a field of the kind; NULL if it is something else. */
static json_t *take_field(const json_t *value, char kind)
{
    if (kind == 's' && json_is_string(value) && json_string_length(value) <= text_bytes_most)
        return cli_make_text_json(json_string_value(value));
    if (kind == 'f' && json_is_number(value) && json_number_value(value) >= 0)
        return json_real(json_number_value(value));
    if (kind == 'e')
        return json_is_null(value) ? json_null() : take_field(value, 'f');
    if (kind == 'b' && json_is_boolean(value))
        return json_boolean(json_is_true(value));
    return NULL;
}

/* Returns a record with all its fields; NULL with the key of the first field that is wrong. */
static json_t *take_record(const json_t *record, const char **wrong_key)
{
    json_t *taken = json_object();
    for (size_t i = 0; i < sizeof record_fields / sizeof record_fields[0]; i++) {
        const char *key = record_fields[i].key;
        json_t *value = take_field(json_object_get(record, key), record_fields[i].kind);
        if (!value)
            *wrong_key = key;
        if (!cli_set_json(taken, key, value))
            return cli_keep_whole_json(taken, 0);
    }
    return taken;
}

static int refuse_entry(const char *path, const char *key, size_t index, int *exit_code)
{
    char why[120];
    snprintf(why, sizeof why, "has no right \"%s\" in entry %zu", key, index);
    return refuse(path, why, exit_code);
}

static json_t *take_records(const char *path, const json_t *records, int *exit_code)
{
    json_t *taken = json_array();
    const size_t count = json_array_size(records);
    int is_right = taken != NULL;
    if (!json_is_array(records))
        is_right = refuse(path, "has no array \"records\"", exit_code);
    else if (count > record_count_most)
        is_right = refuse(path, "has more than 4000 records", exit_code);
    for (size_t i = 0; i < count && is_right; i++) {
        const char *key = "";
        json_t *record = take_record(json_array_get(records, i), &key);
        if (!record && key[0])
            is_right = refuse_entry(path, key, i, exit_code);
        else
            is_right = cli_append_json(taken, record);
    }
    return cli_keep_whole_json(taken, is_right);
}

static json_t *take_text(const json_t *object, const char *key)
{
    json_t *text = take_field(json_object_get(object, key), 's');
    return text ? text : json_string("");
}

/* Returns 0 after printing an error. The open of a FIFO would wait for a writer. */
static int check_file(const char *path, int *exit_code)
{
    struct stat status;
    if (stat(path, &status) != 0) {
        cli_print_error("'%s': %s", path, strerror(errno));
        *exit_code = CLI_EXIT_MISSING;
        return 0;
    }
    return (S_ISREG(status.st_mode) && status.st_size <= file_bytes_most) ||
           refuse(path, "is not a regular file of at most 32 MiB", exit_code);
}

/* Returns NULL after printing an error. */
static json_t *load(const char *path, int *exit_code)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
    if (!root) {
        char why[JSON_ERROR_TEXT_LENGTH + 40];
        snprintf(why, sizeof why, "is not JSON, line %d: %s", error.line, error.text);
        refuse(path, why, exit_code);
    }
    return root;
}

json_t *cli_read_bench_file(const char *path, int *exit_code)
{
    json_t *root = check_file(path, exit_code) ? load(path, exit_code) : NULL;
    if (!root)
        return NULL;
    const json_t *head = json_object_get(root, "head");
    const json_t *machine = json_object_get(head, "machine");
    json_t *records = take_records(path, json_object_get(root, "records"), exit_code);
    json_t *taken = NULL;
    if (records)
        taken = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "file", cli_make_text_json(path),
                          "date", take_text(head, "date"), "mode", take_text(head, "mode"),
                          "processor", take_text(machine, "processor"), "version",
                          take_text(head, "version"), "records", records);
    json_decref(root);
    return taken;
}

/* Returns sizes and counts of a kernel; NULL with the key that is wrong, "" when out of memory. */
static json_t *take_counts(const json_t *root, const json_t *kernel, const char **wrong_key)
{
    static const char *const sizes[] = {"m", "n", "k"};
    static const char *const counts[] = {
        "global_load_requests", "global_load_sectors", "global_store_sectors", "dram_read_bytes",
        "dram_write_bytes",     "shared_loads",        "load_conflicts",       "time_ns"};
    const json_t *counted = json_object_get(kernel, "counted");
    json_t *taken = json_object(), *name = take_field(json_object_get(kernel, "kernel"), 's');
    int is_done = name != NULL;
    if (!is_done)
        *wrong_key = "kernel";
    is_done = cli_set_json(taken, "kernel", name) && is_done &&
              cli_set_json(taken, "gpu", take_text(root, "gpu")) &&
              cli_set_json(taken, "gpu_title", take_text(root, "gpu_title"));
    for (int i = 0; i < 3 && is_done; i++) {
        json_t *size = take_field(json_object_get(root, sizes[i]), 'f');
        if (!size)
            *wrong_key = sizes[i];
        is_done = cli_set_json(taken, sizes[i], size);
    }
    for (size_t i = 0; i < sizeof counts / sizeof counts[0] && is_done; i++) {
        json_t *count = take_field(json_object_get(counted, counts[i]), 'f');
        is_done = cli_set_json(taken, counts[i], count ? count : json_null());
    }
    return cli_keep_whole_json(taken, is_done);
}

/* Returns 1 if the file begins as Nsight Compute's CSV does: with a quoted name or with its own
 * messages. */
static int is_csv(const char *path)
{
    FILE *stream = fopen(path, "r");
    const int first = stream ? getc(stream) : EOF;
    if (stream)
        fclose(stream);
    return first == '"' || first == '=';
}

/* Keeps the entries that were counted. CSV has no sizes but a grid, which must be that of the
 * report's sizes. Returns 0 after printing an error. */
static int keep_counted(const char *path, profile_report *report, int *exit_code)
{
    int kept_count = 0;
    for (int i = 0; i < report->entry_count; i++) {
        profile_entry *entry = &report->entries[i];
        const explain_case *shown = &report->shown;
        char grid[sizeof entry->grid], why[200];
        if (entry->launch_count == 0)
            continue;
        const tg_status status = tg_explain_kernel(&shown->chip, entry->kernel, 0, shown->m,
                                                   shown->n, shown->k, &entry->model);
        if (status != TG_STATUS_OK) {
            *exit_code = cli_report_status(status);
            return 0;
        }
        snprintf(grid, sizeof grid, "(%lld, %lld, 1)", (long long)entry->model.traffic.grid_x,
                 (long long)entry->model.traffic.grid_y);
        snprintf(why, sizeof why, "has %s with a grid of %s, but the report's sizes make it %s",
                 entry->kernel, entry->grid, grid);
        if (strcmp(grid, entry->grid) != 0)
            return refuse(path, why, exit_code);
        report->entries[kept_count++] = *entry;
    }
    report->entry_count = kept_count;
    return kept_count > 0 || refuse(path, "counts no kernel of the ladder", exit_code);
}

/* Returns what `profile --json` would print of the CSV; NULL after printing an error. */
static json_t *load_csv(const char *path, const explain_case *shown, int *exit_code)
{
    static profile_report report;
    const char *names[LADDER_CAPACITY];
    FILE *stream = fopen(path, "r");
    report = (profile_report){.shown = *shown, .entry_count = cli_list_ladder("all", 0, names)};
    for (int i = 0; i < report.entry_count; i++)
        report.entries[i].kernel = names[i];
    const int is_read = stream && cli_read_counters(stream, &report);
    if (stream)
        fclose(stream);
    if (!is_read) {
        cli_print_error("'%s': out of memory, or it cannot be read", path);
        *exit_code = CLI_EXIT_WRONG;
        return NULL;
    }
    return keep_counted(path, &report, exit_code) ? cli_make_profile_json(&report) : NULL;
}

int cli_append_profile(const char *path, const explain_case *shown, json_t *list, int *exit_code)
{
    if (!check_file(path, exit_code))
        return 0;
    json_t *root = is_csv(path) ? load_csv(path, shown, exit_code) : load(path, exit_code);
    const json_t *kernels = json_object_get(root, "kernels");
    int is_right = root != NULL;
    if (root && !json_is_array(kernels))
        is_right = refuse(path, "has no array \"kernels\"", exit_code);
    else if (json_array_size(kernels) > record_count_most)
        is_right = refuse(path, "has more than 4000 kernels", exit_code);
    for (size_t i = 0; i < json_array_size(kernels) && is_right; i++) {
        const char *key = "";
        json_t *taken = take_counts(root, json_array_get(kernels, i), &key);
        if (!taken && key[0])
            is_right = refuse_entry(path, key, i, exit_code);
        else
            is_right = cli_append_json(list, taken);
    }
    json_decref(root);
    return is_right;
}
