/* Predicts the stores of family wgmma: the work of a block between two tiles. */
#include <math.h>

#include "model/wgmma_seconds.h"

#define WIDE_BOX_COLS 64 /* at most so many columns of D are stored together */
#define PART_COLS 16.0   /* columns of C that are read at once in parts of split tiles */

/* Returns 1 if D's rows are the columns of the tile. */
static int is_transposed(const tgi_problem *p)
{
    return p->d.col != 1 || p->n == 1;
}

/* Returns the additional seconds of a transposed tile. */
static double find_transposed_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const double boxes =
        ceil((double)c->kernel->tile_cols / c->work->d_box_cols / c->work->cluster_splits);
    const double box_s = c->work->d_box_cols < WIDE_BOX_COLS ? f->wgmma_transposed_narrow_box_s
                         : tgi_wgmma_is_narrow(c)            ? f->wgmma_transposed_box_s
                                                             : 0.0;
    return is_transposed(c->problem) ? f->wgmma_transposed_s + box_s * (boxes - 1.0) : 0.0;
}

/* Returns the additional seconds of a tile that stores few columns together. */
static double find_narrow_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const double boxes =
        ceil((double)c->kernel->tile_cols / c->work->d_box_cols / c->work->cluster_splits);
    if (c->work->d_box_cols >= WIDE_BOX_COLS)
        return 0.0;
    return f->wgmma_narrow_s[c->work->d_box_cols < WIDE_BOX_COLS / 2 ? 0 : 1] +
           f->wgmma_narrow_box_s * (boxes - 1.0);
}

/* Returns the additional seconds of a box of the tile that threads store instead of TMA. */
static double find_stored_box_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const int is_narrow = c->work->d_box_cols < WIDE_BOX_COLS;
    if (tgi_type_bytes(c->problem->d_type) > 1)
        return is_narrow ? f->wgmma_stored_narrow_box_s : f->wgmma_stored_box_s;
    if (is_transposed(c->problem))
        return is_narrow ? f->wgmma_across_narrow_box_s : f->wgmma_across_box_s;
    return is_narrow ? f->wgmma_bytes_narrow_box_s : f->wgmma_bytes_box_s;
}

static double find_stored_seconds(const tgi_wgmma_case *c)
{
    const tgi_wgmma_work *work = c->work;
    if (tgi_kernels_has_slices(c->kernel))
        return c->figures->slice_box_s * c->kernel->tile_cols / WIDE_BOX_COLS /
               work->cluster_splits;
    if (work->is_d_tma_stored)
        return 0.0;
    return find_stored_box_seconds(c) *
           ceil((double)c->kernel->tile_cols / work->d_box_cols / work->cluster_splits);
}

/* Returns 1 if blocks split k of tiles. */
static int has_splits(const tgi_wgmma_case *c)
{
    return c->work->cluster_splits > 1 || c->work->split_tile_count > 0.0;
}

/* Returns 1 if TMA brings C for all tiles. */
static int is_c_staged(const tgi_wgmma_case *c)
{
    return c->work->is_c_staged && (c->work->is_c_summed || !has_splits(c));
}

/* Returns the seconds for 64 columns of C, which TMA brings or threads read: by pairs, by words
 * that need not begin at a pair, singly, or across the tile's rows. In parts of split tiles each 16
 * columns are waited for, of which the first ones are a part of the wait for all terms. */
static double find_c_box_seconds(const tgi_wgmma_case *c)
{
    const double *box_s = c->figures->wgmma_c_box_s;
    const tgi_layout *layout = &c->problem->c;
    const int is_paired = (c->problem->n | layout->row | layout->batch) % 2 == 0;
    if (is_c_staged(c))
        return box_s[0];
    if (layout->col != 1)
        return box_s[3];
    if (has_splits(c) && !c->work->is_c_summed)
        return c->figures->wgmma_c_part_s * (1.0 - PART_COLS / c->work->d_box_cols);
    if (tgi_type_bytes(c->problem->d_type) == 2)
        return box_s[1];
    return box_s[is_paired ? 0 : 2];
}

