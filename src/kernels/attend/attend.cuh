/*
 * Attention on tensor cores: a block has a tile of queries, reads its keys step by step, and keeps
 * scores and weights in registers. Bytes of the next keys are copied while a step is computed.
 */
#ifndef TGI_ATTEND_CUH
#define TGI_ATTEND_CUH

#include "kernels/attend/attend_products.cuh"

/* Finds the block's place. Blocks of one head follow each other, those with the last queries first:
 * with a causal mask they have the most keys. */
template <int Rows, int Keys>
static __device__ __forceinline__ tgi_attend_place tgi_attend_find_block(const tgi_attend_args &p)
{
    const tg_attention &a = p.attention;
    tgi_attend_place place;
    unsigned at = blockIdx.x;
    const int tile = p.tile_count - 1 - static_cast<int>(at % p.tile_count);
    at /= p.tile_count;
    place.part = static_cast<int>(at % p.part_count);
    at /= p.part_count;
    place.first_head = static_cast<int>(at % p.head_groups) * p.shared_heads;
    place.batch = static_cast<int>(at / p.head_groups);
    place.kv_head = place.first_head / p.kv_shares;
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

/* Returns where the sums of a row of a part lie. */
static __device__ __forceinline__ float *tgi_attend_find_part(const tgi_attend_args &p, int part,
                                                              int batch, int head, int query)
{
    const tg_attention &a = p.attention;
    const int64_t row = (batch * a.head_count + head) * a.m + query;
    return p.parts + (row * p.part_count + part) * tgi_attend_part_floats(a.v_head_size);
}

/* Stores the first `count` (1..8) of eight elements of D from `d` on. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_store_unit(const tgi_attend_args &p, uint16_t *d,
                                                             int count, const float (&value)[8])
{
    uint32_t pair[4];
    TGI_FOR_UNROLLED(i, 4)
    pair[i] = tgi_encode_pair(Type, value[2 * i], value[2 * i + 1]);
    if (p.has_d_units && count == 8) {
        *reinterpret_cast<uint4 *>(d) = {pair[0], pair[1], pair[2], pair[3]};
        return;
    }
    TGI_FOR_UNROLLED(e, 8)
    if (e < count)
        d[e * p.attention.d.element_stride] = static_cast<uint16_t>(pair[e / 2] >> e % 2 * 16);
}

/* Stores the log-sum-exp of a row whose largest score is `largest`, base 2. */
static __device__ __forceinline__ void tgi_attend_store_log(const tgi_attend_args &p, int64_t at,
                                                            float largest, float total)
{
    static_cast<float *>(p.attention.log_sum_exp.data)[at] =
        total == 0.0f ? -INFINITY : fmaf(largest, 0.693147180559945f, logf(total));
}

/* Stores the block's rows, of D or of a part. They go through shared memory: a thread then has
 * eight elements side by side. */
template <tg_type Type, int Head, int Warps, int Blocks>
static __device__ __forceinline__ void
tgi_attend_store(const tgi_attend_args &p, const tgi_attend_place &place, uint32_t shared,
                 float scale, tgi_attend_state<Head, Blocks> &state)
{
    enum {
        ROWS = 16 * Warps * Blocks,
        PITCH = TGI_ATTEND_PITCH(Head),
        UNITS = Head / 8
    }; /* floats */
    const tg_attention &a = p.attention;
    const int lane = tgi_thread() % 4, v_size = static_cast<int>(a.v_head_size);
    tgi_copy_async_wait<0>(); /* a block without keys has not yet waited for Q */
    __syncthreads();          /* all rows of V were read */
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const uint32_t row = shared + tgi_attend_row<Blocks>(b, half) * PITCH * 4;
        float total = state.total[b][half];
        total += __shfl_xor_sync(~0u, total, 1);
        total += __shfl_xor_sync(~0u, total, 2);
        TGI_FOR_UNROLLED(j, Head / 8)
        tgi_write_shared_8(row + (8 * j + 2 * lane) * 4, state.sums[b][j][2 * half],
                           state.sums[b][j][2 * half + 1]);
        if (lane == 0)
            tgi_write_shared_8(row + Head * 4, state.largest[b][half] * scale, total);
    }
    __syncthreads();
#pragma unroll 1
    for (int i = tgi_thread(); i < ROWS * UNITS; i += 32 * Warps) {
        const tgi_attend_row_place row = tgi_attend_find_row(p, place, i / UNITS);
        const int e = i % UNITS * 8, count = min(8, v_size - e);
        const uint32_t from = shared + i / UNITS * PITCH * 4;
        float ends[2], value[8];
        if (!row.is_there || count <= 0)
            continue;
        tgi_read_shared_8(from + Head * 4, ends);
        TGI_FOR_UNROLLED(j, 8)
        value[j] = tgi_read_shared_4(from + (e + j) * 4);
        if (p.part_count > 1) {
            float *const part =
                tgi_attend_find_part(p, place.part, place.batch, row.head, row.query);
            TGI_FOR_UNROLLED(j, 8)
            if (j < count)
                part[e + j] = value[j];
            if (e == 0)
                *reinterpret_cast<float2 *>(part + tgi_attend_part_floats(v_size) - 2) = {ends[0],
                                                                                          ends[1]};
            continue;
        }
        const float factor = ends[1] == 0.0f ? 1.0f : 1.0f / ends[1];
        TGI_FOR_UNROLLED(j, 8)
        value[j] *= factor;
        const int query = place.first_query + row.query;
        tgi_attend_store_unit<Type>(p,
                                    static_cast<uint16_t *>(a.d.data) + e * a.d.element_stride +
                                        tgi_attend_offset(a.d, place.query_entry, row.head, query),
                                    count, value);
        if (e == 0 && a.has_log_sum_exp)
            tgi_attend_store_log(
                p, tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, query), ends[0],
                ends[1]);
    }
}

