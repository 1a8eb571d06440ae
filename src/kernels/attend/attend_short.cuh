/*
 * Computes attention of short sequences by wgmma (sm_90a). A block is one warpgroup. All keys of a
 * head stay in its shared memory, and it computes one tile of 64 queries after another with them.
 * A block with one tile may have room for two steps instead, so that more blocks fit.
 * Its parts follow each other: copies, scores, weights, sums, stores. The other blocks of the
 * multiprocessor fill the gaps. Operands are those that TMA can copy, and D has whole units of 16
 * bytes.
 */
#ifndef TGI_ATTEND_SHORT_CUH
#define TGI_ATTEND_SHORT_CUH

#include "kernels/attend/attend_groups.cuh"

/* A tile of queries, and a step of `Keys` keys. */
template <tg_type Type, int Head, int Keys> struct tgi_attend_short_sizes {
    static constexpr tg_type type = Type;
    static constexpr int head = Head, rows = 64, keys = Keys;
};

/* A block's shared memory has K of the kept steps, V of these, one or two tiles of queries, and
 * barriers. The plan chooses the keys of a step: 32, 64 or `Most`. */
template <tg_type Type, int Head, int Most> struct tgi_attend_short {
    enum { STRIPS = Head / 64, UNITS = Head / 8, ROWS = 64, Q_BYTES = 2 * Head * ROWS };
    const tgi_attend_args &p;
    tgi_attend_place &place;
    const int step_keys, step_count;
    const int kept_count; /* steps that shared memory has room for: all of them or two */
    const uint32_t k, v, q, barriers;
    tgi_attend_state<Head, 1> state;
    int has_nonfinite; /* not 0: V had Inf or NaN, which zeros replace */
    int visited;       /* steps that have been used */

    __device__ __forceinline__ tgi_attend_short(const tgi_attend_args &args, tgi_attend_place &at,
                                                uint32_t shared)
        : p(args), place(at), step_keys(args.box_rows),
          step_count((max(0, at.end - at.begin) + args.box_rows - 1) / args.box_rows),
          kept_count(args.kept_keys < args.split_keys ? min(2, step_count) : step_count), k(shared),
          v(k + kept_count * step_keys * 2 * Head), q(v + kept_count * step_keys * 2 * Head),
          barriers(q + (args.subtile_count > 1 ? 2 : 1) * Q_BYTES), has_nonfinite(0), visited(0)
    {
    }

    __device__ __forceinline__ uint32_t find_tile(int is_v, int step) const
    {
        const int at = kept_count < step_count ? step % 2 : step;
        return (is_v ? v : k) + at * step_keys * 2 * Head;
    }

    __device__ __forceinline__ uint32_t find_full(int is_v, int step) const
    {
        return barriers + 16 + 16 * step + 8 * is_v;
    }

    __device__ __forceinline__ uint32_t find_query_tile(int subtile) const
    {
        return q + subtile % 2 * Q_BYTES;
    }

    /* Returns row g or g + 8 of the lane. All rows belong to one head. */
    __device__ __forceinline__ tgi_attend_row_place find_row(int half) const
    {
        return tgi_attend_make_row(p, place, place.first + tgi_attend_row<1>(0, half), 0);
    }

    /* Copies steps `from` .. `to` - 1 of K or V. A warp calls it. */
    __device__ __forceinline__ void copy_keys(int is_v, int from, int to)
    {
        if (tgi_elect())
#pragma unroll 1
            for (int step = from; step < to; step++) {
                const uint32_t full = find_full(is_v, step);
                tgi_barrier_expect(full, 2 * Head * step_keys);
                TGI_FOR_UNROLLED(i, STRIPS)
                tgi_tma_load_head(find_tile(is_v, step) + i * step_keys * 128, &p.map[is_v], full,
                                  i * 64, place.begin + step * step_keys, place.kv_head,
                                  place.key_entry);
            }
        __syncwarp();
    }

    /* Copies the queries of tile `subtile`. The place has those of tile `now`. A warp calls it. */
    __device__ __forceinline__ void copy_queries(int subtile, int now)
    {
        tgi_attend_place at = place;
        at.first += (subtile - now) * ROWS;
        tgi_attend_copy_query_boxes<tgi_attend_short_sizes<Type, Head, Most>>(
            p, at, find_query_tile(subtile), barriers + subtile % 2 * 8);
    }

    /* Initializes the barriers, waits for the stream, and begins to copy the keys and the queries
     * of the first two tiles. Each warp issues some of the copies. */
    __device__ __forceinline__ void open(int subtiles)
    {
        const int warp = tgi_make_uniform(tgi_thread() / 32);
        if (tgi_thread() == 0) {
            TGI_FOR_UNROLLED(i, 3)
            tgi_prefetch_map(&p.map[i]);
            for (int i = 0; i < 2 + 2 * step_count; i++)
                tgi_barrier_init(barriers + 8 * i, 1);
            tgi_fence_barrier_init();
        }
        __syncthreads();
        tgi_wait_for_stream();
        if (warp < 2)
            copy_keys(warp, 0, kept_count);
        else if (warp - 2 < subtiles)
            copy_queries(warp - 2, 0);
    }

    /* Hides keys that rows do not see. Groups of 32 keys that all rows see are left out. */
    template <int Keys>
    __device__ __forceinline__ void hide(int key_0, float (&scores)[1][Keys / 8][4])
    {
        const int first = key_0 + tgi_thread() % 4 * 2;
        int low[2], high[2];
        if (key_0 >= place.all_low && key_0 + Keys <= place.all_high)
            return;
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place row = find_row(half);
            low[half] = row.low - first;
            high[half] = row.high - first;
        }
        TGI_FOR_UNROLLED(group, (Keys + 31) / 32)
        if (key_0 + 32 * group < place.all_low || key_0 + 32 * (group + 1) > place.all_high)
            TGI_FOR_UNROLLED(e, 16)
        if (const int j = 4 * group + e / 4, i = e % 4; j < Keys / 8)
            if (8 * j + i % 2 < low[i / 2] || 8 * j + i % 2 >= high[i / 2])
                scores[0][j][i] = -INFINITY;
    }

    /* Waits for K and V of a step that is used for the first time. Zeros replace Inf and NaN in V
     * if some rows do not see all of it. */
    template <int Keys> __device__ __forceinline__ void visit(int step, int key_0)
    {
        if (step < visited)
            return;
        visited = step + 1;
        tgi_barrier_wait(find_full(0, step), 0);
        if (key_0 >= place.all_low && min(key_0 + Keys, place.keys) <= place.all_high)
            return;
        tgi_barrier_wait(find_full(1, step), 0);
        const int is_nonfinite =
            tgi_attend_clear_nonfinite<tgi_attend_short_sizes<Type, Head, Keys>, 4 * 32>(
                find_tile(1, step), tgi_thread());
        if (is_nonfinite)
            tgi_fence_async_proxy();
        has_nonfinite |= __syncthreads_or(is_nonfinite);
    }

    /* Computes a step of tile `subtile`. */
    template <int Keys> __device__ __forceinline__ void compute(int step, int subtile)
    {
        typedef tgi_attend_group_products<Type, Head, ROWS, Keys> products;
        const int key_0 = place.begin + step * Keys;
        float scores[1][Keys / 8][4], references[1][2], factors[1][2];
        uint32_t weights[1][Keys / 16][4];
        visit<Keys>(step, key_0);
        products::score(find_query_tile(subtile), find_tile(0, step), scores);
        products::template wait_scores<0>(scores);
        hide<Keys>(key_0, scores);
        tgi_attend_find_largest<Head, Keys, 1>(p.scale, scores, state, references, factors);
        tgi_attend_weigh<Type, Head, Keys>(p.scale, scores, references, state, weights);
        if (step > 0)
            tgi_attend_rescale(factors, state);
        tgi_barrier_wait(find_full(1, step), 0);
        products::add(find_tile(1, step), weights, state);
        products::wait_sums(state);
        if (step + kept_count < step_count) {
            const int warp = tgi_make_uniform(tgi_thread() / 32);
            __syncthreads(); /* all warps have read the step */
            if (warp < 2)
                copy_keys(warp, step + 2, step + 3);
        }
    }

    /* Returns the number of steps of the rows of the place's tile. No row sees a later key. */
    __device__ __forceinline__ int count_steps(void) const
    {
        const int last = min(place.first + ROWS, place.row_count) - 1;
        const int end = min(place.end, tgi_attend_find_place(p, place, last) + p.after + 1);
        return (max(0, end - place.begin) + step_keys - 1) / step_keys;
    }

    /* Stores the warp's rows of D by way of their queries' place in shared memory, from where lanes
     * read 16 bytes at once. */
    __device__ __forceinline__ void store(uint32_t tile)
    {
        const tg_attention &a = p.attention;
        const int lane = tgi_thread() % 32, warp_row = tgi_thread() / 32 * 16;
        tgi_attend_add_totals(state);
        tgi_attend_put_rows<Type, Head, ROWS>(
            state, tgi_attend_line(tile, warp_row + lane % 16, lane / 16));
        __syncwarp();
        const int unit = lane % UNITS, rows = place.row_count - place.first - warp_row;
        uint16_t *const d =
            static_cast<uint16_t *>(a.d.data) +
            tgi_attend_offset(a.d, place.query_entry, place.first_head, place.first + warp_row) +
            8 * unit;
        TGI_FOR_UNROLLED(i, UNITS / 2)
        {
            const int row = (32 * i + lane) / UNITS;
            if (row < rows && 8 * unit < a.v_head_size)
                *reinterpret_cast<uint4 *>(d + row * a.d.row_stride) =
                    tgi_read_shared_unit(tgi_attend_find_unit<ROWS>(tile, warp_row + row, unit));
        }
    }

    /* Stores the logarithms of the lane's rows. */
    __device__ __forceinline__ void store_logs(void)
    {
        const tg_attention &a = p.attention;
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place row = find_row(half);
            if (row.is_there && tgi_thread() % 4 == 0)
                tgi_attend_store_log(
                    p, tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, row.query),
                    state.largest[0][half] * p.scale, state.total[0][half]);
        }
    }

    /* Puts the lane's elements of D right whose columns of V have non-finite elements. If the sum
     * of weights is NaN, so is the row. */
    __device__ __forceinline__ void put_right(void)
    {
        const tg_heads &heads = p.attention.d;
        const int size = static_cast<int>(p.attention.v_head_size);
        __syncwarp(); /* other lanes have stored them */
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place row = find_row(half);
            const int is_right = !row.is_there || isnan(state.total[0][half]);
            uint16_t *const d = static_cast<uint16_t *>(heads.data) +
                                tgi_attend_offset(heads, place.query_entry, row.head, row.query);
#pragma unroll 1
            for (int e = tgi_thread() % 4; !is_right && e < size; e += 4) {
                const float sum =
                    tgi_attend_sum_nonfinite<Type>(p, place, row, state.largest[0][half], e);
                if (sum != 0.0f)
                    d[e] = static_cast<uint16_t>(tgi_encode_pair(Type, sum, 0.0f));
            }
        }
    }

    __device__ __forceinline__ void go_through(int subtiles)
    {
#pragma unroll 1
        for (int subtile = 0; subtile < subtiles; subtile++) {
            const int steps = count_steps();
            tgi_attend_clear(state);
            tgi_barrier_wait(barriers + subtile % 2 * 8, subtile / 2 & 1);
#pragma unroll 1
            for (int step = 0; step < steps; step++) {
                if (step_keys == 32)
                    compute<32>(step, subtile);
                else if (step_keys == 64)
                    compute<64>(step, subtile);
                else if constexpr (Most > 64)
                    compute<Most>(step, subtile);
            }
            __syncthreads(); /* all warps have read the queries */
            store(find_query_tile(subtile));
            if (p.attention.has_log_sum_exp)
                store_logs();
            if (has_nonfinite)
                put_right();
            if (subtile + 2 < subtiles) {
                tgi_fence_async_proxy();
                __syncthreads();
                if (tgi_thread() < 32)
                    copy_queries(subtile + 2, subtile);
            }
            place.first += ROWS;
        }
    }
};

/* This is the kernel of a row of short sequences. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_short_sequences(const tgi_attend_args &p,
                                                                     char *shared)
{
    static_assert(Warps == 4 && Queries == 64, "a block is one warpgroup");
    const uint32_t memory =
        static_cast<uint32_t>(tgi_make_uniform(static_cast<int>(tgi_shared_address(shared))));
    /* Plans give this row no lists of offsets and lengths, so that only open() waits. */
    if (tgi_attend_has_lists(p))
        tgi_wait_for_stream();
    tgi_attend_place place =
        tgi_attend_find_tile<32>(p, static_cast<int>(blockIdx.x), 0, Queries * p.subtile_count);
    tgi_attend_short<Type, Head, Keys> own(p, place, memory);
    const int subtiles =
        min(p.subtile_count, (place.row_count - place.first + Queries - 1) / Queries);
    if (p.lets_next_start)
        tgi_start_next();
    own.open(subtiles);
    own.go_through(subtiles);
}

#endif
