/*
 * tilegemm's instruments: the kernel table, the candidates of a plan, chips, the model of the
 * ladder on a chip, peak rates and timing. The simulator has its own page, tilegemm_sim.h.
 *
 * Unlike tilegemm.h this page may change between versions, and its structs do not carry their size:
 * a program that uses it loads the library of the same version.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_LAB_H
#define TILEGEMM_LAB_H

#include "tilegemm_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One row of the kernel table. Strings have static storage. */
typedef struct tg_kernel_info {
    const char *name;         /* "cpu_packed_avx512_fp32", ...: built from the row */
    const char *device;       /* "cpu", "cuda" */
    const char *family;       /* "sequential", "blocked", "packed", ... */
    const char *isa;          /* instruction set that it needs */
    tg_type type;             /* type of A and B */
    int tile_rows, tile_cols; /* register tile, on a GPU a block's; 1 x 1 where there is none */
    int ladder_rung;          /* 0.. for a kernel of the teaching ladder, -1 for the others */
    const char *idea;         /* one sentence about the kernel */
    int is_available;         /* 1 if the context's device can run it */
} tg_kernel_info;

/* Returns the number of rows of the table, whatever this machine can run. */
TG_API int tg_get_kernel_count(void);

/* Fills *info with row `index` (0 .. count - 1) as `context` (NULL: the default) sees it. Errors:
 * INVALID_ARGUMENT, and those of the default context. */
TG_API tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info);

/* Do the same for the rungs of attention, which the simulator alone runs: their device is "sim",
 * the tile is the queries of a block and the largest head, ladder_rung counts from 1. */
TG_API int tg_get_attention_rung_count(void);
TG_API tg_status tg_get_attention_rung(const tg_context *context, int index, tg_kernel_info *info);

/* The reasons why a row does not run a problem. A later value means that the row came nearer to
 * taking it. */
typedef enum tg_refusal {
    TG_REFUSAL_NONE,               /* nothing is against the row */
    TG_REFUSAL_OTHER_DEVICE,       /* the row runs on another device */
    TG_REFUSAL_OTHER_TYPE,         /* the row multiplies another element type */
    TG_REFUSAL_NO_CODE,            /* the library has no code that launches the row */
    TG_REFUSAL_OTHER_ARCHITECTURE, /* the device lacks the row's instruction set */
    TG_REFUSAL_THREADS,            /* a block has more threads than the limit */
    TG_REFUSAL_SHARED_MEMORY,
    TG_REFUSAL_RESIDENT_THREADS, /* a block has more threads than a multiprocessor */
    TG_REFUSAL_RESIDENT_REGISTERS,
    TG_REFUSAL_RESIDENT_SHARED_MEMORY,
    TG_REFUSAL_EPILOGUE, /* alpha, beta, C, bias, activation or scales */
    TG_REFUSAL_BATCH,
    TG_REFUSAL_PRECISION,
    TG_REFUSAL_BATCH_INVARIANT,
    TG_REFUSAL_LAYOUT,          /* strides of an operand */
    TG_REFUSAL_ALREADY_ALIGNED, /* the row serves only unaligned operands */
    TG_REFUSAL_SHAPE,           /* the row does not serve this m, n or k */
    TG_REFUSAL_TOO_LARGE,       /* a size or the grid is above what the row counts to */
    TG_REFUSAL_WORKSPACE,
    TG_REFUSAL_SLOWER,    /* the row is legal; another is predicted to take less time */
    TG_REFUSAL_NO_PRODUCT /* the row is legal; no kernel runs, as no product is formed */
} tg_refusal;

/* Return the name that JSON carries, "other_device", and one sentence, in static storage, or NULL
 * for a value that is no refusal. */
TG_API const char *tg_get_refusal_name(tg_refusal refusal);
TG_API const char *tg_get_refusal_text(tg_refusal refusal);

#define TG_REASON_BYTES 160 /* length of a sentence, with its NUL */

/* One kernel for a problem: its prediction, or why it cannot run. */
typedef struct tg_candidate {
    const char *kernel;
    double predicted_s; /* seconds; 0 if it is not legal */
    int is_legal, is_chosen;
    tg_refusal refusal;           /* why it is not legal, or why it lost */
    char reason[TG_REASON_BYTES]; /* reason with its values; "" for the chosen one */
    /* The members from here on describe the plan on a GPU. All are 0 if the kernel is not legal,
     * and on the CPU. */
    int64_t block_count, k_part_count; /* blocks, and split-K parts of a tile */
    int threads_per_block;
    int64_t shared_bytes; /* bytes of a block */
    double global_read_bytes,
        global_write_bytes; /* bytes that threads ask for, partial sums included */
    double issued_flops;    /* counts whole tiles */
    double occupancy;       /* resident warps over the most there can be; 0 if not known */
} tg_candidate;

