/*
 * Predicts the time of the production families simt, small, batch, dmma, mma, rank and dot by
 * closed formulas. The constants are figures of figures/h200.def, scaled by the chip's rates.
 */
#ifndef TGI_TILE_MODEL_H
#define TGI_TILE_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* The access to the operand that is slower to read. */
typedef enum tgi_access {
    TGI_ACCESS_VECTORS,  /* aligned 16 bytes */
    TGI_ACCESS_SHIFTED,  /* 16 bytes that are then shifted into place */
    TGI_ACCESS_ELEMENTS, /* element by element along a line */
    TGI_ACCESS_STRIDED   /* element by element across lines, in families rank and dot */
} tgi_access;

/* The work of a kernel's blocks. */
typedef struct tgi_tile_work {
    double block_count;    /* blocks of all tiles, splits and batch entries */
    double block_k;        /* elements along k of one block, over all its tiles */
    double split_count;    /* splits of a tile */
    double tile_cols;      /* columns of a tile of families rank and dot */
    double copy_bytes;     /* bytes of the narrower of the accesses to A and B in family mma */
    double copy_k;         /* k of a stage of a wide tile of family small; 0: it is not wide */
    double sum_share;      /* share of a wide tile's sums that are multiplied */
    double tile_count;     /* tiles of a block's stage, family batch; of a block, rank and dot */
    double cluster_blocks; /* blocks of a cluster that share out k in family small without stages */
    double by_elements;    /* operands that family small on mma.sync loads by elements */
    double across_lines;   /* lines of a tile of family bf16d not loaded by 16 bytes along k */
    double
        k_copies; /* copies that count for a value of k of a tile of dmma; of dmma_tma, 0: by TMA */
    double split_readers, sharing_readers; /* blocks of dmma_tma that copy such lines at once */
    double bank_turns; /* turns of banks in which a block reads for one k, beyond the first */
    double a_lines;    /* lines of A that a warp of family small without stages reads at once */
    double warps;      /* warps of a block of relays of family small */
    double places;     /* groups of such a block, which form splits at once; of chains, products */
    int blocks_per_sm; /* most resident blocks */
    int is_long;       /* 1: strips or relays of family small by the function for a longer k */
    int is_moved;      /* 1: strips of family small store rows between units of 16 bytes; family
                        * batch stores D element by element; dmma_tma forms D^T */
    int is_rounding;   /* 1: a kernel of family mma rounds FP32 to TF32 beside its products */
    tgi_access access;
} tgi_tile_work;

/* Families that read memory with figures of their own: small, its wide tiles, dmma, dmma_tma and
 * simt. */
typedef enum tgi_tile_stream {
    TGI_STREAM_SMALL,
    TGI_STREAM_WIDE,
    TGI_STREAM_DMMA,
    TGI_STREAM_DMMA_TMA,
    TGI_STREAM_SIMT
} tgi_tile_stream;

/* Returns the seconds in which tiles read their operands once from memory. A multiprocessor has
 * room for so many reads under way that it receives at most bytes_per_cycle. */
double tgi_tile_read_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                             double bytes_per_cycle);

/* Returns the seconds of tiles that take `seconds` beside memory, which has this share of its rate.
 * They wait longer for it, the fewer bytes their stages have under way. */
double tgi_tile_memory_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work, double share, tgi_tile_stream stream,
                               double seconds);

/* Returns the bytes of the operands and D, each counted once. */
double tgi_model_tile_bytes(const tgi_problem *problem);

/* Returns 1 if these bytes do not stay in L2 from call to call. */
int tgi_model_is_far(const tgi_gpu *gpu, const tgi_problem *problem);

/* Returns the index of an epilogue in lists of figures: 0 for sums alone, 2 for GELU and SILU, 1
 * for other terms. */
int tgi_model_find_terms(const tgi_epilogue *epilogue);

/* Returns the seconds of writing, reading and adding splits of D. The second launch takes start_s,
 * and the epilogue more for each element of D. */
double tgi_model_splits_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                                const tgi_tile_work *work, double start_s, double bytes_per_s);

