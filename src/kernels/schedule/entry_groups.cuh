/*
 * A schedule of groups of batch entries: a block has whole products, several at once.
 */
#ifndef TGI_ENTRY_GROUPS_CUH
#define TGI_ENTRY_GROUPS_CUH

#include "kernels/schedule/tile.cuh"

/* The grid has as many blocks as run at once. Unit u is entries u * entries and on. */
struct tgi_entry_schedule {
    int64_t group_count;
    int entries;

    __device__ __forceinline__ int64_t begin(void) const
    {
        return blockIdx.x;
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return group_count;
    }

    __device__ __forceinline__ int64_t next(int64_t unit) const
    {
        return unit + gridDim.x;
    }

    __device__ __forceinline__ tgi_block_tile tile(int64_t unit) const
    {
        tgi_block_tile tile;
        tile.batch = unit * entries;
        tile.row = tile.col = 0;
        tile.k_part = 0;
        return tile;
    }

    static __device__ __forceinline__ const tgi_gemm_args &problem(const tgi_gemm_args &given,
                                                                   int64_t)
    {
        return given;
    }
};

#endif
