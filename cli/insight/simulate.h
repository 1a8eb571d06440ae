/* tilegemm simulate: what its files share. */
#ifndef TG_CLI_SIMULATE_H
#define TG_CLI_SIMULATE_H

#include "cli.h"
#include "tilegemm_sim.h"

#include <jansson.h>

/* Prints the counts of a kernel, its lines (with has_lines) and its findings. */
void cli_print_simulation(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                          int has_lines);

/* A, B and D of m x k, k x n and m x n, with a gap behind each that no kernel may touch. */
typedef struct simulated_operands {
    float *memory[3]; /* owned; A, B, D */
} simulated_operands;

/* Fills A and B, with numbers that tell their place where has_trace. Returns 0 after an error line.
 * Free with cli_free_simulated_operands, whatever was returned. */
int cli_make_simulated_operands(int64_t m, int64_t n, int64_t k, int has_trace,
                                simulated_operands *operands);
void cli_free_simulated_operands(simulated_operands *operands);

/* Prints a phase as it ends; `state` is a cli_trace. */
typedef struct cli_trace {
    int64_t n, k; /* columns of B and D, of A */
    int tile_rows, tile_depth, stage_count;
} cli_trace;
void cli_print_phase(void *state, const tg_trace_phase *phase);

/* Appends a phase as it ends; `state` is a cli_phase_list. */
typedef struct cli_phase_list {
    json_t *list; /* an array */
    int is_cut;   /* memory ran out for a phase */
} cli_phase_list;
void cli_keep_phase(void *state, const tg_trace_phase *phase);

/* Requests of the first warp, the first few of each line, and the threads of the first block that
 * write D; cli_keep_request is the `watch` of a simulation, its state the log. NULL when out of
 * memory. */
typedef struct cli_request_log cli_request_log;
cli_request_log *cli_open_request_log(int64_t d_col_count);
void cli_close_request_log(cli_request_log *log);
void cli_keep_request(void *log, const tg_simulated_request *request);

void cli_print_requests(const cli_request_log *log);

/* An array of requests; and an array of rows of the first block's tile, each an array of the number
 * of the thread in its block that wrote the element, -1 where none did. NULL when out of memory. */
json_t *cli_make_requests_json(const cli_request_log *log);
json_t *cli_make_owners_json(const cli_request_log *log);

/* A simulation as a JSON object; the counts have the keys of `explain`. With phases and requests
 * where they are not NULL. NULL when out of memory. */
json_t *cli_make_simulation_json(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                                 const cli_phase_list *phases, const cli_request_log *log);

#endif /* TG_CLI_SIMULATE_H */
