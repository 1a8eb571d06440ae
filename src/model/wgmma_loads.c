/* Predicts the loads of family wgmma: copies into the stages, L2 and memory. */
#include <math.h>

#include "model/wgmma_seconds.h"

#define OBLONG_LINES 192     /* lines of a step of tiles of 64 x 128 and 128 x 64 */
#define UNALIGNED_LINES 64.0 /* unaligned lines in one copy */
#define BOX_LINES 64.0       /* columns of 16-bit types in a box across k */
#define SECTOR_COUNT 4.0     /* sectors of a line of L2 */

/* Lines of one operand that are copied for a step of a block's tile. Lines outside the operand are
 * filled with 0. */
typedef struct tile_lines {
    double inside, outside;
} tile_lines;

/* Counts the copied lines of an operand of `count` lines. Each of a cluster's `tile_count` tiles
 * takes lines_per_tile, in TMA boxes of box_lines. The last box may reach beyond the operand. */
static tile_lines count_lines(double count, double lines_per_tile, double tile_count,
                              double box_lines)
{
    const double all = lines_per_tile * tile_count, inside = fmin(all, count);
    const double copied = fmin(all, ceil(inside / box_lines) * box_lines);
    return (tile_lines){inside / tile_count, (copied - inside) / tile_count};
}

static int is_few(const tgi_wgmma_case *c)
{
    return c->kernel->family == TGI_FAMILY_cuda_few;
}

static tile_lines count_a_lines(const tgi_wgmma_case *c)
{
    const tgi_wgmma_work *work = c->work;
    return count_lines((double)c->problem->m, work->tile_rows, work->cluster_rows,
                       work->is_a_unaligned ? UNALIGNED_LINES : work->a_tma_box_lines);
}

static tile_lines count_b_lines(const tgi_wgmma_case *c)
{
    return count_lines((double)c->problem->n, c->work->b_tile_lines, 1.0, c->work->b_tma_box_lines);
}

tgi_wgmma_readers tgi_wgmma_count_readers(const tgi_wgmma_case *c)
{
    const tgi_kernel *kernel = c->kernel;
    const tgi_problem *p = c->problem;
    const tgi_wgmma_work *work = c->work;
    const double rows = ceil((double)p->m / work->tile_rows / work->cluster_rows);
    const double cols = ceil((double)p->n / kernel->tile_cols);
    const double batch = (double)p->batch_count;
    /* Clusters are numbered down groups of rows, so that clusters that run together are
     * neighbours. */
    const double running = fmin(work->slot_count, work->whole_count + work->split_tile_count);
    const double entries = fmax(1.0, running / (rows * cols)); /* batch entries that run at once */
    const double in_entry = running / entries;
    const double beside = fmin(cols, ceil(in_entry / work->group_rows));
    /* Tiles narrower than a box across k copy the whole box, which several of them share. */
    const double box_tiles = (double)work->b_tile_lines / kernel->tile_cols;
    return (tgi_wgmma_readers){.a_count = cols * (p->a.batch == 0 ? batch : 1.0),
                               .b_count = rows * (p->b.batch == 0 ? batch : 1.0),
                               .a_at_once = beside * (p->a.batch == 0 ? entries : 1.0),
                               .b_at_once = fmax(1.0, in_entry / beside) * fmin(cols, box_tiles) *
                                            (p->b.batch == 0 ? entries : 1.0)};
}

/* Returns TMA's bytes in a cycle for lines that reader_count blocks copy at once. */
static double find_fill_rate(const tgi_wgmma_case *c, double reader_count)
{
    const tgi_figures *f = c->figures;
    const double less = f->wgmma_fill_shared_less * log2(fmax(1.0, reader_count / 2.0));
    const int is_oblong = !is_few(c) &&
                          c->kernel->tile_rows + c->kernel->tile_cols == OBLONG_LINES &&
                          c->kernel->tile_cols >= OBLONG_LINES / 3;
    if (is_oblong && !c->work->are_crowded)
        return f->wgmma_fill_apart_bytes_per_cycle;
    return fmax(f->wgmma_fill_least, f->wgmma_fill_bytes_per_cycle - less);
}

