/*
 * Sizes of family small that follow from a row of kernels.def, for the launch (C11) and for the
 * kernels (CUDA), which assert them.
 */
#ifndef TGI_SMALL_SHAPE_H
#define TGI_SMALL_SHAPE_H

/* Each warp has a ring of stages in shared memory. A stage holds the warp's share of `depth`
 * elements of k, in lines padded by 16 bytes. */
#define TGI_SMALL_SHARED_BYTES(rows, cols, depth, stages, threads, elem_bytes)                     \
    (((depth) * (elem_bytes) + (threads) / 32 * 16) * (stages) * ((rows) + (cols)))

/* On matrix instructions each warp has its sums there, in rows padded to lie in other banks. */
#define TGI_SMALL_MMA_SHARED_BYTES(rows, cols, threads) ((threads) / 32 * (rows) * ((cols) + 8) * 4)

/* Wide tiles hold lines of A and B, then their sums, padded alike. So many
 * blocks share a multiprocessor. */
#define TGI_SMALL_WIDE_LINE_BYTES(side, depth, elem_bytes)                                         \
    (2 * (side) * ((depth) * (elem_bytes) + 16))
#define TGI_SMALL_WIDE_SUM_BYTES(side) ((side) * ((side) + 8) * 4)
#define TGI_SMALL_WIDE_SHARED_BYTES(side, depth, elem_bytes)                                       \
    (TGI_SMALL_WIDE_LINE_BYTES(side, depth, elem_bytes) > TGI_SMALL_WIDE_SUM_BYTES(side)           \
         ? TGI_SMALL_WIDE_LINE_BYTES(side, depth, elem_bytes)                                      \
         : TGI_SMALL_WIDE_SUM_BYTES(side))
#define TGI_SMALL_WIDE_BLOCKS 4
#define TGI_SMALL_WIDE_COPY 32 /* most k whose lines a block requests at once */
#define TGI_SMALL_SIDE_MOST 32 /* rows of the largest tile that is not wide */

/* The functions without stages: threads of a block, rows of D that a thread has, and steps of k
 * whose loads are under way at once. */
#define TGI_SMALL_DIRECT_THREADS 256
#define TGI_SMALL_DIRECT_ROWS 4
#define TGI_SMALL_DIRECT_STEPS 4

#endif
