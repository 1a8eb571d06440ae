/*
 * Sums of a tile whose k is cut among the blocks of a cluster: the pieces (pieces.cuh) go to shared
 * memory. Piece i is added and finished by the block with part i % parts of k, to whose stages the
 * others send theirs: part s of it lies at place i / parts * parts + s. What is sent is counted at
 * a barrier of the block that gets it, which waits for nothing else. A cluster has one tile, so
 * that nobody fills a stage meanwhile.
 */
#ifndef TGI_WGMMA_CLUSTER_CUH
#define TGI_WGMMA_CLUSTER_CUH

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/wgmma/pieces.cuh"

#define TGI_PIECE_BYTES(sums) ((sums)*128 * 4)

/* Tells the barrier how many bytes the block with this part is sent. Returns 0 where it is none. */
template <class Shape>
static __device__ __forceinline__ int tgi_expect_pieces(int part, int parts, uint32_t sent,
                                                        int is_teller)
{
    constexpr int sums = TGI_PIECE_SUMS(Shape::cols);
    constexpr int count = Shape::group_count * Shape::cols / (2 * sums);
    const int owned = (count - part + parts - 1) / parts;
    if (owned > 0 && is_teller)
        tgi_barrier_expect(sent, owned * parts * TGI_PIECE_BYTES(sums));
    return owned > 0;
}

/* Sends the 64 rows number `row` of the block's tile. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_send_pieces(const tgi_wgmma_args &args, int part,
                                                       int rank, int row, uint32_t stages,
                                                       uint32_t sent, const float (&sum)[Count])
{
    constexpr int sums = TGI_PIECE_SUMS(Cols), col_count = Count / sums;
    const int parts = args.cluster_parts;
#pragma unroll
    for (int col = 0; col < col_count; col++) {
        const int piece = row * col_count + col, owner = piece % parts;
        const uint32_t place = stages + (piece - owner + part) * TGI_PIECE_BYTES(sums);
        const int owner_rank = owner * args.cluster_rows + tgi_find_cluster_row(args, rank);
        const uint32_t target = tgi_find_remote(place + threadIdx.x % 128 * 16, owner_rank);
        const uint32_t barrier = tgi_find_remote(sent, owner_rank);
#pragma unroll
        for (int i = 0; i < sums / 4; i++)
            tgi_send_16(target + i * 2048, sum + col * sums + 4 * i, barrier);
    }
}

/* Adds the parts of the piece at this address, in order. */
template <int Count>
static __device__ __forceinline__ void tgi_add_sent(uint32_t source, int part_count,
                                                    float (&sum)[Count])
{
#pragma unroll 1
    for (int part = 0; part < part_count; part++, source += TGI_PIECE_BYTES(Count)) {
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

/* Finishes piece after piece: this warpgroup's own, from `sum`, or of those of a cluster's tile
 * that this block owns every group_count-th, as they were sent to it. a_range: of own rows. */
template <class Shape, int Count>
static __device__ __forceinline__ void
tgi_finish_pieces(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, int group,
                  uint32_t stages, uint32_t part_memory, float (&sum)[Count], tgi_range a_range)
{
    constexpr int sums = TGI_PIECE_SUMS(Shape::cols), col_count = Count / sums;
    const int parts = args.cluster_parts, is_sent = parts > 1;
    const int stride = is_sent ? Shape::group_count * parts : 1;
    const int end = is_sent ? Shape::group_count * col_count : (group + 1) * col_count;
    int i = is_sent ? tile.part + group * parts : group * col_count;
#pragma unroll 1
    for (int index = 0; i < end; i += stride, index++) {
        float piece[sums] = {};
        if (is_sent)
            tgi_add_sent(stages + (i - tile.part) * TGI_PIECE_BYTES(sums) + threadIdx.x % 128 * 16,
                         parts, piece);
#pragma unroll
        for (int j = 0; j < Count; j++) {
            if (j < sums && !is_sent)
                piece[j] = sum[j];
            if (j + sums < Count)
                sum[j] = sum[j + sums]; /* the next piece's */
        }
        tgi_wgmma_tile place = tile;
        place.row += i / col_count * 64;
        place.col += i % col_count * 2 * sums;
        if (Shape::slices > 0 && is_sent)
            a_range = tgi_find_row_range(args, place);
        const tgi_wgmma_turn turn = {index, !is_sent && index > 0, !is_sent && i + stride < end};
        tgi_finish_part<(Shape::slices > 0), Shape::slices == 0>(args, place, piece, turn,
                                                                 part_memory, group + 1, a_range);
    }
}

#endif
