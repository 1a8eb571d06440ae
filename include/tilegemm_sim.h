/*
 * tilegemm's simulator: runs a kernel of the ladder on the CPU, from the kernel's own source, and
 * counts and checks every memory access. docs/simulator.md has the rules.
 *
 * Like tilegemm_lab.h, this header may change between versions. A program must load the library of
 * the version that it was compiled with.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_SIM_H
#define TILEGEMM_SIM_H

#include "tilegemm_lab.h"

#ifdef __cplusplus
extern "C" {
#endif

/* The kinds of faults that the simulator finds in a kernel. */
typedef enum tg_finding_kind {
    TG_FINDING_RACE = 0,            /* two threads access an element, one writes, no barrier */
    TG_FINDING_OUT_OF_BOUNDS = 1,   /* an access outside A, B, D and shared memory; ends the run */
    TG_FINDING_MISALIGNED = 2,      /* not a multiple of the access's size; ends the run */
    TG_FINDING_NEVER_WRITTEN = 3,   /* a read of shared memory that the block has not written */
    TG_FINDING_UNFINISHED_COPY = 4, /* a read of data that a cp.async may still write */
    TG_FINDING_DIVERGENT_BARRIER = 5, /* other threads wait elsewhere or have ended; ends the run */
    TG_FINDING_INPUT_WRITTEN = 6      /* a write to A or B; ends the run */
} tg_finding_kind;

/* A finding stands for all findings of its kind at its line. Its members describe the first one. */
typedef struct tg_finding {
    tg_finding_kind kind;
    const char *kind_name; /* "race", "out_of_bounds", ...; static storage */
    const char *file;      /* source of the ladder, "l4_edges.cu"; static storage */
    int line, other_line;  /* other_line: line of the other thread, 0 if there is none */
    int64_t count;         /* findings of its kind at its line */
    unsigned block_x, block_y, thread_x, thread_y;
    int has_other_thread;
    unsigned other_thread_x, other_thread_y;
    char place[96]; /* "A[4096], which has 4096 elements" */
    char text[400]; /* the finding as a sentence */
} tg_finding;

/* The counts of one line of a source. */
typedef struct tg_simulated_line {
    const char *file; /* static storage */
    int line;
    const char *source; /* text of the line, source_length bytes without an end; static storage */
    int source_length;
    int64_t global_load_requests, global_load_sectors, global_read_bytes;
    int64_t global_store_requests, global_store_sectors, global_write_bytes;
    int64_t shared_load_requests, shared_store_requests, bank_conflicts, barriers, flops, l2_hits;
} tg_simulated_line;

/* A trace walks through a block in phases, each up to a barrier or to the end. */

/* One access of a thread in a phase. */
typedef struct tg_trace_access {
    unsigned thread_x, thread_y;
    int line;
    char space; /* 'A', 'B', 'D', 'S' for shared memory; see tg_simulate_attention */
    int is_write, elem_count;
    int64_t index; /* first element: row-major, or words from the start of shared memory */
} tg_trace_access;

/* A sum that a thread holds in a register. */
typedef struct tg_trace_sum {
    unsigned thread_x, thread_y;
    float value; /* after the phase; a thread's sums in the order in which it first added to them */
} tg_trace_sum;

/* The accesses and sums of the threads of a block in a phase. */
typedef struct tg_trace_phase {
    unsigned block_x, block_y;
    int phase;                       /* 0, 1, ... in the block */
    int barrier_line;                /* 0 if the block has ended */
    const tg_trace_access *accesses; /* thread by thread */
    int access_count;
    const tg_trace_sum *sums; /* sums that the phase changed */
    int sum_count;
    const void *shared; /* shared memory after the phase; NULL if it has none */
    int64_t shared_bytes;
    tg_type type; /* type of A, B, D and of the elements of shared memory */
} tg_trace_phase;

/* The simulator calls this function at the end of each phase. The memory of *phase is valid during
 * the call. */
typedef void tg_simulation_trace(void *state, const tg_trace_phase *phase);

/* A group of lanes of a request that shared memory serves together, and the turns that this
 * takes. */
typedef struct tg_lane_group {
    int first_lane, lane_count, turns;
} tg_lane_group;

/* One access of a warp, as it is counted. Requests come warp by warp of a block. Up to a barrier,
 * the requests of a warp are sorted by their places in the source, and those of one place by
 * time. */
