/* Counts the tiles of a product of the families on wgmma and the lines of their TMA boxes, and
 * fills in how the tiles are shared out. */
#include "cuda/families/wgmma_tiles.h"

#include <math.h>

#include "core/checked.h"
#include "kernels/wgmma/wgmma_shape.h"

#define SUM_BYTES 4
#define FRAGMENT_ROWS 64
#define GROUP_LINES 8     /* lines of one repeat of the swizzle */
#define GROUP_ROWS_MAX 16 /* most tile rows of a group */
#define FEW_COLS 8        /* most tile columns for groups of one row */

int64_t tgi_wgmma_row_clusters(const tgi_problem *p, int tile_rows, int cluster_rows)
{
    return tgi_divide_up(p->m, (int64_t)tile_rows * cluster_rows);
}

int64_t tgi_wgmma_col_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_divide_up(p->n, kernel->tile_cols);
}

/* If D has few columns of tiles, a group is one row, so that the tiles of a row are numbered one
 * after another. Several blocks copy the same line of A slowly unless they are neighbours. */
int tgi_wgmma_group_rows(const tgi_kernel *kernel, const tgi_problem *p, int tile_rows,
                         int cluster_rows)
{
    const int64_t rows = tgi_wgmma_row_clusters(p, tile_rows, cluster_rows);
    const int64_t most = GROUP_ROWS_MAX / cluster_rows;
    if (tgi_wgmma_col_tiles(kernel, p) <= FEW_COLS)
        return 1;
    return (int)(rows < most ? rows : most);
}

int tgi_wgmma_is_fitted(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_few;
}

int tgi_wgmma_sent_cols(const tgi_kernel *kernel)
{
    return TGI_SENT_COLS(kernel->tile_rows, kernel->tile_cols, tgi_kernels_has_slices(kernel));
}

int64_t tgi_wgmma_sent_bytes(const tgi_kernel *kernel, int splits)
{
    const int cols = tgi_wgmma_sent_cols(kernel);
    const int parts = kernel->tile_rows / FRAGMENT_ROWS * kernel->tile_cols / cols;
    return tgi_divide_up(parts, splits) * splits * FRAGMENT_ROWS * cols * SUM_BYTES;
}

/* Returns the bytes that instructions read from the beginning of a stage on. */
static int64_t count_read_bytes(const tgi_kernel *kernel, int a_stage_bytes)
{
    const int64_t b_bytes = TGI_WGMMA_LINES(kernel->tile_cols, 1) * TGI_WGMMA_STEP_BYTES;
    const int64_t a_bytes = kernel->tile_rows * TGI_WGMMA_STEP_BYTES;
    return a_stage_bytes + b_bytes > a_bytes ? a_stage_bytes + b_bytes : a_bytes;
}

void tgi_wgmma_fit_stages(const tgi_kernel *kernel, const tgi_problem *p,
                          const tgi_wgmma_work *work, tgi_wgmma_decision *decision)
{
    const int64_t cols = p->n < kernel->tile_cols ? p->n : kernel->tile_cols;
    const int64_t box =
        work->is_b_across ? TGI_WGMMA_STEP_BYTES / tgi_type_bytes(p->type) : work->b_tma_box_lines;
    const int64_t a_lines = work->is_a_across ? kernel->tile_rows : work->tile_rows;
    const int64_t bytes = (a_lines + tgi_round_up(cols, box)) * TGI_WGMMA_STEP_BYTES;
    const double steps = work->cluster_splits > 1 ? work->split_steps : work->step_count;
    decision->a_stage_bytes = (int)a_lines * TGI_WGMMA_STEP_BYTES;
    const int least = TGI_FEW_STAGE_LEAST(kernel->tile_rows);
    decision->stage_bytes = bytes > least ? (int)bytes : least;
    const int64_t most = work->sm_blocks > 1 ? TGI_FEW_SHARED_OF_TWO : TGI_WGMMA_SHARED_MAX;
    const int64_t room = most - TGI_FEW_FIXED_BYTES(kernel->tile_rows) -
                         count_read_bytes(kernel, decision->a_stage_bytes);
    int64_t count = room / decision->stage_bytes + 1;
    if (count > TGI_FEW_STAGES_MAX)
        count = TGI_FEW_STAGES_MAX;
    if ((double)count > fmax(steps, 2.0) && work->whole_count <= work->slot_count)
        count = (int64_t)fmax(steps, 2.0);
    decision->stage_count = (int)count;
}

