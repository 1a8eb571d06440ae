/* Describes FP32 operands as slices of 16 bits in the workspace (kernels/copy/slice_args.h). */
#ifndef TGI_CUDA_SLICES_H
#define TGI_CUDA_SLICES_H

#include "core/problem.h"
#include "kernels/copy/slice_args.h"
#include "plan/backend.h"

/* The most splits of a tile, and the most rounds of splits in which all multiprocessors work,
 * for splits of any length and for runs of k. */
#define TGI_WGMMA_SPLITS_MAX 64
#define TGI_WGMMA_SPLIT_ROUNDS 4
#define TGI_WGMMA_RUN_ROUNDS 8

/* Returns 1 if the kernel slices A in registers, where matrix instructions read it. */
int tgi_slices_is_a_in_registers(const tgi_kernel *kernel);

/* Returns 1 if slices of the precision are scaled by powers of two, as those of FP16 are, which
 * has a narrower range than FP32. */
int tgi_slices_are_scaled(tg_precision precision);

/* Describes how A, or B if is_b is 1, is sliced. The job is divided among sm_count multiprocessors,
 * and its pointers are NULL. */
void tgi_slices_describe(const tgi_problem *problem, int is_b, int sm_count, tgi_slice_job *job);

/* tgi_slice_places has the offsets in the workspace, in bytes, of the results of a job. A result
 * that the job does not make has offset 0. */
typedef struct tgi_slice_places {
    int64_t slices, ranges, line_largest, line_scale;
} tgi_slice_places;

/* Finds the places of A's and B's slices for split_count splits. The workspace begins with
 * the sums of runs of k. Returns its bytes, a multiple of 256. */
int64_t tgi_slices_place(const tgi_machine *machine, const tgi_kernel *kernel,
                         const tgi_problem *problem, int64_t split_count,
                         tgi_slice_places places[2]);

/* Returns the workspace bytes, as tgi_slices_place does. */
int64_t tgi_slices_workspace_bytes(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *problem, int64_t split_count);

/* Return 1 if slices serve the problem and its precision; else refuse the problem with the reason
 * and return 0. */
int tgi_slices_take_precision(const tgi_problem *problem, tgi_proposal *proposal);
int tgi_slices_can_serve(const tgi_problem *problem, tgi_proposal *proposal);

/* Returns 1 if a kernel of slices may compute D, or D^T if is_transposed is 1. Products of slices
 * are added in the order of A's slices, so the bits depend on which operand is the kernel's A. For
 * a batch-invariant problem the caller's n alone decides: the rows of the kernel are the caller's
 * columns if there are many, so that bf16r reads a large B once for any m. */
int tgi_slices_may_take_side(const tgi_problem *problem, int is_transposed);

#endif
