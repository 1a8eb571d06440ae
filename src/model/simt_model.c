#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

#define SCHEDULERS_PER_SM 4

/* Returns 1 if the threads hold more sums than the tile has, because they share out k. */
static int shares_k(const tgi_kernel *kernel)
{
    return kernel->thread_count * kernel->thread_rows * kernel->thread_cols >
           kernel->tile_rows * kernel->tile_cols;
}

/* Returns the index of the kernel in the lists of shares of family simt. Threads that share out k
 * add their sums at the end and share barriers, which costs some of the share. */
static int find_share_index(const tgi_kernel *kernel)
{
    const int sums = kernel->thread_rows * kernel->thread_cols;
    return (sums > 64 ? 0 : 2) + shares_k(kernel);
}

/* Returns the share of the multipliers that the warps of a scheduler keep busy. One warp waits for
 * its own instructions. With more warps the share grows, up to as many as the registers hold. */
static double find_share(const tgi_figures *f, const tgi_kernel *kernel, double warps_per_scheduler)
{
    const int i = find_share_index(kernel);
    const double alone = f->simt_alone_shares[i], most = f->simt_most_shares[i];
    if (warps_per_scheduler < 1.0)
        return alone * warps_per_scheduler;
    if (warps_per_scheduler >= f->simt_most_warps[i])
        return most;
    return alone + (most - alone) * (warps_per_scheduler - 1.0) / (f->simt_most_warps[i] - 1.0);
}

/* Returns the turns of the memory pipe in which a warp copies an operand with line_count lines for
 * a value of k of a tile. A copy along k takes several turns for its 32 elements. Tiles with more
 * lines than the operand wait longer for their copies. */
static double count_turns(const tgi_figures *f, double tile_lines, int64_t line_count, int along_k)
{
    const double ratio =
        (double)line_count >= tile_lines ? along_k : f->simt_inner_ratios[!along_k];
    return tile_lines / 32.0 * f->simt_copy_turns * ratio;
}

/* Returns the time of a step with its copies over that of its multiply-adds. Products hide most of
 * the copies. */
static double find_copy_factor(const tgi_figures *f, const tgi_kernel *kernel, const tgi_problem *p)
{
    const double rows = kernel->tile_rows, cols = kernel->tile_cols;
    const double turns =
        count_turns(f, rows, p->m, p->a.row != 1) + count_turns(f, cols, p->n, p->b.col != 1);
    return 1.0 + f->simt_exposed_copy_share * turns / (rows * cols / f->simt_multipliers);
}

/* Returns 1 if all rows of D consist of whole units of 16 bytes. */
static int has_units(const tgi_problem *p)
{
    return p->d.col == 1 && p->n % 4 == 0 && p->d.row % 4 == 0 && p->d.batch % 4 == 0;
}

/* Returns the share of the time of stores that the products of other blocks do not hide. Stores of
 * threads hold up reads of shared memory, bulk stores by TMA do not. Rows of D that begin or end
 * within a unit take longer. */
static double find_exposed_stores(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                  const tgi_problem *p, double block_count)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    int has_bulk = tgi_arch_has(gpu->capability, TGI_FEATURE_TMA) && p->d.col == 1 &&
                   kernel->thread_rows * kernel->thread_cols <= 64 && !shares_k(kernel);
    return (has_bulk && block_count > 1.0 ? f->simt_exposed_store_share : 1.0) *
           (has_units(p) ? 1.0 : f->simt_parts_store_ratio);
}

/* Returns the seconds that C takes where its rows are no whole units and it fills L2 beside D: a
 * load then brings single columns, so that sectors come from memory several times. */
static double find_far_c_seconds(const tgi_gpu *gpu, const tgi_problem *p)
{
    const double c_bytes =
        (double)p->m * (double)p->n * (double)p->batch_count * (double)tgi_type_bytes(p->d_type);
    if (p->epilogue.beta == 0.0 || has_units(p) || 4.0 * c_bytes < (double)gpu->l2_bytes)
        return 0.0;
    return tgi_figures_find(gpu->capability)->simt_far_c_ratio * c_bytes / gpu->memory_bytes_per_s;
}

/* Returns the cycles in which a multiprocessor does `block_count` blocks that start together. */
static double count_cycles(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                           double block_count, double split_elems)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double depth = ceil(split_elems / kernel->tile_depth) * kernel->tile_depth;
    const double sums = block_count * kernel->tile_rows * kernel->tile_cols;
    const double warps = block_count * kernel->thread_count / 32 / SCHEDULERS_PER_SM;
    const double bytes_per_cycle =
        f->simt_memory_share * gpu->memory_bytes_per_s / gpu->clock_hz / gpu->sm_count;
    /* With fewer multipliers the products take longer. The other waits of a step stay. */
    const double further_cycles =
        1.0 / tgi_arch_find(gpu->capability)->fp32_lanes - 1.0 / f->simt_multipliers;
    return f->simt_block_cycles +
           sums * 4.0 / bytes_per_cycle * find_exposed_stores(gpu, kernel, p, block_count) +
           sums * depth / f->simt_multipliers / find_share(f, kernel, warps) *
               find_copy_factor(f, kernel, p) +
           sums * depth * further_cycles;
}

double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                              const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double slots = (double)work->blocks_per_sm * gpu->sm_count;
    const double waves = floor(work->block_count / slots);
    const double rest = ceil((work->block_count - waves * slots) / gpu->sm_count);
    double cycles = waves * count_cycles(gpu, kernel, p, work->blocks_per_sm, work->block_k);
    if (rest > 0.0)
        cycles += count_cycles(gpu, kernel, p, rest, work->block_k);
    const double start_s = f->simt_splits_s[tgi_model_find_terms(&p->epilogue)];
    const double splits_s = tgi_model_splits_seconds(
        gpu, p, work, start_s, f->simt_splits_ratio * gpu->memory_bytes_per_s);
    const double finish_s = tgi_model_finish_seconds(gpu, kernel, p, work);
    return f->launch_s + splits_s + find_far_c_seconds(gpu, p) +
           tgi_tile_memory_seconds(gpu, kernel, p, work, f->simt_memory_share, TGI_STREAM_SIMT,
                                   cycles / gpu->clock_hz + finish_s);
}
