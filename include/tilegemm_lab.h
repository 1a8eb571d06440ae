/*
 * tilegemm's instruments: the kernel table, the candidates of a plan, the model of the ladder on a
 * chip, problems as text, and a device's memory and clock.
 * Unlike tilegemm.h this page may change between versions.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_LAB_H
#define TILEGEMM_LAB_H

#include "tilegemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of the kernel table. Strings have static storage. */
typedef struct tg_kernel_info {
    const char *name;         /* "cpu_packed_avx512_fp32", ...: built from the row */
    const char *device;       /* "cpu", "cuda" */
    const char *family;       /* "sequential", "blocked", "packed", ... */
    const char *isa;          /* instruction set it needs */
    tg_type type;             /* of A and B */
    int tile_rows, tile_cols; /* register tile, on a GPU a block's; 1 x 1 where there is none */
    int ladder_rung;          /* 0.. for a kernel of the teaching ladder, -1 for the others */
    const char *idea;         /* what it does, one sentence */
    int is_available;         /* 1 if the context's device can run it */
} tg_kernel_info;

/* Rows of the table, whatever this machine can run. */
TG_API int tg_get_kernel_count(void);

/* Row `index` (0 .. count - 1) as `context` (NULL: the default) sees it.
 * Errors: INVALID_ARGUMENT, and those of the default context. */
TG_API tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info);

/* One kernel beside a problem: its prediction, or why it cannot run. */
typedef struct tg_candidate {
    const char *kernel;
    double predicted_s; /* seconds; 0 where it is not legal */
    int is_legal, is_chosen;
    char reason[160]; /* why it is not legal, or why it lost; "" for the chosen one */
    /* What its plan would do on a GPU; all 0 where it is not legal, and on the CPU. */
    int64_t block_count, k_part_count; /* parts that k is cut into */
    int threads_per_block;
    int64_t shared_bytes; /* of a block */
    double global_read_bytes,
        global_write_bytes; /* that all threads ask for, parts' sums with it */
    double issued_flops;    /* of whole tiles */
    double occupancy;       /* resident warps over the most there can be; 0 where not known */
} tg_candidate;

/* Fills up to `capacity` candidates for the problem, one a row of the table in table order, and
 * sets *count to how many there are. Where none is legal, none is chosen. Errors: the others of
 * tg_create_plan. */
TG_API tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                                    tg_candidate *candidates, int capacity, int *count);

/* A GPU as the model sees it; rates are what its clock gives at most. */
typedef struct tg_chip {
    char name[32];          /* "h200": what tg_find_chip takes */
    char title[64];         /* "H200 SXM" */
    int compute_capability; /* 10 major + minor: 90 */
    int sm_count, fp32_lanes_per_sm;
    int registers_per_sm, threads_per_sm, blocks_per_sm; /* at most resident */
    int64_t shared_bytes_per_sm, shared_bytes_per_block; /* the latter by opting in */
    int64_t l2_bytes, memory_bytes;
    double clock_hz, memory_bytes_per_s;
    /* Of FP64, and of tensor cores with dense operands, sums in FP32; 0 where unknown. */
    double fp64_flop_per_s, tf32_flop_per_s, fp16_flop_per_s;
} tg_chip;

/* Chips of the built-in table, docs/chips.md: row `index`, 0 .. count - 1, or the one called `name`
 * in any case. Errors: INVALID_ARGUMENT, UNKNOWN_NAME (the detail lists the names). */
TG_API int tg_get_chip_count(void);
TG_API tg_status tg_get_chip(int index, tg_chip *chip);
TG_API tg_status tg_find_chip(const char *name, tg_chip *chip);

/* tg_list_candidates for a GPU that need not be here: what a context on that chip would choose
 * among, with the library's images for it. Errors: INVALID_ARGUMENT (also a chip that lacks a
 * figure), and those of tg_list_candidates. */
TG_API tg_status tg_list_chip_candidates(const tg_chip *chip, const tg_problem *problem,
                                         tg_candidate *candidates, int capacity, int *count);

