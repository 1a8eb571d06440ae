/*
 * Makes JSON of a run of bench: a head, one record for each shape and contender, one summary for
 * each shape.
 */
#include "bench/bench.h"

#include "json_output.h"
#include "insight/simulate.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Returns the name of the library's file without its folder, which differs by machine and user. */
static const char *find_file_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

static json_t *make_peer_json(const cli_peer *peer)
{
    json_t *environment = json_object(), *kept = json_array();
    int is_whole = 1;
    for (int i = 0; i < PEER_SETTING_CAPACITY && peer->settings[i].name; i++) {
        if (peer->setting_values[i])
            is_whole &= cli_set_json(environment, peer->settings[i].name,
                                     cli_make_text_json(peer->setting_values[i]));
        if (peer->is_setting_kept[i])
            is_whole &= cli_append_json(kept, json_string(peer->settings[i].name));
    }
    kept = cli_keep_whole_json(kept, is_whole);
    if (!peer->handle)
        return json_pack("{s:s, s:b, s:o, s:o, s:o}", "name", peer->name, "is_open", 0, "reason",
                         cli_make_text_json(peer->reason), "environment", environment,
                         "environment_kept", kept);
    return json_pack("{s:s, s:b, s:o, s:o, s:o, s:o, s:o}", "name", peer->name, "is_open", 1,
                     "version", cli_make_text_json(peer->version), "kernel",
                     cli_make_text_json(peer->kernel), "library",
                     cli_make_text_json(find_file_name(peer->path)), "environment", environment,
                     "environment_kept", kept);
}

static json_t *make_peers_json(void)
{
    json_t *list = json_array();
    const cli_peer *peer = NULL;
    int is_whole = 1;
    for (int i = 0; (peer = cli_get_peer(i)); i++) {
        if (peer->is_tried)
            is_whole &= cli_append_json(list, make_peer_json(peer));
    }
    return cli_keep_whole_json(list, is_whole);
}

/* The variables that the library, a peer or an OpenMP run-time may read. */
static json_t *make_environment_json(void)
{
    static const char *const prefixes[] = {"TILEGEMM_", "OMP_",  "GOMP_",  "KMP_",
                                           "OPENBLAS_", "BLIS_", "DNNL_",  "MKL_",
                                           "ONEDNN_",   "CUDA_", "CUBLAS", "CUDNN_"};
    json_t *environment = json_object();
    int is_whole = 1;
    for (char **entry = environ; *entry; entry++) {
        const char *sign = strchr(*entry, '=');
        for (size_t i = 0; sign && i < sizeof prefixes / sizeof prefixes[0]; i++) {
            if (strncmp(*entry, prefixes[i], strlen(prefixes[i])) != 0)
                continue;
            char *name = strndup(*entry, (size_t)(sign - *entry));
            json_t *key = name ? cli_make_text_json(name) : NULL;
            is_whole &= key && cli_set_json(environment, json_string_value(key),
                                            cli_make_text_json(sign + 1));
            json_decref(key);
            free(name);
        }
    }
    return cli_keep_whole_json(environment, is_whole);
}

static json_t *make_command_json(int argc, char **argv)
{
    json_t *list = json_array();
    int is_whole = 1;
    for (int i = 0; i < argc; i++)
        is_whole &= cli_append_json(list, cli_make_text_json(argv[i]));
    return cli_keep_whole_json(list, is_whole);
}

static json_t *make_head_json(const bench_options *options, int argc, char **argv)
{
    char date[64];
    time_t now = time(NULL);
    struct tm utc;
    gmtime_r(&now, &utc);
    strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &utc);
    tg_context *context = NULL;
    tg_device_info info;
    const tg_context_options context_options = {.struct_bytes = sizeof context_options,
                                                .device = options->device};
    if (tg_create_context(&context_options, &context) != TG_STATUS_OK ||
        tg_get_device_info(context, &info, sizeof info) != TG_STATUS_OK)
        return NULL;
    json_t *head =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:s, s:b, s:f, s:f, s:f, s:i}",
                  "version", tg_get_version(), "source", cli_get_source(), "compiler",
                  cli_get_compiler(), "date", date, "command", make_command_json(argc, argv),
                  "machine", cli_make_machine_json(&options->machine, &info), "peers",
                  make_peers_json(), "environment", make_environment_json(), "mode",
                  options->is_simulated ? "simulated"
                  : options->is_cold    ? "cold"
                                        : "hot",
                  "is_graph", options->is_graph, "sustained_time_s", options->sustained_time_s,
                  "min_time_s", options->min_time_s, "max_time_s", options->max_time_s,
                  "round_count", options->round_count);
    tg_destroy_context(context);
    return head;
}

