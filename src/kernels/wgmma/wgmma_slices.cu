/* Instantiates the kernels of families bf16x, bf16r and fp16x, which multiply FP32 by products of
 * slices of 16 bits. The slices lie along k. Lines of A of family bf16r may lie across k too. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_SLICES(name, feed, type, rows, cols, cluster_rows, stages, threads)                    \
    TGI_WGMMA_KERNEL(                                                                              \
        name, , feed, threads,                                                                     \
        TGI_WGMMA_SHAPE(feed, type, type, 0, 0, rows, cols, cluster_rows, stages, threads),        \
        TGI_WGMMA_SHAPE(feed, type, type, 0, 0, rows, cols, cluster_rows, stages, threads))
#define TGI_SLICES_bf16x(name, ...) TGI_SLICES(name, tgi_feed_slices<3>, TG_TYPE_BF16, __VA_ARGS__)
#define TGI_SLICES_fp16x(name, ...) TGI_SLICES(name, tgi_feed_slices<2>, TG_TYPE_FP16, __VA_ARGS__)
#define TGI_SLICES_bf16r(name, ...)                                                                \
    TGI_WGMMA_BOTH_A(name, , tgi_feed_registers, tgi_feed_registers, TG_TYPE_BF16, 0, __VA_ARGS__)

#define TGI_IMAGE_wgmma_slices TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SLICES_##family(name, rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
