/* Predicts the families dmma and dmma_tma. */
#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

#define SWIFT_K 96 /* values of k under way from which on copies of threads are swift */

/* Returns the multiply-adds of the FP64 matrix instructions of a multiprocessor in a cycle. If no
 * rate is published, they have twice the rate of the other multiply-adds. */
static double find_dmma_rate(const tgi_gpu *gpu)
{
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    const double ratio = tgi_arch_has(gpu->capability, TGI_FEATURE_FP64_MMA) ? 2.0 : 1.0;
    return arch->fp64_mma ? arch->fp64_mma : ratio * arch->fp64_lanes;
}

/* Returns the cycles in which TMA brings a value of k to a block of dmma_tma, or in which it is
 * written to shared memory and read by warps of 8 thread_rows x 4 thread_cols sums. */
static double find_feed(const tgi_figures *f, const tgi_kernel *kernel, int is_copied)
{
    const double bytes = 8.0 * (kernel->tile_rows + kernel->tile_cols);
    const double read_bytes = (double)kernel->tile_rows * kernel->tile_cols *
                              (1.0 / kernel->thread_rows + 2.0 / kernel->thread_cols);
    const double fill = is_copied ? 0.0 : bytes / f->dmma_tma_fill_bytes_per_cycle;
    return fmax(fill, (bytes + read_bytes) / 128.0);
}

/* Returns the seconds of the copies that threads issue among the products of a step of a block. */
static double find_copy_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                const tgi_tile_work *work, int is_tma, int is_spread)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int sums = kernel->thread_rows * kernel->thread_cols;
    const double all = kernel->tile_rows + kernel->tile_cols;
    const int form = !is_tma ? 3 * (sums >= 64) : 1 + is_spread;
    /* Warps with few sums wait for copies of single elements of both operands. */
    const double ratio = is_tma && sums < 32 && work->k_copies == all ? f->dmma_single_ratio : 1.0;
    return ratio * work->k_copies * kernel->tile_depth * f->dmma_copy_cycles[form] / gpu->clock_hz;
}

/* Returns the seconds for which blocks wait where TMA copies lines slowly. A short k has fewer
 * steps in which they do. */
static double find_reader_seconds(const tgi_figures *f, const tgi_tile_work *work)
{
    const double share = work->block_k < f->dmma_tma_lines_k ? f->dmma_tma_lines_share : 1.0;
    return share * f->dmma_tma_lines_s[0] * work->split_readers +
           f->dmma_tma_lines_s[1] * work->sharing_readers;
}

/* Returns the share of the bus rate at which operands arrive. Threads that copy stages, but do not
 * spread copies, have few bytes of each line under way, for which memory waits if lines are
 * long. */
static double find_memory_share(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                                int is_slow)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_short = kernel->tile_depth * (kernel->stage_count - 1) < SWIFT_K;
    const int is_long = (double)p->k >= f->dmma_far_k;
    return is_slow && is_short && is_long && tgi_model_is_far(gpu, p) ? f->dmma_far_share
                                                                      : f->tiles_share;
}

double tgi_model_dmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                              const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_tma = kernel->family == TGI_FAMILY_cuda_dmma_tma;
    const int sums = kernel->thread_rows * kernel->thread_cols, depth = kernel->tile_depth;
    const double elems = (double)kernel->tile_rows * kernel->tile_cols;
    const double teams = sums * kernel->thread_count / elems;
    const double share =
        f->dmma_shares[is_tma ? 4 + (teams > 1.0) : (sums < 64) + (sums < 32) + (sums < 16)];
    const int is_copied = is_tma && work->k_copies > 0.0, i = is_tma + is_copied;
    const double feed = is_tma ? find_feed(f, kernel, is_copied) : 0.0;
    const double cycles = fmax(elems / find_dmma_rate(gpu), feed);
    /* Copies of threads are issued among the products. Rows of 32 x 32 sums a warp spread them. */
    const int is_spread = is_copied && sums >= 32 && teams == 1.0;
    const double copy_s = find_copy_seconds(gpu, kernel, work, is_tma, is_spread);
    const double alike = is_tma && (p->a.col == 1) == (p->b.row == 1) ? f->dmma_alike_share : 0.0;
    const double compute_s = (1.0 + alike) * cycles * depth / (share * gpu->clock_hz) + copy_s;
    /* One block alone does not hide the wait for its stages. */
    const double wait_s = f->dmma_stage_s[i] + f->dmma_k_s[i] * depth / teams;
    double latency_s = wait_s + compute_s * share;
    latency_s = fmax(latency_s, f->dmma_latency_s[i] / (kernel->stage_count - 1));
    const double stored = elems * (1.0 + (teams - 1.0) * f->dmma_team_share);
    const double block_s = stored * 8.0 / (f->dmma_store_bytes_per_cycle * gpu->clock_hz) +
                           is_spread * f->dmma_spread_s;
    const double stages = ceil(work->block_k / depth);
    /* Two blocks that share a multiprocessor hide little of the start and the end of others. */
    const double rounds = ceil(work->block_count / gpu->sm_count) / work->blocks_per_sm;
    const double again_s = is_tma ? 0.0 : fmax(0.0, rounds - 1.0) * f->dmma_again_s;
    /* Columns of D^T are stored one element here, one there. */
    const double moved = is_tma && work->is_moved ? (double)p->m * (double)p->n : 0.0;
    const double moved_s = moved * (double)p->batch_count / gpu->sm_count * f->dmma_transposed_s;
    double seconds = tgi_tile_block_seconds(gpu, work, stages, latency_s, compute_s) + moved_s +
                     tgi_tile_block_seconds(gpu, work, 1.0, block_s, block_s) + again_s +
                     tgi_model_finish_seconds(gpu, kernel, p, work);
    return tgi_tile_base_seconds(gpu, p, work) + f->dmma_s[i] +
           tgi_tile_terms_seconds(gpu, p, work) + find_reader_seconds(f, work) +
           tgi_tile_memory_seconds(gpu, kernel, p, work,
                                   find_memory_share(gpu, kernel, p, is_copied && !is_spread),
                                   is_tma ? TGI_STREAM_DMMA_TMA : TGI_STREAM_DMMA, seconds);
}
