/* tilegemm simulate: what its files share. */
#ifndef TG_CLI_SIMULATE_H
#define TG_CLI_SIMULATE_H

#include "cli.h"
#include "tilegemm_lab.h"

#include <jansson.h>

/* Prints the counts of a kernel, its lines (with has_lines) and its findings. */
void cli_print_simulation(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                          int has_lines);

/* The same as a JSON object; the counts have the keys of `explain`. NULL when out of memory. */
json_t *cli_make_simulation_json(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k);

/* Prints a phase as it ends; `state` is a cli_trace. */
typedef struct cli_trace {
    int64_t n, k; /* columns of B and D, of A */
    int tile_rows, tile_depth, stage_count;
} cli_trace;
void cli_print_phase(void *state, const tg_trace_phase *phase);

#endif /* TG_CLI_SIMULATE_H */
