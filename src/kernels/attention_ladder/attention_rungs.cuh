/* Includes the rungs of attention, each in a namespace that bears its family's name. */
#ifndef TGI_ATTENTION_RUNGS_CUH
#define TGI_ATTENTION_RUNGS_CUH

#include <float.h>
#include <math.h>

#include "kernels/attention_ladder/attention_rung_args.h"
/* These headers are read here, outside the namespaces of the rungs. */
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/convert.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"

namespace attention_naive
{
#include "kernels/attention_ladder/a1_attention_naive.cu"
}
namespace attention_tiled
{
#include "kernels/attention_ladder/a2_attention_tiled.cu"
}
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
namespace attention_mma
{
#include "kernels/attention_ladder/a3_attention_mma.cu"
}
#endif

#endif
