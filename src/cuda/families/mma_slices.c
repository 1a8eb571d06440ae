/*
 * Plans families mma_bf16x and mma_fp16x: FP32 operands are sliced into the workspace
 * (kernels/copy/slice_args.h), and tiles of D are formed as in family mma. D is not split along k.
 */
#include "cuda/families/gemm.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/slices.h"
#include "kernels/mma/mma_shape.h"

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_problem panel;
    if (!tgi_slices_take_precision(p, proposal))
        return;
    const int elem_bytes = 2 * tgi_precision_sliced(p->precision)->slice_count;
    const int64_t shared_bytes =
        TGI_MMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth, elem_bytes,
                             kernel->stage_count, kernel->thread_count);
    if (!tgi_gemm_fits(machine, shared_bytes, proposal) || !tgi_slices_can_serve(p, proposal))
        return;
    const double panel_count = tgi_panels_choose(machine, p, proposal, &panel);
    if (panel_count != 1.0) {
        if (panel_count > 0.0)
            tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                       "slices of the operands need more workspace than the limit");
        return;
    }
    const double tile_count = (double)tgi_divide_up(p->m, kernel->tile_rows) *
                              (double)tgi_divide_up(p->n, kernel->tile_cols) *
                              (double)p->batch_count;
    if (tile_count > INT32_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE, "D has %.0f tiles; %d is the limit",
                   tile_count, INT32_MAX);
        return;
    }
    const int by_registers =
        TGI_MMA_BLOCKS_PER_SM(2 * kernel->thread_rows * kernel->thread_cols, kernel->thread_count);
    const tgi_tile_work work = {
        .block_count = tile_count,
        .blocks_per_sm = tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, shared_bytes),
        .copy_bytes = TGI_GEMM_VECTOR_BYTES};
    if (!tgi_gemm_try_parts(machine, p, &work, tgi_model_mma_seconds, 1, proposal))
        return;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = tgi_slices_workspace_bytes(machine, kernel, p, 1);
    proposal->predicted_s += tgi_model_slice_seconds(&machine->gpu, kernel, p);
}

const tgi_cuda_planner tgi_cuda_planner_mma_slices = {propose, tgi_gemm_describe_split};
