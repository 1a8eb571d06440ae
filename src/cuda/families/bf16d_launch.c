/* Launches the family bf16d. */
#include <stdio.h>
#include <string.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "kernels/bf16d/bf16d_args.h"

typedef struct bf16d_prepared {
    tgi_bf16d_args args; /* without pointers, alpha and beta of a call */
    int is_transposed;   /* 1: A and B of the kernel are B and A of the call */
    tgi_cuda_kernel multiply;
} bf16d_prepared;

static int64_t count_prepared_bytes(const tgi_problem *p, const tgi_proposal *proposal)
{
    (void)p;
    (void)proposal;
    return sizeof(bf16d_prepared);
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_tile_decision *decision = &proposal->decision.tile;
    bf16d_prepared *prepared = block;
    tgi_gemm_args *gemm = &prepared->args.gemm;
    const unsigned cluster = (unsigned)decision->direct_cluster;
    tgi_problem p = *given;
    (void)machine;
    if (decision->is_transposed)
        tgi_problem_transpose(&p);
    memset(prepared, 0, sizeof *prepared);
    tgi_gemm_prepare_args(&p, gemm);
    gemm->split_elems = decision->split_elems;
    gemm->split_count = (int32_t)cluster;
    prepared->is_transposed = decision->is_transposed;
    prepared->multiply = (tgi_cuda_kernel){.image = kernel->image,
                                           .grid = {(unsigned)tgi_divide_up(p.n, kernel->tile_cols),
                                                    (unsigned)tgi_divide_up(p.m, kernel->tile_rows),
                                                    (unsigned)p.batch_count * cluster},
                                           .cluster = cluster,
                                           .cluster_along = 2,
                                           .block = {(unsigned)kernel->thread_count, 1, 1},
                                           .shared_bytes = (unsigned)proposal->shared_bytes,
                                           .is_early = 1};
    snprintf(prepared->multiply.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", kernel->name);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    bf16d_prepared *prepared = block;
    tgi_bf16d_args args = prepared->args;
    tgi_gemm_complete_args(call, prepared->is_transposed, &args.gemm);
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

const tgi_cuda_launcher tgi_cuda_launcher_bf16d = {count_prepared_bytes, prepare, launch};
