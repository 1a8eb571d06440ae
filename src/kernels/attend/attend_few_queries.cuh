/*
 * Computes attention of few queries on FP32 and FP64 operands, which takes as long as K and V take
 * to come from memory. Lanes of a warp share a key, with TGI_ATTEND_LANE_BYTES bytes each, and the
 * warp has as many keys at once as lanes leave room for. Each such group of lanes has a state of
 * its own, which it forms by multiply-adds from its registers. K of the next step is read while
 * scores become weights, V of a step while its scores are formed. States are then added by groups
 * of a warp, by warps of a block and by blocks, always in the same order.
 */
#ifndef TGI_ATTEND_FEW_QUERIES_CUH
#define TGI_ATTEND_FEW_QUERIES_CUH

#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_merge.cuh"
#include "kernels/attend/attend_real_products.cuh"

/* Read a unit of 16 bytes of numbers from memory. */
static __device__ __forceinline__ void tgi_attend_load_unit(float (&value)[4], const float *from)
{
    const float4 unit = *reinterpret_cast<const float4 *>(from);
    value[0] = unit.x;
    value[1] = unit.y;
    value[2] = unit.z;
    value[3] = unit.w;
}

static __device__ __forceinline__ void tgi_attend_load_unit(double (&value)[2], const double *from)
{
    const double2 unit = *reinterpret_cast<const double2 *>(from);
    value[0] = unit.x;
    value[1] = unit.y;
}

/* Returns a value that all lanes have. The compiler then knows that they branch together, and
 * writes no second code for exchanges between lanes that do not. */
static __device__ __forceinline__ int tgi_attend_agree(int value)
{
    return __shfl_sync(~0u, value, 0);
}

/* Lanes that have the first row and the first column alone. */
struct tgi_attend_one_row {
    static __device__ __forceinline__ int find_warp(void)
    {
        return 0;
    }

    static __device__ __forceinline__ int find_row(void)
    {
        return 0;
    }
};

