/*
 * tilegemm report: writes one HTML file that shows a product and computes in the browser.
 */
#include "report/report.h"

#include "fields_json.h"
#include "json_output.h"

#include <argp.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { file_capacity = 16, page_bytes_most = 3000000, size_most = 1000000, tile_most = 32 };
enum { key_bench = CLI_KEY_OWN, key_profile };

static const char default_shape[] = "256x256x256", example[] = "1000x1200x800";
static const char default_path[] = "report.html";

typedef struct report_options {
    cli_query query;
    const char *path;
    const char *bench_paths[file_capacity], *profile_paths[file_capacity];
    int bench_count, profile_count;
} report_options;

static const struct argp_option option_list[] = {
    {"gpu", CLI_KEY_GPU, "NAME|FILE", 0,
     "Chip to open with, as `tilegemm explain` takes it (default: the GPU here, else h200)", 0},
    {"tile", CLI_KEY_TILE, "T", 0,
     "Side of the tile to open with, 1 to 32; the page contains the simulator's counts "
     "for it (default: 16, or 8, 4 or 2 if D is small)",
     0},
    {"bench", key_bench, "FILE", 0,
     "Show the times of `tilegemm bench --json FILE`; may be repeated, up to 16 times", 0},
    {"profile", key_profile, "FILE", 0,
     "Show the counters of `tilegemm profile --json`, or Nsight Compute's CSV of kernels that ran "
     "at the report's sizes; may be repeated, up to 16 times",
     0},
    {"output", 'o', "FILE", 0, "File to write (default: report.html)", 0},
    {0},
};

static void append_path(struct argp_state *state, const char *option, const char *path,
                        const char *paths[file_capacity], int *count)
{
    if (*count == file_capacity)
        argp_error(state, "%s = '%s' is one file too many; pass at most %d", option, path,
                   file_capacity);
    else
        paths[(*count)++] = path;
}

static error_t parse_option(int key, char *arg, struct argp_state *state)
{
    report_options *options = state->input;
    switch (key) {
    case key_bench:
        append_path(state, "--bench", arg, options->bench_paths, &options->bench_count);
        return 0;
    case key_profile:
        append_path(state, "--profile", arg, options->profile_paths, &options->profile_count);
        return 0;
    case 'o':
        options->path = arg;
        return 0;
    default:
        return cli_take_query_option(key, arg, state, &options->query);
    }
}

static json_t *make_state(const report_case *report)
{
    const explain_case *shown = &report->shown;
    return json_pack("{s:I, s:I, s:I, s:i, s:o}", "m", (json_int_t)shown->m, "n",
                     (json_int_t)shown->n, "k", (json_int_t)shown->k, "tile", report->tile, "chip",
                     cli_make_text_json(shown->chip.name));
}

static json_t *make_chip(const tg_chip *chip)
{
    json_t *object = json_object();
    return cli_keep_whole_json(object, cli_set_fields_json(object, cli_chip_fields, chip));
}

static json_t *make_bench(const report_case *report, int *exit_code)
{
    json_t *list = json_array();
    for (int i = 0; i < report->bench_count && list; i++)
        list = cli_keep_whole_json(
            list, cli_append_json(list, cli_read_bench_file(report->bench_paths[i], exit_code)));
    return list;
}

static json_t *make_counted(const report_case *report, int *exit_code)
{
    json_t *list = json_array();
    int is_done = list != NULL;
    for (int i = 0; i < report->profile_count && is_done; i++)
        is_done = cli_append_profile(report->profile_paths[i], &report->shown, list, exit_code);
    return cli_keep_whole_json(list, is_done);
}

/* Sets "simulations", which are those at the report's shape and the lessons', and "traces". Returns
 * 0 on failure. */
static int set_simulations(const report_case *report, json_t *data, int *exit_code)
{
    json_t *lessons = cli_read_lessons(), *list = json_array();
    const int is_done =
        lessons && list && cli_append_ladder(report, 0, &report->shown, 1, list, exit_code) &&
        cli_append_ladder(report, report->tile, &report->shown, 1, list, exit_code) &&
        json_array_extend(list, json_object_get(lessons, "simulations")) == 0 &&
        json_object_set(data, "simulations", list) == 0 &&
        json_object_set(data, "traces", json_object_get(lessons, "traces")) == 0;
    json_decref(list);
    json_decref(lessons);
    return is_done;
}

/* Returns all data of the page. Returns NULL after printing an error, with *exit_code set. */
static json_t *make_data(const report_case *report, int *exit_code)
{
    char date[32] = "";
    const time_t now = time(NULL);
    struct tm parts;
    if (gmtime_r(&now, &parts))
        strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%SZ", &parts);
    *exit_code = CLI_EXIT_OK;
    /* Wrong --bench and --profile files are refused before the simulator runs. */
    json_t *bench = make_bench(report, exit_code);
    json_t *counted = bench ? make_counted(report, exit_code) : NULL;
    json_t *data = json_pack("{s:s, s:s, s:o, s:o, s:o, s:o}", "version", tg_get_version(), "date",
                             date, "state", make_state(report), "chip",
                             make_chip(&report->shown.chip), "bench", bench, "counted", counted);
    const int is_done =
        data && set_simulations(report, data, exit_code) &&
        cli_set_json(data, "candidates",
                     cli_make_cpu_candidates_json(report->shape, &report->problem, exit_code));
    if (!is_done && *exit_code == CLI_EXIT_OK) {
        cli_print_error("out of memory for the data of the page");
        *exit_code = CLI_EXIT_WRONG;
    }
    return cli_keep_whole_json(data, is_done);
}

