/*
 * Schedules clusters persistently: as many clusters as the GPU holds work through a list of units.
 * A unit is a tile for each row of the cluster or, after the whole tiles, a split of k of such
 * tiles (split-K). Clusters of several splits share out k of one tile among their blocks.
 */
#ifndef TGI_CLUSTER_TILES_CUH
#define TGI_CLUSTER_TILES_CUH

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/cluster_work.h"
#include "kernels/schedule/tile.cuh"

/* A tile as tgi_block_tile is, within 32 bits and with k counted in steps. */
struct tgi_cluster_tile {
    int row, col, batch;
    int split_tile, split; /* the split tile's number, and the split; -1: k is whole */
    int step, step_end;    /* the range of k: step .. step_end - 1 */
};

/* Returns this block's row of tiles in its cluster, which has one row or two. */
static __device__ __forceinline__ int tgi_find_cluster_row(const tgi_cluster_work &work, int rank)
{
    return rank & (work.cluster_rows - 1);
}

/* Returns the split of k that this block has in its cluster. */
static __device__ __forceinline__ int tgi_find_cluster_split(const tgi_cluster_work &work, int rank)
{
    return rank >> (work.cluster_rows - 1);
}

/* Returns tile `row` of cluster `index`. Clusters are numbered over all batch entries, down the
 * columns of groups of rows of clusters, as tgi_find_in_group numbers tiles. */
static __device__ __forceinline__ tgi_cluster_tile
tgi_find_cluster_tile(const tgi_cluster_work &work, int index, int row, int rows, int cols)
{
    const tgi_cluster_order &order = work.order;
    const int batch = tgi_divide(index, order.entry), in_entry = index - batch * order.entry.value;
    const int group = tgi_divide(in_entry, order.group);
    const int in_group = in_entry - group * order.group.value;
    const tgi_divisor &group_rows = group == order.last_group ? order.last_rows : order.rows;
    const int col = tgi_divide(in_group, group_rows);
    const int cluster_row = group * order.rows.value + in_group - col * group_rows.value;
    tgi_cluster_tile tile;
    tile.row = (cluster_row * work.cluster_rows + row) * rows;
    tile.col = col * cols;
    tile.batch = batch;
    tile.split_tile = tile.split = -1;
    tile.step = 0;
    tile.step_end = work.step_count;
    return tile;
}

/* In this schedule begin() and next() read the cluster's number and count again at each call,
 * because the producer has few registers. */
template <int Rows, int Cols> struct tgi_cluster_schedule {
    const tgi_cluster_work &work;
    int rank;

    __device__ __forceinline__ tgi_cluster_schedule(const tgi_cluster_work &given, int given_rank)
        : work(given), rank(given_rank)
    {
    }

    __device__ __forceinline__ int begin(void) const
    {
        return tgi_cluster_index();
    }

    __device__ __forceinline__ int end(void) const
    {
        return work.unit_count;
    }

    __device__ __forceinline__ int next(int unit) const
    {
        return unit + tgi_cluster_count();
    }

    __device__ __forceinline__ tgi_cluster_tile tile(int unit) const
    {
        const int split_unit = unit - work.whole_count, row = tgi_find_cluster_row(work, rank);
        const int split = split_unit < 0 ? 0 : tgi_divide(split_unit, work.split_clusters);
        tgi_cluster_tile tile =
            tgi_find_cluster_tile(work, unit - split * work.split_clusters.value, row, Rows, Cols);
        if (split_unit >= 0) {
            tile.split_tile =
                (split_unit - split * work.split_clusters.value) * work.cluster_rows + row;
            tile.split = split;
        } else if (work.cluster_splits > 1) {
            tile.split = tgi_find_cluster_split(work, rank);
        }
        if (tile.split >= 0) {
            tile.step = tile.split * work.steps_per_split;
            tile.step_end = min(work.step_count, tile.step + work.steps_per_split);
        }
        return tile;
    }

    template <class Args>
    static __device__ __forceinline__ const Args &problem(const Args &given, int)
    {
        return given;
    }
};

/* This schedule of clusters keeps the cluster's number and count in uniform registers. */
template <int Rows, int Cols>
struct tgi_uniform_cluster_schedule : tgi_cluster_schedule<Rows, Cols> {
    int first, stride;

    __device__ __forceinline__ tgi_uniform_cluster_schedule(const tgi_cluster_work &given,
                                                            int given_rank)
        : tgi_cluster_schedule<Rows, Cols>(given, given_rank),
          first(tgi_make_uniform(tgi_cluster_index())),
          stride(tgi_make_uniform(tgi_cluster_count()))
    {
    }

    __device__ __forceinline__ int begin(void) const
    {
        return first;
    }

    __device__ __forceinline__ int next(int unit) const
    {
        return unit + stride;
    }
};

#endif
