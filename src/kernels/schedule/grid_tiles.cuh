/*
 * Schedules tiles by the grid. A block has one tile of D, of one or of several batch entries, or
 * every tile whose number is its own plus a multiple of the grid's width.
 */
#ifndef TGI_GRID_TILES_CUH
#define TGI_GRID_TILES_CUH

#include "kernels/schedule/tile.cuh"

/* Row and column of a tile, counted in tiles. */
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

/* Tiles of all batch entries are dealt out in turn to the blocks along x: one tile a block if the
 * grid is as wide as there are tiles. The grid has splits along y. */
template <int Rows, int Cols> struct tgi_block_schedule {
    const tgi_gemm_args &args;

    __device__ __forceinline__ explicit tgi_block_schedule(const tgi_gemm_args &given) : args(given)
    {
    }

    __device__ __forceinline__ unsigned begin(void) const
    {
        return blockIdx.x;
    }

    __device__ __forceinline__ unsigned end(void) const
    {
        const tgi_problem &p = args.problem;
        return static_cast<unsigned>((p.m + Rows - 1) / Rows) *
               static_cast<unsigned>((p.n + Cols - 1) / Cols) *
               static_cast<unsigned>(p.batch_count);
    }

    __device__ __forceinline__ unsigned next(unsigned unit) const
    {
        return unit + gridDim.x;
    }

    __device__ __forceinline__ tgi_block_tile tile(unsigned unit) const
    {
        const unsigned tile_rows = static_cast<unsigned>((args.problem.m + Rows - 1) / Rows);
        const unsigned tile_cols = static_cast<unsigned>((args.problem.n + Cols - 1) / Cols);
        const unsigned batch = unit / (tile_rows * tile_cols);
        const tgi_tile_index index =
            tgi_find_in_group(unit - batch * (tile_rows * tile_cols), tile_rows, tile_cols,
                              static_cast<unsigned>(args.tile_rows_per_group));
        tgi_block_tile tile;
        tile.batch = batch;
        tile.row = static_cast<int64_t>(index.row) * Rows;
        tile.col = static_cast<int64_t>(index.col) * Cols;
        tile.split = blockIdx.y;
        return tile;
    }

    __device__ __forceinline__ const tgi_gemm_args &problem(const tgi_gemm_args &, unsigned) const
    {
        return args;
    }
};

/* A block forms the same tile of one batch entry after another. The grid has tiles along x, splits
 * along y and batch entries, at most as many as the problem has, along z. */
template <int Rows, int Cols> struct tgi_batch_schedule {
    const tgi_gemm_args &args;
    tgi_block_tile first;

    __device__ __forceinline__ explicit tgi_batch_schedule(const tgi_gemm_args &given) : args(given)
    {
        const unsigned tile_rows = static_cast<unsigned>((args.problem.m + Rows - 1) / Rows);
        const unsigned tile_cols = static_cast<unsigned>((args.problem.n + Cols - 1) / Cols);
        const tgi_tile_index index =
            tgi_find_in_group(blockIdx.x, tile_rows, tile_cols,
                              min(static_cast<unsigned>(args.tile_rows_per_group), tile_rows));
        first.row = static_cast<int64_t>(index.row) * Rows;
        first.col = static_cast<int64_t>(index.col) * Cols;
        first.split = blockIdx.y;
    }

    __device__ __forceinline__ int64_t begin(void) const
    {
        return blockIdx.z;
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return args.problem.batch_count;
    }

    __device__ __forceinline__ int64_t next(int64_t unit) const
    {
        return unit + gridDim.z;
    }

    __device__ __forceinline__ tgi_block_tile tile(int64_t unit) const
    {
        tgi_block_tile tile = first;
        tile.batch = unit;
        return tile;
    }

    __device__ __forceinline__ const tgi_gemm_args &problem(const tgi_gemm_args &, int64_t) const
    {
        return args;
    }
};

/* A block forms the same tile of one split after another. The grid has tiles across D along
 * x, tiles down D along y, and the splits of all batch entries along z. */
template <int Rows, int Cols> struct tgi_split_schedule {
    const tgi_gemm_args &args;
    tgi_block_tile first;

    __device__ __forceinline__ explicit tgi_split_schedule(const tgi_gemm_args &given) : args(given)
    {
        first.col = static_cast<int64_t>(blockIdx.x) * Cols;
        first.row = static_cast<int64_t>(blockIdx.y) * Rows;
    }

    __device__ __forceinline__ unsigned begin(void) const
    {
        return blockIdx.z;
    }

    __device__ __forceinline__ unsigned end(void) const
    {
        return static_cast<unsigned>(args.problem.batch_count) *
               static_cast<unsigned>(args.split_count);
    }

    __device__ __forceinline__ unsigned next(unsigned unit) const
    {
        return unit + gridDim.z;
    }

    __device__ __forceinline__ tgi_block_tile tile(unsigned unit) const
    {
        const unsigned splits = args.split_count;
        tgi_block_tile tile = first;
        tile.batch = splits == 1 ? unit : unit / splits;
        tile.split = splits == 1 ? 0 : unit % splits;
        return tile;
    }

    static __device__ __forceinline__ const tgi_gemm_args &problem(const tgi_gemm_args &given,
                                                                   unsigned)
    {
        return given;
    }
};

#endif
