/* Predicts the splits of k of family wgmma: over a cluster, or over blocks with the workspace. */
#include <math.h>

#include "model/wgmma_seconds.h"

#define PART_COLS 16 /* columns of the narrowest parts */

double tgi_wgmma_exchange_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const int has_slices = tgi_kernels_has_slices(c->kernel);
    const double sums = (double)c->kernel->tile_rows * c->kernel->tile_cols;
    const double others = c->work->cluster_splits - 1;
    /* Narrow parts arrive from several blocks at once. */
    const double senders = c->work->d_box_cols <= PART_COLS ? sqrt(others) : 1.0;
    const double rate =
        has_slices ? f->slice_share_bytes_per_s : f->wgmma_share_bytes_per_s * senders;
    /* A block adds whole parts, the most that one of them has. */
    const double part = 64.0 * c->work->d_box_cols;
    const double bytes = ceil(sums / part / c->work->cluster_splits) * part * 4.0 * others;
    if (others <= 0.0)
        return 0.0;
    return (has_slices ? f->slice_share_s : f->wgmma_share_s) +
           f->wgmma_share_split_s[has_slices] * (others - 1.0) + bytes / rate;
}

double tgi_wgmma_partial_store_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const tgi_wgmma_work *work = c->work;
    const double sums = (double)c->kernel->tile_rows * c->kernel->tile_cols;
    const double put_s = f->wgmma_tile_s + sums * 4.0 / f->wgmma_partial_bytes_per_s;
    return ceil(work->split_tile_count * work->split_count / work->slot_count) * put_s;
}

double tgi_wgmma_partial_add_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const tgi_wgmma_work *work = c->work;
    const double sums = (double)c->kernel->tile_rows * c->kernel->tile_cols;
    const double units = work->split_tile_count * work->split_count;
    const int has_slices = tgi_kernels_has_slices(c->kernel);
    const int has_terms = !tgi_epilogue_is_sum_alone(&c->problem->epilogue);
    if (work->split_tile_count <= 0.0)
        return 0.0;
    return f->wgmma_partial_add_s[has_slices] +
           f->wgmma_partial_add_split_s[has_slices] * work->split_count +
           units * work->cluster_rows * sums * 4.0 /
               (f->wgmma_partial_add_ratios[has_slices] * c->gpu->memory_bytes_per_s) +
           tgi_wgmma_part_seconds(c, 1.0) + tgi_wgmma_epilogue_seconds(c, 1.0, 1.0) +
           has_slices * has_terms * f->slice_added_s;
}
