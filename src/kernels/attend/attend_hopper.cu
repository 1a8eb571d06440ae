/* Instantiates the kernels of attention on BF16 and FP16 for sm_90a. One image has both, because
 * its compression stores what they share once. */
#define TGI_IMAGE_attend_hopper TGI_CHOSEN
#include "kernels/attend/attend_clusters.cuh"
#include "kernels/attend/attend_groups.cuh"
#include "kernels/attend/attend_few_keys.cuh"
#include "kernels/attend/attend_short.cuh"
#include "kernels/attend/attend_instances.cuh"

TGI_ATTEND_MERGE(tgi_attend_merge_bf16, TG_TYPE_BF16)
TGI_ATTEND_MERGE(tgi_attend_merge_fp16, TG_TYPE_FP16)