/* The GPU of a context as a chip, as its driver describes it: fp64_flop_per_s and the tensor cores'
 * rates are 0. Errors: INVALID_ARGUMENT, UNSUPPORTED (a CPU's context), the default context's. */
TG_API tg_status tg_describe_chip(const tg_context *context, tg_chip *chip);

/* What a kernel of the ladder does to multiply m x k by k x n, exact for every size. An access is
 * counted as the source writes it; a request is one access of a warp of which at least one lane is
 * active, and its sectors are the pieces of 32 bytes that the active lanes touch. A, B and D start
 * at multiples of 256 bytes. docs/model.md derives each count. */
typedef struct tg_traffic {
    int64_t grid_x, grid_y, block_count;
    int threads_per_block, tile_rows, tile_cols, tile_depth;
    /* Rows and columns of D in the last blocks, 0 where the tile divides; blocks cut by an edge. */
    int edge_row_count, edge_col_count;
    int64_t edge_block_count;
    /* Global memory: elements and bytes that all threads ask for, caches not considered. */
    int64_t global_read_elems, global_read_bytes, global_write_elems, global_write_bytes;
    int64_t global_load_requests, global_load_sectors;
    int64_t global_store_requests, global_store_sectors;
    int64_t block_read_elems; /* by a block inside D */
    /* Shared memory; a conflict is one turn more than the request needs at least. A barrier counts
     * once for a block. */
    int64_t shared_load_requests, shared_store_requests, bank_conflicts, barriers;
    /* The same as a GPU's counters see it: nvcc makes one read of four neighbouring words, and
     * copies in the background do not count. A turn is what a counter calls a wavefront. */
    int64_t counter_shared_loads, counter_shared_turns, counter_bank_conflicts;
    int64_t useful_flops, issued_flops; /* 2 m n k; twice the multiply-adds that threads execute */
    int64_t naive_read_elems;           /* 2 m n k: what rung 1 would read */
    int64_t reads_saved_elems;          /* naive_read_elems - global_read_elems */
    double flop_per_byte;               /* useful_flops / global_read_bytes */
    double reuse;                       /* naive_read_elems / global_read_elems */
} tg_traffic;

/* What the model expects of the same on a chip: an estimate, unlike the counts. */
typedef struct tg_prediction {
    int is_legal;     /* 1 if the chip can run it on these sizes */
    char reason[160]; /* why it is not legal */
    int registers_per_thread, warps_per_block;
    int64_t shared_bytes;          /* of a block */
    int resident_blocks;           /* on a multiprocessor; 0 where not even one fits */
    double occupancy;              /* resident warps over the most that there can be, 0..1 */
    const char *occupancy_limiter; /* "threads", "blocks", "registers", "shared memory" */
    double wave_count;             /* block_count over the blocks that run at once */
    double dram_read_bytes, dram_write_bytes; /* with an L2 of the chip's size */
    double peak_flop_per_s, ridge_flop_per_byte;
    const char *bound;   /* "memory" where flop_per_byte is below the ridge, else "compute" */
    const char *limiter; /* longest part: "launch", "l1", "shared", "fp32", "chain" or "dram" */
    double launch_s, l1_s, shared_s, fp32_s, chain_s, dram_s;
    double
        predicted_s;   /* launch + max(l1 + shared + fp32, chain, dram without the store of D), then
                         * that store */
    double peak_share; /* useful_flops / predicted_s / peak_flop_per_s */
} tg_prediction;

typedef struct tg_explanation {
    char kernel[64];
    const char *family; /* "edges"; static storage */
    int ladder_rung, is_in_table;
    tg_traffic traffic;
    tg_prediction prediction;
} tg_explanation;

/* Explains a kernel of the ladder of GPUs on a chip. `kernel` is a row of the kernel table, or a
 * family ("edges", "cuda_edges") with the side of its tile; tile = 0 is the row's own, a family's
 * first. Rungs 1 to 6 may have any tile of 1 .. 64, rung 7 8, 16, 32 or 64, rung 8 64 or 128,
 * whether the table has a row of it or not. m, n, k >= 1. Errors: INVALID_ARGUMENT, UNKNOWN_NAME,
 * UNSUPPORTED (a kernel outside that ladder, a tile that its family has not), SIZE_OVERFLOW (a
 * count over 63 bits). */
