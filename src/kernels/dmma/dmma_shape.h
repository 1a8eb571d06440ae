/*
 * Declares the sizes of family dmma that follow from a row of kernels.def, for the launch (C11) and
 * for the kernels (CUDA), which assert them.
 */
#ifndef TGI_DMMA_SHAPE_H
#define TGI_DMMA_SHAPE_H

/* The blocks that share a multiprocessor, if a thread has thread_rows x thread_cols sums. */
#define TGI_DMMA_BLOCKS_PER_SM(thread_rows, thread_cols)                                           \
    ((thread_rows) * (thread_cols) >= 64 ? 1 : (thread_rows) * (thread_cols) >= 16 ? 2 : 4)

/* Shared memory holds stages, whose lines across are padded by 32 bytes, and then the tile of D,
 * with neighbouring rows in different banks. */
#define TGI_DMMA_TILE_PITCH(cols) ((cols) + 2)
#define TGI_DMMA_STAGE_BYTES(rows, cols, depth) (8 * (depth) * ((rows) + (cols) + 8))
#define TGI_DMMA_TILE_BYTES(rows, cols) (8 * (rows)*TGI_DMMA_TILE_PITCH(cols))
#define TGI_DMMA_SHARED_BYTES(rows, cols, depth, stages)                                           \
    (TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages) > TGI_DMMA_TILE_BYTES(rows, cols)          \
         ? TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages)                                      \
         : TGI_DMMA_TILE_BYTES(rows, cols))

#endif
