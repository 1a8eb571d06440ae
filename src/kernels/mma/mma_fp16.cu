/* The kernels of family mma on FP16. */
#define TGI_LEAST_D_BYTES 2

#include "kernels/mma/mma_instances.cuh"

#define TGI_IMAGE_mma_fp16 TGI_CHOSEN
#include "core/kernels.def"
