/* Families mma_bf16x and mma_fp16x: their launch. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "cuda/families/slices_launch.h"
#include "kernels/mma/mma_slices_args.h"

typedef struct slices_prepared {
    tgi_mma_slices_args args;
    tgi_slices_prepared slices;
    tgi_cuda_kernel multiply;
} slices_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(slices_prepared);
}

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    slices_prepared *prepared = block;
    tgi_mma_slices_args *args = &prepared->args;
    tgi_slice_ranges *ranges[2] = {&args->a_slices, &args->b_slices};
    args->a = (tgi_sliced_operand){.has_batch = p->a.batch != 0, .line_count = (int32_t)p->m};
    args->b = (tgi_sliced_operand){.has_batch = p->b.batch != 0, .line_count = (int32_t)p->n};
    tgi_tensor unused[2]; /* no tensor maps */
    tgi_tile_prepared tile;
    tgi_tile_prepare(p, proposal, &tile);
    args->gemm = tile.args;
    prepared->multiply = tile.multiply;
    tgi_slices_prepare(machine, proposal->kernel, p, 1, 0, ranges, unused, &prepared->slices);
    tgi_tile_share_out(machine, p, proposal, &prepared->multiply);
    /* The name is that of kernels/mma/mma_fp32.cu. */
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s_%d", proposal->kernel->name,
             tgi_precision_sliced(p->precision)->product_count);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    slices_prepared *prepared = block;
    tgi_mma_slices_args args = prepared->args;
    tgi_slice_ranges *ranges[2] = {&args.a_slices, &args.b_slices};
    void *arguments[] = {&args};
    const void *slices[2];
    tgi_gemm_complete_args(call, 0, &args.gemm);
    tgi_slices_complete(&prepared->slices, call->workspace, ranges);
    tg_status status =
        tgi_slices_launch(queue, &prepared->slices, call->a, call->b, call->workspace, slices);
    args.a.slices = slices[0];
    args.b.slices = slices[1];
    return status ? status : tgi_cuda_run(queue, &prepared->multiply, arguments);
}

const tgi_cuda_launcher tgi_cuda_launcher_mma_slices = {count_prepared_bytes, prepare, launch};
