/* Attention on FP16 for sm_90a. */
#define TGI_IMAGE_attend_hopper_fp16 TGI_CHOSEN
#define TGI_ATTEND_TYPE TG_TYPE_FP16
#define TGI_ATTEND_MERGE tgi_attend_merge_fp16
#include "kernels/attend/attend_clusters.cuh"
#include "kernels/attend/attend_groups.cuh"
#include "kernels/attend/attend_light.cuh"
#include "kernels/attend/attend_instances.cuh"
