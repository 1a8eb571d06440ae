/*
 * Declares the sizes of family mma that follow from a row of kernels.def, for the launch (C11) and
 * for the kernels (CUDA), which assert them.
 */
#ifndef TGI_MMA_SHAPE_H
#define TGI_MMA_SHAPE_H

/* The registers of a thread, by the number of sums that it holds. */
#define TGI_MMA_REGISTERS(sums) ((sums) > 32 ? 255 : (sums) > 16 ? 168 : 128)

/* The blocks that share the 65536 registers of a multiprocessor. */
#define TGI_MMA_BLOCKS_PER_SM(sums, threads) (65536 / (TGI_MMA_REGISTERS(sums) * (threads)))

/* Tells whether a row has a kernel for each storage order (mma_instances.cuh). The warps of such
 * large tiles have more columns than those of others. */
#define TGI_MMA_HAS_BODIES_APART(thread_cols) ((thread_cols) > 8)

/* Tells whether a pass rounds FP32 operands to TF32 on their way into the workspace, in lines along
 * k. Warps of smaller tiles round what they read. */
#define TGI_MMA_IS_ROUNDED_AHEAD(elem_bytes, cols) ((elem_bytes) == 4 && (cols) > 128)

/* Shared memory holds stages. While the first stages of the next tile are copied into all but the
 * last one, warps store D through that one: 16 KiB for each four warps. */
#define TGI_MMA_STAGE_BYTES(rows, cols, depth, elem_bytes)                                         \
    ((int)(elem_bytes) * (depth) * ((rows) + (cols)))
#define TGI_MMA_STORE_BYTES(threads) (((threads) + 127) / 128 * 16384)
#define TGI_MMA_SHARED_BYTES(rows, cols, depth, elem_bytes, stages, threads)                       \
    (TGI_MMA_STAGE_BYTES(rows, cols, depth, elem_bytes) * ((stages)-1) +                           \
     (TGI_MMA_STAGE_BYTES(rows, cols, depth, elem_bytes) > TGI_MMA_STORE_BYTES(threads)            \
          ? TGI_MMA_STAGE_BYTES(rows, cols, depth, elem_bytes)                                     \
          : TGI_MMA_STORE_BYTES(threads)))

#endif
