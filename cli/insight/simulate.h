/* The types and functions that the files of `tilegemm simulate` share. */
#ifndef TG_CLI_SIMULATE_H
#define TG_CLI_SIMULATE_H

#include "cli.h"
#include "tilegemm_sim.h"

#include <jansson.h>

/* Prints the counts of a kernel, its lines if has_lines is set, and its findings. */
void cli_print_simulation(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                          int has_lines);

/* The operands A (m x k), B (k x n) and D (m x n), with a gap behind each that no kernel may
 * touch. */
typedef struct simulated_operands {
    void *memory[3]; /* owned; A, B, D */
} simulated_operands;

/* Allocates operands of the type (FP32 or of 16 bits) and fills A and B; with has_trace the numbers
 * tell their place. Returns 0 after an error line. The caller frees them with
 * cli_free_simulated_operands in either case. */
int cli_make_simulated_operands(tg_type type, int64_t m, int64_t n, int64_t k, int has_trace,
                                simulated_operands *operands);

/* Returns the type of A, B and D of a GPU kernel that its name or its family's names. */
tg_type cli_find_simulated_type(const char *kernel);
void cli_free_simulated_operands(simulated_operands *operands);

/* Returns an element of shared memory. */
double cli_read_shared(const tg_trace_phase *phase, int64_t index);

/* Prints a phase as it ends; `state` is a cli_trace. */
typedef struct cli_trace {
    int64_t n, k; /* columns of B and D; columns of A */
    int tile_rows, tile_depth, stage_count;
} cli_trace;
void cli_print_phase(void *state, const tg_trace_phase *phase);

/* Appends a phase as it ends; `state` is a cli_phase_list. */
typedef struct cli_phase_list {
    json_t *list; /* an array */
    int is_cut;   /* memory ran out for a phase */
} cli_phase_list;
void cli_keep_phase(void *state, const tg_trace_phase *phase);

/* A log of the requests of the first warp, the first few of each line, and of the threads of the
 * first block that write D. cli_keep_request is the `watch` of a simulation, with the log as its
 * state. Returns NULL when out of memory. */
typedef struct cli_request_log cli_request_log;
cli_request_log *cli_open_request_log(int64_t d_col_count);
void cli_close_request_log(cli_request_log *log);
void cli_keep_request(void *log, const tg_simulated_request *request);

void cli_print_requests(const cli_request_log *log);

/* Returns the requests as an array, or NULL if memory runs out. */
json_t *cli_make_requests_json(const cli_request_log *log);

/* Returns the rows of the first block's tile as an array. Each row is an array that has, for each
 * element, the number of the thread that wrote it, or -1 if no thread did. Returns NULL if memory
 * runs out. */
json_t *cli_make_owners_json(const cli_request_log *log);

/* Returns a simulation as a JSON object, with phases and requests if they are not NULL; the counts
 * have the keys of `explain`. NULL when out of memory. */
json_t *cli_make_simulation_json(const tg_simulation *simulation, int64_t m, int64_t n, int64_t k,
                                 const cli_phase_list *phases, const cli_request_log *log);

#endif /* TG_CLI_SIMULATE_H */
