/*
 * Sizes of families rank and dot that follow from a row of kernels.def, for the launch (C11) and
 * for the kernels (CUDA), which assert them.
 */
#ifndef TGI_SKINNY_SHAPE_H
#define TGI_SKINNY_SHAPE_H

/* Shared memory holds stages of A and B, and sums: rank has a tile of sums for each warp.
 *
 * Types narrower than 4 bytes differ. The stages of dot lie in registers, those with edges also
 * here, twice as large, and each warp has sums. The lines of rank begin anywhere in a unit of 16
 * bytes and so have a unit more; a stage has a barrier and is aligned, so that 1024 bytes are lost
 * before the first; one tile of sums has columns of a unit more on both sides. */
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
