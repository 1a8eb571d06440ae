/*
 * This header declares tilegemm's instruments: the kernel table, the candidates of a plan, chips,
 * the model of the ladder on a chip, peak rates and timing. tilegemm_sim.h declares the simulator.
 *
 * Unlike tilegemm.h, this header may change between versions, and its structs do not carry their
 * size. A program must load the library of the version that it was compiled with.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_LAB_H
#define TILEGEMM_LAB_H

#include "tilegemm_attention.h"

#ifdef __cplusplus
extern "C" {
#endif

/* tg_kernel_info describes one row of the kernel table. Its strings have static storage. */
typedef struct tg_kernel_info {
    const char *name;         /* "cpu_packed_avx512_fp32", ...: built from the row */
    const char *device;       /* "cpu", "cuda" */
    const char *family;       /* "sequential", "blocked", "packed", ... */
    const char *isa;          /* instruction set that it needs */
    tg_type type;             /* type of A and B */
    int tile_rows, tile_cols; /* register tile, on a GPU a block's tile; 1 x 1 if it has none */
    int ladder_rung;          /* 0, 1, ... for a kernel of the ladder, -1 for the others */
    const char *idea;         /* one sentence about the kernel */
    int is_available;         /* 1 if the context's device can run it */
} tg_kernel_info;

/* Returns the number of rows of the table, whatever this machine can run. */
TG_API int tg_get_kernel_count(void);

/* Fills *info with row `index` (0 .. count - 1). `context` (NULL: the default one) decides
 * is_available. Errors: INVALID_ARGUMENT, and those of tg_create_context for the default
 * context. */
TG_API tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info);

/* Do the same for the rungs of attention, which the library runs in the simulator alone: their
 * device is "sim", tile_rows is the queries of a block, tile_cols the largest head size, and
 * ladder_rung counts from 1. */
TG_API int tg_get_attention_rung_count(void);
TG_API tg_status tg_get_attention_rung(const tg_context *context, int index, tg_kernel_info *info);

/* A refusal is the reason why a row does not run a problem. A later value means that the row came
 * nearer to accepting it. */
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
    TG_REFUSAL_SLOWER,     /* the row is legal; another is chosen by predicted times */
    TG_REFUSAL_NO_PRODUCT, /* the row is legal; no kernel runs, as no product is formed */
    TG_REFUSAL_TEACHING    /* the row is legal; it teaches, and plans take it by name */
} tg_refusal;

/* Return the refusal's name in JSON, for example "other_device", and one sentence. Both are in
 * static storage, and NULL for a value outside the enum. */
TG_API const char *tg_get_refusal_name(tg_refusal refusal);
TG_API const char *tg_get_refusal_text(tg_refusal refusal);

#define TG_REASON_BYTES 160 /* length of a sentence, with its NUL */

/* A candidate is one kernel for a problem, with its prediction or the reason why it cannot run. */
typedef struct tg_candidate {
    const char *kernel;
    double predicted_s; /* seconds; 0 if it is not legal */
    int is_legal, is_chosen;
    tg_refusal refusal;           /* why it is not legal, or why it lost */
    char reason[TG_REASON_BYTES]; /* refusal as a sentence with values; "" if chosen */
    /* The members from here on describe the plan on a GPU. All are 0 if the kernel is not legal,
     * and on the CPU. */
    int64_t block_count, split_count; /* blocks, and splits of k (split-K) of a tile */
    int threads_per_block;
    int64_t shared_bytes; /* bytes of a block */
    double global_read_bytes,
        global_write_bytes; /* bytes that threads ask for, partial sums included */
    double issued_flops;    /* counts whole tiles */
    double occupancy;       /* resident warps over the most there can be; 0 if not known */
} tg_candidate;

/* Fills up to `capacity` candidates for the problem, one for each row of the table in its order,
 * and sets *count to the number of rows. `context` may be NULL: the default one. If no row is
 * legal, the call succeeds, none is chosen, and tg_get_error_detail lists the families of each
 * reason. Errors: those of tg_create_plan except UNSUPPORTED. */
TG_API tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                                    tg_candidate *candidates, int capacity, int *count);

/* tg_chip describes a GPU to the model. Rates are the highest at its clock. The functions that take
 * a chip refuse a figure out of its range, and the error names it (docs/chips.md lists all). */
typedef struct tg_chip {
    char name[32];          /* name for tg_find_chip, "h200" */
    char title[64];         /* "H200 SXM" */
    int compute_capability; /* 10 major + minor: 90 */
    int sm_count, fp32_lanes_per_sm;
    int registers_per_sm, threads_per_sm, blocks_per_sm; /* most that are resident */
    int64_t shared_bytes_per_sm, shared_bytes_per_block; /* a block has to opt in */
    int64_t l2_bytes, memory_bytes;
    double clock_hz, memory_bytes_per_s;
    /* Peak rates of FP64, and of tensor cores on dense operands with sums in FP32. 0: unknown. */
    double fp64_flop_per_s, tf32_flop_per_s, fp16_flop_per_s;
} tg_chip;