/* The steps of a block of `Warps` warps, which have the same rows of scores, at most `Queries`. */
template <tg_type Type, int Warps, int Queries> struct tgi_attend_few_queries {
    typedef tgi_attend_real<Type> Real;
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES, UNITS = TGI_ATTEND_LANE_BYTES / 16 };
    enum { OWN = UNITS * UNIT, AT_ONCE = TGI_ATTEND_KEYS_AT_ONCE, SIZE = TGI_ATTEND_HEAD_MAX };
    typedef Real rows_of_keys[AT_ONCE][UNITS][UNIT];
    typedef Real score_array[Queries][AT_ONCE];
    const tgi_attend_args &p;
    const tgi_attend_place &place;
    Real *const queries; /* in shared memory: SIZE elements each, zeros behind those of the head */
    const int lanes, groups, lane, group;
    const int row_count;                                /* rows of the block */
    int low[Queries], high[Queries];                    /* the keys that a row sees */
    tgi_attend_state<4 * OWN, Queries / 2, Real> state; /* row r is number r % 2 of block r / 2 */

    __device__ __forceinline__ tgi_attend_few_queries(const tgi_attend_args &args,
                                                      const tgi_attend_place &at, char *shared)
        : p(args), place(at), queries(reinterpret_cast<Real *>(shared)),
          lanes(tgi_attend_count_lanes(
              static_cast<int>(max(args.attention.head_size, args.attention.v_head_size)), BYTES)),
          groups(32 / lanes), lane(tgi_thread() % lanes), group(tgi_thread() % 32 / lanes),
          row_count(tgi_attend_agree(min(Queries, at.row_count - at.first)))
    {
        tgi_attend_clear(state);
        TGI_FOR_UNROLLED(r, Queries)
        {
            const tgi_attend_row_place row = tgi_attend_find_row(p, place, r);
            low[r] = row.low;
            high[r] = min(row.high, place.end);
        }
    }

    /* Returns the first element of the lane's unit i. */
    __device__ __forceinline__ int find_element(int i) const
    {
        return (i * lanes + lane) * UNIT;
    }

    /* Returns the lane's key number k of the step from key_0 on. */
    __device__ __forceinline__ int find_key(int key_0, int k) const
    {
        return key_0 + k * groups + group;
    }

    __device__ __forceinline__ Real &find_sum(int r, int e)
    {
        return state.sums[r / 2][e / 2][r % 2 * 2 + e % 2];
    }

    /* Copies the queries for all warps. */
    __device__ __forceinline__ void copy_queries(void) const
    {
        const tg_heads &heads = p.attention.q;
        const int size = static_cast<int>(p.attention.head_size);
#pragma unroll 1
        for (int at = tgi_thread(); at < Queries * SIZE; at += 32 * Warps) {
            const int r = at / SIZE, e = at % SIZE;
            Real value = 0;
            if (r < row_count && e < size) {
                const tgi_attend_row_place row = tgi_attend_find_row(p, place, r);
                value = static_cast<const Real *>(
                    heads.data)[tgi_attend_offset(heads, place.query_entry, row.head,
                                                  place.first_query + row.query) +
                                e * heads.element_stride];
            }
            queries[at] = value;
        }
        __syncthreads();
    }

    /* Returns the address of the lane's key number k of the step from key_0 on, and sets `end` to
     * its elements: `size`, or 0 if the key is not the block's. */
    __device__ __forceinline__ const Real *find_row(const tg_heads &heads, int size, int key_0,
                                                    int k, int &end) const
    {
        const int key = find_key(key_0, k);
        end = key < place.end ? size : 0;
        return static_cast<const Real *>(heads.data) +
               (end > 0 ? tgi_attend_find_key(p, place, heads, key) : 0);
    }

    /* Reads the lane's elements of its keys of the step from key_0 on: zeros beyond `size`, and of
     * keys that are not the block's. Those that are not read in whole units go through local
     * memory, which takes computed indices, so that their code is short. */
    __device__ __forceinline__ void read(const tg_heads &heads, int64_t size, int has_units,
                                         int key_0, rows_of_keys &rows) const
    {
        const int count = static_cast<int>(size);
        int end;
        if (has_units && count % UNIT == 0) {
            TGI_FOR_UNROLLED(k, AT_ONCE)
            {
                const Real *const row = find_row(heads, count, key_0, k, end);
                TGI_FOR_UNROLLED(i, UNITS)
                {
                    TGI_FOR_UNROLLED(x, UNIT)
                    rows[k][i][x] = 0;
                    if (find_element(i) < end)
                        tgi_attend_load_unit(rows[k][i], row + find_element(i));
                }
            }
            return;
        }
        Real elements[AT_ONCE * OWN];
        const Real *row = NULL;
#pragma unroll 1
        for (int i = 0; i < AT_ONCE * OWN; i++) {
            const int e = find_element(i % OWN / UNIT) + i % UNIT;
            if (i % OWN == 0)
                row = find_row(heads, count, key_0, i / OWN, end);
            elements[i] = e < end ? row[e * heads.element_stride] : Real(0);
        }
        TGI_FOR_UNROLLED(i, AT_ONCE * OWN)
        rows[i / OWN][i % OWN / UNIT][i % UNIT] = elements[i];
    }

    /* Forms the scores of the group's keys, which all its lanes then have. Exchanges of all rows
     * are under way at once. */
    __device__ __forceinline__ void score(const rows_of_keys &keys, score_array &scores) const
    {
        TGI_FOR_UNROLLED(r, Queries)
        {
            TGI_FOR_UNROLLED(k, AT_ONCE)
            scores[r][k] = 0;
            if (r >= row_count)
                continue;
            TGI_FOR_UNROLLED(i, UNITS)
            {
                Real query[UNIT];
                tgi_attend_load_unit(query, queries + r * SIZE + find_element(i));
                TGI_FOR_UNROLLED(x, UNIT)
                TGI_FOR_UNROLLED(k, AT_ONCE)
                scores[r][k] = tgi_attend_multiply_add(query[x], keys[k][i][x], scores[r][k]);
            }
        }
#pragma unroll 1
        for (int bit = lanes / 2; bit > 0; bit /= 2)
            TGI_FOR_UNROLLED(r, Queries)
        TGI_FOR_UNROLLED(k, AT_ONCE)
        scores[r][k] += __shfl_xor_sync(~0u, scores[r][k], bit);
    }

    /* Finishes scores that need more than a factor, one after another. They rotate, because
     * registers take no computed index. */
    __device__ __forceinline__ void finish(int key_0, score_array &scores) const
    {
        tgi_attend_place at_row = place;
#pragma unroll 1
        for (int at = 0; at < Queries * AT_ONCE; at++) {
            Real score[1][1][4] = {{{scores[0][0]}}};
            at_row.first = place.first + at / AT_ONCE;
            tgi_attend_finish_group<4, 8, 1, tgi_attend_one_row>(
                p, at_row, find_key(key_0, at % AT_ONCE), score);
            TGI_FOR_UNROLLED(i, Queries * AT_ONCE - 1)
            scores[i / AT_ONCE][i % AT_ONCE] = scores[(i + 1) / AT_ONCE][(i + 1) % AT_ONCE];
            scores[Queries - 1][AT_ONCE - 1] = score[0][0][0];
        }
    }

    /* Turns scores into weights and adds those times V. V of a key that a row does not see may be
     * Inf or NaN. */
    __device__ __forceinline__ void add(Real scale, int key_0, score_array &scores,
                                        const rows_of_keys &values)
    {
        TGI_FOR_UNROLLED(r, Queries)
        {
            if (r >= row_count)
                continue;
            Real sums[OWN] = {}, total = 0, reference, factor,
                 largest = state.largest[r / 2][r % 2];
            TGI_FOR_UNROLLED(k, AT_ONCE)
            {
                const int key = find_key(key_0, k);
                if (key < low[r] || key >= high[r])
                    scores[r][k] = -INFINITY;
                largest = tgi_attend_larger(largest, scores[r][k]);
            }
            tgi_attend_raise(scale, largest, r / 2, r % 2, state, reference, factor);
            TGI_FOR_UNROLLED(k, AT_ONCE)
            {
                const int key = find_key(key_0, k);
                const Real weight =
                    tgi_attend_exp2(tgi_attend_multiply_add(scores[r][k], scale, -reference));
                total += weight;
                if (key >= low[r] && key < high[r])
                    TGI_FOR_UNROLLED(e, OWN)
                sums[e] = tgi_attend_multiply_add(weight, values[k][e / UNIT][e % UNIT], sums[e]);
            }
            state.total[r / 2][r % 2] += total;
            TGI_FOR_UNROLLED(e, OWN)
            find_sum(r, e) = tgi_attend_multiply_add(find_sum(r, e), factor, sums[e]);
        }
    }

    /* Goes through the warp's steps. Those of the block's warps come in turn. The turn before the
     * first step only reads K, so that reads have one code, and queries are copied meanwhile. */
    __device__ __forceinline__ void run(Real scale)
    {
        const tg_attention &a = p.attention;
        const int step = groups * AT_ONCE;
        const int first = tgi_attend_agree(place.begin + tgi_thread() / 32 * step);
        const int end = tgi_attend_agree(max(first, place.end));
        rows_of_keys keys, values;
#pragma unroll 1
        for (int key_0 = first - Warps * step; key_0 < end; key_0 += Warps * step) {
            score_array scores;
            if (key_0 >= first) {
                read(a.v, a.v_head_size, p.has_units[2], key_0, values);
                score(keys, scores);
            }
            read(a.k, a.head_size, p.has_units[1], key_0 + Warps * step, keys);
            if (key_0 < first) {
                copy_queries();
                continue;
            }
            if (!p.is_plain)
                finish(key_0, scores);
            add(scale, key_0, scores, values);
        }
    }

    /* Adds the states of the warp's groups. Both lanes of an exchange form the same sums. */
    __device__ __forceinline__ void join(Real scale)
    {
        TGI_FOR_UNROLLED(r, Queries)
        {
            Real &total = state.total[r / 2][r % 2];
            Real largest = state.largest[r / 2][r % 2], reference, factor;
            if (r >= row_count)
                continue;
#pragma unroll 1
            for (int bit = lanes; bit < 32; bit *= 2)
                largest = tgi_attend_larger(largest, __shfl_xor_sync(~0u, largest, bit));
            tgi_attend_raise(scale, largest, r / 2, r % 2, state, reference, factor);
            TGI_FOR_UNROLLED(e, OWN)
            find_sum(r, e) *= factor;
#pragma unroll 1
            for (int bit = lanes; bit < 32; bit *= 2) {
                total += __shfl_xor_sync(~0u, total, bit);
                TGI_FOR_UNROLLED(e, OWN)
                find_sum(r, e) += __shfl_xor_sync(~0u, find_sum(r, e), bit);
            }
        }
    }

    /* Stores columns e and e + 1 of a row of D, or of a split, and its numbers with the first. */
    __device__ __forceinline__ void store_pair(const tgi_attend_row_place &row, int e, Real largest,
                                               Real total, const Real (&sums)[2]) const
    {
        const tg_attention &a = p.attention;
        const int query = place.first_query + row.query;
        if (p.split_count > 1) {
            Real *const split =
                tgi_attend_find_split<Real>(p, place.split, place.batch, row.head, row.query);
            tgi_attend_store_two(split + e, sums[0], sums[1]);
            if (e == 0)
                tgi_attend_store_two(split + tgi_attend_split_reals(a.v_head_size) - 2, largest,
                                     total);
            return;
        }
        if (e == 0 && a.has_log_sum_exp)
            tgi_attend_store_log(
                p, tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, query), largest,
                total);
        tgi_attend_store_pair<Type>(p, tgi_attend_offset(a.d, place.query_entry, row.head, query),
                                    e, sums, total);
    }

    /* Adds the states of the block's warps and stores its rows. */
    __device__ __forceinline__ void store(Real scale)
    {
        typedef Real row_state[SIZE], row_end[2];
        row_state *const states = reinterpret_cast<row_state *>(queries + Queries * SIZE);
        row_end *const ends = reinterpret_cast<row_end *>(states + Queries * Warps);
        const int warp = tgi_thread() / 32;
        TGI_FOR_UNROLLED(r, Queries)
        {
            if (r >= row_count)
                continue;
            if (group == 0)
                TGI_FOR_UNROLLED(e, OWN)
            states[r * Warps + warp][find_element(e / UNIT) + e % UNIT] = find_sum(r, e);
            if (tgi_thread() % 32 == 0) {
                ends[r * Warps + warp][0] = state.largest[r / 2][r % 2] * scale;
                ends[r * Warps + warp][1] = state.total[r / 2][r % 2];
            }
        }
        __syncthreads();
        /* Warps share out the rows and, with fewer of these, their columns. */
        const int sharers = Warps / (row_count > 2 ? 4 : row_count), r = warp / sharers;
        if (r >= row_count)
            return;
        const tgi_attend_row_place row = tgi_attend_find_row(p, place, r);
        tgi_attend_add_in_order<Real>(states + r * Warps, ends + r * Warps, Warps,
                                      static_cast<int>(p.attention.v_head_size),
                                      tgi_thread() - 32 * sharers * r, 32 * sharers,
                                      [&](int e, Real largest, Real total, const Real(&sums)[2]) {
                                          store_pair(row, e, largest, total, sums);
                                      });
    }
};

