/*
 * Plans the family bf16d, whose kernels slice both operands as they read them. The blocks of a
 * cluster share out the runs of k, after each of which sums are added in order, so that the bits do
 * not depend on their number.
 */
#include <math.h>

#include "cuda/families/gemm.h"
#include "cuda/families/slices.h"
#include "kernels/bf16d/bf16d_args.h"

#define CLUSTER_MAX 8
#define RUN_ELEMS (TGI_RUN_CHUNKS * TGI_CHUNK_ELEMS)
#define RUNS_MAX 8 /* the most runs of a block that wait in shared memory */

/* Returns the lines of a tile that are not loaded by 16 bytes along k. */
static double count_across_lines(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int has_a = tgi_gemm_is_a_along_k(p) && tgi_gemm_has_a_vectors(p, 1);
    const int has_b = tgi_gemm_is_b_along_k(p) && tgi_gemm_has_b_vectors(p, 1);
    return (has_a ? 0.0 : kernel->tile_rows) + (has_b ? 0.0 : kernel->tile_cols);
}

/* Proposes clusters of `blocks` blocks, if they are predicted to be the fastest so far. */
static void try_cluster(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                        int blocks, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t runs = tgi_divide_up(p->k, RUN_ELEMS), of_block = tgi_divide_up(runs, blocks);
    const int64_t kept_runs = blocks > 1 ? of_block : 1;
    const int64_t shared_bytes = TGI_BF16D_SHARED_BYTES(kernel->tile_cols, kept_runs);
    if (blocks > 1 && (of_block > RUNS_MAX || tgi_divide_up(runs, of_block) != blocks))
        return;
    const int resident =
        tgi_gemm_count_resident(&machine->gpu, kernel, TGI_BF16D_BLOCKS, shared_bytes);
    const double slots =
        (double)(tgi_gemm_count_cluster_sms(&machine->gpu, blocks) * resident) / blocks;
    const tgi_tile_work work = {.block_count = (double)tgi_gemm_count_tiles(kernel, p) *
                                               (double)p->batch_count * blocks,
                                .block_k = (double)(blocks > 1 ? of_block * RUN_ELEMS : p->k),
                                .split_count = 1.0,
                                .cluster_blocks = blocks,
                                .across_lines = count_across_lines(kernel, p),
                                .blocks_per_sm = resident};
    if (blocks > 1 && work.block_count / blocks > floor(slots))
        return; /* clusters that do not all run at once wait for each other */
    const double seconds = tgi_model_bf16d_seconds(&machine->gpu, kernel, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = resident;
    proposal->shared_bytes = shared_bytes;
    proposal->workspace_bytes = 0;
    proposal->decision.tile =
        (tgi_tile_decision){.split_elems = blocks > 1 ? of_block * RUN_ELEMS : p->k,
                            .split_count = 1,
                            .is_transposed = is_transposed,
                            .direct_cluster = blocks};
}

static void propose_one(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                        tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (tgi_divide_up(p->m, kernel->tile_rows) > TGI_GRID_HEIGHT_MAX ||
        tgi_divide_up(p->n, kernel->tile_cols) > INT32_MAX ||
        p->batch_count > TGI_GRID_HEIGHT_MAX / CLUSTER_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "the grid would have more than %d tiles down or %d batch entries",
                   TGI_GRID_HEIGHT_MAX, TGI_GRID_HEIGHT_MAX / CLUSTER_MAX);
        return;
    }
    for (int blocks = 1; blocks <= CLUSTER_MAX; blocks++)
        try_cluster(machine, p, is_transposed, blocks, proposal);
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    tgi_problem transposed = *p;
    const int64_t most_bytes =
        TGI_BF16D_SHARED_BYTES((int64_t)proposal->kernel->tile_cols, RUNS_MAX);
    if (!tgi_gemm_fits(machine, most_bytes, proposal) || !tgi_slices_take_precision(p, proposal) ||
        !tgi_slices_can_serve(p, proposal))
        return;
    if (tgi_slices_may_take_side(p, 0))
        propose_one(machine, p, 0, proposal);
    tgi_problem_transpose(&transposed);
    if (tgi_slices_may_take_side(p, 1))
        propose_one(machine, &transposed, 1, proposal);
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    tiling->is_transposed = proposal->decision.tile.is_transposed;
    tiling->cluster_splits = proposal->decision.tile.direct_cluster;
}

const tgi_cuda_planner tgi_cuda_planner_bf16d = {.propose = propose,
                                                 .describe_tiling = describe_tiling};
