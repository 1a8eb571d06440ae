/* Instantiates the kernels of family wgmma for FP8. */
#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_WGMMA_FP8(name, type, rows, cols, cluster_rows, stages, threads)                       \
    TGI_WGMMA_KERNEL(name, , tgi_feed_tma, threads,                                                \
                     TGI_WGMMA_SHAPE(tgi_feed_tma, type, TG_TYPE_FP8_E4M3, 0, 0, rows, cols,       \
                                     cluster_rows, stages, threads),                               \
                     TGI_WGMMA_SHAPE(tgi_feed_tma, type, TG_TYPE_FP8_E5M2, 0, 0, rows, cols,       \
                                     cluster_rows, stages, threads))

#define TGI_IMAGE_wgmma_fp8 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_WGMMA_FP8(name, TGI_TYPE_OF(type), rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
