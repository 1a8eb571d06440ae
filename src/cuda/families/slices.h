/* FP32 operands as slices of 16 bits in the workspace (kernels/slices/slice_args.h). */
#ifndef TGI_CUDA_SLICES_H
#define TGI_CUDA_SLICES_H

#include "core/problem.h"
#include "cuda/cuda.h"
#include "kernels/wgmma/wgmma_args.h"

/* 1 where the kernel cuts A in registers. */
int tgi_slices_are_held(const tgi_kernel *kernel);

/* What k_part_count parts of k need, a multiple of 256. */
int64_t tgi_slices_workspace_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *problem, int64_t k_part_count);

/* Refuses, with the reason, a precision that the kernel does not compute in. */
int tgi_slices_take_precision(const tgi_problem *problem, tgi_proposal *proposal);

/* Refuses, with the reason, a problem that slices do not serve. */
int tgi_slices_can_serve(const tgi_problem *problem, tgi_proposal *proposal);

/* Parts of k of a tile, and rounds of parts that all multiprocessors work on, at most. */
#define TGI_WGMMA_PARTS_MAX 64
#define TGI_WGMMA_CUT_ROUNDS 4

/* Fills what `args`, whose boxes are known, says of the slices, in the workspace from `memory` on,
 * and puts the kernels that make them into the queue. */
tg_status tgi_slices_map(const tgi_cuda_queue *queue, const tgi_call *call, char *memory,
                         tgi_wgmma_args *args);

#endif
