/*
 * Splits k among the blocks of a cluster. Parts of a tile, 64 rows x TGI_SENT_COLS columns that are
 * numbered as partial tiles are (partial_tiles.cuh), go through shared memory. The block with split
 * i % splits adds part i and finishes it. The other blocks send theirs to that block's memory for
 * stages, from work.sent_offset on, where split s lies at place i / splits * splits + s. A barrier
 * of the receiving block counts what is sent. A cluster has one tile, so no stage is filled
 * meanwhile.
 */
#ifndef TGI_CLUSTER_SPLIT_K_CUH
#define TGI_CLUSTER_SPLIT_K_CUH

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/wgmma/partial_tiles.cuh"

#define TGI_PARTIAL_BYTES(sums) ((sums)*128 * 4)

/* Sets how many bytes the barrier expects to be sent to the block with this split. Returns 0 if
 * there are none. */
template <class Shape>
static __device__ __forceinline__ int tgi_expect_partial_tiles(int split, int splits, uint32_t sent,
                                                               int is_teller)
{
    constexpr int sums = Shape::sent_sums, count = Shape::group_count * Shape::cols / (2 * sums);
    const int owned = (count - split + splits - 1) / splits;
    if (owned > 0 && is_teller)
        tgi_barrier_expect(sent, owned * splits * TGI_PARTIAL_BYTES(sums));
    return owned > 0;
}

/* Sends a warpgroup's sums, for the 64 rows number `row` of the block's tile, to the blocks that
 * add them. */
template <class Shape, int Count>
static __device__ __forceinline__ void
tgi_send_partial_tiles(const tgi_wgmma_args &args, int split, int rank, int row, uint32_t stages,
                       uint32_t sent, const float (&sum)[Count])
{
    constexpr int sums = Shape::sent_sums, col_count = Count / sums;
    const int splits = args.work.cluster_splits;
#pragma unroll
    for (int col = 0; col < col_count; col++) {
        const int partial = row * col_count + col, owner = partial % splits;
        const uint32_t place =
            stages + args.work.sent_offset + (partial - owner + split) * TGI_PARTIAL_BYTES(sums);
        const int owner_rank =
            owner * args.work.cluster_rows + tgi_find_cluster_row(args.work, rank);
        const uint32_t target = tgi_find_remote(place + threadIdx.x % 128 * 16, owner_rank);
        const uint32_t barrier = tgi_find_remote(sent, owner_rank);
#pragma unroll
        for (int i = 0; i < sums / 4; i++)
            tgi_send_16(target + i * 2048, sum + col * sums + 4 * i, barrier);
    }
}

/* Adds the splits of the partial tile at this address, in order. */
template <int Count>
static __device__ __forceinline__ void tgi_add_sent(uint32_t source, int split_count,
                                                    float (&sum)[Count])
{
#pragma unroll 1
    for (int split = 0; split < split_count; split++, source += TGI_PARTIAL_BYTES(Count)) {
#pragma unroll
        for (int i = 0; i < Count / 4; i++) {
            float value[4];
            tgi_read_shared_16(value, source + i * 2048);
#pragma unroll
            for (int j = 0; j < 4; j++)
                sum[4 * i + j] += value[j];
        }
    }
}

/* Returns the place in D of part number `partial` of a block's tile, of which a thread has Sums
 * sums. */
template <class Shape, int Sums>
static __device__ __forceinline__ tgi_cluster_tile tgi_find_partial(const tgi_wgmma_args &args,
                                                                    const tgi_cluster_tile &tile,
                                                                    int partial)
{
    constexpr int col_count = Shape::cols / (2 * Sums);
    tgi_cluster_tile place = tile;
    place.row += partial / col_count * Shape::find_group_rows(args);
    place.col += partial % col_count * 2 * Sums;
    return place;
}

/* Requests biases and scales of the first part that this warpgroup finishes: one that it adds, or
 * its own sums of slices. */
