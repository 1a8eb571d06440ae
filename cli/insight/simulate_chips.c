/*
 * Shows the counts of simulated kernels beside their predicted times on several chips.
 */
#include "insight/simulate.h"

#include "json_output.h"

#include <stdio.h>
#include <string.h>

/* With a tile, the family is the name that the model knows. */
static void predict(const cli_simulated_table *table, const tg_simulation *simulation,
                    double *times_s)
{
    for (int c = 0; c < table->chip_count; c++)
        times_s[c] = cli_predict_kernel(
            &table->chips[c], table->tile ? simulation->family : simulation->kernel, table->tile);
}

json_t *cli_make_times_json(const cli_simulated_table *table, const tg_simulation *simulation)
{
    double times_s[CLI_GPU_MOST];
    json_t *times = json_object();
    int is_whole = times != NULL;
    predict(table, simulation, times_s);
    for (int c = 0; c < table->chip_count && is_whole; c++)
        is_whole = cli_set_json(times, table->chips[c].chip.name,
                                times_s[c] > 0.0 ? json_real(times_s[c]) : json_null());
    return cli_keep_whole_json(times, is_whole);
}

void cli_keep_simulated_row(cli_simulated_table *table, const tg_simulation *simulation)
{
    simulated_row *row = &table->rows[table->row_count];
    if (table->row_count == LADDER_CAPACITY)
        return;
    snprintf(row->kernel, sizeof row->kernel, "%s", simulation->kernel);
    row->traffic = simulation->traffic;
    predict(table, simulation, row->predicted_s);
    table->has_samples |= !simulation->is_exact;
    table->row_count++;
}

void cli_print_simulated_table(const cli_simulated_table *table)
{
    explain_row rows[LADDER_CAPACITY];
    for (int i = 0; i < table->row_count; i++) {
        rows[i] =
            (explain_row){.kernel = table->rows[i].kernel, .traffic = &table->rows[i].traffic};
        memcpy(rows[i].predicted_s, table->rows[i].predicted_s, sizeof rows[i].predicted_s);
    }
    cli_print_side_by_side(table->chips, table->chip_count,
                           table->has_samples ? "counted by the simulator in samples, scaled up"
                                              : "counted by the simulator",
                           rows, table->row_count);
}