/* This is the kernel of a row of few queries of attention_kernels.def. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_few_queries(const tgi_attend_args &p,
                                                                 char *shared)
{
    typedef tgi_attend_few_queries<Type, Warps, Queries> steps_type;
    typedef typename steps_type::Real Real;
    static_assert(Head == TGI_ATTEND_HEAD_MAX && Tiles == 0, "registers have K and V");
    static_assert(Queries <= 4 && Warps % 4 == 0, "warps share out the rows");
    static_assert(Keys == 32 / 4 * TGI_ATTEND_KEYS_AT_ONCE, "a warp's step is a part of a step");
    const int has_lists = tgi_attend_has_lists(p);
    if (p.split_count > 1)
        tgi_start_next();
    if (has_lists)
        tgi_wait_for_stream();
    const tgi_attend_place place = tgi_attend_find_tile<Keys>(p, blockIdx.x, 0, p.tile_rows);
    if (!has_lists)
        tgi_wait_for_stream();
    if (tgi_attend_agree(place.first >= place.row_count))
        return;
    steps_type steps(p, place, shared);
    const Real scale = p.is_plain ? tgi_attend_find_scale<Real>(p) : Real(1);
    steps.run(scale);
    if (p.lets_next_start && p.split_count == 1)
        tgi_start_next();
    steps.join(scale);
    steps.store(scale);
}

#endif
