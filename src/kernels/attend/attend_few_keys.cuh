/*
 * Computes attention of few keys. A warp has 16 queries and at most 128 elements of their heads,
 * and reads Q, K and V from global memory into the registers from which mma.sync takes them. If
 * there is one step of keys, it stays there. If there are more, they stay in shared memory in the
 * order in which lanes have read them, for all warps of the block. Warps of larger heads add their
 * scores in shared memory, and warps that share out the keys add their states there.
 *
 * Both products may take their elements in any order. Lane 4 g + c reads 16 bytes at once. They are
 * elements 32 i + 8 c .. + 7 of a row of Q or K, operands of two products, and elements
 * 64 i + 8 (g / 2 + g % 2 * 4) .. + 7 of four keys of V, operands of eight products. Its sums then
 * belong to elements 64 i + 8 c .. + 7 and 64 i + 32 + 8 c .. + 7 of D, and four lanes store whole
 * sectors of 32 bytes.
 */
#ifndef TGI_ATTEND_FEW_KEYS_CUH
#define TGI_ATTEND_FEW_KEYS_CUH

#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_units.cuh"

/* The share of a warp is 16 queries at a time, and `Width` elements of Q and K and columns of D
 * from `first_column` on. `Sharers` warps have the same queries and add their parts of the
 * scores. */
