/*
 * Schedules a grid that streams along k (stream-K). Each tile of D has tile_units units of
 * split_elems of k, and each block has a range of consecutive units, of one tile after another. A
 * tile that several blocks share has a split from each.
 */
#ifndef TGI_UNIT_RANGES_CUH
#define TGI_UNIT_RANGES_CUH

#include "kernels/schedule/tile.cuh"

/* If IsDealt is 1, whole tiles are dealt to the blocks in turn if k is not split. All blocks then
 * read the same lines of B at a time, in neighbouring columns. Memory is slower if the columns that
 * are read at once lie far apart. */
template <int IsDealt> struct tgi_range_schedule {
    int64_t col_blocks, tile_units, unit_count;
    int is_dealt;

    /* Each tile has all rows of D and `cols` of its columns. */
    __device__ __forceinline__ tgi_range_schedule(const tgi_gemm_args &args, int cols)
    {
        is_dealt = IsDealt && args.split_count == 1;
        col_blocks = (args.problem.n + cols - 1) / cols;
        tile_units = (args.problem.k + args.split_elems - 1) / args.split_elems;
        unit_count = col_blocks * args.problem.batch_count * tile_units;
    }

    __device__ __forceinline__ int64_t first_unit(int64_t block) const
    {
        return block * unit_count / gridDim.x;
    }

    __device__ __forceinline__ int64_t begin(void) const
    {
        return is_dealt ? blockIdx.x : first_unit(blockIdx.x);
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return is_dealt ? unit_count : first_unit(blockIdx.x + 1);
    }

    template <class Args>
    static __device__ __forceinline__ const Args &problem(const Args &given, int64_t)
    {
        return given;
    }

    /* Returns the problem of the tile that this block leaves for the one of unit `next`. */
    template <class Args>
    static __device__ __forceinline__ const Args &problem_before(const Args &given, int64_t)
    {
        return given;
    }

    /* Finds the tile of `unit` and its range of k, k .. k_end - 1, and moves `unit` to the first
     * one of this block's next tile. It does the work of tile() and next() at once, since both need
     * the division. The schedule keeps neither args nor cols, which would take registers. */
    __device__ __forceinline__ void take(const tgi_gemm_args &args, int cols, int64_t &unit,
                                         tgi_block_tile &tile, int64_t &k, int64_t &k_end) const
    {
        const int64_t number = unit / tile_units, first = number * tile_units;
        tile.row = 0;
        tile.col = number % col_blocks * cols;
        tile.batch = number / col_blocks;
        tile.split = args.split_count == 1 ? 0 : blockIdx.x - owner(first);
        k = (unit - first) * args.split_elems;
        unit = is_dealt ? unit + gridDim.x : min(end(), first + tile_units);
        k_end = min(args.problem.k, (unit - first) * args.split_elems);
    }

    /* Returns the block that has the unit. */
    __device__ __forceinline__ int64_t owner(int64_t unit) const
    {
        return ((unit + 1) * gridDim.x - 1) / unit_count;
    }
};

#endif
