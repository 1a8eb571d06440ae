/*
 * Computes attention on tensor cores. A block has a tile of queries, reads its keys step by step,
 * and keeps scores and weights in registers. The next keys are copied while a step is computed.
 *
 * A body (kernels/body.cuh) multiplies once for a step; attention does so twice, and has loops of
 * its own. Queries and tiles are set up, keys and values loaded (attend_tile.cuh, attend_ring.cuh),
 * scores and weighted values multiplied (attend_products.cuh, attend_groups.cuh), and the tile is
 * finished by its store (attend_store.cuh, attend_join.cuh).
 */
#ifndef TGI_ATTEND_CUH
#define TGI_ATTEND_CUH

#include "kernels/attend/attend_products.cuh"
#include "kernels/attend/attend_queries.cuh"
#include "kernels/attend/attend_join.cuh"
#include "kernels/attend/attend_rows.cuh"
#include "kernels/attend/attend_steps.cuh"

/* Returns 1 if a place depends on lists in memory, which the stream may still write. */
static __device__ __forceinline__ int tgi_attend_has_lists(const tgi_attend_args &p)
{
    const tg_attention &a = p.attention;
    return a.has_query_offsets || a.has_key_offsets || a.has_key_lengths;
}

/* Finds the place of block `at`, of `rows` rows, or of its warp `warp_split` if warps share out its
 * keys. Groups of heads whose keys fit in the L2 cache form a section. Within a section the tiles
 * with the last queries come first, because they see the most keys under a causal mask. */
template <int Keys>
static __device__ __forceinline__ tgi_attend_place tgi_attend_find_tile(const tgi_attend_args &p,
                                                                        unsigned at, int warp_split,
                                                                        int rows)
{
    const tg_attention &a = p.attention;
    tgi_attend_place place;
    const int section = tgi_divide(static_cast<int>(at), p.section_tiles);
    const int begin = section * p.section_tiles.value;
    const int is_last = p.block_count - begin < static_cast<unsigned>(p.section_tiles.value);
    const tgi_divisor groups = p.section_groups[is_last];
    const int round = tgi_divide(static_cast<int>(at) - begin, groups);
    const int group =
        section * p.section_groups[0].value + static_cast<int>(at) - begin - round * groups.value;
    place.split = tgi_divide(round, p.tile_count);
    place.batch = tgi_divide(group, p.head_groups);
    place.first_head = (group - place.batch * p.head_groups.value) * p.shared_heads;
    place.kv_head = tgi_divide(place.first_head, p.kv_shares);
    const int tile = (place.split + 1) * p.tile_count.value - 1 - round;
    place.queries = static_cast<int>(a.m);
    place.query_entry = place.key_entry = place.batch;
    place.first_query = place.first_key = 0;
    if (a.has_query_offsets) {
        place.query_entry = 0;
        place.first_query = a.query_offsets[place.batch];
        place.queries = a.query_offsets[place.batch + 1] - place.first_query;
    }
    place.keys = static_cast<int>(a.n);
    if (a.has_key_offsets) {
        place.key_entry = 0;
        place.first_key = a.key_offsets[place.batch];
        place.keys = a.key_offsets[place.batch + 1] - place.first_key;
    }
    if (a.has_key_lengths)
        place.keys = a.key_lengths[place.batch];
    place.first = tile * rows;
    place.row_count = p.shared_heads * place.queries;

    const int last = min(place.first + rows, place.row_count) - 1;
    int from = place.first, to = last;
    if (p.shared_heads > 1 && place.queries > 0) {
        const int is_one = place.first / place.queries == last / place.queries;
        from = is_one ? place.first % place.queries : 0;
        to = is_one ? last % place.queries : place.queries - 1;
    }
    from = tgi_attend_find_place(p, place, from);
    to = tgi_attend_find_place(p, place, to);
    const int64_t split_begin =
        static_cast<int64_t>(place.split * p.cluster_count * p.warp_split_count + warp_split) *
        p.split_keys;
    const int64_t split_end = split_begin + p.split_keys;
    /* A split begins at a step, and no step reaches into the next split. */
    place.begin = max(max(0, from - p.before) / Keys * Keys, static_cast<int>(split_begin));
    place.end = min(min(place.keys, to + p.after + 1),
                    static_cast<int>(split_end < place.keys ? split_end : place.keys));
    place.all_low = max(0, to - p.before);
    place.all_high = min(place.keys, from + p.after + 1);
    /* A TMA box also brings what lies behind the keys, within a page or up to n. */
    place.filled = a.has_key_lengths || a.page_rows > 0 ? INT32_MAX : place.keys;
    return place;
}