/* Fills up to `capacity` candidates for the problem, one for each row of the table in its order,
 * and sets *count to their number. If none is legal, none is chosen, and tg_get_error_detail tells
 * why, with a line for the families of each reason. Errors: the others of tg_create_plan. */
TG_API tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                                    tg_candidate *candidates, int capacity, int *count);

/* A GPU as the model sees it. Rates are the highest at its clock. The functions that take a chip
 * refuse a figure out of its range, and the error names it (docs/chips.md lists all). */
typedef struct tg_chip {
    char name[32];          /* name for tg_find_chip, "h200" */
    char title[64];         /* "H200 SXM" */
    int compute_capability; /* 10 major + minor: 90 */
    int sm_count, fp32_lanes_per_sm;
    int registers_per_sm, threads_per_sm, blocks_per_sm; /* most that are resident */
    int64_t shared_bytes_per_sm, shared_bytes_per_block; /* a block has to opt in */
    int64_t l2_bytes, memory_bytes;
    double clock_hz, memory_bytes_per_s;
    /* Rates of FP64, and of tensor cores with dense operands and sums in FP32; 0 where unknown. */
    double fp64_flop_per_s, tf32_flop_per_s, fp16_flop_per_s;
} tg_chip;

/* Count and copy the chips of the built-in table, docs/chips.md: row `index`, 0 .. count - 1, or
 * the one called `name` in any case. Errors: INVALID_ARGUMENT, UNKNOWN_NAME (the detail lists the
 * names). */
TG_API int tg_get_chip_count(void);
TG_API tg_status tg_get_chip(int index, tg_chip *chip);
TG_API tg_status tg_find_chip(const char *name, tg_chip *chip);

/* Lists the candidates on a chip that need not be present: those among which a context on it would
 * choose, with the library's images for it. Otherwise it does as tg_list_candidates. Errors:
 * INVALID_ARGUMENT (also a chip with a figure out of its range), and those of
 * tg_list_candidates. */
TG_API tg_status tg_list_chip_candidates(const tg_chip *chip, const tg_problem *problem,
                                         tg_candidate *candidates, int capacity, int *count);

/* Fills *chip with the GPU of a context, as its driver describes it: fp64_flop_per_s and the
 * tensor cores' rates are 0. Errors: INVALID_ARGUMENT, UNSUPPORTED (a CPU's context), the default
 * context's. */
TG_API tg_status tg_describe_chip(const tg_context *context, tg_chip *chip);

/* The work of a ladder kernel that multiplies m x k by k x n. The counts are exact for every size.
 * An access is counted as the source writes it. A request is one access of a warp of which at least
 * one lane is active, and its sectors are the aligned units of 32 bytes that the active lanes
 * touch. A, B and D start at multiples of 256 bytes. docs/model.md derives each count. */
typedef struct tg_traffic {
    int64_t grid_x, grid_y, block_count;
    int threads_per_block, tile_rows, tile_cols, tile_depth;
    /* Rows and columns of D in the last blocks; 0 if the tile divides D. */
    int edge_row_count, edge_col_count;
    int64_t edge_block_count; /* blocks that an edge of D cuts */
    /* Global memory: elements and bytes that all threads ask for, caches not considered. */
    int64_t global_read_elems, global_read_bytes, global_write_elems, global_write_bytes;
    int64_t global_load_requests, global_load_sectors;
    int64_t global_store_requests, global_store_sectors;
    int64_t block_read_elems; /* elements that a block inside D reads */
    /* Shared memory. A conflict is a turn beyond the fewest that the request needs. A barrier
     * counts once for a block. */
    int64_t shared_load_requests, shared_store_requests, bank_conflicts, barriers;
    /* Shared memory as a GPU's counters see it: nvcc makes one read of four neighbouring words, and
     * copies in the background do not count. A turn is what a counter calls a wavefront. */
    int64_t counter_shared_loads, counter_shared_turns, counter_bank_conflicts;
    int64_t useful_flops, issued_flops; /* 2 m n k; twice the multiply-adds that threads execute */
    int64_t naive_read_elems;           /* 2 m n k: what rung 1 would read */
    int64_t reads_saved_elems;          /* naive_read_elems - global_read_elems */
    double flop_per_byte;               /* useful_flops / global_read_bytes */
    double reuse;                       /* naive_read_elems / global_read_elems */
} tg_traffic;

