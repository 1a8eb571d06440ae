/* Which tile a block works on. */
#ifndef TGI_WGMMA_PLACE_CUH
#define TGI_WGMMA_PLACE_CUH

#include "kernels/wgmma/wgmma_args.h"

/* Where a block works; row and column of its first element of D. */
typedef struct tgi_wgmma_tile {
    int row, col, batch;
    int cut, part;      /* of the tiles whose k is cut which, and which part; -1: k is whole */
    int step, step_end; /* of k */
} tgi_wgmma_tile;

/* A cluster has one row of tiles or two. */
static __device__ __forceinline__ int tgi_find_cluster_row(const tgi_wgmma_args &args, int rank)
{
    return rank & (args.cluster_rows - 1);
}

static __device__ __forceinline__ int tgi_find_cluster_part(const tgi_wgmma_args &args, int rank)
{
    return rank >> (args.cluster_rows - 1);
}

/* Place of tile `row` of cluster `index` of D, over all batch entries. */
static __device__ __forceinline__ tgi_wgmma_tile tgi_find_place(const tgi_wgmma_args &args,
                                                                int index, int row, int rows,
                                                                int cols)
{
    const tgi_wgmma_order &order = args.order;
    const int batch = tgi_divide(index, order.entry), in_entry = index - batch * order.entry.value;
    const int group = tgi_divide(in_entry, order.group);
    const int in_group = in_entry - group * order.group.value;
    const tgi_divisor &group_rows = group == order.last_group ? order.last_rows : order.rows;
    const int col = tgi_divide(in_group, group_rows);
    const int cluster_row = group * order.rows.value + in_group - col * group_rows.value;
    tgi_wgmma_tile tile;
    tile.row = (cluster_row * args.cluster_rows + row) * rows;
    tile.col = col * cols;
    tile.batch = batch;
    tile.cut = tile.part = -1;
    tile.step = 0;
    tile.step_end = args.step_count;
    return tile;
}

/* The blocks of the cluster that need the same lines of an operand, and which of them this is. */
struct tgi_wgmma_sharers {
    int count, share;
    uint16_t ranks; /* a bit each */
};

/* How the lines of an operand's tile are copied: in `count` boxes, of the edge's map or of the
 * other. The producer has few registers: it looks up the rest where it is used. */
struct tgi_wgmma_boxes {
    int count, is_edge;

    __device__ __forceinline__ int lines(const tgi_wgmma_operand &operand) const
    {
        return is_edge ? operand.edge_lines : operand.box_lines;
    }

    __device__ __forceinline__ const tgi_tensor_map *map(const tgi_wgmma_operand &operand) const
    {
        return is_edge ? &operand.edge_map : &operand.map;
    }
};

/* Of B: tiles one below the other, at the same part of k. */
template <int ClusterRows>
static __device__ __forceinline__ tgi_wgmma_sharers tgi_find_sharers(int rank)
{
    const int row = rank % ClusterRows;
    return {ClusterRows, row, static_cast<uint16_t>(((1 << ClusterRows) - 1) << (rank - row))};
}

#endif
