#include "model/plan_counts.h"

#include <math.h>
#include <string.h>

#include "core/checked.h"
#include "model/ladder_model.h"
#include "model/occupancy.h"

static tgi_plan_counts count_ladder(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                    const tgi_problem *p)
{
    tg_traffic traffic;
    tgi_model_ladder_count(kernel, p->m, p->n, p->k, &traffic);
    const tgi_occupancy occupancy = tgi_model_occupancy(
        gpu, kernel->thread_count, tgi_model_ladder_registers(kernel, gpu->capability),
        tgi_model_ladder_shared_bytes(kernel));
    return (tgi_plan_counts){.block_count = traffic.block_count,
                             .split_count = 1,
                             .global_read_bytes = (double)traffic.global_read_bytes,
                             .global_write_bytes = (double)traffic.global_write_bytes,
                             .issued_flops = (double)traffic.issued_flops,
                             .threads_per_block = kernel->thread_count,
                             .occupancy = occupancy.share};
}

static tgi_plan_counts count_tiles(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                   const tgi_problem *p, const tgi_plan_tiling *tiling)
{
    /* Families rank and dot transpose a problem with few columns. */
    const int has_few_rows =
        kernel->family == TGI_FAMILY_cuda_rank || kernel->family == TGI_FAMILY_cuda_dot;
    const int is_transposed = has_few_rows ? p->n < p->m : tiling->is_transposed;
    const double m = (double)(is_transposed ? p->n : p->m),
                 n = (double)(is_transposed ? p->m : p->n);
    const int tile_rows = tiling->tile_rows ? tiling->tile_rows : kernel->tile_rows;
    const double rows = (double)tgi_divide_up((int64_t)m, tile_rows);
    /* A problem without products was not split. */
    const int64_t tile_cols =
        has_few_rows && tiling->tile_cols ? tiling->tile_cols : kernel->tile_cols;
    const double cols = (double)tgi_divide_up((int64_t)n, tile_cols);
    const double batch = (double)p->batch_count, k = (double)p->k;
    const double depth = (double)tgi_round_up(p->k, kernel->tile_depth);
    const double in_bytes = (double)tgi_type_bytes(p->type);
    const double d_bytes = m * n * batch * (double)tgi_type_bytes(p->d_type);
    /* Partial sums are written, read and added. */
    const double sum_bytes = (double)tgi_type_sum_bytes(p->type);
    /* Whole clusters are split, even if their last tiles have no rows. */
    const int is_split = tiling->split_count > 1;
    const int thread_count = tiling->thread_count ? tiling->thread_count : kernel->thread_count;
    const double clusters = ceil(rows / tiling->cluster_rows) * cols * batch;
    const double tiles = is_split ? clusters * tiling->cluster_rows : rows * cols * batch;
    /* The splits were chosen for the largest panel. Smaller panels are not split. */
    const double whole_tiles =
        (double)tiling->whole_tiles + (double)(tiling->whole_rows / kernel->tile_rows) * cols;
    const double split_tiles = is_split ? fmax(tiles - whole_tiles, 0.0) : 0.0;
    const double split_bytes =
        split_tiles / tiles * (double)tiling->split_count * m * n * batch * sum_bytes;
    const double block_count =
        (tiles + split_tiles * (double)(tiling->split_count - 1)) * (double)tiling->cluster_splits;
    return (tgi_plan_counts){
        .block_count = tiling->block_count ? tiling->block_count : (int64_t)block_count,
        .split_count = tiling->split_count * tiling->cluster_splits,
        .global_read_bytes = in_bytes * batch * k * (m * cols + n * rows) + split_bytes +
                             (p->epilogue.beta != 0.0 ? d_bytes : 0.0),
        .global_write_bytes = d_bytes + split_bytes,
        .issued_flops = 2.0 * rows * kernel->tile_rows * cols * kernel->tile_cols * depth * batch,
        .threads_per_block = thread_count,
        .occupancy =
            fmin((double)tiling->resident_count * thread_count / gpu->threads_per_sm, 1.0)};
}

tgi_plan_counts tgi_model_count_plan(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                     const tgi_problem *problem, const tgi_plan_tiling *tiling)
{
    if (strcmp(kernel->device, "cuda") != 0 || gpu->threads_per_sm == 0)
        return (tgi_plan_counts){.block_count = 0};
    return tgi_kernels_rung(kernel->family) >= 0 ? count_ladder(gpu, kernel, problem)
                                                 : count_tiles(gpu, kernel, problem, tiling);
}