int64_t tgi_wgmma_fitted_bytes(const tgi_kernel *kernel, const tgi_cluster_work *work)
{
    const int64_t bytes = (int64_t)(work->stage_count - 1) * work->stage_bytes +
                          count_read_bytes(kernel, work->a_stage_bytes);
    const int64_t sent =
        work->cluster_splits > 1
            ? work->sent_offset + tgi_wgmma_sent_bytes(kernel, work->cluster_splits)
            : 0;
    return TGI_FEW_FIXED_BYTES(kernel->tile_rows) + (bytes > sent ? bytes : sent);
}

/* A box across k has as many lines as 128 bytes hold elements. A box along k has the lines that one
 * of the blocks which share a tile's lines copies, and no more than exist. */
int tgi_wgmma_tma_box_lines(const tgi_problem *p, const tgi_wgmma_lines *lines)
{
    const int share = lines->tile_lines / lines->sharer_count;
    const int64_t wanted =
        tgi_divide_up(lines->line_count, lines->sharer_count * GROUP_LINES) * GROUP_LINES;
    const int step = TGI_WGMMA_STEP_BYTES / (int)tgi_type_bytes(p->type);
    /* Boxes across k that are fewer than the sharers are cut. */
    if (lines->is_across)
        return tgi_divide_up(lines->tile_lines, step) < lines->most_sharers
                   ? step / lines->sharer_count
                   : step;
    return (int)(wanted < share ? wanted : share);
}

/* Returns the lines across k of the last step that are multiplied, or 0 if all are. */
static int find_last_lines(const tgi_problem *p)
{
    const int64_t step = TGI_WGMMA_STEP_BYTES / tgi_type_bytes(p->type);
    const int64_t product = TGI_WGMMA_PRODUCT_BYTES / tgi_type_bytes(p->type);
    const int64_t lines = tgi_divide_up(p->k % step, product) * product;
    return tgi_type_bytes(p->type) == 2 && lines < step ? (int)lines : 0;
}

int tgi_wgmma_edge_lines(const tgi_problem *p, const tgi_wgmma_lines *lines)
{
    if (lines->is_across)
        return find_last_lines(p);
    const int64_t edge = lines->line_count % lines->tile_lines;
    const int64_t wanted = tgi_divide_up(edge, lines->sharer_count * GROUP_LINES) * GROUP_LINES;
    return lines->line_count > lines->tile_lines && wanted < lines->tile_lines / lines->sharer_count
               ? (int)wanted
               : 0;
}

/* Returns the tile order in groups of `rows` rows of clusters. */
static tgi_cluster_order make_order(int64_t row_clusters, int64_t col_tiles, int64_t rows)
{
    const int64_t last_group = (row_clusters - 1) / rows;
    return (tgi_cluster_order){.entry = tgi_make_divisor((int32_t)(row_clusters * col_tiles)),
                               .group = tgi_make_divisor((int32_t)(rows * col_tiles)),
                               .rows = tgi_make_divisor((int32_t)rows),
                               .last_rows =
                                   tgi_make_divisor((int32_t)(row_clusters - last_group * rows)),
                               .last_group = (int32_t)last_group};
}

/* Returns the place behind the stages that a split fills, of which a bias takes one and C one or
 * two, if what other blocks of the cluster send has room there, else 0. */
static int64_t find_sent_offset(const tgi_kernel *kernel, const tgi_wgmma_decision *decision,
                                const tgi_cluster_work *work, int is_across, int has_c)
{
    const int is_fitted = tgi_wgmma_is_fitted(kernel);
    const int64_t lines = kernel->tile_rows + TGI_WGMMA_LINES(kernel->tile_cols, is_across);
    const int64_t stage_bytes = is_fitted ? work->stage_bytes : lines * TGI_WGMMA_STEP_BYTES;
    const int64_t stages =
        is_fitted ? work->stage_count
                  : TGI_WGMMA_STAGES(kernel->stage_count, kernel->tile_cols, is_across);
    const int64_t room = is_fitted ? TGI_WGMMA_SHARED_MAX - TGI_FEW_FIXED_BYTES(kernel->tile_rows)
                                   : stages * stage_bytes;
    const int64_t wanted = work->steps_per_split + (has_c ? 2 : 1);
    const int64_t used = wanted < stages ? wanted : stages;
    if (work->cluster_splits == 1 || tgi_kernels_has_slices(kernel) ||
        used * stage_bytes + tgi_wgmma_sent_bytes(kernel, decision->cluster_splits) > room)
        return 0;
    return used * stage_bytes;
}

