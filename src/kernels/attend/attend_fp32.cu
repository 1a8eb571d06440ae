/* Instantiates the kernels of attention on FP32. */
#define TGI_IMAGE_attend_fp32 TGI_CHOSEN
#include "kernels/attend/attend_multiply_adds.cuh"
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_fp32, TG_TYPE_FP32)
