/* Family wgmma for FP8, one kernel for each type of B. */
#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_WGMMA_FP8(name, type, ...)                                                             \
    TGI_WGMMA_EXPAND(name, _e4m3, tgi_feed_tma, type, TG_TYPE_FP8_E4M3, __VA_ARGS__, 0, 0)         \
    TGI_WGMMA_EXPAND(name, _e5m2, tgi_feed_tma, type, TG_TYPE_FP8_E5M2, __VA_ARGS__, 0, 0)

#define TGI_IMAGE_wgmma_fp8 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_WGMMA_FP8(name, TGI_TYPE_OF(type), rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
