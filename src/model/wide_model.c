/* Predicts the wide tiles of family small. */
#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

/* Returns the index of a wide tile in the lists of figures: 16-bit types, FP64, FP32 by
 * multiply-adds with 8, 16, 32 or 64 sums a thread, and by instructions of FP64 with two or four
 * warps. */
static int find_index(const tgi_kernel *kernel)
{
    const int sums = kernel->thread_rows * kernel->thread_cols;
    if (kernel->type != TG_TYPE_FP32)
        return kernel->type == TG_TYPE_FP64;
    if (kernel->math == TGI_MATH_fp64)
        return kernel->thread_count > 64 ? 7 : 6;
    return sums >= 64 ? 5 : sums >= 32 ? 4 : sums >= 16 ? 3 : 2;
}

/* Returns the products that a multiprocessor forms in a cycle at best. Boards with a small part of
 * the FP64 rate, which FP64 itself has no way around, take FP32 elsewhere. */
static double find_peak(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    return kernel->math == TGI_MATH_fp64
               ? tgi_arch_find(gpu->capability)->fp64_mma * gpu->fp64_share
               : tgi_model_macs_per_cycle(gpu, kernel->type);
}

/* Returns the stages that a block's time is counted by. With a k below a stage's, tiles by FP64
 * instructions took 1.0 to 1.6 times those by multiply-adds. A second stage stands for this. */
static double count_stages(const tgi_kernel *kernel, const tgi_tile_work *work)
{
    const int is_short = kernel->math == TGI_MATH_fp64 && work->block_k < work->copy_k;
    return ceil(work->block_k / work->copy_k) + is_short;
}

double tgi_model_wide_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                              const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int i = find_index(kernel);
    const double elems = (double)kernel->tile_rows * kernel->tile_cols;
    const double rate = find_peak(gpu, kernel) * f->small_wide_shares[i] * gpu->clock_hz;
    /* A half that is left out saves part of its time, because a stage's other work stays. */
    const double saved = f->small_wide_saved_share * (1.0 - work->sum_share);
    const double product_s = elems * (1.0 - saved) * work->copy_k / rate;
    const double store_s = elems * f->small_wide_elem_s[i];
    /* Blocks that share a multiprocessor share the rate of products and stores. Blocks start as
     * others end, so that a last wave that is not full costs only its share. */
    const double per_sm = ceil(work->block_count / gpu->sm_count);
    const double resident = fmin(per_sm, work->blocks_per_sm);
    return fmax(1.0, per_sm / resident) *
               (count_stages(kernel, work) * (f->small_wide_stage_s[i] + resident * product_s) +
                resident * store_s) +
           tgi_model_finish_seconds(gpu, kernel, p, work);
}