/* Copies the block's queries. A block that sees no key waits for them too before it stages sums:
 * their copies are a group of their own. */
template <class Products>
static __device__ __forceinline__ void
tgi_attend_copy_queries(const tgi_attend_args &p, const tgi_attend_place &place, uint32_t q)
{
    const tg_attention &a = p.attention;
    tgi_attend_copy<Products::head, Products::rows, Products::threads>(
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
    enum { ROWS = Products::rows, TILE = 2 * HEAD * KEYS };
    const tgi_attend_place place = tgi_attend_find_block<ROWS, KEYS>(p);
    if (place.first >= place.row_count)
        return;
    const uint32_t q = tgi_shared_address(shared), kv = q + 2 * HEAD * ROWS;
    tgi_attend_copy_queries<Products>(p, place, q);

    tgi_attend_state<HEAD, BLOCKS> state;
    tgi_attend_clear(state);
    const float scale = p.is_plain ? p.scale : 1.0f;
    const uint16_t *source_k = tgi_attend_find_source<Products>(p, place, 0);
    const uint16_t *source_v = tgi_attend_find_source<Products>(p, place, 1);
    /* Copies the keys of two steps: those of K from `key` on, and those of V before them. */
    const auto copy_keys = [&](int key, uint32_t k, uint32_t v) {
#pragma unroll 1
        for (int is_v = 0; is_v < 2; is_v++) {
            const uint16_t *source = is_v ? source_v : source_k;
            tgi_attend_copy_keys<Products>(p, place, is_v, is_v ? key - KEYS : key, is_v ? v : k,
                                           source);
            if (is_v)
                source_v = source;
            else
                source_k = source;
        }
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
            const int is_edge = key_0 < place.all_low || next > place.all_high;
            float factors[BLOCKS][2];
            if (!p.is_plain)
                tgi_attend_finish<KEYS, BLOCKS>(p, place, key_0, scores);
            if (is_edge)
                tgi_attend_hide<KEYS, BLOCKS>(p, place, key_0, scores);
            tgi_attend_weigh<HEAD, KEYS, BLOCKS>(scale, scores, state, factors);
            /* The branch stands between weights and sums: without it the compiler would wait for
             * the sums before it forms weights. */
            if (tgi_attend_has_grown<BLOCKS>(factors)) {
                Products::wait_sums(state);
                tgi_attend_rescale(factors, state);
            }
            Products::wait_sums(state);
            tgi_attend_round<Products::type, KEYS, BLOCKS>(scores, weights);
            Products::template wait_copies<0>();
            if (is_edge && tgi_attend_has_wild<Products>(v)) {
                tgi_attend_add_seen<Products::type, KEYS>(p, place, key_0, v, weights, state);
                tgi_attend_clear_tile<Products>(v);
            }
            if (next < place.end)
                copy_keys(next + KEYS, k, other_v);
            Products::turn(next < place.end, q, other_k, v, weights, scores, state);
            if (next >= place.end)
                break;
            tgi_attend_swap(k, other_k);
            tgi_attend_swap(v, other_v);
        }
        Products::wait_sums(state);
    }
    tgi_attend_store<Products::type, HEAD, Products::warps, BLOCKS>(p, place, q, scale, state);
}

/* Adds the parts of a row in their order, a warp for each row. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_merge(const tgi_attend_args &p)
{
    const tg_attention &a = p.attention;
    const unsigned at = blockIdx.x * TGI_ATTEND_MERGE_WARPS + tgi_thread() / 32;
    const unsigned heads = static_cast<unsigned>(a.head_count), rows = static_cast<unsigned>(a.m);
    const int query = static_cast<int>(at % rows), head = static_cast<int>(at / rows % heads);
    const int batch = static_cast<int>(at / rows / heads);
    int entry = batch, first = 0;
    if (batch >= a.batch_count)
        return;
    if (a.has_query_offsets) {
        entry = 0;
        first = a.query_offsets[batch];
        if (query >= a.query_offsets[batch + 1] - first)
            return;
    }
    const int floats = static_cast<int>(tgi_attend_part_floats(a.v_head_size));
    const float *const parts = tgi_attend_find_part(p, 0, batch, head, query);
    float largest = -INFINITY, total = 0.0f;
    for (int i = 0; i < p.part_count; i++)
        largest = fmaxf(largest, parts[(i + 1) * floats - 2]);
    const float finite = largest == -INFINITY ? 0.0f : largest;
    for (int i = 0; i < p.part_count; i++)
        total += tgi_ptx_exp2(parts[(i + 1) * floats - 2] - finite) * parts[(i + 1) * floats - 1];
    const float factor = total == 0.0f ? 1.0f : 1.0f / total;
    const int e = tgi_thread() % 32 * 8, count = min(8, static_cast<int>(a.v_head_size) - e);
    if (e == 0 && a.has_log_sum_exp)
        tgi_attend_store_log(p, tgi_attend_offset(a.log_sum_exp, entry, head, first + query),
                             largest, total);
    if (count <= 0)
        return;
    float value[8] = {};
    for (int i = 0; i < p.part_count; i++) {
        const float weight = tgi_ptx_exp2(parts[(i + 1) * floats - 2] - finite);
        TGI_FOR_UNROLLED(j, 8)
        if (j < count)
            value[j] = fmaf(weight, parts[i * floats + e + j], value[j]);
    }
    TGI_FOR_UNROLLED(j, 8)
    value[j] *= factor;
    tgi_attend_store_unit<Type>(p,
                                static_cast<uint16_t *>(a.d.data) + e * a.d.element_stride +
                                    tgi_attend_offset(a.d, entry, head, first + query),
                                count, value);
}

#endif
