/*
 * Computes attention of short sequences by wgmma (sm_90a). All keys of a head stay in a block's
 * shared memory, and each of its warpgroups computes one tile of 64 queries after another with
 * them.
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

/* A block's shared memory has K of the kept steps, V of these, one or two tiles of queries of each
 * warpgroup, and barriers. The plan chooses the keys of a step: 32, 64, 80 or `Most`. */
template <tg_type Type, int Head, int Most> struct tgi_attend_short {
    enum { STRIPS = Head / 64, ROWS = 64, Q_BYTES = 2 * Head * ROWS };
    /* Threads of a group. Places of barriers of K and V and of a word, behind the first barrier. */
    enum { THREADS = 128, FULL = 64, FOUND = 496 };
    const tgi_attend_args &p;
    tgi_attend_place &place;
    const int step_keys, step_count;
    const int kept_count; /* steps that shared memory has room for: all of them or two */
    const uint32_t k, v, q, barriers;
    const int groups, group; /* warpgroups, and this one's number */
    tgi_attend_state<Head, 1> state;
    int inspected; /* bit i: the warpgroup has replaced Inf and NaN in V of step i by zeros */

    __device__ __forceinline__ tgi_attend_short(const tgi_attend_args &args, tgi_attend_place &at,
                                                uint32_t shared)
        : p(args), place(at), step_keys(args.box_rows),
          step_count((max(0, at.end - at.begin) + args.box_rows - 1) / args.box_rows),
          kept_count(args.kept_keys < args.split_keys ? min(2, step_count) : step_count), k(shared),
          v(k + kept_count * step_keys * 2 * Head), q(v + kept_count * step_keys * 2 * Head),
          barriers(q +
                   tgi_attend_short_places(args.subtile_count, args.warp_split_count) * Q_BYTES),
          groups(args.warp_split_count), group(tgi_make_uniform(tgi_thread() / THREADS)),
          inspected(0)
    {
    }

    __device__ __forceinline__ uint32_t find_tile(int is_v, int step) const
    {
        const int at = kept_count < step_count ? step % 2 : step;
        return (is_v ? v : k) + at * step_keys * 2 * Head;
    }

    __device__ __forceinline__ uint32_t find_full(int is_v, int step) const
    {
        return barriers + FULL + 16 * step + 8 * is_v;
    }

    /* Returns the place of the warpgroup's tile `number` of queries among those of all. */
    __device__ __forceinline__ int find_query_place(int number) const
    {
        return number % 2 * groups + group;
    }

    __device__ __forceinline__ void wait_for_group(void) const
    {
        tgi_named_barrier_sync(1 + group, THREADS);
    }

    /* Returns row g or g + 8 of the lane. All rows belong to one head. */
    __device__ __forceinline__ tgi_attend_row_place find_row(int half) const
    {
        return tgi_attend_make_row(
            p, place,
            place.first + tgi_thread() % THREADS / 32 * 16 + 8 * half + tgi_thread() % 32 / 4, 0);
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

    /* Copies the queries `ahead` tiles behind the place's to place `to`. A warp calls it. */
    __device__ __forceinline__ void copy_queries(int to, int ahead)
    {
        tgi_attend_place at = place;
        at.first += ahead * ROWS;
        tgi_attend_copy_query_boxes<tgi_attend_short_sizes<Type, Head, Most>>(
            p, at, q + to * Q_BYTES, barriers + 8 * to);
    }

    /* Initializes the barriers, waits for the stream, and begins to copy the keys and the queries
     * of the first tiles. Each warp issues some of the copies. */
    __device__ __forceinline__ void open(int subtiles)
    {
        const int warp = tgi_make_uniform(tgi_thread() / 32);
        if (tgi_thread() == 0) {
            TGI_FOR_UNROLLED(i, 3)
            tgi_prefetch_map(&p.map[i]);
            for (int i = 0; i < FULL / 8 + 2 * step_count; i++)
                tgi_barrier_init(barriers + 8 * i, 1);
            tgi_write_shared_unit(barriers + FOUND, {0, 0, 0, 0});
            tgi_fence_barrier_init();
        }
        __syncthreads();
        tgi_wait_for_stream();
        if (warp < 2)
            copy_keys(warp, 0, kept_count);
        else if (warp - 2 < min(subtiles, 2 * groups))
            copy_queries(warp - 2, warp - 2);
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

    /* Finds the keys that all rows of the place's tile see. */
    __device__ __forceinline__ void find_limits(void)
    {
        const int last = min(place.first + ROWS, place.row_count) - 1;
        place.all_low = max(0, tgi_attend_find_place(p, place, last) - p.before);
        place.all_high =
            min(place.keys, tgi_attend_find_place(p, place, place.first) + p.after + 1);
    }

    /* Waits for K of a step. If some rows do not see all of it, zeros replace Inf and NaN in V. */
    template <int Keys> __device__ __forceinline__ void visit(int step, int key_0)
    {
        tgi_barrier_wait(find_full(0, step), 0);
        if ((key_0 >= place.all_low && min(key_0 + Keys, place.keys) <= place.all_high) ||
            inspected >> step & 1)
            return;
        inspected |= 1 << step;
        tgi_barrier_wait(find_full(1, step), 0);
        /* Another warpgroup may do the same, and find zeros. */
        const uint32_t found = barriers + FOUND;
        const auto notice = [found](void) {
            tgi_write_shared_unit(found, {1, 1, 1, 1});
            tgi_fence_block();
        };
        tgi_attend_clear_nonfinite<tgi_attend_short_sizes<Type, Head, Keys>, THREADS>(
            find_tile(1, step), tgi_thread() % THREADS, notice);
        tgi_fence_async_proxy();
        wait_for_group();
    }

    /* Computes a step of the tile whose queries are at `queries`. */
    template <int Keys> __device__ __forceinline__ void compute(int step, uint32_t queries)
    {
        typedef tgi_attend_group_products<Type, Head, ROWS, Keys> products;
        const int key_0 = place.begin + step * Keys;
        float scores[1][Keys / 8][4], references[1][2], factors[1][2];
        uint32_t weights[1][Keys / 16][4];
        visit<Keys>(step, key_0);
        products::score(queries, find_tile(0, step), scores);
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
            wait_for_group(); /* it has read the step, and is alone */
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

    /* Stores the warp's rows of D by TMA from the place of their queries in shared memory. */
    __device__ __forceinline__ void store(uint32_t tile)
    {
        const int lane = tgi_thread() % 32, warp_row = tgi_thread() % THREADS / 32 * 16;
        const int row = place.first + warp_row;
        tgi_attend_add_totals(state);
        tgi_attend_put_rows<Type, Head, ROWS>(
            state, tgi_attend_line(tile, warp_row + lane % 16, lane / 16));
        tgi_fence_async_proxy();
        __syncwarp();
        if (lane == 0 && row < place.row_count) {
            TGI_FOR_UNROLLED(i, STRIPS)
            tgi_tma_store_head(&p.map[3], tile + warp_row * 128 + i * ROWS * 128, i * 64, row,
                               place.first_head, place.query_entry);
            tgi_tma_store_commit();
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
        tgi_tma_store_finish(); /* the first lane's */
        __syncwarp();
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

    /* Computes the warpgroup's tiles of the block's `subtiles`. */
    __device__ __forceinline__ void go_through(int subtiles)
    {
        place.first += group * ROWS;
#pragma unroll 1
        for (int number = 0; number * groups + group < subtiles; number++) {
            const int steps = count_steps(), at = find_query_place(number);
            const uint32_t queries = q + at * Q_BYTES;
            find_limits();
            tgi_attend_clear(state);
            tgi_barrier_wait(barriers + 8 * at, number / 2 & 1);
#pragma unroll 1
            for (int step = 0; step < steps; step++) {
                if (step_keys == 32)
                    compute<32>(step, queries);
                else if (step_keys == 64)
                    compute<64>(step, queries);
                else if (step_keys == 80)
                    compute<80>(step, queries);
                else if constexpr (Most > 80)
                    compute<Most>(step, queries);
            }
            /* All warps have read the queries. V may have had Inf or NaN, which zeros replace. */
            tgi_fence_block();
            const int has_nonfinite = tgi_named_barrier_any(
                1 + group, THREADS, tgi_read_shared_unit(barriers + FOUND).x != 0);
            store(queries);
            if (p.attention.has_log_sum_exp)
                store_logs();
            if (has_nonfinite)
                put_right();
            if ((number + 2) * groups + group < subtiles) {
                tgi_tma_store_wait<0>();
                wait_for_group();
                if (tgi_thread() % THREADS < 32)
                    copy_queries(at, 2 * groups);
            }
            place.first += groups * ROWS;
        }
        tgi_tma_store_wait<0>();
    }
};

/* This is the kernel of a row of short sequences. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_short_sequences(const tgi_attend_args &p,
                                                                     char *shared)
{
    static_assert(Warps % 4 == 0 && Queries == 64, "warpgroups have 64 queries each");
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