/* Returns the seconds for C in a tile of `boxes` times 64 columns. */
static double find_c_seconds(const tgi_wgmma_case *c, double boxes)
{
    const tgi_problem *p = c->problem;
    const int is_across = is_c_staged(c) && tgi_wgmma_is_c_transposed(p);
    if (p->epilogue.beta == 0.0)
        return 0.0;
    return boxes * find_c_box_seconds(c) + is_across * c->figures->wgmma_c_across_s;
}

/* Returns the seconds that the terms of the epilogue add to a tile of `boxes` times 64 columns. */
static double find_terms_seconds(const tgi_wgmma_case *c, double boxes)
{
    const tgi_figures *f = c->figures;
    const double bias_s = c->work->is_bias_staged ? f->wgmma_bias_s : 0.0;
    tgi_epilogue others = c->problem->epilogue;
    others.activation = TG_ACTIVATION_NONE;
    if (c->work->is_bias_staged)
        others.bias = TG_BIAS_NONE;
    if (tgi_epilogue_is_sum_alone(&others))
        return bias_s;
    /* TMA brings C while the tile is multiplied. */
    const double wait_s = f->wgmma_epilogue_s * (is_c_staged(c) ? f->wgmma_c_wait_share : 1.0);
    return bias_s + wait_s + boxes * f->wgmma_epilogue_box_s +
           (is_c_staged(c) ? find_c_seconds(c, boxes) : 0.0);
}

/* Returns the seconds that the last round saves if its sums have C before the epilogue, which then
 * is an activation at most. */
static double find_summed_seconds(const tgi_wgmma_case *c)
{
    const tgi_epilogue *e = &c->problem->epilogue;
    return c->work->is_c_summed && e->bias == TG_BIAS_NONE ? c->figures->wgmma_summed_c_s : 0.0;
}

static double find_activation_seconds(const tgi_wgmma_case *c, double boxes)
{
    const tgi_figures *f = c->figures;
    return c->problem->epilogue.activation > TG_ACTIVATION_RELU
               ? f->wgmma_activation_s + boxes * f->wgmma_activation_box_s
               : 0.0;
}

double tgi_wgmma_part_seconds(const tgi_wgmma_case *c, double count)
{
    const double *part_s = c->figures->wgmma_part_s;
    const tgi_epilogue *e = &c->problem->epilogue;
    const int has_activation = e->activation > TG_ACTIVATION_RELU;
    const int has_c = e->beta != 0.0 && !c->work->is_c_summed;
    if (!has_activation && !has_c)
        return 0.0;
    return (count - 1.0) * (has_activation * part_s[0] + has_c * part_s[1]) +
           count * tgi_type_is_fp8(c->kernel->type) * part_s[2];
}

/* Returns the most parts of a tile that a warpgroup of a cluster finishes, and 0 if none is sent or
 * they have slices. */
static double count_own_parts(const tgi_wgmma_case *c)
{
    const double groups = c->kernel->tile_rows / 64.0, splits = c->work->cluster_splits;
    const double parts = groups * c->kernel->tile_cols / c->work->d_box_cols;
    if (splits == 1.0 || tgi_kernels_has_slices(c->kernel))
        return 0.0;
    return ceil(ceil(parts / splits) / groups);
}

double tgi_wgmma_epilogue_seconds(const tgi_wgmma_case *c, double rounds, double boxes)
{
    const tgi_figures *f = c->figures;
    const tgi_epilogue *e = &c->problem->epilogue;
    if (tgi_epilogue_is_sum_alone(e))
        return 0.0;
    if (tgi_kernels_has_slices(c->kernel))
        return rounds * boxes *
               (f->slice_epilogue_s[is_transposed(c->problem)] +
                (e->beta != 0.0) * f->slice_c_s[c->problem->c.col != 1] +
                (e->activation > TG_ACTIVATION_RELU) * f->slice_activation_s);
    /* Every wait for terms but the last passes while the next tile is copied, but not where another
     * block shares the multiprocessor. Threads that read C do so in every round. */
    const double later_share = c->work->sm_blocks > 1 ? 1.0 : f->wgmma_epilogue_later_share;
    return fmin(rounds, 1.0 + (rounds - 1.0) * later_share) * find_terms_seconds(c, boxes) -
           fmin(rounds, 1.0) * find_summed_seconds(c) +
           rounds * (find_activation_seconds(c, boxes) +
                     (is_c_staged(c) ? 0.0 : find_c_seconds(c, boxes)));
}

