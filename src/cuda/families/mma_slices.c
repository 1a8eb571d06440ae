/* Plans the families mma_bf16x and mma_fp16x: family mma on slices of FP32 operands. */
#include "cuda/families/mma_slices.h"

#include "cuda/families/gemm.h"
#include "cuda/families/mma.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/slices.h"
#include "kernels/mma/mma_slices_args.h"

/* The kernel counts the elements along a side, and those of a tile beside it, in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)
#define SPLITS_MAX 64
#define SPLIT_ROUNDS 4    /* rounds of blocks that splits are tried up to */
#define SPLIT_K_LEAST 128 /* shorter splits would take longer to add than to form */

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

int64_t tgi_mma_slices_split_bytes(const tgi_problem *p, int64_t split_count)
{
    return tgi_round_up(tgi_gemm_split_bytes(p, split_count), TGI_MMA_WORKSPACE_UNIT_BYTES);
}

void tgi_mma_slices_make_splits(int64_t split_count, tgi_problem *p)
{
    const tgi_problem whole = *p;
    p->k = whole.k / split_count;
    p->batch_count = split_count;
    p->a.batch = p->k * whole.a.col;
    p->b.batch = p->k * whole.b.row;
    p->d = (tgi_layout){whole.n, 1, whole.m * whole.n};
    p->d_type = TG_TYPE_FP32;
    p->epilogue = (tgi_epilogue){.alpha = 1.0};
}

/* Tries split_count splits, or a whole k if it is 1. team_count teams of a block share out
 * the chunks of a split. `whole` describes a whole k. */
static void try_splits(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                       int64_t split_count, int team_count, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t shared_bytes = team_count * count_shared_bytes(kernel);
    tgi_problem splits = *p;
    tgi_tile_work work = *whole;
    if (split_count > 1)
        tgi_mma_slices_make_splits(split_count, &splits);
    work.block_count *= (double)split_count;
    /* Teams all have the same number of chunks. They are tried only if every block runs at once,
     * because they would otherwise take the places of blocks. */
    if (team_count > 1 && (tgi_divide_up(splits.k, kernel->tile_depth) % team_count ||
                           work.block_count > machine->gpu.sm_count ||
                           shared_bytes > machine->gpu.shared_bytes_per_block))
        return;
    /* Teams multiply like team_count blocks that share a multiprocessor. */
    work.block_count *= team_count;
    work.block_k = (double)splits.k / team_count;
    work.split_count = (double)split_count;
    const double seconds = tgi_model_mma_seconds(&machine->gpu, kernel, p, &work) +
                           tgi_model_slice_seconds(&machine->gpu, kernel, p);
    const int64_t bytes = tgi_checked_add(tgi_mma_slices_split_bytes(p, split_count),
                                          tgi_slices_workspace_bytes(machine, kernel, &splits, 1));
    if (proposal->is_legal &&
        (seconds >= proposal->predicted_s || bytes > tgi_panels_find_limit(machine)))
        return;
    proposal->is_legal = 1;
    proposal->shared_bytes = shared_bytes;
    proposal->resident_blocks = team_count > 1 ? 1 : whole->blocks_per_sm;
    proposal->decision.mma_slices.team_count = team_count;
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = bytes;
    proposal->decision.mma_slices.split_count = split_count;
    proposal->decision.mma_slices.split_elems = splits.k;
}

/* Tries teams and splits for a D of few tiles. Splits have equal lengths, because the kernels
 * form them like the products of a batch, so that only divisors of k split it. */
static void split_k(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                    tgi_proposal *proposal)
{
    const double slots = (double)machine->gpu.sm_count * whole->blocks_per_sm;
    const int teams_most =
        TGI_MMA_SLICES_TEAMS(TGI_MMA_SLICES_ROOM(proposal->kernel->math == TGI_MATH_fp16x));
    if (p->is_batch_invariant || proposal->decision.mma_slices.panel.rows)
        return;
    try_splits(machine, p, whole, 1, teams_most, proposal);
    if (p->batch_count > 1)
        return;
    for (int64_t count = 2; count <= SPLITS_MAX && p->k / count >= SPLIT_K_LEAST; count++) {
        if (whole->block_count * (double)count > SPLIT_ROUNDS * slots ||
            tgi_gemm_split_bytes(p, count) > TGI_WORKSPACE_BYTES_MAX)
            return;
        if (p->k % count)
            continue;
        try_splits(machine, p, whole, count, 1, proposal);
        try_splits(machine, p, whole, count, teams_most, proposal);
    }
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t shared_bytes = count_shared_bytes(kernel);
    tgi_mma_slices_decision *decision = &proposal->decision.mma_slices;
    tgi_problem p;
    if (!tgi_gemm_fits(machine, shared_bytes, proposal) ||
        !tgi_slices_take_precision(given, proposal) || !tgi_slices_can_serve(given, proposal))
        return;
    const double panel_count = tgi_panels_choose(machine, given, proposal, &decision->panel, &p);
    if (panel_count == 0.0)
        return;
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
        .copy_bytes = TGI_GEMM_VECTOR_BYTES,
        .blocks_per_sm =
            tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, shared_bytes)};
    if (!counts_sizes(&p, work.block_count, proposal))
        return;
    try_splits(machine, &p, &work, 1, 1, proposal);
    split_k(machine, &p, &work, proposal);
    proposal->predicted_s *= panel_count;
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_mma_slices_decision *decision = &proposal->decision.mma_slices;
    tiling->split_count = decision->split_count;
    tiling->thread_count = proposal->kernel->thread_count * decision->team_count;
    tiling->is_transposed = decision->is_transposed;
}

const tgi_cuda_planner tgi_cuda_planner_mma_slices = {.propose = propose,
                                                      .describe_tiling = describe_tiling};