/* Returns the seconds of the launch and of the splits of D, which stay in L2. */
double tgi_tile_base_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work);

/* Returns the seconds of blocks of `round_count` rounds each. A round takes latency_s, or compute_s
 * for each block that shares the multiprocessor, whichever is longer. */
double tgi_tile_block_seconds(const tgi_gpu *gpu, const tgi_tile_work *work, double round_count,
                              double latency_s, double compute_s);

/* Returns the seconds that tiles, or the adding of their splits, wait for C and the bias. */
double tgi_tile_terms_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work);

/* Returns the seconds in which blocks apply an epilogue, in each thread to one element after
 * another. A block waits for memory most of that time, while other blocks of its multiprocessor go
 * on. The result is 0 if k is split or there is no epilogue. */
double tgi_model_finish_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

/* Returns the multiply-adds of one multiprocessor in a cycle. FP32 and FP64 are multiplied without
 * matrix instructions, narrower types with mma.sync. */
double tgi_model_macs_per_cycle(const tgi_gpu *gpu, tg_type type);

/* Returns the seconds of a kernel that only reads and writes `bytes` of operands, in `lines`. */
double tgi_model_repack_seconds(const tgi_gpu *gpu, double bytes, double lines);

/* Returns the seconds of the kernels that make the slices which `kernel` multiplies. */
double tgi_model_slice_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem);

/* Returns the seconds of family bf16d, whose work->cluster_blocks blocks share out k. */
double tgi_model_bf16d_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);

/* Returns 1 if the chip forms the products of slices of a precision by mma.sync, as `kernel` does,
 * in less time than those of FP32 operands by multiply-adds. */
int tgi_model_prefers_slices(const tgi_gpu *gpu, const tgi_kernel *kernel, tg_precision precision);

/* Return the seconds of a call. For families rank and dot work->block_k is that of the block that
 * has most. */
double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_small_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);
/* Returns the seconds of wide tiles of family small, without the launch, memory and splits. */
double tgi_model_wide_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);
/* Returns the seconds of family small without stages. work->split_count threads share out k, each
 * with block_k of it, loads copy_k values of it at once, and finishes tile_count rows of D. Access
 * by vectors means that B lies along k. */
double tgi_model_direct_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                                const tgi_tile_work *work);
/* Returns the seconds of its short function, whose threads form one element of D. */
double tgi_model_short_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                               const tgi_tile_work *work);
/* Returns the seconds of its pieces, whose threads form 16 bytes of rows of D. */
double tgi_model_piece_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                               const tgi_tile_work *work);

/* Returns the seconds of its outer products. */
double tgi_model_outer_seconds(const tgi_gpu *gpu, const tgi_problem *problem, double block_count);

/* Returns the seconds of its strips: block_count blocks form tile_count times 32 x 32 of D each. */
double tgi_model_strip_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                               const tgi_tile_work *work);
/* Returns the seconds of its relays of a short k by multiply-adds. A warp has tile_count rounds of
 * loads, and a sum passes block_k lanes. */
double tgi_model_relay_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                               const tgi_tile_work *work);
/* Returns the seconds of those of other types, whose sums pass block_k instructions, and
 * split_count times from warp to warp. */
double tgi_model_relay_mma_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                                   const tgi_tile_work *work);

/* Returns the seconds of those that copy lines, copy_k units of 16 bytes in tile_count turns, and
 * others in by_elements further rounds of loads. A warp multiplies block_k values of k. */
double tgi_model_relay_lines_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                                     const tgi_tile_work *work);
/* Returns the seconds of those that add chains. A block has tile_count rounds of loads, of copy_k
 * sectors, and places products, and one thread of it adds block_k of these. */
double tgi_model_relay_chains_seconds(const tgi_gpu *gpu, const tgi_problem *problem,
                                      const tgi_tile_work *work);
double tgi_model_batch_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_dmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                              const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_mma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                             const tgi_problem *problem, const tgi_tile_work *work);
double tgi_model_skinny_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

#endif
