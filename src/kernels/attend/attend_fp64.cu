/* Instantiates the kernels of attention on FP64. */
#define TGI_IMAGE_attend_fp64 TGI_CHOSEN
#include "kernels/attend/attend_multiply_adds.cuh"
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_fp64, TG_TYPE_FP64)
