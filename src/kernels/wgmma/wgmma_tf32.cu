/* Instantiates the kernels of family wgmma for FP32 rounded to TF32. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_IMAGE_wgmma_tf32 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_WGMMA_BOTH_A(name, , tgi_feed_tma, tgi_feed_transposed, TGI_TYPE_OF(type), 0, rows, cols,  \
                     thread_rows, stages, threads)
#include "core/kernels.def"
