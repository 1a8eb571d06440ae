/* Instantiates the kernels of attention of few queries on FP32 and FP64. */
#define TGI_IMAGE_attend_few TGI_CHOSEN
#include "kernels/attend/attend_few_queries.cuh"
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_fp32, TG_TYPE_FP32)
TGI_ATTEND_MERGE(tgi_attend_merge_fp64, TG_TYPE_FP64)
