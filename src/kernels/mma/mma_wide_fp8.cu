/* Instantiates the kernels of family mma on FP8 for chips without instructions for it. */
#define TGI_LEAST_D_BYTES 1

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_wide_fp8 TGI_CHOSEN
#define TGI_INSTANCE(name, family, type, ...) TGI_MMA_FP8(tgi_mma_wide_fp8, name, type, __VA_ARGS__)
#include "core/kernels.def"
