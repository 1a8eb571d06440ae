#include "model/tile_model.h"

#include <math.h>

#include "model/figures.h"

#define ROWS_AT_ONCE 8.0 /* elements of C that a thread of FP64 reads at once */
#define NEAR_SHARE 0.75  /* share of L2 that operands which stay there take at most */

static int is_narrow(tg_type type)
{
    return tgi_type_bytes(type) < 4;
}

/* Returns the time of a stage over the time of a stage that is read by 16 bytes. Elements of types
 * narrower than 4 bytes pass through registers. */
static double find_access_ratio(const tgi_figures *f, tg_type type, tgi_access access)
{
    switch (access) {
    case TGI_ACCESS_SHIFTED:
        return f->access_shifted_ratio;
    case TGI_ACCESS_ELEMENTS:
        return is_narrow(type) ? f->access_narrow_elements_ratio : f->access_elements_ratio;
    case TGI_ACCESS_STRIDED:
        return f->access_strided_ratio;
    default:
        return 1.0;
    }
}

double tgi_model_macs_per_cycle(const tgi_gpu *gpu, tg_type type)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    if (is_narrow(type))
        return f->narrow_macs_per_cycle;
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    return type == TG_TYPE_FP64 ? arch->fp64_lanes : arch->fp32_lanes;
}

double tgi_model_tile_bytes(const tgi_problem *p)
{
    double in_elems = (double)p->m * (double)p->k + (double)p->k * (double)p->n;
    double out_elems = (p->epilogue.beta != 0.0 ? 2.0 : 1.0) * (double)p->m * (double)p->n;
    return (in_elems * (double)tgi_type_bytes(p->type) +
            out_elems * (double)tgi_type_bytes(p->d_type)) *
           (double)p->batch_count;
}

int tgi_model_is_far(const tgi_gpu *gpu, const tgi_problem *p)
{
    return tgi_model_tile_bytes(p) > NEAR_SHARE * (double)gpu->l2_bytes;
}

int tgi_model_find_terms(const tgi_epilogue *e)
{
    return tgi_epilogue_is_sum_alone(e) ? 0 : 1 + (e->activation > TG_ACTIVATION_RELU);
}

/* Returns the terms for which the kernel that adds splits takes longer. A bias and RELU of FP64
 * cost nothing there. */
static int find_awaited_terms(const tgi_problem *p)
{
    const tgi_epilogue *e = &p->epilogue;
    const int is_biased = e->bias != TG_BIAS_NONE && e->beta == 0.0;
    return p->type == TG_TYPE_FP64 && is_biased && e->activation <= TG_ACTIVATION_RELU
               ? 0
               : tgi_model_find_terms(e);
}

double tgi_model_splits_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work,
                                double start_s, double bytes_per_s)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int terms = tgi_model_find_terms(&p->epilogue);
    const double elems = (double)p->m * (double)p->n * (double)p->batch_count;
    if (work->split_count <= 1.0)
        return 0.0;
    return start_s + (terms ? elems * f->splits_element_s[terms - 1] : 0.0) +
           2.0 * work->split_count * elems * (double)tgi_type_sum_bytes(p->type) / bytes_per_s;
}

double tgi_tile_base_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double start_s = f->splits_s[find_awaited_terms(p)] + f->split_s * work->split_count;
    return f->launch_s + tgi_model_splits_seconds(gpu, p, work, start_s,
                                                  f->cache_ratio * gpu->memory_bytes_per_s);
}

double tgi_tile_block_seconds(const tgi_gpu *gpu, const tgi_tile_work *work, double round_count,
                              double latency_s, double compute_s)
{
    double per_sm = ceil(work->block_count / gpu->sm_count);
    double resident = per_sm < work->blocks_per_sm ? per_sm : work->blocks_per_sm;
    /* Blocks start as others end, so that a last wave that is not full costs only its share. */
    return fmax(1.0, per_sm / resident) * round_count * fmax(latency_s, resident * compute_s);
}

double tgi_tile_read_seconds(const tgi_gpu *gpu, const tgi_problem *p, double bytes_per_cycle)
{
    const double share = tgi_figures_find(gpu->capability)->tiles_share;
    return tgi_model_tile_bytes(p) /
           fmin(share * gpu->memory_bytes_per_s, bytes_per_cycle * gpu->sm_count * gpu->clock_hz);
}

