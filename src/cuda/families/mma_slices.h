/* Declares split-K of family mma on slices of FP32 operands, for its planning and its launch. */
#ifndef TGI_CUDA_MMA_SLICES_H
#define TGI_CUDA_MMA_SLICES_H

#include "core/problem.h"

/* Returns the bytes of the sums of part_count split-K parts, which the workspace begins with; 0 for
 * one part. */
int64_t tgi_mma_slices_part_bytes(const tgi_problem *problem, int64_t part_count);

/* Turns a problem without a batch into a batch of its part_count split-K parts, which have equal
 * lengths. D of the new problem is the sums of the parts in the workspace. */
void tgi_mma_slices_make_parts(int64_t part_count, tgi_problem *problem);

#endif
