/* Declares split-K of family mma on slices of FP32 operands, for its planning and its launch. */
#ifndef TGI_CUDA_MMA_SLICES_H
#define TGI_CUDA_MMA_SLICES_H

#include "core/problem.h"

/* Returns the bytes of the sums of split_count splits, which the workspace begins with; 0 for
 * one split. */
int64_t tgi_mma_slices_split_bytes(const tgi_problem *problem, int64_t split_count);

/* Turns a problem without a batch into a batch of its split_count splits, which have equal
 * lengths. D of the new problem is the sums of the splits in the workspace. */
void tgi_mma_slices_make_splits(int64_t split_count, tgi_problem *problem);

#endif
