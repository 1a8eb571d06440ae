/* Instantiates the kernels of family mma on FP32 that a pass ahead has rounded to TF32. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_tf32_ahead TGI_CHOSEN
#define TGI_INSTANCE(...) TGI_MMA_TF32_AHEAD(__VA_ARGS__)
#include "core/kernels.def"
