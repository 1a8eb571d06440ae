/* Fills in how the tiles of a product of the families on wgmma are shared out. */
#include "cuda/families/wgmma_tiles.h"

#include "core/checked.h"
#include "cuda/families/wgmma_tiling.h"
#include "kernels/wgmma/wgmma_shape.h"

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

void tgi_wgmma_prepare_tiles(const tgi_kernel *kernel, const tgi_wgmma_decision *decision,
                             const tgi_operand operand[2], tgi_wgmma_args *args)
{
    const tgi_problem *p = &args->gemm.problem;
    const int cluster_rows = decision->cluster_rows;
    const int64_t row_clusters = tgi_wgmma_row_clusters(kernel, p, cluster_rows);
    args->gemm.split_elems = decision->split_elems;
    args->gemm.split_count = (int32_t)decision->split_count;
    args->work.order = make_order(row_clusters, tgi_wgmma_col_tiles(kernel, p),
                                  tgi_wgmma_group_rows(kernel, p, cluster_rows));
    args->work.tile_rows = kernel->tile_rows;
    args->work.tile_cols = kernel->tile_cols;
    args->work.cluster_rows = cluster_rows;
    args->work.cluster_splits = decision->cluster_splits;
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
    args->is_second =
        tgi_type_is_fp8(p->type) ? p->b_type != TG_TYPE_FP8_E4M3 : operand[0].is_across;
    args->a.line_count = (int32_t)p->m;
    args->b.line_count = (int32_t)p->n;
    if (!operand[0].is_unaligned)
        args->a.edge_lines = tgi_wgmma_edge_lines(kernel, p, 0, operand[0].is_across, cluster_rows);
    args->b.edge_lines = tgi_wgmma_edge_lines(kernel, p, 1, operand[1].is_across, cluster_rows);
    args->a.tma_box_lines =
        tgi_wgmma_tma_box_lines(kernel, p, 0, operand[0].is_across, cluster_rows);
    args->b.tma_box_lines =
        tgi_wgmma_tma_box_lines(kernel, p, 1, operand[1].is_across, cluster_rows);
}