double tgi_tile_memory_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work, double share, tgi_tile_stream stream,
                               double seconds)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double lines =
        fmin(kernel->tile_rows, (double)p->m) + fmin(kernel->tile_cols, (double)p->n);
    const double blocks = fmin(work->block_count / gpu->sm_count, work->blocks_per_sm);
    const double under_way = blocks * lines * kernel->tile_depth * (kernel->stage_count - 1.0);
    const double in_elems = ((double)p->m + (double)p->n) * (double)p->k * (double)p->batch_count;
    const double memory_s = tgi_model_tile_bytes(p) / (share * gpu->memory_bytes_per_s) +
                            in_elems / gpu->sm_count / under_way * f->tiles_wait_s[stream];
    return fmax(seconds, memory_s) + f->tiles_beside_shares[stream] * fmin(seconds, memory_s);
}

/* Returns the seconds in which a thread applies the epilogue to `count` elements of D: one after
 * another, or several rows of its columns at once. */
static double find_epilogue_seconds(const tgi_figures *f, const tgi_kernel *kernel,
                                    const tgi_problem *p, const tgi_tile_work *work, double count)
{
    const int is_fp64 = p->type == TG_TYPE_FP64, is_fp32 = p->type == TG_TYPE_FP32;
    const int is_dmma =
        kernel->family == TGI_FAMILY_cuda_dmma || kernel->family == TGI_FAMILY_cuda_dmma_tma;
    const int is_simt = kernel->family == TGI_FAMILY_cuda_simt, is_wide = work->copy_k > 0.0;
    const double has_power = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double has_c = p->epilogue.beta != 0.0;
    const int i = is_fp64 ? 1 : is_wide ? is_fp32 ? 2 : 3 : 0;
    if (work->split_count > 1.0 || tgi_epilogue_is_sum_alone(&p->epilogue))
        return 0.0;
    return count *
           (is_simt || is_wide
                ? f->row_element_s[i] + has_power * f->row_activation_s[i] +
                      has_c * (is_fp64 ? f->row_c_s[2] : is_fp32 * f->row_c_s[is_wide])
                : f->element_s[is_fp64] + has_power * f->element_activation_s[is_fp64 + is_dmma] +
                      has_c * is_fp64 * f->element_c_s);
}

/* Returns for how long a block without others beside it takes them: all of these seconds, but
 * large tiles of FP64 wait for activations and for C, of several rows at once. */
static double find_epilogue_latency(const tgi_figures *f, const tgi_kernel *kernel,
                                    const tgi_problem *p, const tgi_tile_work *work, double count,
                                    double seconds)
{
    const double has_power = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double has_c = p->epilogue.beta != 0.0;
    if (seconds == 0.0 || p->type != TG_TYPE_FP64 ||
        (kernel->math != TGI_MATH_mma && work->copy_k == 0.0))
        return seconds;
    return has_power * count * f->element_activation_s[2] +
           has_c * (f->rows_c_s[0] + (ceil(count / ROWS_AT_ONCE) - 1.0) * f->rows_c_s[1]);
}

double tgi_model_finish_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                                const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double count = (double)kernel->tile_rows * kernel->tile_cols / kernel->thread_count;
    const double seconds = find_epilogue_seconds(f, kernel, p, work, count);
    const double latency_s = find_epilogue_latency(f, kernel, p, work, count, seconds);
    return tgi_tile_block_seconds(gpu, work, 1.0, latency_s, f->element_share * seconds);
}

double tgi_tile_terms_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const double terms_s = tgi_figures_find(gpu->capability)->terms_s;
    tgi_tile_work whole = *work;
    whole.block_count /= work->split_count;
    /* The kernel that adds splits has the terms, but small tiles of 16 bits take as long. */
    if (tgi_epilogue_is_sum_alone(&p->epilogue) || (work->split_count > 1.0 && !is_narrow(p->type)))
        return 0.0;
    return tgi_tile_block_seconds(gpu, &whole, 1.0, terms_s, 0.0);
}

/* Returns the seconds of rounds of stages. `share` of the blocks end with those that share their
 * multiprocessor, so that others wait for them. */
static double find_small_rounds(const tgi_gpu *gpu, const tgi_tile_work *work, double round_count,
                                double latency_s, double compute_s, double share)
{
    const double per_sm = ceil(work->block_count / gpu->sm_count);
    const double resident = fmin(per_sm, work->blocks_per_sm);
    const double whole = floor(per_sm / resident), rest = per_sm - whole * resident;
    const double together = whole * fmax(latency_s, resident * compute_s) +
                            (rest > 0.0 ? fmax(latency_s, rest * compute_s) : 0.0);
    return (1.0 - share) * tgi_tile_block_seconds(gpu, work, round_count, latency_s, compute_s) +
           share * round_count * together;
}

/* Returns the seconds of family small on matrix instructions, without the launch. All
 * blocks take alike, so that those of a multiprocessor end together. */
