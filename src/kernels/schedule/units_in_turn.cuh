/*
 * Deals units of work out in turn: a block, or a cluster of blocks, has the unit of its own number
 * in the grid, and then every unit that lies a multiple of the grid's width further. The schedules
 * differ in what a unit is:
 *
 *     tgi_grid_schedule      a tile, a batch entry of a tile, or a split of a tile
 *     tgi_cluster_schedule   the tiles of a cluster, or a split of them (family wgmma)
 *     tgi_entry_schedule     several small batch entries, or a part of one (family batch)
 */
#ifndef TGI_UNITS_IN_TURN_CUH
#define TGI_UNITS_IN_TURN_CUH

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/cluster_work.h"
#include "kernels/schedule/tile.cuh"

/* A turn says what a block takes in turn, along one dimension of the grid. The block's places along
 * the other dimensions hold for all of its units. */
typedef enum tgi_unit_kind {
    TGI_UNITS_TILES,   /* x: tiles of all batch entries; y: splits, one a block */
    TGI_UNITS_ENTRIES, /* z: batch entries; x: tiles, y: splits, one a block */
    TGI_UNITS_SPLITS /* z: splits of all batch entries; x, y: tiles across and down, one a block */
} tgi_unit_kind;

template <tgi_unit_kind Units> struct tgi_unit_of {
    typedef unsigned type;
};

template <> struct tgi_unit_of<TGI_UNITS_ENTRIES> {
    typedef int64_t type;
};

/* Holds the row and the column of a tile, counted in tiles. */
struct tgi_tile_index {
    unsigned row, col;
};

/* Finds a tile by its number. Tiles are numbered down the columns of groups of group_rows tile
 * rows, so that blocks that run together share operands in L2. */
static __device__ __forceinline__ tgi_tile_index tgi_find_in_group(unsigned number,
                                                                   unsigned tile_rows,
                                                                   unsigned tile_cols,
                                                                   unsigned group_rows)
{
    const unsigned group = number / (group_rows * tile_cols);
    const unsigned first = group * group_rows;
    const unsigned height = min(group_rows, tile_rows - first);
    number -= first * tile_cols;
    return {first + number % height, number / height};
}

/* Schedules tiles of one size. If the grid is as wide as there are units, a block has one. */
template <int Rows, int Cols, tgi_unit_kind Units> struct tgi_grid_schedule {
    typedef typename tgi_unit_of<Units>::type unit_type;

    const tgi_gemm_args &args;
    tgi_block_tile own; /* the part of a tile's place that all units of this block share */

    __device__ __forceinline__ explicit tgi_grid_schedule(const tgi_gemm_args &given) : args(given)
    {
        if (Units == TGI_UNITS_ENTRIES) {
            const unsigned rows = tile_rows(), cols = tile_cols();
            /* By the lesser of two, the tiles of a group are no more than a batch entry has. */
            const tgi_tile_index index = tgi_find_in_group(
                blockIdx.x, rows, cols, min(static_cast<unsigned>(args.tile_rows_per_group), rows));
            own.row = static_cast<int64_t>(index.row) * Rows;
            own.col = static_cast<int64_t>(index.col) * Cols;
        }
        if (Units == TGI_UNITS_SPLITS) {
            own.col = static_cast<int64_t>(blockIdx.x) * Cols;
            own.row = static_cast<int64_t>(blockIdx.y) * Rows;
        }
        if (Units != TGI_UNITS_SPLITS)
            own.split = blockIdx.y;
    }

    __device__ __forceinline__ unsigned tile_rows(void) const
    {
        return static_cast<unsigned>((args.problem.m + Rows - 1) / Rows);
    }

    __device__ __forceinline__ unsigned tile_cols(void) const
    {
        return static_cast<unsigned>((args.problem.n + Cols - 1) / Cols);
    }

    __device__ __forceinline__ unit_type begin(void) const
    {
        return Units == TGI_UNITS_TILES ? blockIdx.x : blockIdx.z;
    }

    __device__ __forceinline__ unit_type end(void) const
    {
        const int64_t batch_count = args.problem.batch_count;
        if (Units == TGI_UNITS_ENTRIES)
            return batch_count;
        return (Units == TGI_UNITS_TILES ? tile_rows() * tile_cols() : args.split_count) *
               static_cast<unsigned>(batch_count);
    }

    __device__ __forceinline__ unit_type next(unit_type unit) const
    {
        return unit + (Units == TGI_UNITS_TILES ? gridDim.x : gridDim.z);
    }

    __device__ __forceinline__ tgi_block_tile tile(unit_type unit) const
    {
        const unsigned splits = args.split_count;
        tgi_block_tile tile = own;
        if (Units == TGI_UNITS_TILES) {
            const unsigned rows = tile_rows(), cols = tile_cols(), batch = unit / (rows * cols);
            const tgi_tile_index index =
                tgi_find_in_group(unit - batch * (rows * cols), rows, cols,
                                  static_cast<unsigned>(args.tile_rows_per_group));
            tile.batch = batch;
            tile.row = static_cast<int64_t>(index.row) * Rows;
            tile.col = static_cast<int64_t>(index.col) * Cols;
        } else if (Units == TGI_UNITS_ENTRIES) {
            tile.batch = unit;
        } else {
            tile.batch = splits == 1 ? unit : unit / splits;
            tile.split = splits == 1 ? 0 : unit % splits;
        }
        return tile;
    }

    template <class Args>
    static __device__ __forceinline__ const Args &problem(const Args &given, unit_type)
    {
        return given;
    }
};

