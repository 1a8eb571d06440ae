/*
 * Sizes that follow from a row of kernels.def, for the launch (C11) and the kernels (CUDA), which
 * assert them.
 */
#ifndef TGI_TILE_SHAPE_H
#define TGI_TILE_SHAPE_H

/* A block of the kernel that adds parts of k: elements of D x rows of threads, at most so many. */
#define TGI_PART_THREADS 256
#define TGI_PART_ROWS_MAX 8

/* Blocks of families rank and dot that share a multiprocessor, within 65536 registers. */
#define TGI_SKINNY_BLOCKS_PER_SM(rows) ((rows) > 4 ? 2 : 4)

/* Stages of A and B, and sums: of rank, a tile for each warp. */
#define TGI_SKINNY_SHARED_BYTES(is_dot, rows, cols, depth, stages, threads, elem_bytes)            \
    ((elem_bytes) *                                                                                \
     ((stages) * ((rows) + (cols)) * (depth) + ((is_dot) ? 1 : (threads) / 32) * (rows) * (cols)))

/* Slices of 64 bytes of k, one for each warp and stage, lines padded to 80 bytes. */
#define TGI_SMALL_SHARED_BYTES(rows, cols, depth, stages, elem_bytes)                              \
    ((depth) * (elem_bytes) / 64 * (stages)*80 * ((rows) + (cols)))

/* Blocks of family dmma that share a multiprocessor; sums of a thread in 16-byte pairs and more. */
#define TGI_DMMA_BLOCKS_PER_SM(thread_rows, thread_cols)                                           \
    ((thread_rows) * (thread_cols) >= 64 ? 1 : (thread_rows) * (thread_cols) >= 16 ? 2 : 4)

/* Stages, lines across padded by 32 bytes; afterwards the tile of D, rows padded by 16. */
#define TGI_DMMA_STAGE_BYTES(rows, cols, depth) (8 * (depth) * ((rows) + (cols) + 8))
#define TGI_DMMA_TILE_BYTES(rows, cols) (8 * (rows) * ((cols) + 2))
#define TGI_DMMA_SHARED_BYTES(rows, cols, depth, stages)                                           \
    (TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages) > TGI_DMMA_TILE_BYTES(rows, cols)          \
         ? TGI_DMMA_STAGE_BYTES(rows, cols, depth) * (stages)                                      \
         : TGI_DMMA_TILE_BYTES(rows, cols))

#endif
