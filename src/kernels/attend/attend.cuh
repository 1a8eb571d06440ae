/*
 * Attention on tensor cores: a block has a tile of queries, reads its keys step by step, and keeps
 * scores and weights in registers. Bytes of the next keys are copied while a step is computed.
 */
#ifndef TGI_ATTEND_CUH
#define TGI_ATTEND_CUH

#include "kernels/attend/attend_products.cuh"
#include "kernels/attend/attend_store.cuh"

/* Finds the place of block `at`. Groups of heads whose keys fit in the L2 cache are a section. In a
 * section those tiles come first that have the last queries, which see the most keys under a causal
 * mask. */
template <int Rows, int Keys>
static __device__ __forceinline__ tgi_attend_place tgi_attend_find_block(const tgi_attend_args &p,
                                                                         unsigned at)
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
    place.part = tgi_divide(round, p.tile_count);
    place.batch = tgi_divide(group, p.head_groups);
    place.first_head = (group - place.batch * p.head_groups.value) * p.shared_heads;
    place.kv_head = tgi_divide(place.first_head, p.kv_shares);
    const int tile = (place.part + 1) * p.tile_count.value - 1 - round;
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
    place.first = tile * Rows;
    place.row_count = p.shared_heads * place.queries;

    const int last = min(place.first + Rows, place.row_count) - 1;
    int from = place.first, to = last;
    if (p.shared_heads > 1 && place.queries > 0) {
        const int is_one = place.first / place.queries == last / place.queries;
        from = is_one ? place.first % place.queries : 0;
        to = is_one ? last % place.queries : place.queries - 1;
    }
    from = tgi_attend_find_place(p, place, from);
    to = tgi_attend_find_place(p, place, to);
    const int64_t part_begin = static_cast<int64_t>(place.part) * p.part_keys;
    const int64_t part_end = part_begin + p.part_keys;
    /* A part begins at a step, and no step reaches into the next part. */
    place.begin = max(max(0, from - p.before) / Keys * Keys, static_cast<int>(part_begin));
    place.end = min(min(place.keys, to + p.after + 1),
                    static_cast<int>(part_end < place.keys ? part_end : place.keys));
    place.all_low = max(0, to - p.before);
    place.all_high = min(place.keys, from + p.after + 1);
    return place;
}

/* Finds the place of the block's tile `turn`. Blocks come in turned order each time, so that all
 * have as many keys. A place without rows has nothing to do. */
template <int Rows, int Keys>
static __device__ __forceinline__ tgi_attend_place tgi_attend_find_turn(const tgi_attend_args &p,
                                                                        unsigned turn)
{
    const unsigned block = turn % 2 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const unsigned at = turn * gridDim.x + block;
    tgi_attend_place place = tgi_attend_find_block<Rows, Keys>(p, min(at, p.block_count - 1));
    if (at >= p.block_count)
        place.row_count = 0;
    return place;
}

/* Copies the block's queries by `Threads` threads, as a group of copies of their own. */
template <class Products, int Threads>
static __device__ __forceinline__ void
tgi_attend_copy_queries(const tgi_attend_args &p, const tgi_attend_place &place, uint32_t q)
{
    const tg_attention &a = p.attention;
    tgi_attend_copy<Products::head, Products::rows, Threads>(
        q, a.q, static_cast<int>(a.head_size), p.has_units[0], [&](int row) {
            const tgi_attend_row_place at = tgi_attend_find_row(p, place, row);
            return at.is_there ? tgi_attend_offset(a.q, place.query_entry, at.head,
                                                   place.first_query + at.query)
                               : TGI_ATTEND_NO_ROW;
        });
    tgi_copy_async_commit();
}

/* The kernel of a row of attention_kernels.def. The scores of the next step and the sums of this
 * one do not depend on each other: both are issued, and scores become weights while sums are
 * formed. */
template <class Products>
static __device__ __forceinline__ void tgi_attend(const tgi_attend_args &p, char *shared)
{
    enum { HEAD = Products::head, KEYS = Products::keys, BLOCKS = Products::blocks };
    enum { ROWS = Products::rows, TILE = 2 * HEAD * KEYS, COPIERS = Products::copiers };
    const tgi_attend_place place = tgi_attend_find_block<ROWS, KEYS>(p, blockIdx.x);
    if (place.first >= place.row_count)
        return;
    const uint32_t q = tgi_shared_address(shared), kv = q + 2 * HEAD * ROWS;
    tgi_attend_copy_queries<Products, COPIERS>(p, place, q);

    tgi_attend_state<HEAD, BLOCKS> state;
    tgi_attend_clear(state);
    const float scale = p.is_plain ? p.scale : 1.0f;
    /* Copies the keys of two steps: those of K from `key` on, and those of V before them. */
    const auto copy_keys = [&](int key, uint32_t k, uint32_t v) {
#pragma unroll 1
        for (int is_v = 0; is_v < 2; is_v++)
            tgi_attend_copy_keys<Products>(p, place, is_v, is_v ? key - KEYS : key, is_v ? v : k);
        tgi_copy_async_commit();
    };
    uint32_t k = kv, other_k = kv + TILE, v = kv + 2 * TILE, other_v = kv + 3 * TILE;
    if (place.begin < place.end) {
        float scores[BLOCKS][KEYS / 8][4];
        uint32_t weights[BLOCKS][KEYS / 16][4];
#pragma unroll 1
        for (int turn = 0; turn < 2; turn++)
            copy_keys(place.begin + turn * KEYS, turn ? other_k : k, v);
        Products::template wait_copies<1>();
        Products::start(q, k, scores);
        for (int key_0 = place.begin;; key_0 += KEYS) {
            const int next = key_0 + KEYS;
            const int is_edge = tgi_attend_is_edge<KEYS>(place, key_0);
            float factors[BLOCKS][2];
            if (!p.is_plain)
                tgi_attend_finish<KEYS, BLOCKS>(p, place, key_0, scores);
            if (is_edge)
                tgi_attend_hide<KEYS, BLOCKS>(p, place, key_0, scores);
            tgi_attend_weigh<HEAD, KEYS, BLOCKS>(scale, scores, state, factors);
            if (tgi_attend_has_grown<BLOCKS>(factors))
                tgi_attend_rescale(factors, state);
            tgi_attend_round<Products::type, KEYS, BLOCKS>(scores, weights);
            Products::template wait_copies<0>();
            if (is_edge &&
                __syncthreads_or(tgi_attend_tame<Products, COPIERS>(v, tgi_find_copier<COPIERS>())))
                tgi_attend_add_wild<Products::type, KEYS>(p, place, key_0, weights, state);
            if (next < place.end)
                copy_keys(next + KEYS, k, other_v);
            Products::turn(next < place.end, q, other_k, v, weights, scores, state);
            if (next >= place.end)
                break;
            tgi_attend_swap(k, other_k);
            tgi_attend_swap(v, other_v);
        }
    }
    tgi_attend_store<Products::type, HEAD, BLOCKS>(p, place, scale, state);
}

template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_warps(const tgi_attend_args &p, char *shared)
{
    static_assert(Tiles == 4, "K and V of two steps");
    tgi_attend<tgi_attend_by_warps<Type, Head, Warps, Queries / 16 / Warps, Keys>>(p, shared);
}

#endif
