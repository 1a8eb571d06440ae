/* Predicts the time of the families on mma.sync (kernels/mma). */
#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

/* Returns the multiply-adds of mma.sync in a cycle of one multiprocessor. mma.sync does not reach
 * the full rate of a chip whose tensor cores have wider instructions. FP8 kernels for chips without
 * FP8 instructions multiply FP16. */
static double find_mma_rate(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    const int is_tf32 = kernel->math == TGI_MATH_tf32;
    const int is_fp8 =
        tgi_type_is_fp8(kernel->type) && tgi_kernels_uses(kernel, TGI_FEATURE_FP8_MMA);
    if (kernel->math == TGI_MATH_fma)
        return arch->fp32_lanes;
    const double rate = is_tf32 ? arch->tf32_mma : is_fp8 ? arch->fp8_mma : arch->fp16_mma;
    return fmin(rate * gpu->mma_share, f->mma_macs_per_cycle * (is_tf32 ? 0.5 : 1.0));
}

int tgi_model_prefers_slices(const tgi_gpu *gpu, const tgi_kernel *kernel, tg_precision precision)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    return find_mma_rate(gpu, kernel) * f->mma_slice_share >
           tgi_precision_table[precision].product_count *
               (double)tgi_arch_find(gpu->capability)->fp32_lanes;
}

/* Returns the time of a stage over the time of a stage that is copied by 16 bytes. */
static double find_copy_ratio(const tgi_figures *f, double copy_bytes)
{
    return copy_bytes >= 16.0  ? 1.0
           : copy_bytes >= 8.0 ? f->mma_half_ratio
           : copy_bytes >= 4.0 ? f->mma_word_ratio
                               : f->mma_elements_ratio;
}

/* Returns how many blocks share a multiprocessor while all run. */
static double find_resident(const tgi_gpu *gpu, const tgi_tile_work *work)
{
    return fmin(ceil(work->block_count / gpu->sm_count), work->blocks_per_sm);
}

/* Returns the seconds for storing a tile's sums to D, or to the workspace of splits. */
static double find_mma_store_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                     const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double bytes = 4.0 * kernel->tile_rows * kernel->tile_cols;
    const int is_direct = work->split_count > 1.0 || tgi_epilogue_is_sum_alone(&p->epilogue);
    return f->mma_tile_s + bytes / (f->mma_store_bytes_per_cycle * gpu->clock_hz) *
                               (is_direct ? 1.0 : f->mma_epilogue_ratio);
}

double tgi_model_mma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                             const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int sums = kernel->thread_rows * kernel->thread_cols;
    const int has_slices = tgi_kernels_has_slices(kernel);
    const tgi_precision_row *sliced = &tgi_precision_table[p->precision];
    const double share = has_slices ? f->mma_slice_share
                                    : f->mma_shares[sums >= 128  ? 0
                                                    : sums >= 64 ? 1
                                                    : sums >= 32 ? 2
                                                                 : 3];
    const double elems =
        (double)kernel->tile_rows * kernel->tile_cols * (has_slices ? sliced->product_count : 1);
    const double load_bytes =
        (double)(kernel->tile_rows + kernel->tile_cols) * kernel->tile_depth *
        (has_slices ? 2.0 * sliced->slice_count : (double)tgi_type_bytes(p->type));
    const double load_s = load_bytes / (f->mma_load_bytes_per_cycle * gpu->clock_hz);
    const double rounding_share = work->is_rounding ? f->mma_rounding_share : 1.0;
    const double multiply_s = elems * kernel->tile_depth /
                              (find_mma_rate(gpu, kernel) * gpu->clock_hz) / share / rounding_share;
    const double ratio = find_copy_ratio(f, work->copy_bytes);
    /* Blocks that share a multiprocessor wait for their stages at different times. */
    const double stage_s = has_slices ? f->mma_slice_stage_s : f->mma_stage_s;
    const int is_alone =
        kernel->tile_rows == 16 && work->copy_bytes == 8.0 && find_resident(gpu, work) == 1.0;
    const double cycles =
        ratio > 1.0 && work->copy_bytes >= 4.0 ? f->mma_copy_cycles[is_alone] : 0.0;
    const double copy_s = cycles * load_bytes / (work->copy_bytes * gpu->clock_hz);
    const double compute_s =
        fmax(fmax(multiply_s + stage_s / find_resident(gpu, work), load_s) * ratio, copy_s);
    /* Kernels without cp.async do not hide the wait for their copies. */
    const double latency_s = ratio * (tgi_kernels_uses(kernel, TGI_FEATURE_CP_ASYNC)
                                          ? f->mma_latency_s / (kernel->stage_count - 1)
                                          : multiply_s + f->mma_stage_s + f->mma_latency_s);
    const double store_s = find_mma_store_seconds(gpu, kernel, p, work);
    const int has_activation =
        work->split_count == 1.0 && p->epilogue.activation > TG_ACTIVATION_RELU;
    const double rounds = ceil(work->block_k / kernel->tile_depth);
    const double seconds = tgi_tile_block_seconds(gpu, work, rounds, latency_s, compute_s) +
                           tgi_tile_block_seconds(gpu, work, 1.0, store_s, store_s);
    const double read_s = tgi_tile_read_seconds(gpu, p, f->mma_stream_bytes_per_cycle);
    return tgi_tile_base_seconds(gpu, p, work) + f->mma_s[tgi_type_bytes(kernel->type) != 2] +
           (work->split_count > 1 ? f->mma_splits_s : 0.0) + has_activation * f->mma_activation_s +
           fmax(seconds, read_s) + f->mma_beside_share * fmin(seconds, read_s);
}
