/* Family wgmma for FP32 rounded to TF32. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/wgmma/wgmma_instances.cuh"

#define TGI_IMAGE_wgmma_tf32 TGI_CHOSEN
#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, thread_rows, thread_cols,     \
                        stages, threads)                                                           \
    TGI_ROW(image, isa,                                                                            \
            TGI_WGMMA_TF32(TGI_CUDA_NAME(family, isa, type, rows, cols, depth), TG_TYPE_##type,    \
                           rows, cols, thread_rows, stages, threads))
#include "core/kernels.def"
