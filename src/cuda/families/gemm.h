/* Planning that the production families share: access to operands, split-K parts. */
#ifndef TGI_CUDA_GEMM_H
#define TGI_CUDA_GEMM_H

#include "core/round.h"
#include "cuda/families/family.h"
#include "model/tile_model.h"

/* Partial sums of a plan, and A of rank and dot, repacked: more than that is not planned. A context
 * opens with as much: its first plans allocate nothing but for larger copies of operands. */
#define TGI_WORKSPACE_BYTES_MAX ((int64_t)32 << 20)

#define TGI_GEMM_VECTOR_BYTES 16 /* of the widest access of a thread */

/* Return 1 if the operand's shorter stride runs along k. */
int tgi_gemm_is_a_along_k(const tgi_problem *problem);
int tgi_gemm_is_b_along_k(const tgi_problem *problem);

/* Return 1 if the strides allow accesses of 16 bytes to A or B, along k or across it, or to D. */
int tgi_gemm_has_a_vectors(const tgi_problem *problem, int along_k);
int tgi_gemm_has_b_vectors(const tgi_problem *problem, int along_k);
int tgi_gemm_has_d_vectors(const tgi_problem *problem);

/* Return how the strides of A and B, or of B alone, allow them to be read: by 16 bytes or by
 * elements. Pointers are another matter. */
tgi_access tgi_gemm_find_access(const tgi_problem *problem);
tgi_access tgi_gemm_find_b_access(const tgi_problem *problem);

/* Returns the bytes of the sums of k_part_count split-K parts of D, 0 for one part. */
int64_t tgi_gemm_part_bytes(const tgi_problem *problem, int64_t k_part_count);

typedef double tgi_gemm_predict(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

/* Fills the proposal where k in some `wanted` parts of whole stages is predicted to be faster than
 * what was tried before. `work` is that of whole k. Returns 0 if the parts would not fit. */
int tgi_gemm_try_parts(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_tile_work *work, tgi_gemm_predict *predict, int64_t wanted,
                       tgi_proposal *proposal);

/* Tries 1, 2, 4 ... parts; 1 alone where the order of sums is to depend on k alone. */
void tgi_gemm_cut_k(const tgi_machine *machine, const tgi_problem *problem,
                    const tgi_tile_work *work, tgi_gemm_predict *predict, tgi_proposal *proposal);

/* Describes the cut of a family that decides by tgi_gemm_try_parts. */
void tgi_gemm_describe_cut(const tgi_proposal *proposal, tgi_plan_cut *cut);

/* Notes the shared memory of a block, and refuses, with the reason, a kernel whose block needs more
 * than the chip has. */
int tgi_gemm_fits(const tgi_machine *machine, int64_t shared_bytes, tgi_proposal *proposal);

/* Returns the blocks that share a multiprocessor: at most by_registers, one at least. */
int tgi_gemm_count_resident(const tgi_machine *machine, int by_registers, int64_t shared_bytes);

#endif
