/*
 * Declares the argument of the kernels of family mma on slices of FP32 operands, and sizes that
 * follow from a row of kernels.def. The host (C11) fills it, the kernel reads it from constant
 * memory.
 */
#ifndef TGI_MMA_SLICES_ARGS_H
#define TGI_MMA_SLICES_ARGS_H

#include "kernels/copy/slice_args.h"
#include "kernels/gemm_args.h"
#include "kernels/mma/mma_shape.h"

/* The number of slices of each operand that a stage has room for. */
#define TGI_MMA_SLICES_ROOM(is_fp16) ((is_fp16) ? 2 : 3)

#define TGI_MMA_SLICES_SHARED_BYTES(rows, cols, room, stages)                                      \
    ((room)*TGI_CHUNK_BYTES * ((rows) + (cols)) * (stages))

/* The most teams of a block (mma_teams.cuh). Slices of FP16 leave a team too little to multiply. */
#define TGI_MMA_SLICES_TEAMS(room) ((room) > 2 ? 2 : 1)

/* The blocks that share a multiprocessor's registers. The sums of a chunk are formed separately, so
 * that a thread holds twice as many. */
#define TGI_MMA_SLICES_BLOCKS(sums, threads) TGI_MMA_BLOCKS_PER_SM(2 * (sums), threads)

/* The lines of A, or of B, and their slices. */
typedef struct tgi_mma_sliced {
    const char *slices;
    int32_t has_batch;  /* 0: every batch entry reads entry 0 */
    int32_t line_count; /* rows of A, columns of B */
} tgi_mma_sliced;

typedef struct tgi_mma_slices_args {
    tgi_gemm_args gemm;
    tgi_mma_sliced a, b;
    tgi_slice_ranges a_slices, b_slices;
    int32_t slice_count, first_product; /* the first of TGI_SLICE_PRODUCTS that is formed */
    void *run_sums; /* a tile of FP32 sums for each block, if k has more than one run */
} tgi_mma_slices_args;

#endif
