/* Instantiates the kernels of attention on BF16. */
#define TGI_IMAGE_attend_bf16 TGI_CHOSEN
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_bf16, TG_TYPE_BF16)
