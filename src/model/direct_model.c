/* Predicts family small without stages, whose threads read operands from global memory. */
#include <math.h>

#include "model/figures.h"
#include "model/tile_model.h"

#define WARP 32.0
#define WARPS 4.0       /* warps that relays are counted in */
#define LINE_STAGE 64.0 /* values of k that those which copy lines multiply at once */
#define PIECE_STEPS 4.0 /* instructions of a piece of theirs */

/* Returns the seconds in which the sums of threads that share out k are added: those of a warp by
 * shuffles if they lie along k, others in shared memory. */
static double find_lanes_seconds(const tgi_figures *f, const tgi_tile_work *work)
{
    const double in_warp = work->access == TGI_ACCESS_VECTORS ? fmin(work->split_count, WARP) : 1.0;
    return (in_warp - 1.0) * f->direct_lane_s[0] +
           (work->split_count / in_warp - 1.0) * f->direct_lane_s[1];
}

/* Returns the least seconds of the products and of memory. */
static double find_least_seconds(const tgi_gpu *gpu, const tgi_problem *p)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    const double lanes = p->type == TG_TYPE_FP64 ? arch->fp64_lanes : arch->fp32_lanes;
    const double macs = (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
    return fmax(macs / (lanes * gpu->sm_count * gpu->clock_hz),
                tgi_model_tile_bytes(p) / (f->tiles_share * gpu->memory_bytes_per_s));
}

/* Returns the same where threads read operands straight into registers. They have few bytes under
 * way, for which FP64 waits if L2 does not hold them. */
static double find_least_direct_seconds(const tgi_gpu *gpu, const tgi_problem *p)
{
    const double share = tgi_figures_find(gpu->capability)->direct_far_share;
    const double far_s = tgi_model_tile_bytes(p) / (share * gpu->memory_bytes_per_s);
    const int is_far = p->type == TG_TYPE_FP64 && tgi_model_is_far(gpu, p);
    return fmax(find_least_seconds(gpu, p), is_far ? far_s : 0.0);
}

/* Returns how many times a thread waits for loads: those of several values of k wait
 * together, and a single value needs no loop. */
static double count_waits(const tgi_tile_work *work)
{
    return work->block_k > 1.0 ? ceil(work->block_k / work->copy_k) : 0.0;
}

/* Returns the seconds for which a thread waits for loads, each near_s where L2 has the operands. */
static double find_loads_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                 const tgi_tile_work *work, double near_s)
{
    const int is_far = tgi_model_tile_bytes(p) > (double)gpu->l2_bytes;
    return count_waits(work) *
           (is_far ? tgi_figures_find(gpu->capability)->direct_far_loads_s : near_s);
}

/* Returns the seconds for which blocks wait where a warp reads several lines of A at once. */
static double find_lines_seconds(const tgi_gpu *gpu, const tgi_tile_work *work, double line_s)
{
    const double rounds = fmax(1.0, work->block_count / gpu->sm_count);
    return rounds * work->block_k * (work->a_lines - 1.0) * line_s;
}

/* Returns the seconds in which blocks of a multiprocessor read lines in turns of cache banks. */
static double find_turns_seconds(const tgi_gpu *gpu, const tgi_tile_work *work)
{
    const double rounds = fmax(1.0, work->block_count / gpu->sm_count);
    return rounds * work->block_k * work->bank_turns / gpu->clock_hz;
}

double tgi_model_direct_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int has_terms = !tgi_epilogue_is_sum_alone(&p->epilogue);
    const int has_activation = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double element_s = has_terms ? f->element_s[0] : 0.0;
    /* Terms of 16 bits are converted. */
    const double terms_s = tgi_type_bytes(p->type) > 2 ? 0.0
                                                       : has_terms * f->direct_terms_s[0] +
                                                             has_activation * f->direct_terms_s[1];
    const double words = fmax(1.0, (double)tgi_type_bytes(p->type) / 4.0);
    const double latency_s =
        f->direct_block_s + terms_s + work->tile_count * (f->direct_row_s + element_s) +
        find_loads_seconds(gpu, p, work, f->direct_loads_s) + find_lanes_seconds(f, work) +
        find_lines_seconds(gpu, work, f->direct_line_s[p->type == TG_TYPE_FP64]) +
        find_turns_seconds(gpu, work);
    /* Further blocks of a multiprocessor wait at the same time, but share its instructions. */
    const double further = fmax(0.0, work->block_count / gpu->sm_count - 1.0);
    const double issue_s = further * words * (f->direct_issue_s + work->block_k * f->direct_k_s);
    const double others = work->cluster_blocks - 1.0;
    const double cluster_s =
        others > 0.0 ? f->direct_cluster_s[0] + others * f->direct_cluster_s[1] : 0.0;
    return f->launch_s + fmax(latency_s + issue_s + cluster_s, find_least_direct_seconds(gpu, p));
}

