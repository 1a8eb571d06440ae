/*
 * Sizes of family mma that follow from a row of kernels.def, for the launch (C11) and for the
 * kernels (CUDA), which assert them.
 */
#ifndef TGI_MMA_SHAPE_H
#define TGI_MMA_SHAPE_H

/* Registers of a thread that holds so many sums. */
#define TGI_MMA_REGISTERS(sums) ((sums) > 32 ? 255 : (sums) > 16 ? 168 : 128)

/* Blocks that share the 65536 registers of a multiprocessor. */
#define TGI_MMA_BLOCKS_PER_SM(sums, threads) (65536 / (TGI_MMA_REGISTERS(sums) * (threads)))

/* Shared memory holds stages of 16-bit elements, and then the parts of D that warps store:
 * 16 KiB for each four warps. They begin TGI_MMA_STORE_FIRST bytes on, because line_store.cuh takes
 * a box at address 0 for none. */
#define TGI_MMA_STORE_FIRST 1024
#define TGI_MMA_STAGE_BYTES(rows, cols, depth) (2 * (depth) * ((rows) + (cols)))
#define TGI_MMA_STORE_BYTES(threads) (TGI_MMA_STORE_FIRST + ((threads) + 127) / 128 * 16384)
#define TGI_MMA_SHARED_BYTES(rows, cols, depth, stages, threads)                                   \
    (TGI_MMA_STAGE_BYTES(rows, cols, depth) * (stages) > TGI_MMA_STORE_BYTES(threads)              \
         ? TGI_MMA_STAGE_BYTES(rows, cols, depth) * (stages)                                       \
         : TGI_MMA_STORE_BYTES(threads))

#endif
