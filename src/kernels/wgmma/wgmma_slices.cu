/* Families bf16x, bf16r and fp16x: FP32 by products of slices of 16 bits, which lie along k. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_SLICE_TYPE_bf16x TG_TYPE_BF16
#define TGI_SLICE_TYPE_bf16r TG_TYPE_BF16
#define TGI_SLICE_TYPE_fp16x TG_TYPE_FP16
#define TGI_FEED_bf16x tgi_feed_slices<3>
#define TGI_FEED_bf16r tgi_feed_registers
#define TGI_FEED_fp16x tgi_feed_slices<2>

#define TGI_IMAGE_wgmma_slices TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_WGMMA_EXPAND(name, , TGI_FEED_##family, TGI_SLICE_TYPE_##family, TGI_SLICE_TYPE_##family,  \
                     rows, cols, thread_rows, stages, threads, 0, 0)
#include "core/kernels.def"