double tgi_model_short_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double latency_s =
        find_loads_seconds(gpu, p, work, f->short_loads_s) + find_lanes_seconds(f, work);
    const double rounds = fmax(1.0, work->block_count / gpu->sm_count);
    const double lines_s =
        find_lines_seconds(gpu, work, f->short_line_s) + find_turns_seconds(gpu, work);
    const double issue_s = (rounds - 1.0) * (f->short_issue_s + work->block_k * f->short_k_s);
    const double terms_s = tgi_epilogue_is_sum_alone(&p->epilogue) ? 0.0
                           : p->epilogue.activation > TG_ACTIVATION_RELU
                               ? f->short_terms_s[0] + f->short_terms_s[1]
                               : f->short_terms_s[0];
    return f->short_s + terms_s +
           fmax(latency_s + lines_s + issue_s, find_least_direct_seconds(gpu, p));
}

/* Returns the warps of a multiprocessor, in WARPS. */
static double count_fours(const tgi_gpu *gpu, const tgi_tile_work *work)
{
    return work->block_count * work->warps / (gpu->sm_count * WARPS);
}

/* Returns the warps of a block of relays beyond the first four, in WARPS. */
static double find_further_fours(const tgi_tile_work *work)
{
    return fmax(0.0, work->warps / WARPS - 1.0);
}

/* Returns the seconds of relays apart from their launch: of loads and sums, those for which one
 * warp waits, or those that all warps of a multiprocessor are issued in, which hide half of the
 * others, and of the meeting of blocks that share out splits. */
static double find_relay_work_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                      const tgi_tile_work *work, double latency_s, double four_s)
{
    const double *cluster = tgi_figures_find(gpu->capability)->relay_cluster_s;
    const int entry = p->type != TG_TYPE_FP64;
    const double issue_s = count_fours(gpu, work) * four_s;
    const double work_s = fmax(latency_s, issue_s) + 0.5 * fmin(latency_s, issue_s);
    return fmax(work_s, find_least_seconds(gpu, p)) +
           (work->cluster_blocks > 1.0 ? cluster[entry] + work->cluster_blocks * cluster[2] : 0.0);
}

double tgi_model_relay_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const double *s = tgi_figures_find(gpu->capability)->relay_s;
    const double latency_s = (work->tile_count - 1.0) * s[1] + work->block_k * s[2];
    const double four_s = work->tile_count * s[3] + work->block_k * s[4];
    const double *terms = tgi_figures_find(gpu->capability)->relay_early_terms_s;
    const int has_activation = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double terms_s =
        !tgi_epilogue_is_sum_alone(&p->epilogue) * terms[0] + has_activation * terms[1];
    return s[0] + terms_s + find_relay_work_seconds(gpu, p, work, latency_s, four_s);
}

double tgi_model_relay_mma_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                   const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int is_wide = p->type == TG_TYPE_FP64;
    const double *s = is_wide ? f->relay_fp64_s : f->relay_mma_s, *more = f->relay_elements_s;
    const double *issue = f->relay_mma_issue_s + 2 * is_wide;
    const double by_elements = is_wide ? 0.0 : work->by_elements;
    const int has_terms = !tgi_epilogue_is_sum_alone(&p->epilogue);
    const int has_activation = p->epilogue.activation > TG_ACTIVATION_RELU;
    if (!work->is_long) {
        const double *terms = is_wide ? f->relay_early_terms_s : f->relay_short_terms_s;
        const double terms_s = has_terms * terms[0] + has_activation * terms[1];
        const int is_piece = !is_wide && work->block_k > 1.0;
        /* Lines of a longer k share fewer cache lines. */
        const double lines = is_wide ? 2.0 * work->block_k : work->block_k * work->block_k;
        const double four_s = s[6] * fmax(1.0, lines / 4.0);
        const double steps_s = is_wide ? fmax(0.0, work->block_k - 2.0) * s[2] : 0.0;
        return s[is_piece ? 7 : 5] + terms_s + steps_s +
               fmax(is_piece * by_elements * more[0] + count_fours(gpu, work) * four_s,
                    find_least_seconds(gpu, p));
    }
    const double steps = fmin(work->block_k, work->tile_count * PIECE_STEPS);
    const double *beside = f->relay_beside_s + (is_wide ? 0 : 2);
    const double latency_s =
        by_elements * more[0] + (work->tile_count - 1.0) * (s[1] + by_elements * more[1]) +
        work->block_k * s[2] + work->split_count * s[3] + (work->places - 1.0) * s[4] +
        find_further_fours(work) *
            (work->tile_count * beside[0] + steps * (1.0 + by_elements) * beside[1]);
    const double four_s = work->tile_count * issue[0] + steps * (1.0 + by_elements) * issue[1];
    return s[0] + has_terms * f->relay_terms_s[has_activation] +
           find_relay_work_seconds(gpu, p, work, latency_s, four_s);
}