/* Returns this block's row of tiles in its cluster, which has 1, 2 or 4 rows. */
static __device__ __forceinline__ int tgi_find_cluster_row(const tgi_cluster_work &work, int rank)
{
    return rank & (work.cluster_rows - 1);
}

/* Returns tile `row` of cluster `index`, of rows x cols elements, with whole k. Clusters are
 * numbered over all batch entries, and in an entry as tiles of tgi_grid_schedule are. */
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

/* Schedules clusters. A unit is a tile for each row of the cluster or, after the whole tiles, a
 * split of k of such tiles (split-K). Clusters of several splits share out k of one tile among
 * their blocks. If IsUniform is 0, begin() and next() read the cluster's number and count again at
 * each call, for code that has few registers; otherwise uniform registers keep them. */
template <int Rows, int Cols, int IsUniform> struct tgi_cluster_schedule {
    const tgi_cluster_work &work;
    int rank, first, stride;

    __device__ __forceinline__ tgi_cluster_schedule(const tgi_cluster_work &given, int given_rank)
        : work(given), rank(given_rank)
    {
        if (IsUniform) {
            first = tgi_make_uniform(tgi_cluster_index());
            stride = tgi_make_uniform(tgi_cluster_count());
        }
    }

    __device__ __forceinline__ int begin(void) const
    {
        return IsUniform ? first : tgi_cluster_index();
    }

    __device__ __forceinline__ int end(void) const
    {
        return work.unit_count;
    }

    __device__ __forceinline__ int next(int unit) const
    {
        return unit + (IsUniform ? stride : tgi_cluster_count());
    }

    __device__ __forceinline__ tgi_cluster_tile tile(int unit) const
    {
        const int split_unit = unit - work.whole_count, row = tgi_find_cluster_row(work, rank);
        const int split = split_unit < 0 ? 0 : tgi_divide(split_unit, work.split_clusters);
        tgi_cluster_tile tile =
            tgi_find_cluster_tile(work, unit - split * work.split_clusters.value, row,
                                  Rows > 0 ? Rows : work.tile_rows, Cols);
        if (split_unit >= 0) {
            tile.split_tile =
                (split_unit - split * work.split_clusters.value) * work.cluster_rows + row;
            tile.split = split;
        } else if (work.cluster_splits > 1) {
            tile.split = rank >> (work.cluster_rows >> 1);
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

/* Holds the first entry of a unit, and its first row of D. */
struct tgi_entry_place {
    int batch, row;
};

/* Schedules groups of batch entries. Without portions, unit u has the entries from u * entries on.
 * With portions, a unit is some rows of one entry. Units and entries are less than 2^31. */
struct tgi_entry_schedule {
    tgi_divisor portions; /* units of an entry */
    int entries, portion_rows;
    int64_t unit_count;

    __device__ __forceinline__ int64_t begin(void) const
    {
        return blockIdx.x;
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return unit_count;
    }

    __device__ __forceinline__ int64_t next(int64_t unit) const
    {
        return unit + gridDim.x;
    }

    __device__ __forceinline__ tgi_entry_place tile(int64_t unit) const
    {
        const int number = static_cast<int>(unit);
        if (portions.value == 1)
            return {number * entries, 0};
        const int batch = tgi_divide(number, portions);
        return {batch, (number - batch * portions.value) * portion_rows};
    }

    template <class Args>
    static __device__ __forceinline__ const Args &problem(const Args &given, int64_t)
    {
        return given;
    }
};

#endif
