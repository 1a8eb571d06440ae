/* Declares a tensor as TMA reads it. Planners and launchers describe it, the runtime encodes it. */
#ifndef TGI_CUDA_TENSOR_H
#define TGI_CUDA_TENSOR_H

#include "kernels/tma_map.h"

/* A tensor has count[2] batch entries of count[1] runs of count[0] contiguous elements. If count[3]
 * is not 0, it has that many groups of batch entries. */
typedef struct tgi_tensor {
    int64_t elem_bytes, count[4];
    int64_t stride_bytes[3];         /* from run to run, from entry to entry, from group to group */
    int tma_box_elems, tma_box_runs; /* elements of a run, and runs, of a TMA box */
    int is_swizzled;                 /* 1: shared memory has the 128-byte swizzle */
    int is_rounded;                  /* 1: TMA rounds FP32 to the nearest TF32 */
} tgi_tensor;

#endif