void tgi_wgmma_prepare_tiles(const tgi_kernel *kernel, const tgi_wgmma_decision *decision,
                             const tgi_operand operand[2], tgi_wgmma_args *args)
{
    const tgi_problem *p = &args->gemm.problem;
    const int cluster_rows = decision->cluster_rows;
    const tgi_wgmma_lines a_lines = {p->m, decision->tile_rows, 1, 1, operand[0].is_across};
    const tgi_wgmma_lines b_lines = {p->n, kernel->tile_cols, cluster_rows, kernel->thread_rows,
                                     operand[1].is_across};
    const int64_t row_clusters = tgi_wgmma_row_clusters(p, decision->tile_rows, cluster_rows);
    args->gemm.split_elems = decision->split_elems;
    args->gemm.split_count = (int32_t)decision->split_count;
    args->work.order =
        make_order(row_clusters, tgi_wgmma_col_tiles(kernel, p),
                   tgi_wgmma_group_rows(kernel, p, decision->tile_rows, cluster_rows));
    args->work.tile_rows = decision->tile_rows;
    args->d_rows = decision->tile_rows / (kernel->tile_rows / FRAGMENT_ROWS);
    args->work.tile_cols = kernel->tile_cols;
    args->work.cluster_rows = cluster_rows;
    args->work.cluster_splits = decision->cluster_splits;
    args->work.stage_count = decision->stage_count;
    args->work.stage_bytes = decision->stage_bytes;
    args->work.a_stage_bytes = decision->a_stage_bytes;
    const int64_t units = args->work.order.entry.value * p->batch_count;
    const int64_t whole = args->gemm.split_count > 1 ? decision->whole_tiles / cluster_rows : units;
    args->work.whole_count = (int32_t)whole;
    args->work.split_clusters = tgi_make_divisor(units > whole ? (int32_t)(units - whole) : 1);
    args->work.unit_count = (int32_t)(whole + (units - whole) * args->gemm.split_count);
    args->work.step_count = (int32_t)tgi_divide_up(p->k, kernel->tile_depth);
    const int64_t last_elems = p->k - (args->work.step_count - 1) * (int64_t)kernel->tile_depth;
    args->work.last_products =
        (int32_t)tgi_divide_up(last_elems * tgi_type_bytes(p->type), TGI_WGMMA_PRODUCT_BYTES);
    args->work.steps_per_split = (int32_t)tgi_divide_up(args->gemm.split_elems, kernel->tile_depth);
    args->work.sent_offset = (int32_t)find_sent_offset(
        kernel, decision, &args->work, operand[1].is_across, p->epilogue.beta != 0.0);
    args->is_second =
        tgi_type_is_fp8(p->type) ? p->b_type != TG_TYPE_FP8_E4M3 : operand[0].is_across;
    args->a.line_count = (int32_t)p->m;
    args->b.line_count = (int32_t)p->n;
    if (!operand[0].is_unaligned)
        args->a.edge_lines = tgi_wgmma_edge_lines(p, &a_lines);
    args->b.edge_lines = tgi_wgmma_edge_lines(p, &b_lines);
    args->a.tma_box_lines = tgi_wgmma_tma_box_lines(p, &a_lines);
    args->b.tma_box_lines = tgi_wgmma_tma_box_lines(p, &b_lines);
}

void tgi_wgmma_describe_epilogue(tgi_wgmma_args *args)
{
    tgi_epilogue others = args->gemm.problem.epilogue;
    args->gemm.is_sum_alone = tgi_epilogue_is_sum_alone(&others);
    others.activation = TG_ACTIVATION_NONE;
    args->is_activation_alone = !args->gemm.is_sum_alone && tgi_epilogue_is_sum_alone(&others);
}

void tgi_wgmma_place_terms(int is_brought, tgi_wgmma_args *args)
{
    tgi_epilogue *epilogue = &args->gemm.problem.epilogue;
    args->c.beta = (float)epilogue->beta;
    if (!is_brought)
        args->c.bias = TG_BIAS_NONE;
    if (!is_brought && args->c.source == TGI_C_STAGED)
        args->c.source = args->work.tile_cols <= TGI_EARLY_C_COLS && args->gemm.problem.c.col == 1
                             ? TGI_C_EARLY
                             : TGI_C_LATE;
    args->c.is_summed &= args->c.source != TGI_C_LATE;
    if (args->c.bias != TG_BIAS_NONE)
        epilogue->bias = TG_BIAS_NONE;
    if (args->c.is_summed)
        epilogue->beta = 0.0;
    tgi_wgmma_describe_epilogue(args);
}