template <tg_type Type, int Width, int Sharers, int Queries, int Keys> struct tgi_attend_few_keys {
    enum { CHUNKS = Width / 32, STRIPS = Width / 64, WARPS = Sharers * Queries / 16 };
    enum { UNITS = Keys / 8 * CHUNKS }; /* a step of K has these, and of V */
    const tgi_attend_args &p;
    tgi_attend_place &place;
    const int first_column;
    const uint32_t shared;
    int parity;
    tgi_attend_state<Width, 1> state;
    uint32_t q[2 * CHUNKS][4]; /* units of row g, then of row g + 8 */
    uint32_t k[UNITS][4], v[UNITS][4];
    int is_nonfinite; /* 1: v had Inf or NaN, which zeros now replace */

    __device__ __forceinline__ tgi_attend_few_keys(const tgi_attend_args &args,
                                                   tgi_attend_place &at, int column,
                                                   uint32_t memory)
        : p(args), place(at), first_column(column), shared(memory), parity(0), is_nonfinite(0)
    {
    }

    static __device__ __forceinline__ int get_lane(void)
    {
        return tgi_thread() % 32;
    }

    /* Finds row g or g + 8. It is found again at each use, because keeping it would take registers.
     * With lists of queries, tiles have one head. */
    __device__ __forceinline__ tgi_attend_row_place find_row(int half, int ahead = 0) const
    {
        const int lane = tgi_reread_thread() % 32;
        const int at = place.first + ahead + half * 8 + lane / 4;
        return tgi_attend_make_row(p, place, at,
                                   p.shared_heads > 1 ? tgi_divide(at, p.query_count) : 0);
    }

    /* Reads the queries `ahead` rows after the place's. */
    __device__ __forceinline__ void read_queries(int ahead)
    {
        const tg_attention &a = p.attention;
        const int size = static_cast<int>(a.head_size);
        int64_t first[2];
        int is_there[2];
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place row = find_row(half, ahead);
            is_there[half] = row.is_there;
            first[half] =
                tgi_attend_offset(a.q, place.query_entry, row.head, place.first_query + row.query);
        }
        tgi_attend_read_units<2 * CHUNKS>(
            a.q, p.has_units[0] && size % 8 == 0, q, [&](int i, int &e, int &count) {
                const int is_upper = i >= CHUNKS;
                e = first_column + i % CHUNKS * 32 + get_lane() % 4 * 8;
                count = (is_upper ? is_there[1] : is_there[0]) ? size - e : 0;
                return is_upper ? first[1] : first[0];
            });
    }

    __device__ __forceinline__ void read_keys(int key_0)
    {
        const tg_heads &heads = p.attention.k;
        const int size = static_cast<int>(p.attention.head_size);
        const int key = key_0 + get_lane() / 4;
        const int64_t first = tgi_attend_find_first(p, place, heads) + key * heads.row_stride;
        tgi_attend_read_units<UNITS>(heads, p.has_units[1] && size % 8 == 0, k,
                                     [&](int i, int &e, int &count) {
                                         const int at = i / CHUNKS * 8;
                                         e = first_column + i % CHUNKS * 32 + get_lane() % 4 * 8;
                                         count = key + at < place.keys ? size - e : 0;
                                         return first + at * heads.row_stride;
                                     });
    }

    __device__ __forceinline__ void read_values(int key_0)
    {
        const tg_heads &heads = p.attention.v;
        const int size = static_cast<int>(p.attention.v_head_size);
        const int key = key_0 + get_lane() % 4 * 2;
        const int64_t first = tgi_attend_find_first(p, place, heads) + key * heads.row_stride;
        tgi_attend_read_units<UNITS>(
            heads, p.has_units[2] && size % 8 == 0, v, [&](int i, int &e, int &count) {
                const int at = i / STRIPS / 2 * 8 + i / STRIPS % 2;
                e = first_column + i % STRIPS * 64 + get_lane() / 8 * 8 + get_lane() / 4 % 2 * 32;
                count = key + at < place.keys ? size - e : 0;
                return first + at * heads.row_stride;
            });
    }

    __device__ __forceinline__ void score(float (&scores)[1][Keys / 8][4]) const
    {
        TGI_FOR_UNROLLED(j, Keys / 8)
        {
            TGI_FOR_UNROLLED(i, 4)
            scores[0][j][i] = 0.0f;
        }
        TGI_FOR_UNROLLED(i, CHUNKS)
        TGI_FOR_UNROLLED(half, 2)
        {
            const uint32_t line[4] = {q[i][2 * half], q[CHUNKS + i][2 * half], q[i][2 * half + 1],
                                      q[CHUNKS + i][2 * half + 1]};
            TGI_FOR_UNROLLED(j, Keys / 8)
            tgi_multiply_16x8x16<Type>(scores[0][j], line, k[j * CHUNKS + i][2 * half],
                                       k[j * CHUNKS + i][2 * half + 1]);
        }
    }

    /* Adds the scores of all warps that have the same queries, in their order. They lie at one of
     * two places in turn, because a warp may be a step ahead of those that still read. */
    __device__ __forceinline__ void share(float (&scores)[1][Keys / 8][4])
    {
        enum { OWN = Keys / 8 * 512 };
        const int warp = tgi_thread() / 32;
        const uint32_t place_of = shared + parity * WARPS * OWN + get_lane() * 16;
        const uint32_t first = place_of + warp / Sharers * Sharers * OWN;
        parity ^= 1;
        TGI_FOR_UNROLLED(j, Keys / 8)
        tgi_attend_write_unit(place_of + warp * OWN + j * 512, scores[0][j]);
        __syncthreads();
        TGI_FOR_UNROLLED(j, Keys / 8)
        TGI_FOR_UNROLLED(i, Sharers)
        {
            float added[4];
            tgi_attend_read_unit(added, first + i * OWN + j * 512);
            TGI_FOR_UNROLLED(e, 4)
            scores[0][j][e] = i > 0 ? scores[0][j][e] + added[e] : added[e];
        }
    }

    __device__ __forceinline__ void add(const uint32_t (&weights)[1][Keys / 16][4])
    {
        TGI_FOR_UNROLLED(b, Keys / 16)
        TGI_FOR_UNROLLED(i, 8 * STRIPS)
        {
            const int strip = i / 8, word = i % 8 / 2;
            uint32_t pair[2];
            TGI_FOR_UNROLLED(half, 2)
            {
                const uint32_t low = v[(4 * b + 2 * half) * STRIPS + strip][word];
                const uint32_t high = v[(4 * b + 2 * half + 1) * STRIPS + strip][word];
                pair[half] =
                    i % 2 ? low >> 16 | (high & 0xffff0000u) : (low & 0xffffu) | high << 16;
            }
            tgi_multiply_16x8x16<Type>(state.sums[0][i], weights[0][b], pair[0], pair[1]);
        }
    }

    /* Replaces Inf and NaN in v by zeros. */
    __device__ __forceinline__ void clear_nonfinite(void)
    {
        enum { COUNT = UNITS };
        int is_any = 0;
        TGI_FOR_UNROLLED(i, COUNT)
        is_any |= tgi_attend_is_nonfinite<Type>(v[i]);
        if (!__any_sync(~0u, is_any))
            return;
        is_nonfinite = 1;
#pragma unroll 1
        for (int i = 0; i < COUNT; i++) {
            uint32_t first[4] = {v[0][0], v[0][1], v[0][2], v[0][3]};
            tgi_attend_clear_nonfinite_unit<Type>(first);
            TGI_FOR_UNROLLED(w, 4)
            {
                TGI_FOR_UNROLLED(j, COUNT - 1)
                v[j][w] = v[j + 1][w];
                v[COUNT - 1][w] = first[w];
            }
        }
    }

    /* Turns the scores of the step from key_0 on into weights, and adds weights times v to the
     * sums. */
    __device__ __forceinline__ void weigh(int key_0, float (&scores)[1][Keys / 8][4])
    {
        float references[1][2], factors[1][2];
        uint32_t weights[1][Keys / 16][4];
        if (tgi_attend_is_edge<Keys>(place, key_0)) {
            TGI_FOR_UNROLLED(half, 2)
            tgi_attend_hide_row<Keys>(find_row(half), key_0, half, scores[0]);
        }
        tgi_attend_find_largest<Width, Keys, 1>(p.scale, scores, state, references, factors);
        tgi_attend_rescale(factors, state);
        tgi_attend_weigh<Type, Width, Keys>(p.scale, scores, references, state, weights);
        if (tgi_attend_hides<Keys>(place, key_0))
            clear_nonfinite();
        add(weights);
    }

    /* Returns the element of D that sum 0 of place j belongs to. Sum 1 belongs to the element 32
     * further. */
    __device__ __forceinline__ int find_column(int j) const
    {
        return first_column + j / 8 * 64 + get_lane() % 4 * 8 + j % 8;
    }

    /* Stores the rows of D. Their units lie in the order of rows. If the sum of weights is NaN, so
     * is the row. */
    __device__ __forceinline__ void store_units(const tgi_attend_row_place (&row)[2],
                                                uint32_t (&units)[4 * STRIPS][4])
    {
        const tg_heads &heads = p.attention.d;
        const int size = static_cast<int>(p.attention.v_head_size);
        const int is_whole = p.has_d_units && size % 8 == 0 && !is_nonfinite;
        uint16_t *d[2];
        TGI_FOR_UNROLLED(half, 2)
        d[half] = static_cast<uint16_t *>(heads.data) +
                  tgi_attend_offset(heads, place.query_entry, row[half].head,
                                    place.first_query + row[half].query);
#pragma unroll 1
        for (int i = 0; !is_whole && i < 4 * STRIPS; i++) {
            const int is_upper = i >= 2 * STRIPS, e = find_column(i / 2 % STRIPS * 8) + i % 2 * 32;
            const tgi_attend_row_place own = is_upper ? row[1] : row[0];
            if (is_nonfinite && own.is_there &&
                !isnan(is_upper ? state.total[0][1] : state.total[0][0]))
                tgi_attend_put_right<Type>(p, place, own,
                                           is_upper ? state.largest[0][1] : state.largest[0][0], e,
                                           units[0]);
            if (own.is_there)
                tgi_attend_store_unit(p, (is_upper ? d[1] : d[0]) + e * heads.element_stride,
                                      size - e, units[0]);
            TGI_FOR_UNROLLED(j, 4 * STRIPS - 1)
            TGI_FOR_UNROLLED(w, 4)
            units[j][w] = units[j + 1][w];
        }
        TGI_FOR_UNROLLED(i, 4 * STRIPS)
        {
            const int half = i / (2 * STRIPS), e = find_column(i / 2 % STRIPS * 8) + i % 2 * 32;
            if (is_whole && row[half].is_there && e < size)
                *reinterpret_cast<uint4 *>(d[half] + e) = {units[i][0], units[i][1], units[i][2],
                                                           units[i][3]};
        }
    }

    __device__ __forceinline__ void store(void)
    {
        const tg_attention &a = p.attention;
        uint32_t units[4 * STRIPS][4];
        const tgi_attend_row_place row[2] = {find_row(0), find_row(1)};
        tgi_attend_add_totals(state);
        TGI_FOR_UNROLLED(half, 2)
        {
            const float total = state.total[0][half], factor = total == 0.0f ? 1.0f : 1.0f / total;
            TGI_FOR_UNROLLED(i, 8 * STRIPS)
            {
                const int unit = i / 4, first = unit / 2 * 8 + i % 4 * 2;
                const int sum = 2 * half + unit % 2;
                units[half * 2 * STRIPS + unit][i % 4] =
                    tgi_encode_pair(Type, state.sums[0][first][sum] * factor,
                                    state.sums[0][first + 1][sum] * factor);
            }
        }
        store_units(row, units);
        const int half = get_lane() % 4, is_first = first_column == 0 && half < 2;
        if (is_first && a.has_log_sum_exp) {
            const tgi_attend_row_place own = half ? row[1] : row[0];
            if (own.is_there)
                tgi_attend_store_log(p,
                                     tgi_attend_offset(a.log_sum_exp, place.query_entry, own.head,
                                                       place.first_query + own.query),
                                     (half ? state.largest[0][1] : state.largest[0][0]) * p.scale,
                                     half ? state.total[0][1] : state.total[0][0]);
        }
    }

    /* Returns the address at which the lane keeps the first unit of the step `i` keys after the
     * first. Warps that share out keys have places of their own. Other warps share places if they
     * have the same elements. */
    __device__ __forceinline__ uint32_t find_kept(int i) const
    {
        const int is_split = p.warp_split_count > 1, warp = tgi_thread() / 32;
        const uint32_t kept = shared + tgi_attend_score_bytes(WARPS, Sharers, Keys) +
                              (p.warp_split_count - 1) * Sharers * tgi_attend_state_bytes(Width);
        return kept + (is_split ? warp : warp % Sharers) * p.kept_keys * 4 * Width + i * 4 * Width +
               get_lane() * 16;
    }

    /* Reads the keys. One step stays in registers. If is_kept is 1, all keys are kept in shared
     * memory, and warps with the same elements read a part each. */
    __device__ __forceinline__ void open(int is_kept)
    {
        const int shares_reads = is_kept && p.warp_split_count == 1;
        const int first = shares_reads ? tgi_thread() / 32 / Sharers : 0;
        const int apart = shares_reads ? WARPS / Sharers : 1;
#pragma unroll 1
        for (int i = first * Keys; i < place.end - place.begin; i += apart * Keys) {
            read_keys(place.begin + i);
            read_values(place.begin + i);
            if (is_kept) {
                tgi_attend_keep_units(k, find_kept(i));
                tgi_attend_keep_units(v, find_kept(i) + 512 * UNITS);
            }
        }
        if (shares_reads)
            __syncthreads();
    }

    /* Computes `subtiles` tiles of 16 queries one after another, over all keys. The next queries
     * are read once the scores of the last keys are complete. */
    __device__ __forceinline__ void go_through(int subtiles)
    {
        const int is_split = p.warp_split_count > 1, is_kept = p.kept_keys > Keys;
        /* Warps that add their scores must compute the same number of steps. */
        const int keys = Sharers > 1 && is_split ? p.kept_keys : place.end - place.begin;
        read_queries(0);
        open(is_kept);
#pragma unroll 1
        for (int subtile = 0; subtile < subtiles; subtile++) {
            tgi_attend_clear(state);
#pragma unroll 1
            for (int i = 0; i < keys; i += Keys) {
                const int key_0 = place.begin + i, is_there = Sharers == 1 || key_0 < place.end;
                float scores[1][Keys / 8][4];
                if (is_kept && is_there)
                    tgi_attend_read_kept(k, find_kept(i));
                score(scores);
                if (subtile + 1 < subtiles && i + Keys >= keys)
                    read_queries(Queries);
                if (Sharers > 1)
                    share(scores);
                if (!is_there)
                    continue;
                if (is_kept)
                    tgi_attend_read_kept(v, find_kept(i) + 512 * UNITS);
                weigh(key_0, scores);
            }
            if (WARPS > Sharers && is_split) {
                const int warp_split = tgi_thread() / 32 / Sharers,
                          sharer = tgi_thread() / 32 % Sharers;
                is_nonfinite = tgi_attend_join_lanes(
                    p.warp_split_count, warp_split, p.scale, state, is_nonfinite,
                    shared + tgi_attend_score_bytes(WARPS, Sharers, Keys) +
                        sharer * (p.warp_split_count - 1) * tgi_attend_state_bytes(Width));
                if (warp_split > 0)
                    return;
            }
            store();
            place.first += Queries;
        }
    }
};