/* Returns 1 if the store of a tile is deferred: it runs while the block multiplies its next one. */
static int is_deferred(const tgi_wgmma_case *c)
{
    const tgi_wgmma_work *work = c->work;
    const tgi_kernel *kernel = c->kernel;
    const tgi_problem *p = c->problem;
    return !work->is_a_unaligned && tgi_type_bytes(kernel->type) == 2 &&
           tgi_type_bytes(p->d_type) == 2 && work->is_d_tma_stored && !is_transposed(p) &&
           work->cluster_splits == 1 && kernel->tile_cols > work->d_box_cols &&
           work->step_count * work->d_box_cols >= (double)kernel->tile_cols;
}

/* Returns the columns of a tile, in units of 64, that a block finishes: all of them, or those of
 * the most partial tiles that a block of its cluster adds. */
static double count_finished_boxes(const tgi_wgmma_case *c)
{
    const double partials = (double)c->kernel->tile_cols / c->work->d_box_cols;
    return ceil(partials / c->work->cluster_splits) * c->work->d_box_cols / WIDE_BOX_COLS;
}

/* Returns the seconds of a store beside the next tile's products that nothing hides. A step hides
 * one box of a deferred store at most: the next products are not issued before the box is stored.
 * Products that wait for memory hide as much as they wait. In family few all products of the other
 * block hide it. */
static double find_late_seconds(const tgi_wgmma_case *c, double store_s)
{
    const tgi_figures *f = c->figures;
    const double multiply_s = tgi_wgmma_multiply_seconds(c, 1.0);
    const double products_s = c->work->step_count * multiply_s;
    const double boxes = (double)c->kernel->tile_cols / c->work->d_box_cols;
    const double needed_s = f->wgmma_deferred_share * store_s + boxes * f->wgmma_deferred_box_s;
    const tgi_wgmma_readers readers = tgi_wgmma_count_readers(c);
    const double memory_s = tgi_wgmma_tile_memory_seconds(c, &readers) * c->work->slot_count;
    if (c->kernel->family == TGI_FAMILY_cuda_few)
        return fmax(0.0, store_s - products_s);
    return fmax(0.0, needed_s - boxes * multiply_s - fmax(0.0, memory_s - products_s));
}

double tgi_wgmma_finish_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    const tgi_wgmma_work *work = c->work;
    const double sums = (double)c->kernel->tile_rows * c->kernel->tile_cols;
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double last = rounds > 0.0 && work->split_tile_count == 0.0 ? 1.0 : 0.0;
    const int64_t elem_bytes = tgi_type_bytes(c->problem->d_type);
    const double store_s =
        sums / work->cluster_splits * (double)elem_bytes /
        (elem_bytes == 4 ? f->wgmma_store_fp32_bytes_per_s : f->wgmma_store_bytes_per_s);
    /* The store of a 16-bit tile overlaps the wait for the next tile's stages. */
    const double later_stores =
        elem_bytes == 2 && tgi_type_bytes(c->kernel->type) == 2 ? f->wgmma_store_later_share : 1.0;
    const double stores = fmin(rounds, 1.0 + (rounds - 1.0) * later_stores);
    const double parts = count_own_parts(c);
    return (is_deferred(c) ? last * store_s + (rounds - last) * find_late_seconds(c, store_s)
                           : stores * store_s) +
           rounds * (f->wgmma_tile_s + find_narrow_seconds(c) + tgi_wgmma_exchange_seconds(c) +
                     find_transposed_seconds(c) + find_stored_seconds(c)) +
           (parts > 0.0 ? rounds * tgi_wgmma_part_seconds(c, parts) : 0.0) +
           tgi_wgmma_epilogue_seconds(c, rounds, count_finished_boxes(c));
}
