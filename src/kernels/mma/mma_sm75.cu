/* Instantiates the kernels of family mma for chips before sm_80, on FP16. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_sm75 TGI_CHOSEN
#define TGI_INSTANCE(...) TGI_MMA_16_BITS(__VA_ARGS__)
#include "core/kernels.def"