/* Makes the part that begins every record and summary of an attention. */
static json_t *make_attention_json(const bench_result *result)
{
    const tg_attention *a = &result->shape->attention;
    return json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:s, s:i, s:s, s:s}", "shape",
                     result->shape->text, "reason", "", "batch_count", (json_int_t)a->batch_count,
                     "head_count", (json_int_t)a->head_count, "kv_head_count",
                     (json_int_t)a->kv_head_count, "m", (json_int_t)a->m, "n", (json_int_t)a->n,
                     "head_size", (json_int_t)a->head_size, "v_head_size",
                     (json_int_t)a->v_head_size, "type", tg_get_type_name(a->type), "threads",
                     result->thread_count, "device", result->device, "isa", result->isa);
}

/* Makes the part that begins every record and summary of a shape. */
static json_t *make_shape_json(const bench_result *result)
{
    if (result->shape->is_attention)
        return make_attention_json(result);
    const tg_problem *problem = &result->shape->problem;
    return json_pack("{s:s, s:o, s:I, s:I, s:I, s:I, s:s, s:s, s:s, s:s, s:i, s:s, s:s}", "shape",
                     result->shape->text, "reason", cli_make_text_json(result->shape->reason), "m",
                     (json_int_t)problem->d.row_count, "n", (json_int_t)problem->d.col_count, "k",
                     (json_int_t)cli_get_depth(problem), "batch_count",
                     (json_int_t)problem->batch_count, "layout", cli_get_layout(problem), "type",
                     tg_get_type_name(problem->a.type), "d_type", tg_get_type_name(problem->d.type),
                     "precision", tg_get_precision_name(problem->precision), "threads",
                     result->thread_count, "device", result->device, "isa", result->isa);
}

