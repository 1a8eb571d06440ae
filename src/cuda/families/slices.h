/* FP32 operands as slices of 16 bits in the workspace (kernels/copy/slice_args.h). */
#ifndef TGI_CUDA_SLICES_H
#define TGI_CUDA_SLICES_H

#include "core/problem.h"
#include "kernels/copy/slice_args.h"
#include "plan/backend.h"

/* Split-K parts of a tile, and rounds of parts that all multiprocessors work on, at most. */
#define TGI_WGMMA_PARTS_MAX 64
#define TGI_WGMMA_CUT_ROUNDS 4

/* Returns 1 if the kernel cuts A in registers. */
int tgi_slices_are_held(const tgi_kernel *kernel);

/* Describes how A, or B where is_b is 1, is cut; pointers are NULL. `sm_count` multiprocessors
 * should find work. */
void tgi_slices_describe(const tgi_problem *problem, int is_b, int sm_count, tgi_slice_job *job);

/* Offsets in the workspace, in bytes, of what a job makes; 0 where it does not make it. */
typedef struct tgi_slice_places {
    int64_t slices, ranges, line_largest, line_scale;
} tgi_slice_places;

/* Finds the places of A's and B's slices in a workspace that begins with the sums of runs of k, for
 * k_part_count split-K parts; returns the bytes of it all, a multiple of 256. */
int64_t tgi_slices_place(const tgi_machine *machine, const tgi_kernel *kernel,
                         const tgi_problem *problem, int64_t k_part_count,
                         tgi_slice_places places[2]);

/* Returns the bytes that tgi_slices_place does. */
int64_t tgi_slices_workspace_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *problem, int64_t k_part_count);

/* Refuses, with the reason, a precision that the kernel does not compute in. */
int tgi_slices_take_precision(const tgi_problem *problem, tgi_proposal *proposal);

/* Refuses, with the reason, a problem that slices do not serve. */
int tgi_slices_can_serve(const tgi_problem *problem, tgi_proposal *proposal);

#endif
