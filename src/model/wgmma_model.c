#include "model/wgmma_model.h"

#include <math.h>

#include "model/wgmma_seconds.h"

#define RUN_CHUNKS 32.0 /* steps of k after which a block on slices writes its sums */

/* The seconds of one step of a tile, apart from memory's rate. */
typedef struct step_seconds {
    double busy_s;           /* matrix instructions or TMA, whichever is slower */
    double wait_s;           /* from the request for a stage to its use */
    double later_ratio;      /* the wait once all stages are under way, over that */
    double request_s;        /* from the request for a stage to that for the next */
    double run_s;            /* end of each run of k but the last */
    double stages_under_way; /* stages that are filled while others are multiplied */
    double slack_s;          /* wait of the products for copies */
} step_seconds;

static step_seconds find_step_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers,
                                      double busy_share)
{
    const tgi_kernel *kernel = c->kernel;
    const double multiply_s = tgi_wgmma_multiply_seconds(c, busy_share);
    const double fill_s = tgi_wgmma_fill_seconds(c, readers, multiply_s);
    const double sum_bytes =
        tgi_kernels_has_slices(kernel) ? kernel->tile_rows * kernel->tile_cols * 4.0 : 0.0;
    /* FP8 multiplies two stages at once. */
    const double multiplied_stages = tgi_type_is_fp8(kernel->type) ? 2.0 : 1.0;
    return (step_seconds){.busy_s = fmax(multiply_s, fill_s) * c->work->sm_blocks,
                          .wait_s = tgi_wgmma_wait_seconds(c),
                          .later_ratio = tgi_wgmma_later_wait_ratio(c, readers),
                          .request_s = tgi_wgmma_is_narrow(c) ? c->figures->wgmma_request_s : 0.0,
                          .run_s = sum_bytes / c->figures->slice_run_bytes_per_s,
                          .stages_under_way = c->work->stage_count - multiplied_stages,
                          .slack_s = fmax(0.0, fill_s - multiply_s)};
}

/* Returns the seconds of `steps` of k of one tile. Memory is busy for memory_share of the time. */
static double find_tile_seconds(const tgi_wgmma_case *c, const step_seconds *step, double steps,
                                double memory_share)
{
    const double wait_s = step->wait_s * (1.0 + c->figures->wgmma_loaded_share * memory_share);
    const double requests = fmin(steps, step->stages_under_way) - 1.0;
    const double later = fmax(0.0, steps / step->stages_under_way - 1.0) * step->later_ratio;
    const double later_s = wait_s * (1.0 + later) + requests * step->request_s;
    /* Relayout warps begin with a stage once it has come. */
    const double busy_s = steps * step->busy_s + (c->work->is_a_unaligned ? wait_s : 0.0);
    return step->run_s * (ceil(steps / RUN_CHUNKS) - 1.0) + fmax(busy_s, later_s);
}

static double count_whole_steps(const tgi_wgmma_work *work)
{
    return work->cluster_splits > 1 ? work->split_steps : work->step_count;
}

/* Returns the seconds of all rounds of whole tiles, of which one takes tile_s. With two blocks on a
 * multiprocessor one waits while the other multiplies. */
static double find_rounds_seconds(const tgi_wgmma_case *c, const step_seconds *step, double tile_s)
{
    const tgi_wgmma_work *work = c->work;
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double later_s = work->sm_blocks > 1
                               ? c->figures->few_later_tile_s + work->step_count * step->busy_s
                               : tile_s;
    return rounds > 0.0 ? tile_s + (rounds - 1.0) * fmin(tile_s, later_s) : 0.0;
}

/* Returns the seconds of all rounds of tiles, apart from memory's rate. */
static double find_own_seconds(const tgi_wgmma_case *c, const step_seconds *step,
                               double memory_share)
{
    const tgi_wgmma_work *work = c->work;
    const double slots = work->slot_count, split_units = work->split_tile_count * work->split_count;
    const double tile_s = find_tile_seconds(c, step, count_whole_steps(work), memory_share);
    return find_rounds_seconds(c, step, tile_s) +
           ceil(split_units / slots) * find_tile_seconds(c, step, work->split_steps, memory_share);
}

