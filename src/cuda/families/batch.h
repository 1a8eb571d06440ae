/* Describes the entries that a block of family batch has in shared memory, for planning and
 * launch. */
#ifndef TGI_CUDA_BATCH_H
#define TGI_CUDA_BATCH_H

#include "cuda/families/family.h"
#include "kernels/batch/batch_args.h"

/* Fills the arguments that follow from the problem and the decision, all but args->gemm. Returns
 * 0 if lines of A or B are not contiguous. The sizes are those that `propose` takes. */
int tgi_batch_describe(const tgi_kernel *kernel, const tgi_problem *problem,
                       const tgi_batch_decision *decision, tgi_batch_args *args);

/* Sets the members that follow from the pointers and strides in args->gemm, for blocks of
 * thread_count threads. */
void tgi_batch_complete(int thread_count, tgi_batch_args *args);

#endif
