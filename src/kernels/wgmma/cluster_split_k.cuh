/*
 * Split-K among the blocks of a cluster, whose partial tiles (partial_tiles.cuh) go through shared
 * memory. Partial tile i is added and finished by the block with part i % parts. The others send
 * theirs to that block's stages: part s lies at place i / parts * parts + s. What is sent is
 * counted at a barrier of the receiving block. A cluster has one tile, so that nobody fills a stage
 * meanwhile.
 */
#ifndef TGI_CLUSTER_SPLIT_K_CUH
#define TGI_CLUSTER_SPLIT_K_CUH

#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/wgmma/partial_tiles.cuh"

#define TGI_PARTIAL_BYTES(sums) ((sums)*128 * 4)

/* Tells the barrier how many bytes the block with this part is sent. Returns 0 if it is sent
 * none. */
template <class Shape>
static __device__ __forceinline__ int tgi_expect_partial_tiles(int part, int parts, uint32_t sent,
                                                               int is_teller)
{
    constexpr int sums = TGI_PARTIAL_SUMS(Shape::cols);
    constexpr int count = Shape::group_count * Shape::cols / (2 * sums);
    const int owned = (count - part + parts - 1) / parts;
    if (owned > 0 && is_teller)
        tgi_barrier_expect(sent, owned * parts * TGI_PARTIAL_BYTES(sums));
    return owned > 0;
}

/* Sends a warpgroup's sums, rows number `row` of the block's tile, to the blocks that add them. */
template <int Cols, int Count>
static __device__ __forceinline__ void
tgi_send_partial_tiles(const tgi_wgmma_args &args, int part, int rank, int row, uint32_t stages,
                       uint32_t sent, const float (&sum)[Count])
{
    constexpr int sums = TGI_PARTIAL_SUMS(Cols), col_count = Count / sums;
    const int parts = args.work.cluster_parts;
#pragma unroll
    for (int col = 0; col < col_count; col++) {
        const int partial = row * col_count + col, owner = partial % parts;
        const uint32_t place = stages + (partial - owner + part) * TGI_PARTIAL_BYTES(sums);
        const int owner_rank =
            owner * args.work.cluster_rows + tgi_find_cluster_row(args.work, rank);
        const uint32_t target = tgi_find_remote(place + threadIdx.x % 128 * 16, owner_rank);
        const uint32_t barrier = tgi_find_remote(sent, owner_rank);
#pragma unroll
        for (int i = 0; i < sums / 4; i++)
            tgi_send_16(target + i * 2048, sum + col * sums + 4 * i, barrier);
    }
}

/* Adds the parts of the partial tile at this address, in order. */
template <int Count>
static __device__ __forceinline__ void tgi_add_sent(uint32_t source, int part_count,
                                                    float (&sum)[Count])
{
#pragma unroll 1
    for (int part = 0; part < part_count; part++, source += TGI_PARTIAL_BYTES(Count)) {
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

/* Takes the sums of fragment `index` from those of a tile. Registers take no computed index. */
template <int Count, int Sums>
static __device__ __forceinline__ void tgi_take_fragment(const float (&sum)[Count], int index,
                                                         float (&fragment)[Sums])
{
#pragma unroll
    for (int i = 0; i < Count / Sums; i++)
        if (i == index) {
#pragma unroll
            for (int j = 0; j < Sums; j++)
                fragment[j] = tgi_make_opaque(sum[i * Sums + j]);
        }
}

/* Puts the sums of fragment `index` back into those of a tile. */
template <int Count, int Sums>
static __device__ __forceinline__ void tgi_keep_fragment(const float (&fragment)[Sums], int index,
                                                         float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count / Sums; i++)
        if (i == index) {
#pragma unroll
            for (int j = 0; j < Sums; j++)
                sum[i * Sums + j] = tgi_make_opaque(fragment[j]);
        }
}

/* Returns the place in D of fragment `index` of a tile. */
template <class Shape>
static __device__ __forceinline__ tgi_cluster_tile tgi_find_fragment(const tgi_cluster_tile &tile,
                                                                     int index)
{
    constexpr int cols = TGI_FRAGMENT_COLS(Shape::cols), col_count = Shape::cols / cols;
    tgi_cluster_tile place = tile;
    place.row += index / col_count * TGI_BLOCK_LINES;
    place.col += index % col_count * cols;
    return place;
}

/* Finishes one fragment after another: this warpgroup's own, from `sum`, whose terms have been
 * read, or those of a cluster's tile that were sent to this block, of which it takes every
 * group_count-th. Each is stored or, with is_kept, put back into `sum`. */
template <class Shape, int Count>
static __device__ __forceinline__ void
tgi_finish_fragments(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile,
                     tgi_fragment_terms &terms, float (&sum)[Count],
                     typename Shape::feed::repair &repair, int is_kept)
{
    constexpr int sums = TGI_PARTIAL_SUMS(Shape::cols), col_count = Count / sums;
    const tgi_wgmma_args &args = at.args;
    const tgi_fragment_memory memory = at.find_fragment_memory();
    const int parts = args.work.cluster_parts, is_sent = parts > 1;
    const int stride = is_sent ? Shape::group_count * parts : 1;
    const int end = is_sent ? Shape::group_count * col_count : (at.group + 1) * col_count;
    /* Slices have their epilogue where they are stored. */
    const int has_epilogue = !Shape::feed::is_sliced && !args.gemm.is_sum_alone;
    const int uses_c = Shape::reads_ahead && has_epilogue && tgi_uses_c(args.gemm);
    int i = is_sent ? tile.part + at.group * parts : at.group * col_count;
    tgi_fragment_c<sums, sums / 2> c = {};
    /* A first round reads C of the first fragment alone. */
#pragma unroll 1
    for (int index = -1; index < 0 || i < end; index++) {
        float fragment[sums] = {};
        const tgi_cluster_tile place = tgi_find_fragment<Shape>(tile, i);
        const tgi_store_turn turn = {index, !is_sent && index > 0, !is_sent && i + stride < end};
        if (index >= 0) {
            if (is_sent)
                tgi_add_sent(at.memory.stages + (i - tile.part) * TGI_PARTIAL_BYTES(sums) +
                                 threadIdx.x % 128 * 16,
                             parts, fragment);
            else
                tgi_take_fragment(sum, index, fragment);
            if (Shape::reads_ahead && has_epilogue) {
                if (is_sent)
                    terms.read(args.gemm, place);
                tgi_share_terms<2 * sums>(args.gemm, terms, is_sent ? 0 : index * 2 * sums,
                                          memory.terms, at.group + 1);
                tgi_apply_terms(args.gemm, terms, place, c, memory.terms, fragment);
            }
            i += stride;
        }
        if (uses_c && i < end)
            c.read(args.gemm, tgi_find_fragment<Shape>(tile, i));
        if (index < 0)
            continue;
        if (Shape::reads_ahead && has_epilogue)
            tgi_activate(args.gemm, fragment);
        else if (has_epilogue)
            tgi_apply_epilogue(args.gemm, place, fragment);
        if (is_sent)
            repair.find_rows(place);
        if (Shape::may_defer && is_kept) {
            tgi_keep_fragment(fragment, index, sum);
            /* Without this barrier terms would be overwritten that others still read. */
            tgi_named_barrier_sync(at.group + 1, TGI_WARPGROUP);
        } else {
            tgi_store_fragment(args, place, fragment, turn, memory, at.group + 1, repair);
        }
    }
}

#endif
