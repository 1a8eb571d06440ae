/* Instantiates the kernels of family few for BF16 and FP16. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_IMAGE_few TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, rows, cols, depth, thread_rows, thread_cols, stages,      \
                     threads)                                                                      \
    TGI_WGMMA_16BIT(name, tgi_feed_few, TGI_TYPE_OF(type), rows, cols, thread_rows, stages, threads)
#include "core/kernels.def"
