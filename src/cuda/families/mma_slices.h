/* Family mma on slices of FP32 operands: split-K, for its planning and its launch. */
#ifndef TGI_CUDA_MMA_SLICES_H
#define TGI_CUDA_MMA_SLICES_H

#include "core/problem.h"

/* Returns the bytes of the sums of part_count split-K parts, which the workspace begins with; 0 for
 * one part. */
int64_t tgi_mma_slices_part_bytes(const tgi_problem *problem, int64_t part_count);

/* Makes a problem without batch one whose entries are its part_count split-K parts, of the same
 * length. Its D is their sums in the workspace. */
void tgi_mma_slices_make_parts(int64_t part_count, tgi_problem *problem);

#endif