/* Returns the seconds by which relayout warps are ahead: they fill the next tile's stages while the
 * previous tile is finished. */
static double find_ahead_seconds(const tgi_wgmma_work *work, const step_seconds *step,
                                 double finish_s)
{
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double most_s = fmin(work->stage_count * step->busy_s, work->step_count * step->slack_s);
    return work->is_a_unaligned && rounds > 1.0 ? (rounds - 1.0) * fmin(finish_s / rounds, most_s)
                                                : 0.0;
}

/* Returns the seconds of two overlapping times: the 12th root of the sum of their 12th powers,
 * which is near the longer one and exceeds it more if they are close. It calls no pow(), because a
 * plan calls it some hundred times. */
static double join_seconds(double a, double b)
{
    const double most = fmax(a, b), ratio = fmin(a, b) / most, square = ratio * ratio;
    const double fourth = square * square;
    return most * cbrt(sqrt(sqrt(1.0 + fourth * fourth * fourth)));
}

/* Returns the least seconds of several rounds of whole tiles: the last one begins where memory has
 * served all before, and takes as long as its blocks need by themselves. */
static double find_least_seconds(const tgi_wgmma_case *c, const step_seconds *step,
                                 double tile_memory_s, double memory_s, double memory_share)
{
    const tgi_wgmma_work *work = c->work;
    const double before = ceil(work->whole_count / work->slot_count) - 1.0;
    const double before_s = before * work->slot_count * tile_memory_s;
    const double tile_s = find_tile_seconds(c, step, count_whole_steps(work), memory_share);
    if (!tgi_wgmma_is_narrow(c) || work->split_tile_count > 0.0 || before < 1.0 ||
        work->sm_blocks > 1)
        return 0.0;
    return join_seconds(before * tile_s, c->figures->wgmma_memory_start_s + before_s) +
           join_seconds(tile_s, memory_s - before_s);
}

double tgi_model_wgmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel,
                               const tgi_problem *problem, const tgi_wgmma_work *work)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const tgi_wgmma_case c = {f,       gpu,  kernel,
                              problem, work, tgi_wgmma_find_step(f, kernel, problem)};
    const tgi_wgmma_readers readers = tgi_wgmma_count_readers(&c);
    const double split_units = work->split_tile_count * work->split_count;
    const double tile_memory_s = tgi_wgmma_tile_memory_seconds(&c, &readers);
    const double memory_s = tgi_wgmma_memory_seconds(&c, tile_memory_s);
    const double products_s = tgi_wgmma_products_seconds(&c);
    const double busy_share = fmin(1.0, (work->whole_count + split_units) / work->slot_count);
    const step_seconds step = find_step_seconds(&c, &readers, busy_share);
    const double idle_s = find_own_seconds(&c, &step, 0.0);
    const double memory_share = fmin(1.0, memory_s / idle_s);
    const double own_s = find_own_seconds(&c, &step, memory_share);
    const double finish_s = tgi_wgmma_finish_seconds(&c);
    const double fetched_s = own_s - find_ahead_seconds(work, &step, finish_s);
    /* Blocks of the next kernel, which start early, find no free multiprocessor. */
    const double full_s = tgi_wgmma_is_narrow(&c) && busy_share > 0.5 ? f->wgmma_full_s : 0.0;
    /* Products and memory share the power of the chip, which lowers the clock. */
    const double power_s = f->wgmma_power_share *
                           fmax(0.0, fmin(products_s, memory_s) - f->wgmma_power_free * memory_s);
    const double least_s = find_least_seconds(&c, &step, tile_memory_s, memory_s, memory_share);
    const double rounds_s =
        fmax(least_s, join_seconds(fetched_s, f->wgmma_memory_start_s + memory_s));
    const double seconds = f->wgmma_launch_s + full_s + tgi_wgmma_start_seconds(&c, &readers) +
                           rounds_s + finish_s + tgi_wgmma_partial_store_seconds(&c) + power_s +
                           tgi_wgmma_partial_add_seconds(&c);
    /* Calls follow no faster than the host makes them, but every row keeps a different time. */
    return join_seconds(seconds, f->wgmma_call_s);
}
