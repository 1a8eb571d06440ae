/* Launches family mma on slices of FP32 operands. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/mma_slices.h"
#include "cuda/families/slice_panels_launch.h"
#include "cuda/families/slices_launch.h"
#include "kernels/mma/mma_slices_args.h"

/* The launches of one panel of D, or of all of D. */
typedef struct mma_slices_panel {
    tgi_mma_slices_args args;
    tgi_slices_prepared slices;
    tgi_cuda_kernel multiply;
    /* The kernel that adds splits, if there are several, and its argument. */
    tgi_gemm_args add_args;
    tgi_cuda_kernel add;
    int is_transposed;
} mma_slices_panel;

typedef struct mma_slices_prepared {
    tgi_slice_panel size;     /* 0 rows: one panel of all batch entries */
    mma_slices_panel panel[]; /* by kind (slice_panels_launch.h) */
} mma_slices_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    const int64_t kinds = tgi_slice_panels_count_kinds(&proposal->decision.mma_slices.panel);
    (void)p;
    return (int64_t)sizeof(mma_slices_prepared) + kinds * (int64_t)sizeof(mma_slices_panel);
}

static void take_facts(const tgi_slice_facts *facts, tgi_mma_slices_args *args)
{
    args->a.has_batch = facts->has_batch[0];
    args->b.has_batch = facts->has_batch[1];
    args->a_slices = facts->ranges[0];
    args->b_slices = facts->ranges[1];
    args->slice_count = facts->slice_count;
    args->first_product = facts->first_product;
    args->run_sums = facts->run_sums;
}

static void prepare_panel(const tgi_machine *machine, const tgi_problem *given,
                          const tgi_proposal *proposal, mma_slices_panel *panel)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_mma_slices_args *args = &panel->args;
    tgi_tensor tensor[2]; /* not used: the kernel copies slices without tensor maps */
    tgi_problem p = *given;
    panel->is_transposed = proposal->decision.mma_slices.is_transposed;
    if (panel->is_transposed)
        tgi_problem_transpose(&p);
    const int64_t split_count = proposal->decision.mma_slices.split_count;
    const int team_count = proposal->decision.mma_slices.team_count;
    const int64_t split_bytes = tgi_mma_slices_split_bytes(&p, split_count);
    tgi_gemm_prepare_args(&p, &panel->add_args);
    panel->add_args.split_count = (int32_t)split_count;
    tgi_gemm_prepare_add(&panel->add_args, &panel->add);
    if (split_count > 1)
        tgi_mma_slices_make_splits(split_count, &p);
    tgi_gemm_prepare_args(&p, &args->gemm);
    args->a.line_count = (int32_t)p.m;
    args->b.line_count = (int32_t)p.n;
    tgi_slices_prepare(machine, kernel, &p, 1, split_bytes, tensor, &panel->slices);
    const int64_t tile_count = tgi_divide_up(p.m, kernel->tile_rows) *
                               tgi_divide_up(p.n, kernel->tile_cols) * p.batch_count;
    const int64_t most = (int64_t)machine->gpu.sm_count * proposal->resident_blocks;
    args->gemm.tile_rows_per_group = tgi_gemm_choose_group_rows(
        &machine->gpu, kernel, &p, (double)most,
        (double)p.k * 2.0 * tgi_precision_table[p.precision].slice_count);
    panel->multiply =
        (tgi_cuda_kernel){.image = kernel->image,
                          .grid = {tgi_gemm_count_blocks(tile_count, most), 1, 1},
                          .block = {(unsigned)(kernel->thread_count * team_count), 1, 1},
                          .shared_bytes = (unsigned)proposal->shared_bytes};
    snprintf(panel->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_mma_slices_decision *decision = &proposal->decision.mma_slices;
    mma_slices_prepared *prepared = block;
    prepared->size = decision->panel;
    for (int i = 0; i < tgi_slice_panels_count_kinds(&decision->panel); i++) {
        tgi_problem panel;
        if (tgi_slice_panels_describe(p, &decision->panel, i, &panel))
            prepare_panel(machine, &panel, proposal, &prepared->panel[i]);
    }
}

static tg_status add_splits(const tgi_cuda_queue *queue, const tgi_call *call,
                            mma_slices_panel *panel)
{
    tgi_gemm_args args = panel->add_args;
    tgi_gemm_complete_args(call, panel->is_transposed, &args);
    return tgi_gemm_add_splits(queue, &args, &panel->add);
}

static tg_status launch_panel(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    mma_slices_panel *panel = block;
    const int is_transposed = panel->is_transposed;
    const void *a = is_transposed ? call->b : call->a, *b = is_transposed ? call->a : call->b;
    tgi_mma_slices_args args = panel->args;
    const void *slices[2];
    tg_status status = tgi_slices_launch(queue, &panel->slices, a, b, call->workspace, slices);
    if (status)
        return status;
    const tgi_slice_facts facts = tgi_slices_find_facts(&panel->slices, call->workspace);
    take_facts(&facts, &args);
    args.a.slices = slices[0];
    args.b.slices = slices[1];
    if (panel->add_args.split_count == 1) {
        tgi_gemm_complete_args(call, is_transposed, &args.gemm);
        return tgi_cuda_run(queue, &panel->multiply, &args, sizeof args);
    }
    args.gemm.a = a;
    args.gemm.b = b;
    args.gemm.d = call->workspace;
    status = tgi_cuda_run(queue, &panel->multiply, &args, sizeof args);
    return status ? status : add_splits(queue, call, panel);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    mma_slices_prepared *prepared = block;
    return tgi_slice_panels_launch(queue, call, &prepared->size, launch_panel, prepared->panel,
                                   sizeof prepared->panel[0]);
}

const tgi_cuda_launcher tgi_cuda_launcher_mma_slices = {count_prepared_bytes, prepare, launch};
