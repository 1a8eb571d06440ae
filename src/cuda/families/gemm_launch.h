/* Launch code that the production families share: kernel arguments, the sum of split-K parts. */
#ifndef TGI_CUDA_GEMM_LAUNCH_H
#define TGI_CUDA_GEMM_LAUNCH_H

#include "cuda/families/family.h"
#include "cuda/runtime/launch.h"
#include "kernels/gemm_args.h"

/* Fills all that does not depend on a call: pointers stay NULL, and elements of an access are those
 * of aligned pointers. k is whole. */
void tgi_gemm_prepare_args(const tgi_problem *problem, tgi_gemm_args *args);

/* Completes arguments of a call, a copy of those of the plan: pointers, alpha, beta, and accesses
 * by single elements where a pointer is not aligned. is_transposed: A and B change places. */
void tgi_gemm_complete_args(const tgi_call *call, int is_transposed, tgi_gemm_args *args);

/* Prepares the kernel that adds the split-K parts that another one has left in the workspace;
 * nothing where k is not split. */
void tgi_gemm_prepare_add(const tgi_gemm_args *args, tgi_cuda_kernel *add);

/* The prepared block of families whose decision is a tgi_tile_decision. */
typedef struct tgi_tile_prepared {
    tgi_gemm_args args;
    tgi_cuda_kernel multiply, add;
} tgi_tile_prepared;

/* Returns the size of a tgi_tile_prepared. */
int64_t tgi_tile_count_prepared_bytes(const tgi_problem *problem, const tgi_proposal *proposal);

/* Prepares the arguments, the row's kernel but for its grid, and the sum of the parts. */
void tgi_tile_prepare(const tgi_problem *problem, const tgi_proposal *proposal,
                      tgi_tile_prepared *prepared);

/* Launches the kernel and the sum of the parts. */
tg_status tgi_tile_launch(const tgi_cuda_queue *queue, const tgi_call *call, void *prepared);

#endif
