/* Predicts the matrix instructions of family wgmma: the products of a step and of a problem. */
#include <math.h>

#include "model/wgmma_seconds.h"

#define STEP_BYTES 128.0 /* bytes of a line of A or B in a step of k */
#define CHUNK_BYTES 64.0 /* bytes of a line of a slice in a step of k */
#define SHORT_COLS 128.0 /* columns whose short sums are added together */

int tgi_wgmma_is_narrow(const tgi_wgmma_case *c)
{
    return tgi_type_bytes(c->kernel->type) <= 2;
}

/* Returns the cycles for waiting for the sums of a step's slices and adding them in FP32. With two
 * warpgroups, one multiplies during all or part of this time. */
static double find_add_cycles(const tgi_figures *f, const tgi_kernel *kernel)
{
    const double set_cycles =
        kernel->thread_count > 256 ? f->slice_add_cycles_of_two : f->slice_add_cycles_of_one;
    return kernel->tile_cols > 192 ? f->slice_add_cycles_of_sets
                                   : ceil(kernel->tile_cols / SHORT_COLS) * set_cycles;
}

tgi_wgmma_step tgi_wgmma_find_step(const tgi_figures *figures, const tgi_kernel *kernel,
                                   const tgi_problem *problem)
{
    if (!tgi_kernels_has_slices(kernel))
        return (tgi_wgmma_step){STEP_BYTES, 1.0, STEP_BYTES, STEP_BYTES, 0.0};
    const tgi_precision_row *precision = &tgi_precision_table[problem->precision];
    const double line_bytes = precision->slice_count * CHUNK_BYTES;
    const double add_cycles = find_add_cycles(figures, kernel);
    /* Family bf16r splits the rows of A in registers. */
    if (kernel->family == TGI_FAMILY_cuda_bf16r)
        return (tgi_wgmma_step){CHUNK_BYTES, precision->product_count, STEP_BYTES, line_bytes,
                                add_cycles + figures->slice_register_cycles};
    return (tgi_wgmma_step){CHUNK_BYTES, precision->product_count, line_bytes, line_bytes,
                            add_cycles};
}

/* Returns the cycles of the matrix instructions of one step of a tile: 8 columns of 64 rows and
 * 32 bytes of k take 4. */
static double count_step_cycles(const tgi_wgmma_case *c)
{
    const tgi_kernel *kernel = c->kernel;
    return kernel->tile_rows / 64.0 * kernel->tile_cols / 8.0 * (c->step.slice_bytes / 32.0) * 4.0 *
           c->step.product_count;
}

/* Returns the share of wgmma_issue_share that a tile of this size reaches. An FP8 tile of more than
 * 192 columns has two sets of short sums. With two warpgroups, one adds a set in FP32 while the
 * other multiplies. */
static double find_width_share(const tgi_figures *f, const tgi_kernel *kernel)
{
    const int is_odd = kernel->tile_cols > 128 && kernel->tile_cols <= 192;
    const double odd_share = is_odd ? f->wgmma_odd_share : 1.0;
    const int is_fp8 = tgi_type_is_fp8(kernel->type);
    if (is_fp8 && kernel->tile_rows == 64)
        return f->wgmma_fp8_alone_share;
    if (is_fp8)
        return odd_share *
               (kernel->tile_cols <= 192 ? f->wgmma_fp8_share : f->wgmma_fp8_wide_share);
    return kernel->tile_rows == 128 && kernel->tile_cols <= 128 ? f->wgmma_half_share : odd_share;
}

double tgi_wgmma_multiply_seconds(const tgi_wgmma_case *c, double busy_share)
{
    const tgi_figures *f = c->figures;
    const int has_slices = tgi_kernels_has_slices(c->kernel);
    const double clock_share = has_slices ? f->slice_clock_share : f->wgmma_clock_share;
    const double issue_share =
        has_slices ? 1.0 : f->wgmma_issue_share * find_width_share(f, c->kernel);
    const double clock_hz = c->gpu->clock_hz * (1.0 - (1.0 - clock_share) * busy_share);
    return (count_step_cycles(c) / issue_share + c->step.add_cycles) / clock_hz;
}

double tgi_wgmma_products_seconds(const tgi_wgmma_case *c)
{
    const tgi_wgmma_work *work = c->work;
    const double tiles = (work->whole_count + work->split_tile_count) * work->cluster_rows;
    return tiles * work->step_count * count_step_cycles(c) /
           ((double)c->gpu->sm_count * c->gpu->clock_hz);
}
