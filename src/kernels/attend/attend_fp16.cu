/* Instantiates the kernels of attention on FP16. */
#define TGI_IMAGE_attend_fp16 TGI_CHOSEN
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_fp16, TG_TYPE_FP16)