/* Returns null for NaN and Inf, which JSON cannot hold; they can be the error of a wrong result. */
static json_t *make_finite(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

/* Returns `object` with the keys of `added`, which it takes over; NULL if either is. */
static json_t *join(json_t *object, json_t *added)
{
    int is_whole = json_object_update(object, added) == 0;
    json_decref(added);
    return cli_keep_whole_json(object, is_whole);
}

/* Returns null if it was not measured. */
static json_t *make_positive(double value)
{
    return value > 0.0 ? json_real(value) : json_null();
}

/* Makes the counts under the keys of `explain`, without times. */
static json_t *make_simulated_json(const bench_result *result, const bench_contender *contender)
{
    const tg_problem *problem = &result->shape->problem;
    json_t *counted =
        cli_make_simulation_json(contender->simulation, problem->d.row_count, problem->d.col_count,
                                 cli_get_depth(problem), NULL, NULL);
    json_object_del(counted, "lines"); /* `tilegemm simulate` has them */
    return join(json_pack("{s:s, s:s, s:b, s:n, s:o, s:o}", "name", contender->name, "kind",
                          "kernel", "is_simulated", 1, "median_s", "max_error",
                          contender->is_verified ? make_finite(contender->max_error) : json_null(),
                          "is_right",
                          contender->is_verified ? json_boolean(contender->is_right) : json_null()),
                counted);
}

static json_t *make_record_json(const bench_result *result, const bench_contender *contender)
{
    json_t *record = make_shape_json(result);
    if (contender->simulation)
        return join(record, make_simulated_json(result, contender));
    json_t *samples = json_array();
    int is_whole = 1;
    for (int i = 0; i < contender->sample_count; i++)
        is_whole &= cli_append_json(samples, json_real(contender->samples_s[i]));
    samples = cli_keep_whole_json(samples, is_whole);
    json_t *measured = json_pack(
        "{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:o, s:o, s:o, s:b, s:I, s:o}", "name",
        contender->name, "kind", contender->is_peer ? "peer" : "kernel", "median_s",
        contender->median_s, "min_s", contender->min_s, "max_s", contender->max_s, "spread",
        contender->spread, "gflop_per_s", contender->gflop_per_s, "sustained_s",
        make_positive(contender->sustained_s), "max_error", make_finite(contender->max_error),
        "max_bound_share", make_finite(contender->max_bound_share), "is_right", contender->is_right,
        "repeat_count", (json_int_t)contender->repeat_count, "samples_s", samples);
    record = join(record, measured);
    if (!result->bus[0] || contender->is_on_host)
        return record;
    return join(record, json_pack("{s:f, s:f, s:b}", "clock_mhz", contender->clock_mhz, "power_w",
                                  contender->power_w, "is_throttled", contender->is_throttled));
}

static json_t *make_skip_json(const bench_contender *contender)
{
    return json_pack("{s:s, s:s, s:o}", "name", contender->name, "kind",
                     contender->is_peer ? "peer" : "kernel", "reason",
                     cli_make_text_json(contender->skip_reason));
}

static json_t *name_contender(const bench_result *result, int index)
{
    return index >= 0 ? json_string(result->contenders[index].name) : json_null();
}

/* Returns null if the ladder was not measured. */
static json_t *make_tiling_json(const bench_result *result)
{
    bench_tiling tiling;
    if (!cli_find_tiling(result, &tiling))
        return json_null();
    return json_pack("{s:o, s:o, s:s, s:s, s:f, s:f, s:f, s:f, s:f}", "sequential",
                     tiling.sequential ? json_string(tiling.sequential->name) : json_null(),
                     "naive", tiling.naive ? json_string(tiling.naive->name) : json_null(),
                     "coalesced", tiling.coalesced->name, "tiled", tiling.tiled->name, "speedup",
                     tiling.speedup, "saved_s", tiling.saved_s, "coalesced_read_bytes",
                     tiling.coalesced->global_read_bytes, "tiled_read_bytes",
                     tiling.tiled->global_read_bytes, "saved_read_share", tiling.saved_read_share);
}

/* null where it was not measured. */
static json_t *make_host_time_json(const bench_result *result)
{
    const bench_host_time *host = &result->host_time;
    if (host->bare_us == 0.0)
        return json_null();
    return json_pack("{s:f, s:f, s:f}", "bare_launch", host->bare_us, "execute_plan",
                     host->execute_us, "multiply", host->multiply_us);
}

static json_t *make_summary_json(const bench_result *result)
{
    json_t *summary = make_shape_json(result);
    json_t *skipped = json_array();
    int is_whole = 1;
    for (int i = 0; i < result->contender_count; i++) {
        if (!cli_is_measured(&result->contenders[i]))
            is_whole &= cli_append_json(skipped, make_skip_json(&result->contenders[i]));
    }
    skipped = cli_keep_whole_json(skipped, is_whole);
    double planned_ratio = 0.0;
    if (result->planned >= 0 && result->best_peer >= 0)
        planned_ratio = result->contenders[result->best_peer].median_s /
                        result->contenders[result->planned].median_s;
    json_t *found = json_pack(
        "{s:o, s:o, s:o, s:o, s:o, s:o, s:{s:f, s:f}, s:o, s:o, s:o, s:o}", "best_kernel",
        name_contender(result, result->best_kernel), "best_peer",
        name_contender(result, result->best_peer), "ratio_to_best_peer",
        make_positive(result->ratio_to_best_peer), "planned_kernel",
        name_contender(result, result->planned), "planned_ratio", make_positive(planned_ratio),
        "peak_flop_per_s", make_positive(result->peak_flop_per_s), "plan_us", "first",
        result->plan_first_us, "cached", result->plan_cached_us, "one_shot_median_s",
        make_positive(result->one_shot_median_s), "host_us", make_host_time_json(result), "tiling",
        make_tiling_json(result), "skipped", skipped);
    return join(summary, found);
}

json_t *cli_make_bench_json(const bench_options *options, const bench_result *results,
                            int result_count, int argc, char **argv)
{
    json_t *records = json_array(), *summaries = json_array();
    int is_whole = 1;
    for (int r = 0; r < result_count; r++) {
        for (int i = 0; i < results[r].contender_count; i++) {
            if (cli_is_measured(&results[r].contenders[i]))
                is_whole &= cli_append_json(
                    records, make_record_json(&results[r], &results[r].contenders[i]));
        }
        is_whole &= cli_append_json(summaries, make_summary_json(&results[r]));
    }
    records = cli_keep_whole_json(records, is_whole);
    return json_pack("{s:o, s:o, s:o}", "head", make_head_json(options, argc, argv), "records",
                     records, "summaries", summaries);
}
