/* Launches the family small. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"
#include "kernels/small/small_shape.h"

/* Prepares the launch of the function without stages. */
static void prepare_direct(const tgi_problem *p, const tgi_proposal *proposal,
                           tgi_cuda_kernel *multiply)
{
    const int lanes = proposal->decision.tile.direct_lanes;
    const int cluster = proposal->decision.tile.direct_cluster;
    const int64_t cols = TGI_SMALL_DIRECT_THREADS / lanes;
    const int64_t units = tgi_divide_up(p->m, TGI_SMALL_DIRECT_ROWS) * p->n;
    const int is_along = tgi_gemm_is_b_along_k(p);
    multiply->block[0] = (unsigned)(is_along ? lanes : cols);
    multiply->block[1] = (unsigned)(is_along ? cols : lanes);
    multiply->grid[0] = (unsigned)tgi_divide_up(units, cols);
    multiply->grid[1] =
        (unsigned)(p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX);
    multiply->grid[2] = multiply->cluster = (unsigned)cluster;
    multiply->cluster_along = 2;
    multiply->shared_bytes = (unsigned)proposal->shared_bytes;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_direct_%s%s",
             cluster > 1 ? "cluster_" : "", tg_get_type_name(p->type));
}

/* Prepares the launch of the short function. */
static void prepare_short(const tgi_problem *p, const tgi_proposal *proposal,
                          tgi_cuda_kernel *multiply)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    const int lanes = decision->direct_lanes, cols = decision->short_cols;
    const int rows = TGI_SMALL_DIRECT_THREADS / lanes / cols;
    const int is_along = tgi_gemm_is_b_along_k(p);
    multiply->block[0] = (unsigned)(is_along ? lanes : cols);
    multiply->block[1] = (unsigned)(is_along ? cols : rows);
    multiply->block[2] = (unsigned)(is_along ? rows : lanes);
    multiply->grid[0] = (unsigned)tgi_divide_up(p->n, cols);
    multiply->grid[1] = (unsigned)tgi_divide_up(p->m, rows);
    multiply->grid[2] = (unsigned)p->batch_count;
    multiply->shared_bytes = 0;
    snprintf(multiply->symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_short_%s_%s",
             is_along ? "along" : "across", tg_get_type_name(p->type));
}

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_tile_prepared *prepared = block;
    unsigned *grid = prepared->multiply.grid;
    tgi_problem p = *given;
    (void)machine;
    if (proposal->decision.tile.is_transposed)
        tgi_problem_transpose(&p);
    tgi_tile_prepare(&p, proposal, prepared);
    if (proposal->decision.tile.short_cols) {
        prepare_short(&p, proposal, &prepared->multiply);
        return;
    }
    if (proposal->decision.tile.direct_lanes) {
        prepare_direct(&p, proposal, &prepared->multiply);
        return;
    }
    const int64_t entries = p.batch_count * prepared->args.split_count;
    grid[0] = (unsigned)tgi_divide_up(p.n, kernel->tile_cols);
    grid[1] = (unsigned)tgi_divide_up(p.m, kernel->tile_rows);
    grid[2] = (unsigned)(entries < TGI_GRID_HEIGHT_MAX ? entries : TGI_GRID_HEIGHT_MAX);
}

static tg_status launch(const tgi_cuda_queue *queue, const tgi_call *call, void *block)
{
    tgi_tile_prepared *prepared = block;
    if (!prepared->is_short)
        return tgi_tile_launch(queue, call, block);
    const tgi_problem *p = &prepared->args.problem;
    const int is_transposed = prepared->is_transposed;
    tgi_short_args args = {.a = is_transposed ? call->b : call->a,
                           .b = is_transposed ? call->a : call->b,
                           .d = call->d,
                           .a_row = p->a.row,
                           .a_k = p->a.col,
                           .b_col = p->b.col,
                           .b_k = p->b.row,
                           .d_row = p->d.row,
                           .d_col = p->d.col,
                           .a_batch = p->a.batch,
                           .b_batch = p->b.batch,
                           .d_batch = p->d.batch,
                           .m = (int32_t)p->m,
                           .n = (int32_t)p->n,
                           .k = (int32_t)p->k,
                           .d_type = p->d_type};
    return tgi_cuda_run(queue, &prepared->multiply, &args, sizeof args);
}

const tgi_cuda_launcher tgi_cuda_launcher_small = {tgi_tile_count_prepared_bytes, prepare, launch};