template <int Rows, int Keys>
static __device__ __forceinline__ tgi_attend_place tgi_attend_find_block(const tgi_attend_args &p,
                                                                         unsigned at,
                                                                         int warp_split)
{
    return tgi_attend_find_tile<Keys>(p, at, warp_split, Rows);
}

/* Finds the place of the block's tile `number`. Every other set of tiles is dealt out from the last
 * block to the first, so that all blocks have about as many keys. A place without rows has nothing
 * to do. */
template <int Keys>
static __device__ __forceinline__ tgi_attend_place
tgi_attend_find_own_tile(const tgi_attend_args &p, unsigned number)
{
    const unsigned block = number % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const unsigned at = number * gridDim.x + block;
    tgi_attend_place place =
        tgi_attend_find_tile<Keys>(p, min(at, p.block_count - 1), 0, p.tile_rows);
    if (at >= p.block_count)
        place.row_count = 0;
    return place;
}

/* The tiles of a block for these products. */
template <class Products, int Tiles, int IsClustered> struct tgi_attend_tiles_of {
    typedef tgi_attend_tiles<Products, Tiles> type;
};

/* This is the kernel of a row of attention_kernels.def. */
template <class Products, int Tiles>
static __device__ __forceinline__ void tgi_attend(const tgi_attend_args &p, char *shared)
{
    enum { HEAD = Products::head, KEYS = Products::keys, BLOCKS = Products::blocks };
    enum { ROWS = Products::rows, TILE = 2 * HEAD * KEYS };
    enum { OWN = 2 * HEAD * ROWS + Tiles * TILE }; /* bytes of shared memory of each split */
    typedef typename tgi_attend_tiles_of<Products, Tiles, Products::is_clustered>::type tiles_type;
    const int warp_split = Products::is_split ? tgi_make_uniform(tgi_thread() / 32) : 0;
    const int has_lists = tgi_attend_has_lists(p);
    if (p.lets_next_start)
        tgi_start_next();
    if (has_lists)
        tgi_wait_for_stream();
    const int block = Products::find_cluster(), rank = Products::find_rank();
    tgi_attend_place place =
        tgi_attend_find_block<ROWS, KEYS>(p, block, rank * p.warp_split_count + warp_split);
    shared += warp_split * OWN;
    const uint32_t q = tgi_shared_address(shared);
    tiles_type tiles(p, place, q + 2 * HEAD * ROWS);
    if (!has_lists)
        tgi_wait_for_stream();
    if (place.first >= place.row_count)
        return;
    if constexpr (Products::is_clustered)
        tiles.copy_queries(q);
    else if constexpr (Products::is_split)
        tgi_attend_copy_queries<Products, Products::copiers>(p, place, q);
    else
        tgi_attend_fill_queries<Products>(p, place, q);
    place.first -= warp_split * 16; /* tgi_attend_row counts 16 rows a warp */

    tgi_attend_state<HEAD, BLOCKS> state;
    tgi_attend_nonfinite_sums<HEAD, BLOCKS> nonfinite;
    tgi_attend_clear(state);
    const float scale = p.is_plain ? p.scale : 1.0f;
    tiles.open();
    tgi_attend_steps<Products, tiles_type> steps = {p, place, q, scale, tiles, state, nonfinite};
    steps.run();
    tgi_attend_finish_nonfinite(nonfinite, state);
    if constexpr (Products::is_split)
        tgi_attend_join<Products, OWN>(p, place, rank, warp_split, scale, state,
                                       shared - warp_split * OWN + 2 * HEAD * ROWS);
    else
        tgi_attend_store_by_tile<Products>(p, place, scale, state, q);
}

template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_warps(const tgi_attend_args &p, char *shared)
{
    tgi_attend<tgi_attend_by_warps<Type, Head, Warps, Queries / 16 / Warps, Keys>, Tiles>(p,
                                                                                          shared);
}

template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_splits(const tgi_attend_args &p, char *shared)
{
    static_assert(Queries == 16, "a warp has all of them");
    tgi_attend<tgi_attend_by_splits<Type, Head, Keys>, Tiles>(p, shared);
}

#endif
