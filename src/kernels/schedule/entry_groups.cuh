/*
 * A schedule of groups of batch entries: a block has whole products, several at once, or some rows
 * of one.
 */
#ifndef TGI_ENTRY_GROUPS_CUH
#define TGI_ENTRY_GROUPS_CUH

#include "kernels/divisor.h"
#include "kernels/schedule/tile.cuh"

/* The grid has a block for each unit, or as many as run at once. Without parts, unit u is entries
 * u * entries and on. With parts, which are less than 2^31 in all, a unit is some rows of one
 * entry. */
struct tgi_entry_schedule {
    int64_t unit_count;
    tgi_divisor parts; /* units of an entry */
    int entries, part_rows;

    __device__ __forceinline__ int64_t begin(void) const
    {
        return blockIdx.x;
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return unit_count;
    }

    static __device__ __forceinline__ int64_t step(void)
    {
        return gridDim.x;
    }

    __device__ __forceinline__ int64_t next(int64_t unit) const
    {
        return unit + step();
    }

    __device__ __forceinline__ tgi_block_tile tile(int64_t unit) const
    {
        tgi_block_tile tile;
        tile.batch = unit * entries;
        tile.row = 0;
        if (parts.value > 1) {
            tile.batch = tgi_divide(static_cast<int>(unit), parts);
            tile.row = (unit - tile.batch * parts.value) * part_rows;
        }
        tile.col = 0;
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
