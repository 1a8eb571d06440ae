/* Instantiates the kernels of family mma on FP32 that a pass ahead has rounded to TF32. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_rounded_tf32 TGI_CHOSEN
#define TGI_INSTANCE(...) TGI_MMA_ROUNDED_TF32(__VA_ARGS__)
#include "core/kernels.def"