static double find_small_mma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                     const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double ratio = 1.0 + f->small_mma_elements_share * work->by_elements;
    const double macs = (double)kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    const double compute_s =
        ratio * macs /
        (tgi_model_macs_per_cycle(gpu, p->type) * f->small_mma_share * gpu->clock_hz);
    return f->small_mma_s +
           find_small_rounds(gpu, work, ceil(work->block_k / kernel->tile_depth),
                             ratio * f->small_mma_stage_s, compute_s, 1.0) +
           tgi_tile_block_seconds(gpu, work, 1.0, f->small_mma_block_s, f->small_mma_block_s) +
           tgi_model_finish_seconds(gpu, kernel, p, work);
}

double tgi_model_small_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double memory_s = tgi_model_tile_bytes(p) / (f->tiles_share * gpu->memory_bytes_per_s);
    double fixed_s = tgi_tile_base_seconds(gpu, p, work);
    if (!is_narrow(p->type) && work->block_count > gpu->sm_count / 2.0)
        fixed_s += f->small_full_s[work->copy_k > 0.0];
    if (work->copy_k > 0.0) {
        const double wide_s = tgi_model_wide_seconds(gpu, kernel, p, work);
        return fixed_s + (is_narrow(p->type)
                              ? fmax(wide_s, memory_s)
                              : tgi_tile_memory_seconds(gpu, kernel, p, work, f->tiles_share,
                                                        TGI_STREAM_WIDE, wide_s));
    }
    fixed_s += tgi_tile_terms_seconds(gpu, p, work);
    if (kernel->math == TGI_MATH_mma)
        return fixed_s + fmax(find_small_mma_seconds(gpu, kernel, p, work),
                              tgi_tile_read_seconds(gpu, p, f->small_mma_stream_bytes_per_cycle));
    /* Reads of shared memory bound the rate. Larger register tiles reuse more. */
    int sums = kernel->thread_rows * kernel->thread_cols;
    int form = sums >= 64 ? 0 : sums >= 32 ? 1 : 2;
    double share = f->small_shares[form];
    double macs = (double)kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    double compute_s = macs / (tgi_model_macs_per_cycle(gpu, p->type) * share * gpu->clock_hz);
    double latency_s = f->small_stage_s + compute_s;
    latency_s *= find_access_ratio(f, p->type, work->access);
    double rounds = ceil(work->block_k / kernel->tile_depth);
    const int has_b_along = p->b.row == 1 && p->b.col != 1;
    const double block_s =
        f->small_block_s[p->batch_count > 1] + (form == 0 ? f->small_large_s[has_b_along] : 0.0);
    double seconds =
        find_small_rounds(gpu, work, rounds, latency_s, compute_s, f->small_together_shares[form]) +
        tgi_tile_block_seconds(gpu, work, 1.0, f->small_s, block_s) +
        tgi_model_finish_seconds(gpu, kernel, p, work);
    return fixed_s +
           tgi_tile_memory_seconds(gpu, kernel, p, work, f->tiles_share, TGI_STREAM_SMALL, seconds);
}

double tgi_model_batch_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_mma = kernel->math == TGI_MATH_mma;
    const int kind = !is_mma ? 0 : is_narrow(p->type) ? 1 : 2;
    const double whole_k = ceil((double)p->k / kernel->tile_depth) * kernel->tile_depth;
    const double ratio = work->access == TGI_ACCESS_ELEMENTS ? f->batch_elements_ratio[kind] : 1.0;
    /* Finding and storing a tile takes some k more. Threads without a tile wait for their warp. */
    const double tile_k = (whole_k + f->batch_tile_k[kind]) * ratio;
    const double tiles = is_mma ? work->tile_count : ceil(work->tile_count / 32.0) * 32.0;
    const double macs = tiles * kernel->tile_rows * kernel->tile_cols * tile_k;
    const double compute_s =
        macs / (tgi_model_macs_per_cycle(gpu, p->type) * f->batch_shares[kind] * gpu->clock_hz);
    /* The workers of a block, threads or warps, form the tiles of a group in turn. */
    const double workers = kernel->thread_count / (is_mma ? 32.0 : 1.0);
    const double tile_rounds = ceil(work->tile_count / workers);
    const double elems = (double)kernel->tile_rows * kernel->tile_cols / (is_mma ? 32.0 : 1.0);
    const double epilogue_s = find_epilogue_seconds(f, kernel, p, work, tile_rounds * elems);
    const double latency_s =
        f->batch_stage_s + tile_rounds * tile_k * f->batch_k_s[kind] + epilogue_s;
    /* Blocks that share a multiprocessor issue their epilogues in turn. */
    const double issue_s = compute_s + f->batch_epilogue_share * epilogue_s;
    const double slots = (double)gpu->sm_count * work->blocks_per_sm;
    const double rounds = floor(work->block_count / slots);
    const double rest = ceil((work->block_count - rounds * slots) / gpu->sm_count);
    const double seconds = rounds * fmax(latency_s, work->blocks_per_sm * issue_s) +
                           (rest > 0.0 ? fmax(latency_s, rest * issue_s) : 0.0);
    const double d_bytes =
        (double)p->m * (double)p->n * (double)p->batch_count * (double)tgi_type_bytes(p->d_type);
    const double memory_s = fmax(tgi_model_tile_bytes(p) / f->batch_memory_share,
                                 is_mma && work->is_moved ? d_bytes / f->batch_single_share : 0.0) /
                            gpu->memory_bytes_per_s;
    return f->launch_s + f->batch_s[kind == 2] + fmax(seconds, memory_s);
}