/* The model's estimate of a kernel on a chip. Unlike the counts, it is not exact. */
typedef struct tg_prediction {
    int is_legal;                 /* 1 if the chip can run it on these sizes */
    tg_refusal refusal;           /* why it is not legal */
    char reason[TG_REASON_BYTES]; /* reason with its values; "" if legal */
    int registers_per_thread, warps_per_block;
    int64_t shared_bytes;          /* bytes of a block */
    int resident_blocks;           /* on a multiprocessor; 0 if not even one fits */
    double occupancy;              /* resident warps over the most that there can be, 0..1 */
    const char *occupancy_limiter; /* "threads", "blocks", "registers", "shared memory" */
    double wave_count;             /* block_count over the blocks that run at once */
    double dram_read_bytes, dram_write_bytes; /* with an L2 of the chip's size */
    double peak_flop_per_s, ridge_flop_per_byte;
    const char *bound; /* "memory" if flop_per_byte is below the ridge, else "compute" */
    /* The longest part: "launch", "l1", "shared", "fp32" or, on tensor cores, "tensor", "chain" or
     * "dram". */
    const char *limiter;
    double launch_s, l1_s, shared_s, multiply_s, chain_s, dram_s;
    double predicted_s; /* launch + max(l1 + shared + multiply, chain, dram without the store of D),
                         * then that store */
    double peak_share;  /* useful_flops / predicted_s / peak_flop_per_s */
} tg_prediction;

typedef struct tg_explanation {
    char kernel[64];
    const char *family; /* "edges"; static storage */
    tg_type type;       /* type of A, B and D */
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

/* Explains a rung of attention on a chip: attention_naive, attention_tiled, attention_mma, or a row
 * of these families with its type and largest head. It takes tensors without gaps and a causal mask
 * or none; data are ignored. In the counts tile_rows are the queries of a block, tile_cols the
 * largest head, tile_depth the keys of a step; naive_read_elems is what attention_naive reads;
 * useful_flops counts the pairs that the mask lets through. Times are those of a roofline. Errors:
 * INVALID_ARGUMENT, UNKNOWN_NAME, UNSUPPORTED (an attention that the rung does not take), and those
 * of tg_create_attention_plan. */
TG_API tg_status tg_explain_attention(const tg_chip *chip, const char *kernel,
                                      const tg_attention *attention, tg_explanation *explanation);

/* Measures the peak of `thread_count` CPU threads with a loop of independent FMAs on registers, in
 * the context's (NULL: the default's) best instruction set for `type` (BF16 counts its dot-product
 * instruction where there is one; FP16 is computed as FP32). On a GPU the whole device is measured,
 * for FP32 and FP64, and `thread_count` is any of 1..1024. Takes about 50 ms. *flop_per_s counts
 * multiply and add as two. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY, UNSUPPORTED, DEVICE_FAILURE. */
TG_API tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s);

/* Calls `call` `count` times (index 0 .. count - 1) and sets *elapsed_s to the seconds that their
 * work took on the stream: between two events on a GPU, by the clock on the CPU. Any status but OK
 * ends the calls and is returned. Errors: INVALID_ARGUMENT, DEVICE_FAILURE, those of `call`. */
typedef tg_status tg_timed_call(void *state, int64_t index);
TG_API tg_status tg_time_calls(const tg_context *context, tg_timed_call *call, void *state,
                               int64_t count, void *stream, double *elapsed_s);

/* Launches each kernel of a plan of a GPU `count` times by the driver alone, with the arguments of
 * a call on `buffers`, and sets *elapsed_s to the seconds that this takes the calling thread. The
 * time of tg_execute_plan beyond that is the library's own. It waits for nothing, so `count` should
 * be less than what a stream holds, some hundred launches. D is the result of the last launch.
 * Errors: those of tg_execute_plan, INVALID_ARGUMENT (count < 1), UNSUPPORTED (no GPU). */
TG_API tg_status tg_time_bare_launch(const tg_plan *plan, const tg_buffers *buffers, int64_t count,
                                     double *elapsed_s);