/* Returns the seconds that a producer needs to request the copies of a step, however few. */
static double find_least_step(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    return is_few(c)                ? f->few_step_s[c->work->cluster_rows > 1]
           : tgi_wgmma_is_narrow(c) ? f->wgmma_step_s
                                    : 0.0;
}

/* Returns the share by which copies take longer if lines are not aligned to lines or sectors of
 * L2. */
static double find_longer_share(const tgi_figures *f, int straddles, int splits)
{
    return splits ? f->wgmma_split_share : straddles ? f->wgmma_straddle_share : 0.0;
}

double tgi_wgmma_fill_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers,
                              double multiply_s)
{
    const tgi_figures *f = c->figures;
    const tgi_wgmma_work *work = c->work;
    const tile_lines a = count_a_lines(c), b = count_b_lines(c);
    const double a_share = find_longer_share(f, work->a_straddles, work->a_splits);
    const double b_share =
        find_longer_share(f, work->b_straddles, work->b_splits) / work->cluster_rows;
    const double copy_s =
        (a.inside * c->step.row_bytes * (1.0 + a_share) / find_fill_rate(c, readers->a_at_once) +
         b.inside * c->step.col_bytes * (1.0 + b_share) / find_fill_rate(c, readers->b_at_once)) /
        c->gpu->clock_hz;
    /* Relayout warps move unaligned lines, and compete with the products for shared memory. */
    const double inside_s = work->is_a_unaligned
                                ? f->wgmma_unaligned_step_s + a.inside * f->wgmma_unaligned_line_s +
                                      f->wgmma_unaligned_share * multiply_s +
                                      readers->a_at_once * f->wgmma_unaligned_reader_s[1]
                                : copy_s;
    return fmax(find_least_step(c), inside_s + (a.outside + b.outside) * f->wgmma_outside_line_s);
}

double tgi_wgmma_wait_seconds(const tgi_wgmma_case *c)
{
    const tgi_figures *f = c->figures;
    return is_few(c)                   ? f->few_latency_s[c->work->cluster_rows > 1]
           : c->work->cluster_rows > 1 ? f->wgmma_cluster_latency_s
                                       : f->wgmma_latency_s;
}

double tgi_wgmma_later_wait_ratio(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers)
{
    const int is_shared = readers->a_at_once >= 2.0 && readers->b_at_once >= 2.0;
    const int is_alone = !is_shared && !is_few(c) && tgi_wgmma_is_narrow(c);
    return is_alone                      ? c->figures->wgmma_alone_wait
           : !is_shared                  ? 1.0
           : c->work->cluster_splits > 1 ? c->figures->wgmma_apart_wait
                                         : c->figures->wgmma_shared_wait;
}

/* Returns the seconds by which the first stage is later because of how an operand's lines lie in
 * L2: they begin between two sectors, or some share a line of L2. Blocks that copy the same lines
 * at once wait for each other. */
static double find_lines_seconds(const tgi_wgmma_case *c, int splits, double shared_lines,
                                 double reader_count)
{
    const double *lines_s = c->figures->wgmma_lines_s;
    return is_few(c) ? splits * c->figures->few_lines_s
           : splits  ? lines_s[0] + lines_s[1] * reader_count
                     : lines_s[2] * shared_lines * reader_count;
}

/* Returns the seconds by which blocks that run at once delay each other where they copy the same
 * lines of one operand along k, and two lines share a sector of L2. */
static double find_half_sector_seconds(const tgi_wgmma_case *c, double shared_lines, double lines,
                                       double reader_count)
{
    const tgi_wgmma_work *work = c->work;
    const double blocks = work->whole_count + work->split_tile_count * work->split_count;
    return shared_lines > SECTOR_COUNT ? c->figures->wgmma_half_sector_s * lines * reader_count *
                                             fmin(1.0, blocks / work->slot_count)
                                       : 0.0;
}