/* Returns the seconds in which B is read once from memory. For narrow types each tile reads A again
 * from L2. Family rank reads a unit of B twice if one tile ends and the next begins in it. */
static double find_stream_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                  const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double bytes = tgi_model_tile_bytes(p);
    if (!is_narrow(p->type))
        return bytes / (f->skinny_memory_share * gpu->memory_bytes_per_s);
    const int is_rank = kernel->family == TGI_FAMILY_cuda_rank;
    const double line_bytes = work->tile_cols * (double)tgi_type_bytes(p->type);
    const double share =
        is_rank ? f->narrow_rank_share * line_bytes / (line_bytes + f->narrow_twice_bytes)
                : f->narrow_dot_share;
    const double again = ceil((double)p->n / work->tile_cols) - 1.0;
    const double a_bytes =
        (double)p->m * (double)p->k * (double)p->batch_count * (double)tgi_type_bytes(p->type);
    return fmax(bytes / share, (bytes + again * a_bytes) / f->cache_ratio) /
           gpu->memory_bytes_per_s;
}

double tgi_model_skinny_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                                const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    /* In the block with the most work, products wait less if more bytes are under way and fewer of
     * them belong to A. */
    double stage_bytes = (double)kernel->tile_cols * kernel->tile_depth *
                         (double)tgi_type_bytes(p->type) * (kernel->stage_count - 1);
    double under_way = stage_bytes * work->blocks_per_sm;
    double share = f->skinny_share * under_way / (under_way + f->skinny_half_bytes) /
                   (1.0 + f->skinny_a_ratio * kernel->tile_rows / kernel->tile_cols);
    double macs = (double)kernel->tile_rows * kernel->tile_cols * work->block_k;
    double compute_s = macs * work->blocks_per_sm /
                       (share * tgi_model_macs_per_cycle(gpu, p->type) * gpu->clock_hz);
    /* The block's stages follow one another, and all blocks together share memory's rate. */
    double step_s = f->skinny_latency_s / (kernel->stage_count - 1);
    double memory_s = find_stream_seconds(gpu, kernel, p, work);
    double tiles_s = 0.0;
    if (is_narrow(p->type) && kernel->family == TGI_FAMILY_cuda_rank) {
        /* Unaligned lines take as long as aligned ones. */
        const double cost =
            work->access == TGI_ACCESS_ELEMENTS ? f->access_narrow_elements_ratio : 1.0;
        step_s = cost * (f->rank_step_s + f->rank_step_col_s * kernel->tile_cols);
        step_s *= tgi_type_is_fp8(p->type) ? f->rank_widen_ratio : 1.0;
        /* Two blocks on a multiprocessor were not measured. They count as one after the other. */
        step_s *= work->blocks_per_sm;
        memory_s *= cost;
        tiles_s = f->rank_tile_col_s * kernel->tile_cols * fmax(1.0, work->block_k / (double)p->k);
    } else {
        step_s *= find_access_ratio(f, p->type, work->access);
        memory_s *= find_access_ratio(f, p->type, work->access);
        /* Copies of single elements are issued among the products. */
        if (!is_narrow(p->type) && work->access != TGI_ACCESS_VECTORS)
            compute_s *= f->skinny_elements_ratio;
    }
    /* For each tile a block starts a new stream and adds sums, while other blocks stream. */
    const double tile_s =
        f->skinny_tile_s[kernel->family == TGI_FAMILY_cuda_rank ? 2 : is_narrow(p->type)];
    double steps_s =
        ceil(work->block_k / kernel->tile_depth) * step_s + (work->tile_count - 1.0) * tile_s;
    if (is_narrow(p->type) && kernel->family == TGI_FAMILY_cuda_dot)
        tiles_s = f->dot_s;
    return tgi_tile_base_seconds(gpu, p, work) + f->skinny_latency_s + tiles_s +
           fmax(fmax(compute_s, steps_s), memory_s);
}
