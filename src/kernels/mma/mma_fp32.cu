/* Instantiates the kernels of families mma_bf16x and mma_fp16x, which multiply FP32 by products of
 * slices of 16 bits. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/mma/mma_slices_instances.cuh"

#define TGI_IMAGE_mma_fp32 TGI_CHOSEN
#include "core/kernels.def"
