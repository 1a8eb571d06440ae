/*
 * Plans the families wgmma, `loose`, bf16x, bf16r and fp16x, which use Hopper's matrix
 * instructions. Decides legality, which operands are repacked or sliced, and whether the problem is
 * transposed.
 */
#include "cuda/families/wgmma.h"

#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/slices.h"
#include "cuda/families/wgmma_tiles.h"
#include "cuda/families/wgmma_tiling.h"
#include "kernels/copy/unaligned_lines.h"
#include "kernels/wgmma/wgmma_shape.h"
#include "model/wgmma_model.h"

#define WORKSPACE_UNIT_BYTES 256
/* The most elements along a side, and the most tiles. The kernel adds a tile, or the number of
 * blocks, to either in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)

int tgi_wgmma_reads_unaligned(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_loose;
}

int64_t tgi_wgmma_shared_bytes(const tgi_kernel *kernel, int is_across)
{
    const int line_bytes = tgi_wgmma_line_bytes(kernel);
    if (tgi_wgmma_is_fitted(kernel))
        return TGI_WGMMA_SHARED_MAX;
    const int row_bytes = tgi_slices_is_a_in_registers(kernel) ? TGI_WGMMA_STEP_BYTES : line_bytes;
    return TGI_WGMMA_SHARED_BYTES(kernel->tile_rows, row_bytes, kernel->tile_cols, line_bytes,
                                  kernel->stage_count, kernel->thread_count, is_across,
                                  tgi_wgmma_reads_unaligned(kernel) ? TGI_UNALIGNED_SLOTS : 0,
                                  TGI_UNALIGNED_SLOT_BYTES);
}

int64_t tgi_wgmma_launch_bytes(const tgi_kernel *kernel, const tgi_cluster_work *work,
                               int is_across)
{
    return tgi_wgmma_is_fitted(kernel) ? tgi_wgmma_fitted_bytes(kernel, work)
                                       : tgi_wgmma_shared_bytes(kernel, is_across);
}

/* Returns the shared memory of a block for the layout of B that needs most. */
static int64_t count_most_shared_bytes(const tgi_kernel *kernel)
{
    const int64_t along = tgi_wgmma_shared_bytes(kernel, 0);
    const int64_t across =
        tgi_type_bytes(kernel->type) == 2 ? tgi_wgmma_shared_bytes(kernel, 1) : 0;
    return across > along ? across : along;
}

/* Returns the number of output tiles over all batch entries. A split-K problem has far fewer,
 * because its partial sums live in the workspace. */
static double count_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return (double)tgi_wgmma_row_clusters(p, kernel->tile_rows, kernel->thread_rows) *
           kernel->thread_rows * (double)tgi_wgmma_col_tiles(kernel, p) * (double)p->batch_count;
}

const char *tgi_wgmma_find_suffix(const tgi_problem *p, const tgi_operand operand[2])
{
    if (tgi_type_bytes(p->type) != 2)
        return "";
    return operand[1].is_across ? "_n" : "_k";
}

void tgi_wgmma_describe(const tgi_kernel *kernel, const tgi_problem *p, tgi_operand operand[2])
{
    const int is_wide = tgi_type_bytes(p->type) == 2;
    const int takes_any_a =
        is_wide || kernel->math == TGI_MATH_tf32 || tgi_slices_is_a_in_registers(kernel);
    tgi_operand_describe(p, 0, takes_any_a, p->is_a_offset, &operand[0]);
    tgi_operand_describe(p, 1, is_wide, p->is_b_offset, &operand[1]);
    if (tgi_wgmma_reads_unaligned(kernel))
        tgi_operand_describe_unaligned(&operand[0]);
}

/* Proposes for the problem without transposing it. Partial tiles come first in the workspace.
 * Splits of a batch-invariant problem have split_elems elements of k. */
static void propose_one(const tgi_machine *machine, const tgi_problem *p, int64_t split_elems,
                        tgi_proposal *proposal)
{
    tgi_operand operand[2];
    if (tgi_kernels_has_slices(proposal->kernel) && !tgi_slices_can_serve(p, proposal))
        return;
    tgi_wgmma_describe(proposal->kernel, p, operand);
    if (tgi_wgmma_reads_unaligned(proposal->kernel) && !operand[0].is_unaligned) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_ALREADY_ALIGNED,
                   "no operand is unaligned: 8 or more lines that begin between multiples of 16 "
                   "bytes, alike in all batch entries; family wgmma takes it");
        return;
    }
    tgi_wgmma_choose_tiling(machine, p, operand, split_elems, proposal);
    proposal->workspace_bytes = tgi_round_up(proposal->workspace_bytes, WORKSPACE_UNIT_BYTES);
    if (tgi_kernels_has_slices(proposal->kernel)) {
        proposal->workspace_bytes =
            tgi_checked_add(proposal->workspace_bytes,
                            tgi_slices_workspace_bytes(machine, proposal->kernel, p,
                                                       proposal->decision.wgmma.split_count));
        proposal->predicted_s += tgi_model_slice_seconds(&machine->gpu, proposal->kernel, p);
        return;
    }
    const int64_t repacked_bytes = tgi_checked_add(tgi_operand_workspace_bytes(&operand[0]),
                                                   tgi_operand_workspace_bytes(&operand[1]));
    proposal->workspace_bytes = tgi_checked_add(proposal->workspace_bytes, repacked_bytes);
    proposal->predicted_s += tgi_model_repack_seconds(&machine->gpu, (double)repacked_bytes,
                                                      tgi_operand_count_repacked(&operand[0]) +
                                                          tgi_operand_count_repacked(&operand[1]));
}

