/* Instantiates the kernels of family mma on BF16 with tiles above 64 x 64. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_large_bf16 TGI_CHOSEN
#define TGI_INSTANCE(...) TGI_MMA_LARGE_16_BITS(__VA_ARGS__)
#include "core/kernels.def"
