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

/* This repair is for sums of slices. a_range is the range of the warp's rows; it begins as the
 * range of no elements. */
struct tgi_slice_repair {
    static constexpr int is_on = 1;
    const tgi_wgmma_args &args;
    tgi_range a_range = {0, UINT32_MAX};

    __device__ __forceinline__ explicit tgi_slice_repair(const tgi_wgmma_args &given) : args(given)
    {
    }

    /* Finds the range of the warp's rows of the 64 from tile.row on. */
    __device__ __forceinline__ void find_rows(const tgi_cluster_tile &tile)
    {
        a_range = tgi_find_row_range(args, tile);
    }

    /* Repairs the 64 x 64 sums in shared memory that lie at the tile's row and column in D. */
    __device__ __forceinline__ void apply(const tgi_cluster_tile &tile, uint32_t staged) const
    {
        if (args.b_slices.ranges)
            tgi_repair_rows(args, a_range, tile.row, tile.col, tile.batch, staged);
    }
};

#endif
