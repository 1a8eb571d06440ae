/*
 * The 64 rows of a warpgroup's tile as 16-bit numbers, in half the registers that the sums were in:
 * boxes of them go to D part by part while the tile after it is multiplied.
 */
#ifndef TGI_WGMMA_KEPT_CUH
#define TGI_WGMMA_KEPT_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/wgmma/part.cuh"
#include "kernels/wgmma/place.cuh"

template <int Cols> struct tgi_wgmma_kept {
    static constexpr int part_cols = TGI_WGMMA_PART_COLS(Cols), part_count = Cols / part_cols;
    uint32_t pair[Cols / 4] = {};
    int row = 0, col = 0, batch = 0;
    int left = 0; /* parts that are yet to be stored, the last ones */
};

template <int Cols>
static __device__ __forceinline__ void tgi_keep(tgi_wgmma_kept<Cols> &kept,
                                                const tgi_wgmma_tile &tile,
                                                const float (&sum)[Cols / 2], tg_type type)
{
    tgi_pack_sums(sum, 0, type, kept.pair);
    kept.row = tile.row;
    kept.col = tile.col;
    kept.batch = tile.batch;
    kept.left = kept.part_count;
}

/* Has the copy engine store the next part. `parts`: the warpgroup's shared memory, two boxes;
 * `barrier`: its barrier. */
template <int Cols>
static __device__ __forceinline__ void
tgi_store_kept(const tgi_wgmma_args &args, tgi_wgmma_kept<Cols> &kept, uint32_t parts, int barrier)
{
    const int index = kept.part_count - kept.left--, is_leader = tgi_thread() % 128 == 0;
    const uint32_t box = parts + index % 2 * TGI_BOX_BYTES;
    /* The last store of the tile before may be of the first box. */
    if (is_leader && index == 0)
        tgi_tma_store_wait<0>();
    else if (is_leader)
        tgi_tma_store_wait<1>();
    tgi_named_barrier_sync(barrier, 128); /* the box has been read */
#pragma unroll
    for (int i = 0; i < kept.part_count; i++) /* registers have no index that is computed */
        if (i == index)
            tgi_put_pairs<kept.part_cols>(box, kept.pair, i * (kept.part_cols / 4));
    tgi_fence_async_proxy();
    tgi_named_barrier_sync(barrier, 128); /* the box has been written */
    if (is_leader)
        tgi_tma_store(&args.d, box, kept.col, kept.row, kept.batch);
    kept.col += kept.part_cols;
}

#endif
