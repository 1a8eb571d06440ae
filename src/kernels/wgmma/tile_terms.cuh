/*
 * Brings the terms of the epilogue (epilogue/warpgroup_epilogue.cuh) tile after tile, by a warp
 * beside the producer, so that warpgroups that multiply do not wait for global memory.
 */
#ifndef TGI_TILE_TERMS_CUH
#define TGI_TILE_TERMS_CUH

#include "kernels/epilogue/warpgroup_epilogue.cuh"
#include "kernels/wgmma/kernel_shape.cuh"

/* Returns 1 if terms are brought for a tile: it has an epilogue, and its block forms it whole. */
static __device__ __forceinline__ int tgi_has_terms(const tgi_wgmma_args &args,
                                                    const tgi_cluster_tile &tile)
{
    return !args.gemm.is_sum_alone && args.work.cluster_parts == 1 && tile.split < 0;
}

template <class Shape>
static __device__ __forceinline__ tgi_tile_terms<Shape::rows, Shape::cols>
tgi_find_terms(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
               const tgi_cluster_tile &tile)
{
    return {args.gemm, tile, memory.terms};
}

/* Brings the terms of all tiles of the block, and has L2 fetch C. */
template <class Shape>
static __device__ __forceinline__ void tgi_bring_terms(const typename Shape::feed::arguments &given,
                                                       const tgi_wgmma_memory<Shape> &memory,
                                                       int rank)
{
    const typename Shape::schedule schedule(Shape::feed::get_args(given).work, rank);
    for (int i = schedule.begin(); i < schedule.end(); i = schedule.next(i)) {
        const tgi_wgmma_args &args = Shape::feed::get_args(schedule.problem(given, i));
        const tgi_cluster_tile tile = schedule.tile(i);
        if (!tgi_has_terms(args, tile))
            continue;
        tgi_fetch_c<Shape::rows, Shape::cols>(args.gemm, tile);
        tgi_find_terms(args, memory, tile).bring();
        tgi_wait_for_release<Shape::group_count>();
    }
}

#endif