/* Limits of the panels of a product. */
typedef struct tg_panel_limits {
    int64_t memory_bytes; /* for the elements of A, B, C and D at once; 0: no limit */
    double flop_count;    /* a panel takes about as many at most; 0: no limit */
    int buffer_count;     /* 1; 2: the next panel's operands lie beside those in use, and panels
                             are small enough for copies that run beside products */
} tg_panel_limits;

/* A product cut into panels of D, where memory does not hold it at once. A panel has rows and
 * columns of one batch entry and all of k, or several whole entries. Of an entry that is cut,
 * panels of one operand are held while those of the other stream past them. */
typedef struct tg_panels {
    int64_t batch_count, row_count, col_count; /* sizes of a panel; the last ones may be smaller */
    int64_t row_panel_count, col_panel_count;  /* panels of a batch entry */
    int64_t panel_count;                       /* panels in all; 0 if D is empty */
    int is_b_held;                             /* 1: columns of op(B); 0: rows of op(A) */
    /* Panels that are there at once: of the operand that is held, of the one that streams, which
     * may be all of it, and of D and C. */
    int64_t held_count, stream_count, d_count;
    double memory_bytes; /* the panels in use take as many at most */
    /* Bytes of A, B and C, and of D, in all panels. A matrix that serves a batch counts for each of
     * its entries. */
    double read_bytes, written_bytes;
} tg_panels;

/* Chooses the panels that read the fewest bytes. Data pointers are not looked at. Errors:
 * INVALID_ARGUMENT (also a limit below what one element of D needs), and those of
 * tg_create_plan. */
TG_API tg_status tg_choose_panels(const tg_problem *problem, const tg_panel_limits *limits,
                                  tg_panels *panels);

/* The predicted times of a product of ordinary memory that a GPU forms in panels. Copies run beside
 * products. Members are 0 and NULL if no kernel can form the panels. */
typedef struct tg_panel_times {
    const char *kernel;     /* forms the first panel */
    double product_s;       /* seconds of all products */
    double copy_s;          /* seconds of all copies, which go both ways at once where they can */
    double total_s;         /* seconds of both, with what either waits for, as at the ends */
    const char *bus;        /* between the processor and the GPU, by its compute capability */
    double bus_bytes_per_s; /* each way alone, from pinned memory */
} tg_panel_times;

/* Chooses the panels of operands in the processor's memory that a GPU is predicted to form fastest:
 * the context's, or the chip, which need not be present and for which that memory is pageable.
 * `memory_bytes` (0: no limit) of its memory hold all panels in use. Errors: those of
 * tg_choose_panels and tg_list_chip_candidates, UNSUPPORTED (a context without a GPU). */
TG_API tg_status tg_choose_gpu_panels(tg_context *context, const tg_chip *chip,
                                      const tg_problem *problem, int64_t memory_bytes,
                                      tg_panels *panels, tg_panel_times *times);

/* Sets *panel to the problem of panel `index` (0 .. panel_count - 1), in the order in which fewest
 * bytes are read. Errors: INVALID_ARGUMENT. */
TG_API tg_status tg_get_panel(const tg_problem *problem, const tg_panels *panels, int64_t index,
                              tg_problem *panel);

/* Returns the number of a context, which no other one of the process has, not even one that takes
 * the place of a context that was destroyed. `context` may be NULL: the default one, or 0 if there
 * can be none. */
TG_API int64_t tg_get_context_number(const tg_context *context);

/* A product of matrices in ordinary memory that a GPU formed. */
typedef struct tg_panel_run {
    tg_panels panels;
    double elapsed_s; /* seconds of the call */
    double product_s; /* seconds that the GPU multiplied; copies run beside */
} tg_panel_run;

/* Does what tg_multiply does with operands in ordinary memory, in panels of at most `memory_bytes`
 * (0: tg_multiply's own limit) of the GPU's memory, workspaces not counted. *run, which may be
 * NULL, tells what was done. Errors: those of tg_multiply and tg_choose_panels, UNSUPPORTED (a
 * context without a GPU). */
TG_API tg_status tg_multiply_in_panels(tg_context *context, const tg_problem *problem,
                                       int64_t memory_bytes, tg_panel_run *run);

/* Convert an element of a 16-bit or an FP8 type to FP32 and back, for filling and reading
 * matrices. The bits of an FP8 type are the low 8. Numbers are rounded to the nearest, ties to
 * even; NaN stays NaN, and FP8 saturates. */
TG_API float tg_decode_bits(tg_type type, uint16_t bits);
TG_API uint16_t tg_encode_bits(tg_type type, float value);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_LAB_H */
