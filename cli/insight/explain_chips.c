/*
 * Prints explained kernels of one chip, or of several chips side by side.
 */
#include "insight/explain.h"

#include "json_output.h"

#include <stdio.h>

double cli_predict_kernel(const explain_case *shown, const char *kernel, int tile)
{
    tg_explanation explained;
    if (tg_explain_kernel(&shown->chip, kernel, tile, shown->m, shown->n, shown->k, &explained) !=
            TG_STATUS_OK ||
        !explained.prediction.is_legal)
        return 0.0;
    return explained.prediction.predicted_s;
}

static void print_head(const explain_case *cases, int case_count, const char *what)
{
    char m[COUNT_TEXT_BYTES], n[COUNT_TEXT_BYTES], k[COUNT_TEXT_BYTES];
    if (cases[0].attention)
        printf("attention %s", cases[0].attention);
    else
        printf("%s x %s x %s (M x N x K)", cli_format_count(cases[0].m, m),
               cli_format_count(cases[0].n, n), cli_format_count(cases[0].k, k));
    printf("%s%s, times predicted\n", what ? ", " : "", what ? what : "");
    for (int c = 0; c < case_count; c++) {
        const tg_chip *chip = &cases[c].chip;
        printf("%s: %s, %d multiprocessors, %.0f MHz, %.0f GB/s, from %s\n", chip->name,
               chip->title, chip->sm_count, chip->clock_hz * 1e-6, chip->memory_bytes_per_s * 1e-9,
               cases[c].chip_source);
    }
}

static int find_quickest(const explain_row *rows, int row_count, int column)
{
    int best = -1;
    for (int i = 0; i < row_count; i++) {
        const double time_s = rows[i].predicted_s[column];
        if (time_s > 0.0 && (best < 0 || time_s < rows[best].predicted_s[column]))
            best = i;
    }
    return best;
}

void cli_print_side_by_side(const explain_case *cases, int case_count, const char *what,
                            const explain_row *rows, int row_count)
{
    int quickest[CLI_GPU_MOST];
    print_head(cases, case_count, what);
    printf("%-40s", "kernel");
    if (what)
        printf(" %8s %9s %9s %6s", "read MB", "sectors M", "conflicts", "FLOP/B");
    for (int c = 0; c < case_count; c++) {
        printf(" %10.10s", cases[c].chip.name);
        quickest[c] = find_quickest(rows, row_count, c);
    }
    putchar('\n');
    for (int i = 0; i < row_count; i++) {
        const tg_traffic *t = rows[i].traffic;
        printf("%-40s", rows[i].kernel);
        if (what && t)
            printf(" %8.4g %9.4g %9.4g %6.4g", (double)t->global_read_bytes * 1e-6,
                   (double)t->global_load_sectors * 1e-6, (double)t->bank_conflicts,
                   t->flop_per_byte);
        else if (what)
            printf(" %8s %9s %9s %6s", "-", "-", "-", "-");
        for (int c = 0; c < case_count; c++) {
            char time[COUNT_TEXT_BYTES] = "-";
            if (rows[i].predicted_s[c] > 0.0)
                cli_format_time(rows[i].predicted_s[c], time);
            printf(" %9s%c", time, i == quickest[c] ? '*' : ' ');
        }
        putchar('\n');
    }
    printf("* the quickest on its chip; - not legal there\n");
}

static json_t *make_chip_json(int has_tiles, const explain_chip *chip)
{
    return has_tiles          ? cli_make_tiles_json(&chip->shown, chip->list, chip->count)
           : chip->count == 1 ? cli_make_explanation_json(&chip->shown, &chip->list[0])
                              : cli_make_explanations_json(&chip->shown, chip->list, chip->count);
}

static void print_chip(int has_tiles, const explain_chip *chip)
{
    if (has_tiles)
        cli_print_tiles(&chip->shown, chip->list, chip->count);
    else if (chip->count == 1)
        cli_print_explanation(&chip->shown, &chip->list[0]);
    else
        cli_print_explanations(&chip->shown, chip->list, chip->count);
}

/* Prints the predicted times of chips side by side. All chips have the same kernels, because a
 * kernel that is not legal on a chip is explained too. */
static void print_chips(const explain_chip *chips, int chip_count)
{
    explain_case cases[CLI_GPU_MOST];
    explain_row rows[EXPLAIN_CAPACITY];
    for (int i = 0; i < chips[0].count; i++) {
        rows[i] =
            (explain_row){.kernel = chips[0].list[i].kernel, .traffic = &chips[0].list[i].traffic};
        for (int c = 0; c < chip_count; c++) {
            const tg_prediction *prediction = &chips[c].list[i].prediction;
            rows[i].predicted_s[c] = prediction->is_legal ? prediction->predicted_s : 0.0;
        }
    }
    for (int c = 0; c < chip_count; c++)
        cases[c] = chips[c].shown;
    cli_print_side_by_side(cases, chip_count, "counted by the model", rows, chips[0].count);
}

int cli_show_explained(const explain_chip *chips, int chip_count, int has_tiles, int has_json)
{
    if (has_json && chip_count == 1)
        return cli_print_json(make_chip_json(has_tiles, chips));
    if (has_json) {
        json_t *list = json_array();
        int is_whole = list != NULL;
        for (int c = 0; c < chip_count; c++)
            is_whole = cli_append_json(list, make_chip_json(has_tiles, &chips[c])) && is_whole;
        return cli_print_json(json_pack("{s:o}", "gpus", cli_keep_whole_json(list, is_whole)));
    }
    if (chip_count == 1)
        print_chip(has_tiles, chips);
    else
        print_chips(chips, chip_count);
    return CLI_EXIT_OK;
}
