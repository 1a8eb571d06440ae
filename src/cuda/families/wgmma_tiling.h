/* Chooses how the families on wgmma share out tiles, clusters and splits. */
#ifndef TGI_WGMMA_TILING_H
#define TGI_WGMMA_TILING_H

#include "cuda/families/operand.h"
#include "plan/backend.h"

/* Returns the bytes of a line of A or B in a stage of shared memory. */
int tgi_wgmma_line_bytes(const tgi_kernel *kernel);

/* Returns the workspace bytes of the partial tiles of split-K. */
int64_t tgi_wgmma_partial_tile_bytes(const tgi_kernel *kernel, const tgi_problem *problem,
                                     const tgi_wgmma_decision *decision);

/* Chooses the cluster size and the splits by predicted time. Fills the proposal's legality,
 * decision, workspace_bytes and predicted_s. A batch-invariant problem has splits of
 * split_elems elements (tgi_gemm_invariant_split), except for FP32 by slices. */
void tgi_wgmma_choose_tiling(const tgi_machine *machine, const tgi_problem *problem,
                             const tgi_operand operand[2], int64_t split_elems,
                             tgi_proposal *proposal);

/* Returns 1 if the next kernel is to start where a block of this one has ended, 0 if when all have.
 * In the latter case the same call runs its blocks on the same multiprocessors each time. L2 has
 * two parts, and a line that multiprocessors at both read lies in both. A line that few blocks read
 * is then read by the same part in each call, so that L2 keeps more of large operands for the next
 * call. Clusters that share B start too late to gain from it. */
int tgi_wgmma_is_next_early(const tgi_machine *machine, const tgi_kernel *kernel,
                            const tgi_problem *p, const tgi_operand operand[2], int cluster_rows);

#endif