/* Count the chips of the built-in table (docs/chips.md), and copy one to *chip: row `index`, 0 ..
 * count - 1, or the one called `name`, in upper or lower case. Errors: INVALID_ARGUMENT,
 * UNKNOWN_NAME (the detail lists the names). */
TG_API int tg_get_chip_count(void);
TG_API tg_status tg_get_chip(int index, tg_chip *chip);
TG_API tg_status tg_find_chip(const char *name, tg_chip *chip);

/* Does as tg_list_candidates for a chip, which need not be present: lists the rows among which a
 * context on it would choose, with the library's images for it. Errors: INVALID_ARGUMENT (also a
 * chip with a figure out of its range), and those of tg_list_candidates. */
TG_API tg_status tg_list_chip_candidates(const tg_chip *chip, const tg_problem *problem,
                                         tg_candidate *candidates, int capacity, int *count);

/* Fills *chip with the GPU of a context, as its driver describes it. The rates of FP64 and of the
 * tensor cores are those of its architecture and board (0: none is published). Errors:
 * INVALID_ARGUMENT, UNSUPPORTED (a context on the CPU), and those of tg_create_context for the
 * default context. */
TG_API tg_status tg_describe_chip(const tg_context *context, tg_chip *chip);

/* tg_traffic counts the work of a ladder kernel that multiplies m x k by k x n. The counts are
 * exact for every size. An access is counted as the source writes it. A request is one access of a
 * warp of which at least one lane is active, and its sectors are the aligned units of 32 bytes that
 * the active lanes touch. A, B and D start at multiples of 256 bytes. docs/model.md derives each
 * count. */