template <class Shape>
static __device__ __forceinline__ tgi_fragment_vectors
tgi_request_vectors(const tgi_wgmma_args &args, const tgi_cluster_tile &tile, int group)
{
    const int splits = args.work.cluster_splits;
    const int is_own = Shape::feed::is_sliced && splits == 1;
    if ((splits == 1 && !is_own) || args.gemm.is_sum_alone)
        return tgi_fragment_vectors();
    const int first =
        is_own ? group * (Shape::cols / (2 * Shape::sent_sums)) : tile.split + group * splits;
    return tgi_fragment_vectors(args.gemm,
                                tgi_find_partial<Shape, Shape::sent_sums>(args, tile, first));
}

/* Finishes and stores parts of a tile one after another. If is_sent is 0 they are this warpgroup's
 * own, from `sum`, else those that were sent to this block, of which each warpgroup takes every
 * group_count-th. `vectors` are those of the first. */
template <class Shape, int Sums, int Count>
static __device__ __forceinline__ void
tgi_store_parts(const tgi_wgmma_args &args, const tgi_cluster_tile &tile, int group, int is_sent,
                uint32_t places, uint32_t staged, tgi_fragment_vectors &vectors,
                float (&sum)[Count], typename Shape::feed::repair &repair)
{
    constexpr int col_count = Count / Sums;
    const int splits = args.work.cluster_splits;
    const int stride = is_sent ? Shape::group_count * splits : 1;
    const int end = is_sent ? Shape::group_count * col_count : (group + 1) * col_count;
    int i = is_sent ? tile.split + group * splits : group * col_count;
#pragma unroll 1
    for (int index = 0; i < end; i += stride, index++) {
        float partial[Sums] = {};
        const tgi_cluster_tile place = tgi_find_partial<Shape, Sums>(args, tile, i);
        if (is_sent)
            tgi_add_sent(places + (i - tile.split) * TGI_PARTIAL_BYTES(Sums) +
                             threadIdx.x % 128 * 16,
                         splits, partial);
#pragma unroll
        for (int j = 0; j < Count; j++) {
            if (j < Sums && !is_sent)
                partial[j] = sum[j];
            if (j + Sums < Count)
                sum[j] = sum[j + Sums]; /* sums of the next part */
        }
        if (is_sent)
            repair.find_rows(place, 2 * Sums);
        const tgi_store_order order = {index, !is_sent && index > 0, !is_sent && i + stride < end};
        if (!Shape::feed::is_sliced && !args.gemm.is_sum_alone && is_sent && index > 0)
            vectors = tgi_fragment_vectors(args.gemm, place);
        const tgi_fragment_vectors own = vectors;
        /* They arrive while this part is stored. */
        if (Shape::feed::is_sliced && !args.gemm.is_sum_alone && i + stride < end)
            vectors = tgi_fragment_vectors(args.gemm,
                                           tgi_find_partial<Shape, Sums>(args, tile, i + stride));
        if (is_sent && !Shape::feed::is_sliced && !args.gemm.is_sum_alone)
            tgi_apply_epilogue(args.gemm, place, own, partial);
        tgi_store_fragment(args, place, own, partial, order, staged, group + 1, repair);
    }
}

/* Finishes and stores the parts of a tile, or those that were sent to this block. */
template <class Shape, int Count>
static __device__ __forceinline__ void
tgi_store_partial_tiles(const tgi_wgmma_args &args, const tgi_cluster_tile &tile, int group,
                        uint32_t stages, uint32_t staged, tgi_fragment_vectors &vectors,
                        float (&sum)[Count], typename Shape::feed::repair &repair)
{
    constexpr int sums = TGI_PARTIAL_SUMS(Shape::cols);
    const int is_sent = args.work.cluster_splits > 1;
    const uint32_t places = stages + args.work.sent_offset;
    if constexpr (Shape::sent_sums < sums) {
        if (is_sent) {
            tgi_store_parts<Shape, Shape::sent_sums>(args, tile, group, 1, places, staged, vectors,
                                                     sum, repair);
            return;
        }
    }
    tgi_store_parts<Shape, sums>(args, tile, group, Shape::sent_sums < sums ? 0 : is_sent, places,
                                 staged, vectors, sum, repair);
}

#endif