/* Refuses, with the reason, a precision that the kernel does not compute in. */
static int takes_precision(const tgi_problem *p, tgi_proposal *proposal)
{
    const char *name = p->type == TG_TYPE_FP32 ? "tf32" : "default";
    if (tgi_kernels_has_slices(proposal->kernel))
        return tgi_slices_take_precision(p, proposal);
    if (p->precision == (p->type == TG_TYPE_FP32 ? TG_PRECISION_TF32 : TG_PRECISION_DEFAULT))
        return 1;
    tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION, "computes %s only in precision %s",
               tg_get_type_name(p->type), name);
    return 0;
}

/* Returns 1 if the kernel may compute D, or D^T if is_transposed is 1. */
static int may_take_side(const tgi_kernel *kernel, const tgi_problem *p, int is_transposed)
{
    if (is_transposed && p->type != p->b_type)
        return 0;
    return !tgi_kernels_has_slices(kernel) || tgi_slices_may_take_side(p, is_transposed);
}

static void refuse_tiles(const tgi_kernel *kernel, const tgi_problem *p, tgi_proposal *proposal)
{
    tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
               "D has %.0f tiles of %d x %d; %d is the limit: take a larger tile",
               count_tiles(kernel, p), kernel->tile_rows, kernel->tile_cols, COUNT_MAX);
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_problem *p = given;
    tgi_problem panel;
    double panel_count = 1.0;
    if (!tgi_gemm_fits(machine, count_most_shared_bytes(kernel), proposal))
        return;
    if (!takes_precision(p, proposal))
        return;
    if (tgi_kernels_has_slices(kernel)) {
        panel_count =
            tgi_panels_choose(machine, given, proposal, &proposal->decision.wgmma.panel, &panel);
        p = &panel;
        if (panel_count == 0.0)
            return;
    }
    const int64_t sizes[] = {p->m, p->n, p->k, p->batch_count};
    for (int i = 0; i < 4; i++) {
        if (sizes[i] > COUNT_MAX) {
            tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE, "TMA counts to %d; a size is %lld",
                       COUNT_MAX, (long long)sizes[i]);
            return;
        }
    }
    if (count_tiles(kernel, p) > COUNT_MAX) {
        refuse_tiles(kernel, p, proposal);
        return;
    }
    proposal->needs_aligned[0] = proposal->needs_aligned[1] =
        !tgi_kernels_has_slices(kernel) || tgi_slices_is_a_in_registers(kernel);
    const int64_t split_elems = tgi_gemm_invariant_split(machine, given);
    if (may_take_side(kernel, given, 0))
        propose_one(machine, p, split_elems, proposal);
    /* Tiles of the transposed problem have their rows along D's columns. */
    tgi_problem transposed = *p;
    tgi_problem_transpose(&transposed);
    tgi_proposal other = *proposal;
    other.is_legal = 0;
    if (may_take_side(kernel, given, 1))
        propose_one(machine, &transposed, split_elems, &other);
    if (other.is_legal && count_tiles(kernel, &transposed) <= COUNT_MAX &&
        (!proposal->is_legal || other.predicted_s < proposal->predicted_s)) {
        *proposal = other;
        proposal->decision.wgmma.is_transposed = 1;
    } else if (!may_take_side(kernel, given, 0)) {
        proposal->refusal = other.refusal;
        if (other.is_legal)
            refuse_tiles(kernel, &transposed, proposal);
    }
    if (tgi_wgmma_reads_unaligned(kernel)) /* its launch makes tensor maps for any pointer */
        proposal->needs_aligned[proposal->decision.wgmma.is_transposed] = 0;
    proposal->predicted_s *= panel_count;
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_wgmma_decision *decision = &proposal->decision.wgmma;
    tiling->split_count = decision->split_count;
    tiling->whole_tiles = decision->whole_tiles;
    tiling->tile_rows = decision->tile_rows;
    tiling->cluster_rows = decision->cluster_rows;
    tiling->cluster_splits = decision->cluster_splits;
    tiling->is_transposed = decision->is_transposed;
}

const tgi_cuda_planner tgi_cuda_planner_wgmma = {.propose = propose,
                                                 .describe_tiling = describe_tiling};
