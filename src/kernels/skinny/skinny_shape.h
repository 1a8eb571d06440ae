/*
 * Declares the sizes of families rank and dot that follow from a row of kernels.def, for the launch
 * (C11) and for the kernels (CUDA), which assert them.
 */
#ifndef TGI_SKINNY_SHAPE_H
#define TGI_SKINNY_SHAPE_H

/* Shared memory holds stages of A and B, and sums: rank has a tile of sums for each warp.
 *
 * Types narrower than 4 bytes differ. In family dot stages lie in registers. Only stages at an edge
 * also take shared memory, twice their size, and each warp has its own sums. In family rank lines
 * may begin anywhere in a unit of 16 bytes, so that a line takes one unit more. A stage has a
 * barrier and is aligned to 1024 bytes, which may lose 1024 bytes before the first. All warps share
 * one tile of sums, which has the columns of one more unit on each side. */
#define TGI_RANK_STAGE_BYTES(rows, cols, depth, elem_bytes)                                        \
    (((elem_bytes) * ((rows) + (cols)) * (depth) + 16 * (depth) + 16 + 1023) / 1024 * 1024)
#define TGI_SKINNY_SHARED_BYTES(is_dot, rows, cols, depth, stages, threads, elem_bytes)            \
    ((elem_bytes) >= 4 ? (elem_bytes) * ((stages) * ((rows) + (cols)) * (depth) +                  \
                                         ((is_dot) ? 1 : (threads) / 32) * (rows) * (cols))        \
     : (is_dot)        ? 2 * (elem_bytes) * (depth) * ((cols) > (rows) ? (cols) : (rows)) +        \
                      (threads) / 8 * (rows) * (cols)                                              \
                : 1024 + (stages)*TGI_RANK_STAGE_BYTES(rows, cols, depth, elem_bytes) +            \
                      (4 * (rows) * ((cols) + 32 / (elem_bytes)) + 1023) / 1024 * 1024)

/* Blocks that share a multiprocessor, within its 65536 registers and 228 KiB of shared memory. */
#define TGI_SKINNY_BLOCKS_PER_SM(is_dot, rows, shared_bytes, elem_bytes)                           \
    ((elem_bytes) >= 4                           ? ((rows) > 4 ? 2 : 4)                            \
     : (is_dot)                                  ? 2                                               \
     : (228 << 10) / ((shared_bytes) + 1024) < 4 ? (228 << 10) / ((shared_bytes) + 1024)           \
                                                 : 4)

#endif