TG_API tg_status tg_explain_kernel(const tg_chip *chip, const char *kernel, int tile, int64_t m,
                                   int64_t n, int64_t k, tg_explanation *explanation);

/* The simulator: a kernel of the ladder, from its own source, on the processor, with every access
 * to memory counted and checked. docs/simulator.md says by what rules. */

/* What the simulator finds wrong with a kernel. */
typedef enum tg_finding_kind {
    TG_FINDING_RACE = 0,              /* two threads, one element, one writes, no barrier between */
    TG_FINDING_OUT_OF_BOUNDS = 1,     /* outside A, B, D and shared memory; ends the run */
    TG_FINDING_MISALIGNED = 2,        /* no multiple of the access's size; ends the run */
    TG_FINDING_NEVER_WRITTEN = 3,     /* a read of shared memory that the block has not written */
    TG_FINDING_UNFINISHED_COPY = 4,   /* a read of what a copy in the background may yet bring */
    TG_FINDING_DIVERGENT_BARRIER = 5, /* other threads wait elsewhere or have ended; ends the run */
    TG_FINDING_INPUT_WRITTEN = 6      /* a write to A or B; ends the run */
} tg_finding_kind;

/* The first of its kind at its line. */
typedef struct tg_finding {
    tg_finding_kind kind;
    const char *kind_name; /* "race", "out_of_bounds", ...; static storage */
    const char *file;      /* of the ladder, "l4_edges.cu"; static storage */
    int line, other_line;  /* other_line: of the other thread, 0 where there is none */
    int64_t count;         /* of its kind at its line */
    unsigned block_x, block_y, thread_x, thread_y;
    int has_other_thread;
    unsigned other_thread_x, other_thread_y;
    char place[96]; /* "A[4096], which has 4096 elements" */
    char text[400]; /* all of it in a sentence */
} tg_finding;

/* What one line of a source did. */
typedef struct tg_simulated_line {
    const char *file; /* static storage */
    int line;
    const char *source; /* text of the line, source_length bytes without an end; static storage */
    int source_length;
    int64_t global_load_requests, global_load_sectors, global_read_bytes;
    int64_t global_store_requests, global_store_sectors, global_write_bytes;
    int64_t shared_load_requests, shared_store_requests, bank_conflicts, barriers, flops, l2_hits;
} tg_simulated_line;

/* A walk through a block: what its threads did up to a barrier, or to the end. */
typedef struct tg_trace_access {
    unsigned thread_x, thread_y;
    int line;
    char space; /* 'A', 'B', 'D', or 'S' for shared memory */
    int is_write, elem_count;
    int64_t index; /* of the first element: row-major, or words from the start of shared memory */
} tg_trace_access;
typedef struct tg_trace_sum {
    unsigned thread_x, thread_y;
    float value; /* after the phase; a thread's sums in the order in which it first added to them */
} tg_trace_sum;
typedef struct tg_trace_phase {
    unsigned block_x, block_y;
    int phase;                       /* 0, 1, ... in the block */
    int barrier_line;                /* 0 where the block has ended */
    const tg_trace_access *accesses; /* thread by thread */
    int access_count;
    const tg_trace_sum *sums; /* those that the phase changed */
    int sum_count;
    const float *shared; /* as it is after the phase; NULL where there is none */
    int64_t shared_bytes;
} tg_trace_phase;
typedef void tg_simulation_trace(void *state, const tg_trace_phase *phase);

/* Lanes of a request that shared memory serves together, and its turns for them. */
typedef struct tg_bank_part {
    int first_lane, lane_count, turns;
} tg_bank_part;

/* One access of a warp, as it is counted. The warps of a block come one after another, and so do,
 * of a warp up to a barrier, the places in the source; the requests of a place are in order. */
