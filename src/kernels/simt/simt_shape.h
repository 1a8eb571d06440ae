/*
 * Declares the sizes of family simt that follow from a row of kernels.def, for the launch (C11) and
 * for the kernels (CUDA), which assert them.
 */
#ifndef TGI_SIMT_SHAPE_H
#define TGI_SIMT_SHAPE_H

/* The registers of a thread by its number of sums, and the blocks that the registers of a
 * multiprocessor hold. Shared memory holds stages, whose lines are padded by 16 bytes, or the sums
 * of a piece of the store. */
#define TGI_SIMT_REGISTERS(sums) ((sums) > 96 ? 256 : (sums) > 64 ? 168 : 128)
#define TGI_SIMT_BLOCKS_PER_SM(sums, threads) (65536 / TGI_SIMT_REGISTERS(sums) / (threads))
#define TGI_SIMT_STAGE_BYTES(rows, cols, depth) (4 * (depth) * ((rows) + (cols) + 8))
#define TGI_SIMT_PASS_BYTES(sums, thread_rows, threads)                                            \
    (4 * (threads) * (sums) / ((thread_rows) / 4))
#define TGI_SIMT_SHARED_BYTES(rows, cols, depth, thread_rows, thread_cols, stages, threads)        \
    (TGI_SIMT_STAGE_BYTES(rows, cols, depth) * (stages) >                                          \
             TGI_SIMT_PASS_BYTES((thread_rows) * (thread_cols), thread_rows, threads)              \
         ? TGI_SIMT_STAGE_BYTES(rows, cols, depth) * (stages)                                      \
         : TGI_SIMT_PASS_BYTES((thread_rows) * (thread_cols), thread_rows, threads))

#endif
