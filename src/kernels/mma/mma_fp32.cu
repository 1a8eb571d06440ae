/* The kernels of family mma on FP32 operands that were sliced. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/mma/mma_instances.cuh"
#include "kernels/mma/mma_slices.cuh"

#define TGI_SLICES_mma_bf16x(name, ...)                                                            \
    TGI_MMA(name##_6, 1, 1, __VA_ARGS__, tgi_mma_slices<TG_TYPE_BF16, 3, 6>)                       \
    TGI_MMA(name##_3, 1, 1, __VA_ARGS__, tgi_mma_slices<TG_TYPE_BF16, 2, 3>)
#define TGI_SLICES_mma_fp16x(name, ...)                                                            \
    TGI_MMA(name##_3, 1, 1, __VA_ARGS__, tgi_mma_slices<TG_TYPE_FP16, 2, 3>)

#define TGI_IMAGE_mma_fp32 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, ...) TGI_SLICES_##family(name, __VA_ARGS__)
#include "core/kernels.def"