/* This is the kernel of a row of few keys. Its `Warps` warps have `Queries` queries at a time, and
 * warps with the same queries share out the elements of a head. Or all warps have the same 16
 * queries, and some share out the keys. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_few_keys(const tgi_attend_args &p,
                                                              char *shared)
{
    enum { SHARERS = Warps * 16 / Queries, WIDTH = Head / SHARERS };
    const int warp = tgi_thread() / 32, group = warp / SHARERS, is_split = p.warp_split_count > 1;
    const int rows = is_split ? 16 : Queries * p.subtile_count;
    const int has_lists = tgi_attend_has_lists(p);
    if (p.lets_next_start)
        tgi_start_next();
    if (has_lists)
        tgi_wait_for_stream();
    tgi_attend_place place =
        tgi_attend_find_tile<Keys>(p, static_cast<int>(blockIdx.x), is_split ? group : 0, rows);
    const int subtiles = (place.row_count - place.first + Queries - 1) / Queries;
    place.filled = place.keys;
    if (!is_split)
        place.first += group * 16;
    if (!has_lists)
        tgi_wait_for_stream();
    tgi_attend_few_keys<Type, WIDTH, SHARERS, Queries, Keys> own(p, place, warp % SHARERS * WIDTH,
                                                                 tgi_shared_address(shared));
    own.go_through(min(p.subtile_count, subtiles));
}

#endif
