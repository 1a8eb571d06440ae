/* Declares the types and functions that the files of `tilegemm simulate` share. */
#ifndef TG_CLI_SIMULATE_H
#define TG_CLI_SIMULATE_H

#include "cli.h"
#include "insight/explain.h"
#include "tilegemm_sim.h"

#include <jansson.h>

/* Prints the counts of a kernel for a problem (`sizes` is its text), the kernel's lines if
 * has_lines is set, and the findings. */
void cli_print_simulation(const tg_simulation *simulation, const char *sizes, int has_lines);

/* Runs the rungs of attention that the query names on the attention of its text. Returns a
 * cli_exit. */
int cli_simulate_attention(const cli_query *query, int has_lines, int without_barrier);

/* Gives Q, K, V and D of an attention without gaps memory with small numbers. Returns 0 after an
 * error line. The caller always frees them with cli_free_attention_tensors. */
int cli_make_attention_tensors(tg_attention *attention);
void cli_free_attention_tensors(tg_attention *attention);

/* The operands A (m x k), B (k x n) and D (m x n), with a gap behind each that no kernel may
 * touch. */
typedef struct simulated_operands {
    void *memory[3]; /* owned; A, B, D */
} simulated_operands;

/* Allocates operands of the type (FP32 or 16 bits) and fills A and B; with has_trace each number
 * shows its place. Returns 0 after an error line. The caller always frees them with
 * cli_free_simulated_operands. */
int cli_make_simulated_operands(tg_type type, int64_t m, int64_t n, int64_t k, int has_trace,
                                simulated_operands *operands);

/* Makes operands of the type of a GPU kernel, named by its row or its family. Returns 0 after an
 * error line. */
int cli_make_kernel_operands(const char *kernel, int64_t m, int64_t n, int64_t k, int has_trace,
                             simulated_operands *operands);
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

/* The part of k that a simulation runs. Counts grow by the same amount with each unit of k. */
typedef struct cli_depth {
    int64_t whole_k;
    int64_t k;      /* all of k, or less if the blocks would take too long */
    int64_t less_k; /* a shorter part; the difference in counts gives the growth */
    int64_t unit;   /* k is shortened by a multiple of this: whole steps and sectors */
} cli_depth;

/* Multiply-adds up to which all blocks of a sampled simulation run. */
enum { CLI_SAMPLE_WORK = 1 << 20 };

cli_depth cli_cut_depth(const tg_traffic *traffic, int64_t whole_k);

/* Sets *whole to the counts of the whole k, from those of depth->k and depth->less_k. */
void cli_extend_counts(const cli_depth *depth, const tg_traffic *part, const tg_traffic *less,
                       tg_traffic *whole);

/* The counts of one kernel and its predicted times; 0 where it is not legal. */
typedef struct simulated_row {
    char kernel[64];
    tg_traffic traffic;
    double predicted_s[CLI_GPU_MOST];
} simulated_row;

/* Kernels of the ladder and the chips that they are predicted for. */
typedef struct cli_simulated_table {
    explain_case chips[CLI_GPU_MOST];
    int chip_count, tile; /* tile 0: those of the rows */
    simulated_row rows[LADDER_CAPACITY];
    int row_count, has_samples;
} cli_simulated_table;

void cli_keep_simulated_row(cli_simulated_table *table, const tg_simulation *simulation);
void cli_print_simulated_table(const cli_simulated_table *table);

/* Returns the predicted time on each chip, by its name; null where the kernel is not legal. NULL
 * when out of memory. */
json_t *cli_make_times_json(const cli_simulated_table *table, const tg_simulation *simulation);

#endif /* TG_CLI_SIMULATE_H */
