/* Plans the family simt: FP32 tiles on CUDA cores, for any size and layout. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "kernels/simt/simt_shape.h"

#define SPLITS_MAX 512
#define ROUNDS_MAX 4

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_SIMT_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                 kernel->thread_rows, kernel->thread_cols, kernel->stage_count,
                                 kernel->thread_count);
}

/* Tries a k that is not split, and splits that give one block to each multiprocessor, or
 * full rounds of all blocks that run at once. A batch-invariant problem has its own splits. */
static void choose_splits(const tgi_machine *machine, const tgi_problem *p,
                          const tgi_tile_work *whole, tgi_proposal *proposal)
{
    const double slots = (double)machine->gpu.sm_count * whole->blocks_per_sm;
    proposal->resident_blocks = whole->blocks_per_sm;
    if (p->is_batch_invariant) {
        tgi_gemm_take_invariant_splits(machine, p, whole, tgi_model_simt_seconds, proposal);
        return;
    }
    tgi_gemm_try_splits(machine, p, whole, tgi_model_simt_seconds, 1, proposal);
    for (int rounds = 0; rounds <= ROUNDS_MAX; rounds++) {
        double blocks = rounds == 0 ? (double)machine->gpu.sm_count : rounds * slots;
        double wanted = blocks / whole->block_count;
        if (wanted >= 2.0)
            tgi_gemm_try_splits(machine, p, whole, tgi_model_simt_seconds,
                                wanted < SPLITS_MAX ? (int64_t)wanted : SPLITS_MAX, proposal);
    }
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const double tiles = (double)tgi_gemm_count_tiles(kernel, p) * (double)p->batch_count;
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return;
    if (tiles > (double)INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "the grid would be %.0f blocks; %d is the limit: take a larger tile", tiles,
                   INT32_MAX);
        return;
    }
    const int by_registers =
        TGI_SIMT_BLOCKS_PER_SM(kernel->thread_rows * kernel->thread_cols, kernel->thread_count);
    const int resident =
        tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, count_shared_bytes(kernel));
    const tgi_tile_work work = {.block_count = tiles, .blocks_per_sm = resident};
    choose_splits(machine, p, &work, proposal);
}

const tgi_cuda_planner tgi_cuda_planner_simt = {
    .propose = propose, .describe_tiling = tgi_gemm_describe_tiling, .has_last_round = 1};