typedef struct tg_traffic {
    int64_t grid_x, grid_y, block_count;
    int threads_per_block, tile_rows, tile_cols, tile_depth;
    /* Rows and columns of D in the last blocks; 0 where the tile divides D evenly. */
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

/* tg_prediction is the model's estimate of a kernel on a chip. Unlike the counts, it is not
 * exact. */
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

/* Explains a kernel of the GPU ladder on a chip. `kernel` is a row of the kernel table, or a family
 * ("edges", "cuda_edges"). `tile` is the side of the tile; 0 means the row's own, or that of the
 * family's first row. Rungs 1 to 6 allow any tile of 1 .. 64, rung 7 allows 8, 16, 32 and 64, rung
 * 8 allows 64 and 128, even if the table has no such row. m, n, k >= 1. Errors: INVALID_ARGUMENT,
 * UNKNOWN_NAME, UNSUPPORTED (a kernel outside this ladder, or a tile that its family lacks),
 * SIZE_OVERFLOW (a count over 63 bits). */
TG_API tg_status tg_explain_kernel(const tg_chip *chip, const char *kernel, int tile, int64_t m,
                                   int64_t n, int64_t k, tg_explanation *explanation);

/* Explains a rung of attention on a chip. `kernel` is attention_naive, attention_tiled,
 * attention_mma, or a row of these families with its type and largest head size. The tensors have
 * no gaps, and the mask is causal or none; data are ignored. In the counts, tile_rows is the
 * queries of a block, tile_cols the largest head size, tile_depth the keys of a step,
 * naive_read_elems the elements that attention_naive reads, and useful_flops counts the pairs that
 * the mask lets through. Times are those of a roofline. Errors: INVALID_ARGUMENT, UNKNOWN_NAME,
 * UNSUPPORTED (an attention that the rung does not run), and those of tg_create_attention_plan. */
TG_API tg_status tg_explain_attention(const tg_chip *chip, const char *kernel,
                                      const tg_attention *attention, tg_explanation *explanation);

/* Measures the peak rate of `thread_count` CPU threads by a loop of independent FMAs on registers,
 * in the best instruction set for `type` that the context (NULL: the default one) has. BF16 uses
 * the dot-product instruction where there is one; FP16 is computed as FP32. On a GPU the whole
 * device is measured, for FP32 and FP64, and `thread_count` is any of 1..1024. The call takes about
 * 50 ms. *flop_per_s counts multiply and add as two. Errors: INVALID_ARGUMENT, OUT_OF_MEMORY,
 * UNSUPPORTED, DEVICE_FAILURE, and those of tg_create_context for the default context. */
TG_API tg_status tg_measure_peak(const tg_context *context, tg_type type, int thread_count,
                                 double *flop_per_s);

/* Calls `call` `count` >= 0 times, with index 0 .. count - 1, and sets *elapsed_s to the seconds
 * that their work took on the stream: between two events on a GPU, by the clock on the CPU.
 * `context` may be NULL: the default one. The first status other than OK ends the calls and is
 * returned. Errors: INVALID_ARGUMENT, DEVICE_FAILURE, those of `call`, and those of
 * tg_create_context for the default context. */
typedef tg_status tg_timed_call(void *state, int64_t index);
TG_API tg_status tg_time_calls(const tg_context *context, tg_timed_call *call, void *state,
                               int64_t count, void *stream, double *elapsed_s);

/* Launches each kernel of a plan on a GPU `count` times by the driver alone, with the arguments of
 * a call on `buffers`, and sets *elapsed_s to the seconds that the launches take the calling
 * thread. The time of tg_execute_plan beyond that is the library's own. The call does not wait for
 * the kernels, so `count` should be less than a stream can queue, some hundred launches. D is the
 * result of the last launch. Errors: those of tg_execute_plan, INVALID_ARGUMENT (count < 1),
 * UNSUPPORTED (no GPU). */
TG_API tg_status tg_time_bare_launch(const tg_plan *plan, const tg_buffers *buffers, int64_t count,
                                     double *elapsed_s);

/* tg_panel_limits bounds the panels of a product. */
typedef struct tg_panel_limits {
    int64_t memory_bytes; /* bytes of A, B, C and D that are held at once; 0: no limit */
    double flop_count;    /* most FLOP of a panel, approximately; 0: no limit */
    int buffer_count;     /* 1, or 2: there is also room for the next panel's operands, and panels
                             are small enough for copies to run beside products */
} tg_panel_limits;

/* tg_panels describes a product that is cut into panels of D, because memory does not hold all of
 * it. A panel has rows and columns of one batch entry and all of k, or it is several whole entries.
 * In an entry that is cut, panels of one operand are held while those of the other stream past
 * them. */
typedef struct tg_panels {
    int64_t batch_count, row_count, col_count; /* sizes of a panel; the last ones may be smaller */
    int64_t row_panel_count, col_panel_count;  /* panels of a batch entry */
    int64_t panel_count;                       /* panels in all; 0 if D is empty */
    int is_b_held;                             /* 1: columns of op(B); 0: rows of op(A) */
    /* Panels in memory at once: of the held operand, of the streamed operand, which may be all of
     * it, and of D and C. */
    int64_t held_count, stream_count, d_count;
    double memory_bytes; /* most bytes of the panels in use */
    /* Bytes of A, B and C, and of D, in all panels. A matrix that serves a batch counts for each of
     * its entries. */
    double read_bytes, written_bytes;
} tg_panels;

/* Chooses the panels that read the fewest bytes. Data pointers are not used. Errors:
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

/* Chooses the panels of operands in the processor's memory that a GPU is predicted to form fastest.
 * The GPU is `chip` or, if that is NULL, the context's. A chip need not be present; its operands
 * are taken to be pageable. All panels in use take at most `memory_bytes` (0: no limit) of the
 * GPU's memory. Errors: those of tg_choose_panels and tg_list_chip_candidates, UNSUPPORTED (a
 * context without a GPU). */
TG_API tg_status tg_choose_gpu_panels(tg_context *context, const tg_chip *chip,
                                      const tg_problem *problem, int64_t memory_bytes,
                                      tg_panels *panels, tg_panel_times *times);

/* Sets *panel to the problem of panel `index` (0 .. panel_count - 1), in the order that reads the
 * fewest bytes. Errors: INVALID_ARGUMENT. */
TG_API tg_status tg_get_panel(const tg_problem *problem, const tg_panels *panels, int64_t index,
                              tg_problem *panel);

/* Returns the number of a context. It is unique in the process, even if a later context has the
 * address of a destroyed one. `context` may be NULL: the default one. Returns 0 if no default
 * context can be made. */
TG_API int64_t tg_get_context_number(const tg_context *context);

/* tg_panel_run describes a product of matrices in ordinary memory that a GPU formed. */
typedef struct tg_panel_run {
    tg_panels panels;
    double elapsed_s; /* seconds of the call */
    double product_s; /* seconds that the GPU multiplied, while copies ran */
} tg_panel_run;

/* Does what tg_multiply does with operands in ordinary memory, in panels that take at most
 * `memory_bytes` (0: tg_multiply's own limit) of the GPU's memory, without workspaces. *run
 * receives what was done; it may be NULL. Errors: those of tg_multiply and tg_choose_panels,
 * UNSUPPORTED (a context without a GPU). */
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
