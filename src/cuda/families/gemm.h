/* Declares the planning that the production families share: access to operands and splits. */
#ifndef TGI_CUDA_GEMM_H
#define TGI_CUDA_GEMM_H

#include "core/checked.h"
#include "cuda/families/family.h"
#include "model/tile_model.h"

/* The most bytes of workspace that plans use for partial sums, and for a repacked A of rank and
 * dot. A context opens with this much, so that its first plans allocate only for larger operand
 * copies. */
#define TGI_WORKSPACE_BYTES_MAX ((int64_t)32 << 20)

#define TGI_GEMM_VECTOR_BYTES 16 /* bytes of the widest access of a thread */

/* Return 1 if the operand's shorter stride runs along k. */
int tgi_gemm_is_a_along_k(const tgi_problem *problem);
int tgi_gemm_is_b_along_k(const tgi_problem *problem);

/* Return 1 if the strides allow accesses of 16 bytes to A or B, along k or across it, or to D. */
int tgi_gemm_has_a_vectors(const tgi_problem *problem, int along_k);
int tgi_gemm_has_b_vectors(const tgi_problem *problem, int along_k);
int tgi_gemm_has_d_vectors(const tgi_problem *problem);

/* Return the widest access that the strides of A and B, or of B alone, allow: 16 bytes or elements.
 * Pointers are not considered. */
tgi_access tgi_gemm_find_access(const tgi_problem *problem);
tgi_access tgi_gemm_find_b_access(const tgi_problem *problem);

/* Returns the tiles of a batch entry of D. */
int64_t tgi_gemm_count_tiles(const tgi_kernel *kernel, const tgi_problem *problem);

/* Returns the bytes of the sums of split_count splits of D, or 0 for one split. */
int64_t tgi_gemm_split_bytes(const tgi_problem *problem, int64_t split_count);

/* Returns 1 if the batch-invariant problem of FP64 is summed in teams, whatever m is. */
int tgi_gemm_is_in_fp64_teams(const tgi_machine *machine, const tgi_problem *problem);

/* Returns the elements along k of each split of a batch-invariant problem, or k if it is not
 * split. They depend only on the caller's n and on k, so that bits are the same for every m. If D
 * has few rows, splits fill the multiprocessors. If D has many rows, adding the splits takes a
 * fraction of the time of the products, and the bytes of their sums are a small multiple of A's. */
int64_t tgi_gemm_invariant_split(const tgi_machine *machine, const tgi_problem *problem);

/* Returns the threads of a block that share out an element's splits when they are added. Each adds
 * some, and then their sums are added. */
unsigned tgi_gemm_count_add_rows(const tgi_problem *problem, int64_t split_count);

typedef double tgi_gemm_predict(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_problem *problem, const tgi_tile_work *work);

/* Tries about `wanted` splits of whole stages, and fills the proposal if they are predicted
 * to be faster than what was tried before. `work` describes a k that is not split. Returns 0 if the
 * splits do not fit into the workspace. */
int tgi_gemm_try_splits(const tgi_machine *machine, const tgi_problem *problem,
                        const tgi_tile_work *work, tgi_gemm_predict *predict, int64_t wanted,
                        tgi_proposal *proposal);

/* Takes the splits of a batch-invariant problem. */
void tgi_gemm_take_invariant_splits(const tgi_machine *machine, const tgi_problem *problem,
                                    const tgi_tile_work *work, tgi_gemm_predict *predict,
                                    tgi_proposal *proposal);

/* Tries 1, 2, 4 ... splits and numbers of splits that fill all multiprocessors, or takes
 * those of a batch-invariant problem. */
void tgi_gemm_split_k(const tgi_machine *machine, const tgi_problem *problem,
                      const tgi_tile_work *work, tgi_gemm_predict *predict, tgi_proposal *proposal);

/* Describes the tiling of a family that decides by tgi_gemm_try_splits. */
void tgi_gemm_describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling);

/* Sets the proposal's shared_bytes. Returns 1 if the chip has that much for a block, and as many
 * threads as a block of the kernel has, else refuses the problem and returns 0. */
int tgi_gemm_fits(const tgi_machine *machine, int64_t shared_bytes, tgi_proposal *proposal);

/* Returns 1 if the kernel rounds sums as the precision asks, else refuses the problem and returns
 * 0. */
int tgi_gemm_rounds_sums(const tgi_problem *problem, tgi_proposal *proposal);

/* Returns 1 if the epilogue has at most alpha, C, a bias and RELU, or any activation if has_all is
 * 1. */
int tgi_gemm_has_terms(const tgi_problem *problem, int has_all);

/* Returns how many blocks of the kernel share a multiprocessor: at least one, at most
 * by_registers. */
int tgi_gemm_count_resident(const tgi_gpu *gpu, const tgi_kernel *kernel, int by_registers,
                            int64_t shared_bytes);

/* Returns the multiprocessors that clusters of so many blocks can use. Clusters run within groups
 * of multiprocessors, which differ in size, so that some multiprocessors get none. */
int64_t tgi_gemm_count_cluster_sms(const tgi_gpu *gpu, int cluster_blocks);

#endif
