/*
 * Writes the simulations that are the same in every report into a file, when the command is built.
 *
 * usage: make_lessons FILE
 */
#include "report/report.h"

#include "json_output.h"

#include <stdio.h>
#include <stdlib.h>

/* Every row of the ladder runs at this size, of whole tiles. */
static const explain_case whole_tiles = {.m = 128, .n = 128, .k = 32};

/* Sides of tiles that have no row in some families, whose accesses the page shows beside those of
 * the rows. The sides without a row in family tiled divide the sizes, because it has no edges. */
static const int further_tiles[] = {3, 5, 8, 12, 16, 20};
static const explain_case further_sizes = {.m = 60, .n = 120, .k = 60};

/* Sizes whose requests the page does not show. */
static const explain_case small_sizes[] = {{.m = 64, .n = 64, .k = 64},
                                           {.m = 55, .n = 43, .k = 48}};

/* The last two walks have a barrier taken out. */
static const cli_walk walks[] = {
    {"tiled", 2, 4, 4, 4, 0}, {"tiled", 4, 4, 4, 4, 0},     {"edges", 2, 3, 5, 3, 0},
    {"edges", 4, 6, 7, 5, 0}, {"edges", 3, 5, 7, 9, 0},     {"naive", 2, 4, 4, 4, 0},
    {"naive", 4, 4, 4, 4, 0}, {"coalesced", 2, 4, 4, 4, 0}, {"coalesced", 4, 4, 4, 4, 0},
    {"tiled", 2, 4, 4, 4, 1}, {"tiled", 2, 4, 4, 4, 2}};

static int append_simulations(const report_case *report, json_t *list, int *exit_code)
{
    int is_done = cli_append_ladder(report, 0, &whole_tiles, 1, list, exit_code);
    for (size_t i = 0; i < sizeof further_tiles / sizeof further_tiles[0] && is_done; i++)
        is_done = cli_append_ladder(report, further_tiles[i], &further_sizes, 1, list, exit_code);
    for (size_t i = 0; i < sizeof small_sizes / sizeof small_sizes[0] && is_done; i++)
        is_done = cli_append_ladder(report, 0, &small_sizes[i], 0, list, exit_code);
    return is_done;
}

static int append_walks(const report_case *report, json_t *list, int *exit_code)
{
    int is_done = 1;
    for (size_t i = 0; i < sizeof walks / sizeof walks[0] && is_done; i++)
        is_done = cli_append_walk(report, &walks[i], list, exit_code);
    return is_done;
}

static int write_text(const char *path, const char *text)
{
    FILE *stream = fopen(path, "w");
    const int is_written = stream && fputs(text, stream) != EOF;
    if (!stream || fclose(stream) != 0 || !is_written) {
        perror(path);
        return 0;
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 2) {
        fprintf(stderr, "usage: make_lessons FILE\n");
        return EXIT_FAILURE;
    }
    int exit_code = CLI_EXIT_OK;
    report_case report = {.progress = NULL};
    json_t *simulations = json_array(), *traces = json_array();
    /* The operands fit in the L2 cache of every chip of the table, whose counts are therefore the
     * same. */
    int is_done = tg_find_chip("h200", &report.shown.chip) == TG_STATUS_OK && simulations &&
                  traces && append_simulations(&report, simulations, &exit_code) &&
                  append_walks(&report, traces, &exit_code);
    json_t *lessons = json_pack("{s:o, s:o}", "simulations", simulations, "traces", traces);
    char *text = lessons ? cli_pack_json(lessons) : NULL; /* it releases the lessons */
    if ((!is_done || !text) && exit_code == CLI_EXIT_OK)
        cli_print_error("out of memory for the lessons of the page");
    is_done = is_done && text && write_text(argv[1], text);
    free(text);
    return is_done ? EXIT_SUCCESS : EXIT_FAILURE;
}