typedef struct tg_simulated_request {
    unsigned block_x, block_y;
    int warp;           /* in the block: threads 32 warp .. */
    const char *file;   /* of the ladder; static storage */
    int line;           /* caller_line: of the call of the function that it stands in, */
    int caller_line;    /* 0 where the compiler has merged that function into its caller */
    const char *source; /* text of the line, as in tg_simulated_line */
    int source_length;
    char space; /* as in tg_trace_access */
    int is_write, is_in_background, elem_count;
    uint32_t active_lanes; /* bit i: lane i takes part */
    int64_t indices[32];   /* of each active lane's first element, as in tg_trace_access */
    int sector_count;      /* global memory */
    int part_count;        /* shared memory */
    tg_bank_part parts[4];
} tg_simulated_request;
typedef void tg_simulation_watch(void *state, const tg_simulated_request *request);

/* Called before each block; any value but 0 ends the run. */
typedef int tg_simulation_progress(void *state, int64_t done_count, int64_t block_count);

/* Zero or NULL in any field but kernel, a, b and d means its default. */
typedef struct tg_simulation_options {
    const char *kernel; /* as tg_explain_kernel takes it, but tiles of 1 .. 32 in rungs 1 to 6 */
    int tile;
    const float *a, *b; /* m x k and k x n, row-major without gaps; counts hold for this place */
    float *d;           /* m x n; holds the product where all blocks ran */
    int64_t l2_bytes;   /* of the cache that is modelled (default: 60 MiB, an H200's) */
    int64_t work_limit; /* multiply-adds up to which all blocks run, beyond it some (2^28) */
    tg_simulation_progress *progress;
    void *progress_state;
    tg_simulation_trace *trace;
    void *trace_state;
    tg_simulation_watch *watch; /* told of each request */
    void *watch_state;
} tg_simulation_options;

typedef struct tg_simulation {
    char kernel[64];
    const char *family; /* static storage */
    int ladder_rung, is_in_table, is_cancelled;
    /* 0: only simulated_block_count blocks ran, first, last, edges and middle, and counts are
     * scaled up from them. */
    int is_exact;
    int64_t simulated_block_count;
    tg_traffic traffic;                       /* the model's counts, counted */
    unsigned threads_x, threads_y;            /* of a block */
    int64_t shared_bytes;                     /* of a block */
    double load_efficiency, store_efficiency; /* global: bytes asked for over the sectors' bytes */
    /* -1 where is_exact is 0. L2 is asked for each sector of each request. */
    int64_t l2_bytes, l2_requests, l2_hits;
    int64_t compulsory_bytes;       /* of A, B and D that were touched, each byte once */
    const tg_simulated_line *lines; /* by file and line */
    int line_count;
    const tg_finding *findings;
    int finding_count;
} tg_simulation;

/* Runs the kernel for m, n, k >= 1. On success, findings or not, the caller passes *simulation to
 * tg_destroy_simulation (NULL is allowed). Errors: INVALID_ARGUMENT, UNKNOWN_NAME, UNSUPPORTED
 * (also a build without the simulator), OUT_OF_MEMORY; then *simulation is NULL. Simulations wait
 * for each other. */
TG_API tg_status tg_simulate_kernel(const tg_simulation_options *options, int64_t m, int64_t n,
                                    int64_t k, const tg_simulation **simulation);
TG_API void tg_destroy_simulation(const tg_simulation *simulation);

/* Problems as text: MxNxK, then what differs from the default, each after a colon:
 *     1000x1200x800                      FP32, row-major A, B and D
 *     512x512x64:nt:bf16:d=fp32          layout nn nt tn tt; input type; type of D
 *     8x8x8:fp8_e4m3:b=fp8_e5m2:d=bf16   type of B where it is another than A's
 *     8x8x8:fp8_e4m3:sa=vector:sb=tensor:sd=tensor   scales of A, B and D
 *     8x8x8:batch=4:alpha=2:beta=1:bias=col:act=gelu_erf:prec=ieee_fp32
 *     8x8x8:batch_invariant
 *     8x8x8:lda=10:ldb=12:ldc=9:ldd=9    leading dimensions in elements
 *     8x8x8:dcol                         D (and C) column-major
 *     8x8x8:rsa=1:csa=-8:bsa=64          any strides of a matrix (a, b, c, d)
 * A letter of the layout says how the operand is stored: nt has B as n x k, row-major. A batch
 * stride that is not given is 0 in a batch of one, else max(rows |row stride|, columns |column
 * stride|). C takes each stride of D that is not given for it, and is written only where beta is
 * not 0.
 *
 * tg_parse_problem fills *problem with NULL data. Errors: INVALID_ARGUMENT, which names the
 * part, and OUT_OF_MEMORY. tg_format_problem writes the shortest such text, with its NUL, into
 * `text`; 640 bytes always suffice. Errors: INVALID_ARGUMENT where `text_bytes` is too small or
 * the problem is not legal, and the others of tg_create_plan. */
