/* Instantiates the kernels of family mma_fp16x for chips before sm_80, which have matrix
 * instructions of FP16 alone. */
#define TGI_LEAST_D_BYTES 4

#include "kernels/mma/mma_slices_instances.cuh"

#define TGI_IMAGE_mma_fp16x TGI_CHOSEN
#include "core/kernels.def"
