/* Instantiates the kernels of families dot and rank for FP8, one for each row of kernels.def. */
#include "kernels/skinny/skinny_instances.cuh"

#define TGI_IMAGE_skinny_fp8 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SKINNY(name, family, type, rows, threads, rows, cols, depth, thread_rows, thread_cols,     \
               stages, threads)
#include "core/kernels.def"
