/* Runs a kernel in the simulator, and declares the types that its files share. */
#ifndef TGI_SIM_H
#define TGI_SIM_H

#include "core/kernels.h"
#include "tilegemm_sim.h"
#include "sim/fiber.h"
#include "sim/sites.h"

#define TGI_SIM_BLOCK_THREADS 1024 /* most threads of a block */
#define TGI_SIM_FRAMES 16          /* nested calls in a kernel, at most */
#define TGI_SIM_BARRIERS 16        /* barriers that are told apart */
#define TGI_SIM_FINDINGS 32        /* kept; each stands for all of its kind at its line */

/* A, B and D are arrays of elements of the row's type. */
typedef void tgi_sim_function(const void *a, const void *b, void *d, int m, int n, int k);

/* The body of a kernel with one argument, which is at `args`. */
typedef void tgi_sim_body(const void *args);

/* A kernel that the simulator can run: a rung of the ladder, or a row of mma_rows.h. */
typedef struct tgi_sim_kernel {
    tgi_kernel row;
    int is_in_table;            /* 0: a small tile that the simulator alone has */
    tgi_sim_function *function; /* NULL for production kernels */
    tgi_sim_body *body;         /* NULL for rungs */
} tgi_sim_kernel;

/* Returns the rungs of kernels.def, the small tiles, then production kernels; NULL after the
 * last. */
const tgi_sim_kernel *tgi_sim_get_kernel(int index);

/* Returns a production kernel by its number from 0 on; NULL after the last (sim_production.c). */
const tgi_sim_kernel *tgi_sim_get_production(int index);

/* Returns the body of a function of a production kernel, or of a pass that goes before or behind
 * it; NULL if the simulator has none. */
tgi_sim_body *tgi_sim_find_body(const char *symbol);

/* A block to run. It stands for `weight` blocks with the same counts. */
typedef struct tgi_sim_block {
    unsigned x, y;
    int64_t weight;
} tgi_sim_block;

/* The counts of one call in the source over all threads. */
typedef struct tgi_sim_counts {
    int64_t global_load_requests, global_load_sectors, global_read_elems, global_read_bytes;
    int64_t global_store_requests, global_store_sectors, global_write_elems, global_write_bytes;
    int64_t shared_load_requests, shared_store_requests, bank_conflicts;
    int64_t counter_shared_loads, counter_shared_turns, counter_bank_conflicts;
    int64_t barriers, flops, l2_hits;
} tgi_sim_counts;

typedef struct tgi_sim_finding {
    tg_finding_kind kind;
    unsigned block_x, block_y;
    int thread, other_thread; /* index in the block; other_thread is -1 if there is none */
    int site, other_site;     /* other_site is -1 if there is none */
    char place[96];           /* "A[4096], 16 elements past its end" */
    int64_t count;
} tgi_sim_finding;

/* Global memory that a kernel may access. */
typedef struct tgi_sim_operand {
    char name; /* as tg_trace_access has it; 'W' is the workspace */
    int elem_bytes, is_output;
    tgi_sim_range range;
} tgi_sim_operand;
enum { TGI_SIM_OPERANDS_MAX = 9 };

/* One launch of a kernel. */
typedef struct tgi_sim_launch {
    tgi_sim_function *function;
    const void *a, *b;
    void *d;
    tg_type type; /* type of A and B */
    int m, n, k;
    tgi_sim_body *body; /* NULL: `function` runs; else this, with args, and a, b, d do not count */
    const void *args;   /* args_bytes bytes, constant memory of a GPU */
    size_t args_bytes;
    int64_t shared_bytes; /* shared memory of `body`; 0: what its variable has */
    tgi_sim_operand operands[TGI_SIM_OPERANDS_MAX];
    int operand_count; /* 0: a, b and d are the operands */
    unsigned grid[2], block[2];
    int has_aligned_rows; /* rows of the tiles start at multiples of 16 bytes, as nvcc knows */
    const tgi_sim_block *blocks;      /* NULL: all of the grid */
    int64_t block_count;              /* length of `blocks` */
    tg_simulation_progress *progress; /* may be NULL */
    void *progress_state;
    tg_simulation_trace *trace; /* may be NULL */
    void *trace_state;
    tg_simulation_watch *watch; /* may be NULL; called only if counts are kept */
    void *watch_state;
    int64_t l2_bytes;    /* 0: no L2 */
    int without_barrier; /* number of the barrier at which no thread waits; 0: none */
} tgi_sim_launch;

/* Fills grid, block and type for a product whose D is m x n. */
void tgi_sim_set_grid(const tgi_kernel *row, int64_t m, int64_t n, tgi_sim_launch *launch);

/* The results of a launch. */
typedef struct tgi_sim_record {
    tgi_sim_counts *counts; /* one a site; the caller's, zeroed; NULL: do not count */
    int64_t shared_bytes, compulsory_bytes, l2_requests, l2_hits;
    tgi_sim_finding findings[TGI_SIM_FINDINGS];
    int finding_count;
    int barrier_count; /* barriers of the source that a thread came to, TGI_SIM_BARRIERS at most */
    int is_cancelled;  /* the progress function ended the run */
} tgi_sim_record;

/* Runs the blocks one after another. Threads may call it at the same time and then wait for each
 * other. Findings are no error here. Errors: OUT_OF_MEMORY. */
tg_status tgi_sim_run(const tgi_sim_launch *launch, tgi_sim_record *record);

/* Writes one sentence for a finding. */
void tgi_sim_describe(const tgi_sim_finding *finding, const char *kernel, const unsigned block[2],
                      char *text, size_t text_bytes);

#endif
