/*
 * Declares the argument and the sizes of family dmma_tma, for the launch (C11) and for the kernels
 * (CUDA), which assert them.
 */
#ifndef TGI_DMMA_TMA_ARGS_H
#define TGI_DMMA_TMA_ARGS_H

#include "kernels/copy/tma_operand.h"
#include "kernels/gemm_args.h"

typedef struct tgi_dmma_tma_args {
    tgi_tma_operand a, b;
    tgi_gemm_args gemm;
} tgi_dmma_tma_args;

#define TGI_DMMA_TMA_ELEMS 16 /* elements of a line of a TMA box */

/* The blocks that share a multiprocessor by their registers, if a thread has thread_rows x
 * thread_cols sums. */
#define TGI_DMMA_TMA_BLOCKS_PER_SM(thread_rows, thread_cols, threads)                              \
    ((threads) > 128                       ? 1                                                     \
     : (thread_rows) * (thread_cols) >= 64 ? 2                                                     \
     : (thread_rows) * (thread_cols) >= 32 ? 3                                                     \
     : (thread_rows) * (thread_cols) >= 16 ? 4                                                     \
                                           : 6)

/* Shared memory holds stages and two mbarriers for each. The tiles of D of all teams take the
 * place of the stages, with neighbouring rows in different banks. */
#define TGI_DMMA_TMA_TILE_PITCH(cols) ((cols) + 2)
#define TGI_DMMA_TMA_STAGE_BYTES(rows, cols, depth) (8 * (depth) * ((rows) + (cols)))
#define TGI_DMMA_TMA_TILE_BYTES(rows, cols) (8 * (rows)*TGI_DMMA_TMA_TILE_PITCH(cols))
#define TGI_DMMA_TMA_MORE(a, b) ((a) > (b) ? (a) : (b))
#define TGI_DMMA_TMA_DATA_BYTES(rows, cols, depth, stages, teams)                                  \
    TGI_DMMA_TMA_MORE(TGI_DMMA_TMA_STAGE_BYTES(rows, cols, depth) * (stages),                      \
                      TGI_DMMA_TMA_TILE_BYTES(rows, cols) * (teams))
#define TGI_DMMA_TMA_SHARED_BYTES(rows, cols, depth, stages, teams)                                \
    (TGI_DMMA_TMA_DATA_BYTES(rows, cols, depth, stages, teams) + 16 * (stages))

#endif
