/*
 * Repairs sums of slices in family wgmma while they are stored.
 */
#ifndef TGI_SLICE_REPAIR_CUH
#define TGI_SLICE_REPAIR_CUH

#include "kernels/epilogue/slice_sums.cuh"
#include "kernels/wgmma/wgmma_args.h"

/* Returns the range of this warp's rows of the 64 from tile.row on. */
static __device__ __forceinline__ tgi_range tgi_find_row_range(const tgi_wgmma_args &args,
                                                               const tgi_cluster_tile &tile)
{
    return tgi_find_range(args.a_slices, args.a.has_batch ? tile.batch : 0,
                          min(tile.row + static_cast<int>(threadIdx.x) / 32 % 4 * TGI_REGISTER_ROWS,
                              args.a.line_count - 1));
}

/* Returns 1 for a tile that its block stores, without sums of other blocks. */
static __device__ __forceinline__ int tgi_is_stored_whole(const tgi_wgmma_args &args,
                                                          const tgi_cluster_tile &tile)
{
    return args.work.cluster_splits == 1 && tile.split_tile < 0;
}

/* Repairs a box of 64 x 64 sums whose tile may have doubtful ones. It is a call, since it is
 * seldom needed and most stores have code of their own. */
static __device__ __noinline__ void tgi_repair_box(const tgi_wgmma_args &args, tgi_range a_range,
                                                   int row, int col, int batch, uint32_t staged)
{
    tgi_repair_rows(args, a_range, row, col, batch, staged);
}

/* This repair is for sums of slices. a_range is the range of the warp's rows; it begins as the
 * range of no elements. may_repair is 0 if no sum of the columns that were looked at is
 * doubtful. */
struct tgi_slice_repair {
    static constexpr int is_on = 1;
    const tgi_wgmma_args &args;
    tgi_range a_range = {0, UINT32_MAX};
    int may_repair = 0;

    __device__ __forceinline__ explicit tgi_slice_repair(const tgi_wgmma_args &given) : args(given)
    {
    }

    /* Finds whether a sum of the warp's rows in `count` columns from the tile's first on may be
     * doubtful. One wait for the ranges of all columns takes the place of one for each box. */
    __device__ __forceinline__ void find_columns(const tgi_cluster_tile &tile, int count)
    {
        const int cols =
            static_cast<int>(min(args.gemm.problem.n - tile.col, static_cast<int64_t>(count)));
        tgi_slice_ranges all = args.b_slices;
        if (!all.ranges || cols <= 0)
            return;
        all.ranges += (static_cast<int64_t>(args.b.has_batch ? tile.batch : 0) * all.block_count +
                       tile.col / TGI_RANGE_LINES) *
                      all.segment_count;
        all.segment_count *= (cols + TGI_RANGE_LINES - 1) / TGI_RANGE_LINES;
        may_repair = tgi_find_doubt(args, a_range, tgi_find_range(all, 0, 0)) != 0.0f;
    }

    /* Finds the range of the warp's rows of the 64 from tile.row on, and then the same. */
    __device__ __forceinline__ void find_rows(const tgi_cluster_tile &tile, int count)
    {
        a_range = tgi_find_row_range(args, tile);
        find_columns(tile, count);
    }

    /* Repairs the 64 x 64 sums in shared memory that lie at the tile's row and column in D. */
    __device__ __forceinline__ void apply(const tgi_cluster_tile &tile, uint32_t staged) const
    {
        if (may_repair)
            tgi_repair_box(args, a_range, tile.row, tile.col, tile.batch, staged);
    }
};

#endif
