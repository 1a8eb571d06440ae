/* Families bf16x, bf16r and fp16x: FP32 by products of slices of 16 bits, which lie along k. Family
 * bf16r has a kernel for rows of A along k and one for rows across k. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_SLICES(name, suffix, feed, type, across_a, ...)                                        \
    TGI_WGMMA_EXPAND(name, suffix, feed, type, type, __VA_ARGS__, across_a, 0)
#define TGI_SLICES_bf16x(name, ...)                                                                \
    TGI_SLICES(name, , tgi_feed_slices<3>, TG_TYPE_BF16, 0, __VA_ARGS__)
#define TGI_SLICES_fp16x(name, ...)                                                                \
    TGI_SLICES(name, , tgi_feed_slices<2>, TG_TYPE_FP16, 0, __VA_ARGS__)
#define TGI_SLICES_bf16r(name, ...)                                                                \
    TGI_SLICES(name, _kk, tgi_feed_registers, TG_TYPE_BF16, 0, __VA_ARGS__)                        \
    TGI_SLICES(name, _mk, tgi_feed_registers, TG_TYPE_BF16, 1, __VA_ARGS__)

#define TGI_IMAGE_wgmma_slices TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_SLICES_##family(name, rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
