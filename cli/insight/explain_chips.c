/*
 * Prints kernels with their predicted times on several chips side by side.
 */
#include "insight/explain.h"

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

static void print_chips(const explain_case *cases, int case_count, const char *what)
{
    char m[COUNT_TEXT_BYTES], n[COUNT_TEXT_BYTES], k[COUNT_TEXT_BYTES];
    printf("%s x %s x %s (M x N x K)%s%s, times predicted\n", cli_format_count(cases[0].m, m),
           cli_format_count(cases[0].n, n), cli_format_count(cases[0].k, k), what ? ", " : "",
           what ? what : "");
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
    print_chips(cases, case_count, what);
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
