/* Family mma on slices of FP32 operands: mma_bf16x and mma_fp16x. */
#include "cuda/families/gemm.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/slices.h"
#include "kernels/mma/mma_slices_args.h"

/* The kernel counts the elements along a side, and those of a tile beside it, in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    return TGI_MMA_SLICES_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols,
                                       TGI_MMA_SLICES_ROOM(kernel->math == TGI_MATH_fp16x),
                                       kernel->stage_count);
}

/* Returns 1 if all sizes can be counted, else refuses the problem. */
static int counts_sizes(const tgi_problem *p, double tiles, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count};
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > COUNT_MAX)
            return tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                              "the kernel counts to %d; a size is %lld", COUNT_MAX,
                              (long long)sizes[i]);
    }
    return tiles <= INT32_MAX ||
           tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                      "D has %.0f tiles of %d x %d; %d is the limit: take a larger tile", tiles,
                      kernel->tile_rows, kernel->tile_cols, INT32_MAX);
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t shared_bytes = count_shared_bytes(kernel);
    tgi_wgmma_decision *decision = &proposal->decision.wgmma;
    tgi_problem p;
    if (!tgi_gemm_fits(machine, shared_bytes, proposal) ||
        !tgi_slices_take_precision(given, proposal) || !tgi_slices_can_serve(given, proposal))
        return;
    const double panel_count = tgi_panels_choose(machine, given, proposal, &p);
    if (panel_count == 0.0)
        return;
    decision->split_count = decision->cluster_rows = decision->cluster_parts = 1;
    decision->split_elems = p.k;
    /* Products of slices are added in an order that is not the same for A and for B. Rows of a
     * batch-invariant problem are therefore the caller's, whichever way D lies. */
    decision->is_transposed = p.is_batch_invariant && p.is_swapped;
    if (decision->is_transposed)
        tgi_problem_transpose(&p);
    const int by_registers =
        TGI_MMA_SLICES_BLOCKS(kernel->thread_rows * kernel->thread_cols, kernel->thread_count);
    const tgi_tile_work work = {
        .block_count = (double)tgi_divide_up(p.m, kernel->tile_rows) *
                       (double)tgi_divide_up(p.n, kernel->tile_cols) * (double)p.batch_count,
        .block_k = (double)p.k,
        .part_count = 1.0,
        .copy_bytes = TGI_GEMM_VECTOR_BYTES,
        .blocks_per_sm =
            tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, shared_bytes)};
    if (!counts_sizes(&p, work.block_count, proposal))
        return;
    proposal->is_legal = 1;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = tgi_slices_workspace_bytes(machine, kernel, &p, 1);
    proposal->predicted_s = panel_count * (tgi_model_mma_seconds(&machine->gpu, kernel, &p, &work) +
                                           tgi_model_slice_seconds(&machine->gpu, kernel, &p));
}

static void describe_split(const tgi_proposal *proposal, tgi_plan_split *split)
{
    split->is_transposed = proposal->decision.wgmma.is_transposed;
}

const tgi_cuda_planner tgi_cuda_planner_mma_slices = {propose, describe_split};