double tgi_model_relay_lines_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                     const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double *s = f->relay_lines_s, *cluster = f->relay_lines_cluster_s;
    const int has_activation = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double terms_s = !tgi_epilogue_is_sum_alone(&p->epilogue) * s[5] + has_activation * s[6];
    const double work_s = work->tile_count * s[1] + work->by_elements * s[2] +
                          work->block_k / LINE_STAGE * s[3] + work->copy_k * s[4];
    return s[0] + terms_s + fmax(work_s, find_least_seconds(gpu, p)) +
           (work->cluster_blocks > 1.0 ? cluster[0] + work->cluster_blocks * cluster[1] : 0.0);
}

double tgi_model_relay_chains_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                      const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double *s = f->relay_chains_s, *work_of = f->relay_chains_work_s;
    const int has_terms = !tgi_epilogue_is_sum_alone(&p->epilogue);
    const int has_activation = p->epilogue.activation > TG_ACTIVATION_RELU;
    const double terms_s = has_terms * s[5] + has_activation * s[6];
    const double blocks = ceil(work->block_count / gpu->sm_count);
    const double work_s = (work->tile_count - 1.0) * work_of[0] + work->block_k * work_of[1] +
                          blocks * (work->places * work_of[2] + work->copy_k * work_of[3]) +
                          work->block_count * work->copy_bytes * work_of[4];
    return s[0] + work->warps / WARPS * s[1] + (blocks - 1.0) * s[2] +
           (work->split_count - 1.0) * s[3] + (work->cluster_blocks > 1.0) * s[4] + terms_s +
           fmax(work_s, find_least_seconds(gpu, p));
}

double tgi_model_piece_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int by_elements = work->access != TGI_ACCESS_VECTORS;
    const double *wide = f->piece_wide_s;
    const double blocks = work->block_count / gpu->sm_count;
    if (tgi_type_bytes(p->type) > 2) {
        const int has_terms = !tgi_epilogue_is_sum_alone(&p->epilogue);
        const double wide_s = wide[2] + work->block_k * wide[3] + has_terms * wide[4];
        return wide[0] + (work->block_k - 1.0) * wide[1] + has_terms * f->short_terms_s[0] +
               fmax(blocks * wide_s, find_least_seconds(gpu, p));
    }
    const double block_s = f->piece_block_s[0] + work->block_k * f->piece_block_s[1 + by_elements];
    return f->piece_s[0] + by_elements * f->piece_s[1] + (work->block_k - 1.0) * f->piece_s[2] +
           fmax(blocks * block_s, find_least_seconds(gpu, p));
}

double tgi_model_strip_seconds(const tgi_gpu *gpu, const tgi_problem *p, const tgi_tile_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const int by_elements = work->access != TGI_ACCESS_VECTORS, is_across = p->a.col != 1;
    const double blocks = work->block_count / gpu->sm_count;
    const double start_s = f->strip_s[0] + work->is_moved * f->strip_s[1] +
                           (work->is_long && is_across) * f->strip_s[2];
    const int form = tgi_type_bytes(p->type) == 1 ? 4 : work->is_long ? 2 : by_elements;
    /* A warp loads its lines of A before the first piece. */
    const double lines_s = f->strip_lines_s[is_across ? 1 + work->is_long : 0];
    return start_s + blocks * (lines_s + work->tile_count * (f->strip_piece_s[form] +
                                                             work->is_moved * f->strip_piece_s[3]));
}

double tgi_model_outer_seconds(const tgi_gpu *gpu, const tgi_problem *p, double block_count)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double d_bytes =
        (double)p->m * (double)p->n * (double)p->batch_count * (double)tgi_type_bytes(p->d_type);
    return f->outer_s + fmax(d_bytes / (f->outer_share * gpu->memory_bytes_per_s),
                             block_count / gpu->sm_count * f->outer_block_s);
}