typedef struct tg_simulated_request {
    unsigned block_x, block_y;
    int warp;           /* warp of the block: threads 32 warp .. */
    const char *file;   /* source of the ladder; static storage */
    int line;           /* line of the access */
    int caller_line;    /* line that calls the function of the access; 0 where the compiler has
                           merged that function into its caller */
    const char *source; /* text of the line, as in tg_simulated_line */
    int source_length;
    char space; /* see tg_trace_access */
    int is_write, is_in_background;
    int elem_count, elem_bytes; /* a lane's; elements of shared memory are words */
    uint32_t active_lanes;      /* bit i: lane i takes part */
    int64_t indices[32];        /* first element of each active lane, as in tg_trace_access */
    int sector_count;           /* sectors of 32 bytes, in global memory */
    int group_count;            /* entries of `groups`, in shared memory */
    tg_lane_group groups[4];
} tg_simulated_request;

/* The simulator calls this function for each request. *request is valid during the call. */
typedef void tg_simulation_watch(void *state, const tg_simulated_request *request);

/* The simulator calls this function before each block. A return value other than 0 ends the run. */
typedef int tg_simulation_progress(void *state, int64_t done_count, int64_t block_count);

/* In all members but kernel, a, b and d, zero or NULL means the default. */
typedef struct tg_simulation_options {
    const char *kernel; /* takes tg_explain_kernel's names, but tiles of 1 .. 32 in rungs 1 to 6 */
    int tile;
    /* m x k and k x n elements of the kernel's type, row-major without gaps; counts hold for this
     * place */
    const void *a, *b;
    void *d;          /* m x n; holds the product if all blocks ran */
    int64_t l2_bytes; /* size of the L2 cache that is modelled (default: 60 MiB, an H200's) */
    /* All blocks run up to this number of multiply-adds, including those beyond D's edges. Above it
     * only some blocks run (default: 2^28). */
    int64_t work_limit;
    /* The number of a barrier to disable, from 1 on in the order of the kernel. The findings then
     * show its purpose (default: none). */
    int without_barrier;
    tg_simulation_progress *progress;
    void *progress_state;
    tg_simulation_trace *trace;
    void *trace_state;
    tg_simulation_watch *watch;
    void *watch_state;
} tg_simulation_options;

/* The results of a simulation. They and all that they point to are valid until
 * tg_destroy_simulation. */
typedef struct tg_simulation {
    char kernel[64];
    const char *family; /* static storage */
    int ladder_rung, is_in_table, is_cancelled;
    /* is_exact is 1 if all blocks ran. Otherwise simulated_block_count blocks ran (first, last,
     * edges and middle), and their counts are scaled up. */
    int is_exact;
    int64_t simulated_block_count;
    tg_traffic traffic;                       /* the model's counts, as the run counted them */
    unsigned threads_x, threads_y;            /* threads of a block */
    int64_t shared_bytes;                     /* bytes of a block */
    double load_efficiency, store_efficiency; /* global: requested bytes over the sectors' bytes */
    /* The L2 serves each sector of each request once. All three are -1 if is_exact is 0. */
    int64_t l2_bytes, l2_requests, l2_hits;
    int64_t compulsory_bytes;       /* bytes of A, B and D that were touched, each once */
    const tg_simulated_line *lines; /* sorted by file and line */
    int line_count;
    const tg_finding *findings;
    int finding_count;
} tg_simulation;

/* Runs the kernel for m, n, k >= 1. On success, findings or not, the caller passes *simulation to
 * tg_destroy_simulation (NULL is allowed). Errors: INVALID_ARGUMENT, UNKNOWN_NAME, UNSUPPORTED
 * (also a build without the simulator), OUT_OF_MEMORY; then *simulation is NULL, and D is
 * undefined. Simulations wait for each other. */
TG_API tg_status tg_simulate_kernel(const tg_simulation_options *options, int64_t m, int64_t n,
                                    int64_t k, const tg_simulation **simulation);

/* Runs a rung of attention, which options->kernel names as for tg_explain_attention, on the data of
 * `attention`: host pointers, Q, K and V at multiples of 16 bytes. The options' tile, a, b and d
 * are not read. All blocks run. In traces and requests Q, K, V and D have those letters; the scores
 * of attention_naive, which are the simulator's own, are W. Errors: those of tg_simulate_kernel
 * (UNSUPPORTED also above work_limit multiply-adds) and of tg_explain_attention. */
TG_API tg_status tg_simulate_attention(const tg_simulation_options *options,
                                       const tg_attention *attention,
                                       const tg_simulation **simulation);
TG_API void tg_destroy_simulation(const tg_simulation *simulation);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_SIM_H */