double tgi_wgmma_start_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers)
{
    const tgi_wgmma_work *work = c->work;
    return (work->is_a_unaligned
                ? readers->a_at_once * c->figures->wgmma_unaligned_reader_s[0]
                : find_lines_seconds(c, work->a_splits, work->a_shared_lines, readers->a_at_once)) +
           find_lines_seconds(c, work->b_splits, work->b_shared_lines, readers->b_at_once) +
           find_half_sector_seconds(c, work->is_a_across ? 0.0 : work->a_shared_lines,
                                    count_a_lines(c).inside, readers->a_at_once) +
           find_half_sector_seconds(c, work->is_b_across ? 0.0 : work->b_shared_lines,
                                    count_b_lines(c).inside, readers->b_at_once);
}

/* Returns the bytes that L2 delivers to more than one reader, over the bytes of memory. A byte that
 * x blocks copy at once counts log2(x) times. */
static double find_copied_ratio(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers)
{
    const tgi_wgmma_work *work = c->work;
    const double steps = (work->whole_count + work->split_tile_count) * work->step_count;
    const double a_bytes = steps * work->cluster_rows * count_a_lines(c).inside * c->step.row_bytes;
    const double b_bytes = steps * count_b_lines(c).inside * c->step.col_bytes;
    return (a_bytes * (1.0 - 1.0 / readers->a_count) * log2(readers->a_at_once) +
            b_bytes * (1.0 - 1.0 / readers->b_count) * log2(readers->b_at_once)) /
           tgi_model_tile_bytes(c->problem);
}

/* Returns memory's time for `count` clusters in rounds, if one cluster takes each_s while all slots
 * are busy. Memory's rate falls with the share of busy slots, to the power of 5/16. */
static double find_round_seconds(double count, double slots, double each_s)
{
    const double full = floor(count / slots), rest = count - full * slots;
    const double quarter = sqrt(sqrt(rest / slots));
    const double rest_s = rest > 0.0 ? each_s * rest / (quarter * sqrt(sqrt(quarter))) : 0.0;
    return full * slots * each_s + rest_s;
}

/* Returns the bytes of columns of B beside a tile's that its boxes across k copy, over all tiles
 * once. Narrower tiles than a box share it with their neighbours. */
static double count_beside_bytes(const tgi_wgmma_case *c)
{
    const tgi_problem *p = c->problem;
    const double cols = c->kernel->tile_cols, lines = c->work->b_tile_lines;
    const double entries = p->b.batch == 0 ? 1.0 : (double)p->batch_count;
    if (cols < BOX_LINES || lines <= cols)
        return 0.0;
    return (lines / cols - 1.0) * (double)p->n * (double)p->k * entries *
           (double)tgi_type_bytes(p->type);
}

double tgi_wgmma_tile_memory_seconds(const tgi_wgmma_case *c, const tgi_wgmma_readers *readers)
{
    const tgi_figures *f = c->figures;
    const tgi_wgmma_work *work = c->work;
    const double bytes = tgi_model_tile_bytes(c->problem);
    const int is_near =
        tgi_wgmma_is_narrow(c) && bytes < f->wgmma_near_l2_share * (double)c->gpu->l2_bytes;
    return (bytes + f->wgmma_beside_share * count_beside_bytes(c)) *
           (is_near ? f->wgmma_near_ratio : 1.0) *
           (1.0 + f->wgmma_copied_share * find_copied_ratio(c, readers)) /
           (f->wgmma_memory_share * c->gpu->memory_bytes_per_s) /
           (work->whole_count + work->split_tile_count);
}

double tgi_wgmma_memory_seconds(const tgi_wgmma_case *c, double tile_s)
{
    const tgi_wgmma_work *work = c->work;
    const double slots = work->slot_count, splits = work->split_count;
    return find_round_seconds(work->whole_count, slots, tile_s) +
           find_round_seconds(work->split_tile_count * splits, slots, tile_s / splits);
}
