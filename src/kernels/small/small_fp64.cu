/* Instantiates the kernels of family small on wide tiles of FP32 by matrix instructions of FP64,
 * one for each row of kernels.def. */
#include "kernels/instances.cuh"
#include "kernels/small/small_wide.cuh"

#define TGI_IMAGE_small_fp64 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SMALL_WIDE(name, type, 1, rows, cols, depth, thread_rows, thread_cols, stages, threads)
#include "core/kernels.def"