TG_API tg_status tg_parse_problem(const char *text, tg_problem *problem);
TG_API tg_status tg_format_problem(const tg_problem *problem, char *text, size_t text_bytes);

/* Measures the peak of `thread_count` CPU threads with a loop of independent FMAs on registers, in
 * the context's (NULL: the default's) best instruction set for `type` (BF16 counts its dot-product
 * instruction where there is one; FP16 is computed as FP32). On a GPU the whole device is measured,
 * for FP32 and FP64, and `thread_count` is any of 1..1024. Takes about 50 ms. *flop_per_s counts
 * multiply and add as two. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, UNSUPPORTED, DEVICE_FAILURE. */
TG_API tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s);

/* Devices that a context can be made for: `device` is "cpu" (1) or "cuda" (cuda:0 .. count - 1).
 * Errors: NO_DEVICE, with why there is none, UNKNOWN_NAME, INVALID_ARGUMENT, DEVICE_FAILURE; then
 * *count is 0. */
TG_API tg_status tg_count_devices(const char *device, int *count);

/* Memory of the context's device (NULL: the default context's), aligned to 256 bytes on a GPU, to
 * 64 on the CPU. The caller passes *memory to tg_release_memory (NULL is allowed) while the context
 * lives. Errors: OUT_OF_MEMORY, INVALID_ARGUMENT, DEVICE_FAILURE; then *memory is NULL. */
TG_API tg_status tg_allocate_memory(const tg_context *context, int64_t size_bytes, void **memory);
TG_API void tg_release_memory(const tg_context *context, void *memory);

/* Copies between ordinary memory and the device's, by way of pinned blocks, after the work of the
 * default stream; complete on return. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, DEVICE_FAILURE. */
TG_API tg_status tg_copy_to_device(const tg_context *context, void *device, const void *host,
                                   int64_t size_bytes);
TG_API tg_status tg_copy_from_device(const tg_context *context, void *host, const void *device,
                                     int64_t size_bytes);

/* Waits until the work of the stream (NULL: the default one) is done. Errors: DEVICE_FAILURE, which
 * may stem from any call before it. */
TG_API tg_status tg_synchronize(const tg_context *context, void *stream);

/* Makes the device's primary context current on the calling thread, for CUDA libraries that are
 * called beside this one. Nothing happens on the CPU. Errors: DEVICE_FAILURE. */
TG_API tg_status tg_activate_device(const tg_context *context);

/* Calls `call` `count` times (index 0 .. count - 1) and sets *elapsed_s to the seconds that their
 * work took on the stream: between two events on a GPU, by the clock on the CPU. Any status but OK
 * ends the calls and is returned. Errors: INVALID_ARGUMENT, DEVICE_FAILURE, those of `call`. */
typedef tg_status tg_timed_call(void *state, int64_t index);
TG_API tg_status tg_time_calls(const tg_context *context, tg_timed_call *call, void *state,
                               int64_t count, void *stream, double *elapsed_s);

/* FP32 from the bits of a type of 16 or 8 and back, round to nearest even, NaN stays NaN, FP8
 * saturates: for filling and reading matrices. `type` is a 16-bit or an FP8 type; the latter has
 * the low 8 bits. */
TG_API float tg_decode_bits(tg_type type, uint16_t bits);
TG_API uint16_t tg_encode_bits(tg_type type, float value);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_LAB_H */
