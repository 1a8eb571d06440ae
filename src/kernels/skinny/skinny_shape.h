/*
 * Declares the sizes of families rank and dot that follow from a row of kernels.def, for the launch
 * (C11) and for the kernels (CUDA), which assert them.
 */
#ifndef TGI_SKINNY_SHAPE_H
#define TGI_SKINNY_SHAPE_H

/* Four lanes of dot, or four warps of rank, are teams that add elements of k in the order of family
 * simt. Lanes are teams if that many share out a line along k. */
#define TGI_SKINNY_TEAMS 4
#define TGI_SKINNY_IS_TEAM(is_dot, rows, cols, thread_rows, thread_cols, threads)                  \
    ((is_dot) && (threads) * (thread_rows) * (thread_cols) == TGI_SKINNY_TEAMS * (rows) * (cols))

/* Shared memory holds stages of A and B, and sums: rank has a tile of sums for each warp, teams of
 * dot for each lane that shares out k, and lines padded by 16 bytes.
 *
 * Types narrower than 4 bytes differ. In family dot stages lie in registers. Only stages at an edge
 * also take shared memory, twice their size, and each warp has its own sums. In family rank lines
 * may begin anywhere in a unit of 16 bytes, so that a line takes one unit more. A stage has a
 * barrier and is aligned to 1024 bytes, which may lose 1024 bytes before the first. All warps share
 * one tile of sums, which has the columns of one more unit on each side. */
#define TGI_RANK_STAGE_BYTES(rows, cols, depth, elem_bytes)                                        \
    (((elem_bytes) * ((rows) + (cols)) * (depth) + 16 * (depth) + 16 + 1023) / 1024 * 1024)
#define TGI_SKINNY_SHARED_BYTES(is_dot, is_team, rows, cols, depth, stages, threads, elem_bytes)   \
    ((elem_bytes) >= 4 ? (stages) * ((elem_bytes) * ((rows) + (cols)) * (depth) +                  \
                                     ((is_team) ? 16 * (cols) : 0)) +                              \
                             (elem_bytes) * (rows) * (cols) *                                      \
                                 ((is_team)  ? TGI_SKINNY_TEAMS                                    \
                                  : (is_dot) ? 1                                                   \
                                             : (threads) / 32)                                     \
     : (is_dot) ? 2 * (elem_bytes) * (depth) * ((cols) > (rows) ? (cols) : (rows)) +               \
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
