/*
 * A deferred store keeps the 64 rows of a warpgroup's tile as 16-bit numbers, in half the registers
 * of the sums. TMA boxes of them go to D one by one while the next tile is multiplied.
 */
#ifndef TGI_DEFERRED_STORE_CUH
#define TGI_DEFERRED_STORE_CUH

#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/schedule/tile.cuh"

/* With IsOn 0 the store is never pending and takes no registers. */
template <int Cols, int IsOn> struct tgi_deferred_store {
    static constexpr int box_count = 1, left = 0;

    __device__ __forceinline__ void begin(const tgi_cluster_tile &, const float (&)[Cols / 2],
                                          tgi_narrow_form)
    {
    }

    __device__ __forceinline__ void store_next(const tgi_tensor_map &, uint32_t, int)
    {
    }
};

template <int Cols> struct tgi_deferred_store<Cols, 1> {
    static constexpr int box_cols = TGI_FRAGMENT_COLS(Cols), box_count = Cols / box_cols;
    uint32_t pair[Cols / 4] = {};
    int row = 0, col = 0, batch = 0; /* the next TMA box in D */
    int left = 0;                    /* TMA boxes that are not yet stored */

    /* Packs the sums of a tile, whose store is then pending. */
    __device__ __forceinline__ void begin(const tgi_cluster_tile &tile,
                                          const float (&sum)[Cols / 2], tgi_narrow_form form)
    {
        tgi_pack_sums(sum, 0, form, pair);
        row = tile.row;
        col = tile.col;
        batch = tile.batch;
        left = box_count;
    }

    /* Stores the next TMA box. `boxes` is the warpgroup's shared memory, two boxes, and `barrier`
     * its named barrier. */
    __device__ __forceinline__ void store_next(const tgi_tensor_map &d_map, uint32_t boxes,
                                               int barrier)
    {
        const int index = box_count - left--, is_leader = tgi_thread() % 128 == 0;
        const uint32_t box = boxes + index % 2 * TGI_BOX_BYTES;
        /* The last store of the previous tile may still read the first box. */
        if (is_leader && index == 0)
            tgi_tma_store_wait<0>();
        else if (is_leader)
            tgi_tma_store_wait<1>();
        /* Without the barrier the box would be overwritten before TMA has read it. */
        tgi_named_barrier_sync(barrier, 128);
#pragma unroll
        for (int i = 0; i < box_count; i++) /* registers take no computed index */
            if (i == index)
                tgi_put_pairs<box_cols>(box, pair, i * (box_cols / 4));
        tgi_fence_async_proxy();
        /* Without the barrier TMA would store a box that other warps still write. */
        tgi_named_barrier_sync(barrier, 128);
        if (is_leader)
            tgi_tma_store(&d_map, box, col, row, batch);
        col += box_cols;
    }
};

#endif