/* In a page no text of JSON may end the element that holds it, so this stands for '<'. */
static const char escaped[] = "\\u003c";

static int write_data(FILE *stream, const char *text)
{
    for (; *text; text++) {
        if (*text == '<' ? fputs(escaped, stream) == EOF : putc(*text, stream) == EOF)
            return 0;
    }
    return 1;
}

static size_t count_data_bytes(const char *text)
{
    size_t bytes = 0;
    for (; *text; text++)
        bytes += *text == '<' ? sizeof escaped - 1 : 1;
    return bytes;
}

/* Returns a cli_exit. */
static int write_page(cli_output *output, const char *text)
{
    const char *head, *tail;
    size_t head_bytes;
    cli_file_error error = {""};
    if (!cli_find_page(&head, &head_bytes, &tail))
        return CLI_EXIT_MISSING;
    if (head_bytes + count_data_bytes(text) + strlen(tail) > page_bytes_most) {
        cli_print_error("the page would have more than %d bytes; pass fewer or smaller --bench "
                        "files",
                        page_bytes_most);
        return CLI_EXIT_USAGE;
    }
    int is_written = fwrite(head, 1, head_bytes, output->stream) == head_bytes &&
                     write_data(output->stream, text) && fputs(tail, output->stream) != EOF;
    int exit_code =
        is_written ? cli_commit_output(output, &error) : cli_fail_output(output, errno, &error);
    if (exit_code != CLI_EXIT_OK)
        cli_print_error("%s", error.text);
    return exit_code;
}

/* Returns the largest of 16, 8, 4 and 2 of which D holds two tiles in both directions. */
static int choose_tile(const explain_case *shown)
{
    int tile = 16;
    while (tile > 2 && (2 * tile > shown->m || 2 * tile > shown->n))
        tile /= 2;
    return tile;
}

static int parse_shape(report_case *report)
{
    explain_case *shown = &report->shown;
    const int exit_code =
        cli_parse_plain_shape(report->shape, "the page shows", size_most, &report->problem);
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    shown->m = report->problem.d.row_count;
    shown->n = report->problem.d.col_count;
    shown->k = report->problem.a.col_count;
    if (!report->tile)
        report->tile = choose_tile(shown);
    return CLI_EXIT_OK;
}

static int run_report(const report_options *options, cli_output *output)
{
    cli_file_error error = {""};
    cli_progress progress = cli_make_progress(0);
    report_case report = {.shape = options->query.shape ? options->query.shape : default_shape,
                          .tile = options->query.tile,
                          .bench_paths = options->bench_paths,
                          .bench_count = options->bench_count,
                          .profile_paths = options->profile_paths,
                          .profile_count = options->profile_count,
                          .progress = &progress};
    const char *head, *tail;
    size_t head_bytes;
    int exit_code = parse_shape(&report);
    if (exit_code == CLI_EXIT_OK)
        exit_code = cli_find_chip(options->query.gpus[0], NULL, &report.shown);
    if (exit_code == CLI_EXIT_OK && !cli_find_page(&head, &head_bytes, &tail))
        exit_code = CLI_EXIT_MISSING;
    if (exit_code != CLI_EXIT_OK)
        return exit_code;
    exit_code = cli_open_output(options->path ? options->path : default_path, output, &error);
    if (exit_code != CLI_EXIT_OK) {
        cli_print_error("%s", error.text);
        return exit_code;
    }
    json_t *data = make_data(&report, &exit_code);
    char *text = data ? cli_pack_json(data) : NULL;
    if (text) {
        exit_code = write_page(output, text);
    } else if (data) {
        cli_print_error("out of memory for the text of the page");
        exit_code = CLI_EXIT_WRONG;
    }
    free(text);
    return exit_code;
}

const struct argp cli_argp_report = {
    .options = option_list,
    .parser = parse_option,
    .args_doc = "[MxNxK]",
    .doc = "Write a page that shows how M x K by K x N is multiplied (default: "
           "256x256x256): one HTML file that needs no server and no network. It computes "
           "with the model of `tilegemm explain` in the browser, and contains the "
           "simulator's counts and the measured times.\v"
           "Examples:\n"
           "  tilegemm report 1000x1200x800 -o report.html\n"
           "  tilegemm report 512x512x512 --gpu a100\n"
           "  tilegemm report 55x43x48 --tile 12\n"
           "  tilegemm bench --kernel ladder --shape 512x512x512 --json mine.json\n"
           "  tilegemm report 512x512x512 --bench mine.json",
};

int cli_run_report(int argc, char **argv)
{
    report_options options = {.query = {.shape_example = example, .tile_max = tile_most}};
    if (cli_parse_words(argc, argv, &cli_argp_report, &options) != CLI_EXIT_OK)
        return CLI_EXIT_USAGE;
    cli_output output = {.path = NULL};
    int exit_code = run_report(&options, &output);
    cli_discard_output(&output);
    return exit_code;
}
