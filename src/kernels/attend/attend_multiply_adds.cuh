/*
 * Computes attention on FP32 and FP64 operands. Warps have the queries and scores of the other
 * kernels (attend_scores.cuh), so that masks and weights are the same. A step has three parts:
 *
 * 1. The warp's scores are products of rows of Q and K in shared memory.
 * 2. Scores become weights, which go to shared memory for the other lanes of their rows.
 * 3. Columns of V, in shared memory, are multiplied by the weights, pass after pass.
 *
 * V is copied during part 1 and the next K during part 3. Where shared memory has no room for both,
 * they take turns in one place, and nothing is copied beside the products. The last rows of the
 * last warps may be no queries then: they read what lies behind the queries, and are not stored.
 * The sums of a step begin at zero and are then added to those so far, which bounds their rounding
 * errors for any number of keys.
 */
#ifndef TGI_ATTEND_MULTIPLY_ADDS_CUH
#define TGI_ATTEND_MULTIPLY_ADDS_CUH

#include "kernels/attend/attend_real_block.cuh"

/* Code for chips from compute capability 8.0 on has matrix instructions of FP64 and of TF32. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TGI_ATTEND_HAS_MATRICES 0
#else
#define TGI_ATTEND_HAS_MATRICES 1
#endif

/* The steps of a block, whose warps have Blocks x 16 queries each. */
template <tg_type Type, int Head, int Blocks, int Sharers, int Keys, int HasMatrices>
struct tgi_attend_multiply_adds
    : tgi_attend_real_block<Type, Head, Blocks, Sharers, Keys, HasMatrices> {
    typedef tgi_attend_real_block<Type, Head, Blocks, Sharers, Keys, HasMatrices> block;
    typedef typename block::products products;
    typedef typename block::Lanes Lanes;
    typedef typename block::Real Real;
    typedef typename block::score_array score_array;
    typedef typename block::row_array row_array;
    enum { SHARERS = block::SHARERS, SCORED = block::SCORED, BYTES = block::BYTES };
    enum { COLUMNS = Head / SHARERS }; /* columns of D of a warp */
    enum { PASS = products::PASS, PAIRS = PASS / 8 };
    enum { ROW_BYTES = Head * BYTES + TGI_ATTEND_PAD }; /* a row of D with two numbers behind it */
    typedef Real sum_array[Blocks][PAIRS][4];
    using block::find_key, block::find_weight, block::exchange, block::copy_tile;
    using block::p, block::place, block::sharer, block::q, block::v, block::weights;
    const int first_column, columns; /* the columns of D that the warp has */
    tgi_attend_state<COLUMNS, Blocks, Real, Lanes> state;

    __device__ __forceinline__ tgi_attend_multiply_adds(const tgi_attend_args &args,
                                                        const tgi_attend_place &at, uint32_t shared)
        : block(args, at, shared),
          first_column(sharer * block::find_share(static_cast<int>(args.attention.v_head_size))),
          columns(sharer > 0 ? static_cast<int>(args.attention.v_head_size) - first_column
                             : block::find_share(static_cast<int>(args.attention.v_head_size)))
    {
        tgi_attend_clear(state);
    }

    __device__ __forceinline__ tgi_attend_row_place find_row(int b, int half) const
    {
        return tgi_attend_find_row(p, place, tgi_attend_row<Blocks, Lanes>(b, half));
    }

    /* Turns scores into weights in shared memory, and adds these to their sums. If is_hiding is 1,
     * the weight of a key that a row does not see becomes -0. */
    __device__ __forceinline__ void weigh(Real scale, int key_0, int is_hiding,
                                          const tgi_attend_row_place (&rows)[Blocks][2],
                                          score_array &scores, row_array &factors)
    {
        row_array largest, other;
        const int first = key_0 + Lanes::find_column() * 2;
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        largest[b][half] = tgi_attend_find_row_largest<SCORED, Blocks, Lanes>(
            scores[b], half, state.largest[b][half]);
        if constexpr (SHARERS > 1) {
            exchange(largest, other);
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            largest[b][half] = tgi_attend_larger(largest[b][half], other[b][half]);
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place &row = rows[b][half];
            const int low = is_hiding ? row.low - first : -SCORED;
            const int high = is_hiding ? row.high - first : SCORED;
            Real total = 0, reference;
            tgi_attend_raise(scale, largest[b][half], b, half, state, reference, factors[b][half]);
            TGI_FOR_UNROLLED(j, SCORED / 8)
            TGI_FOR_UNROLLED(i, 2)
            {
                Real &weight = scores[b][j][2 * half + i];
                weight = tgi_attend_exp2(tgi_attend_multiply_add(weight, scale, -reference));
                total += weight;
                if (8 * j + i < low || 8 * j + i >= high)
                    weight = -Real(0);
            }
            state.total[b][half] += total;
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        TGI_FOR_UNROLLED(j, SCORED / 8)
        tgi_attend_write_two(find_weight(b, half, sharer * SCORED, j), scores[b][j][2 * half],
                             scores[b][j][2 * half + 1]);
    }

    /* Rescales sums of 8 Count columns and adds those of a step. */
    template <int Count>
    __device__ __forceinline__ void add_sums(const row_array &factors, int first,
                                             const Real (&sums)[Blocks][Count][4])
    {
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, Count)
        TGI_FOR_UNROLLED(i, 4)
        {
            Real &sum = state.sums[b][first + j][i];
            sum = tgi_attend_multiply_add(sum, factors[b][i / 2], sums[b][j][i]);
        }
    }

    /* Does the same as add(), without the keys that a row does not see, whose V may be Inf or NaN.
     * Sums rotate from one pair of columns to the next, because registers take no computed
     * index. */
    __device__ __forceinline__ void add_seen(const row_array &factors)
    {
#pragma unroll 1
        for (int j = 0; j < COLUMNS / 8; j++) {
            const int count = j / PAIRS * PASS < columns ? static_cast<int>(Keys) : 0;
            Real sums[Blocks][1][4], kept[Blocks][4];
            tgi_attend_zero(sums);
#pragma unroll 1
            for (int key = 0; key < count; key++) {
                const uint32_t value_at =
                    v + key * products::V_PITCH + (first_column + products::find_pair(j)) * BYTES;
                Real value[2];
                TGI_FOR_UNROLLED(i, 2)
                tgi_attend_read_one(value[i], value_at + i * BYTES);
                TGI_FOR_UNROLLED(b, Blocks)
                TGI_FOR_UNROLLED(half, 2)
                {
                    Real weight;
                    tgi_attend_read_one(weight, weights + key * BYTES +
                                                    (16 * b + 8 * half + Lanes::find_row()) *
                                                        products::WEIGHT_PITCH);
                    TGI_FOR_UNROLLED(i, 2)
                    if (!tgi_attend_is_negative(weight))
                        sums[b][0][2 * half + i] =
                            tgi_attend_multiply_add(weight, value[i], sums[b][0][2 * half + i]);
                }
            }
            add_sums<1>(factors, 0, sums);
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(i, 4)
            {
                kept[b][i] = state.sums[b][0][i];
                TGI_FOR_UNROLLED(c, COLUMNS / 8 - 1)
                state.sums[b][c][i] = state.sums[b][c + 1][i];
                state.sums[b][COLUMNS / 8 - 1][i] = kept[b][i];
            }
        }
    }

    /* Rescales the sums so far and adds weights times V of `count` keys. */
    __device__ __forceinline__ void add(const row_array &factors, int is_hiding, int count)
    {
        typename products::weight_set set;
        if ((products::IS_SLICED || is_hiding) && block::has_nonfinite_value(count)) {
            add_seen(factors);
            return;
        }
        products::read_set(weights, set);
        TGI_FOR_UNROLLED(pass, COLUMNS / PASS)
        {
            sum_array sums;
            if (pass * PASS >= columns)
                continue;
            products::add(set, weights, v + (first_column + pass * PASS) * BYTES, count, sums);
            add_sums<PAIRS>(factors, pass * PAIRS, sums);
        }
    }

    /* Forms the warp's weights of the step from key_0 on. */
    __device__ __forceinline__ void find_weights(Real scale, int key_0, int is_edge, int is_hiding,
                                                 row_array &factors)
    {
        score_array scores;
        tgi_attend_row_place rows[Blocks][2] = {};
        key_0 += sharer * SCORED;
        block::score(scores);
        if (!p.is_plain)
            tgi_attend_finish<SCORED, Blocks, Lanes, 8>(p, place, key_0, scores);
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        if (is_edge) {
            rows[b][half] = find_row(b, half);
            tgi_attend_hide_row<SCORED, Lanes>(rows[b][half], key_0, half, scores[b]);
        }
        weigh(scale, key_0, is_hiding, rows, scores, factors);
    }

    /* Copies queries and goes through the tiles. While one is read, the next is copied, if it has a
     * place. */
    __device__ __forceinline__ void run(Real scale)
    {
        const int ahead = p.tile_places - 1;
        row_array factors = {};
#pragma unroll 1
        for (int i = -1 - ahead; find_key(i) < place.end; i++) {
            const int key_0 = find_key(i), is_edge = tgi_attend_is_edge<Keys>(place, key_0);
            const int is_hiding = is_edge && tgi_attend_hides<Keys>(place, key_0);
            if (i >= 0 && ahead > 0)
                tgi_copy_async_wait<0>();
            __syncthreads(); /* tile i is there, and all warps have read the one before */
            if (find_key(i + ahead) < place.end)
                copy_tile(i + ahead);
            tgi_copy_async_commit();
            if (i < 0)
                continue;
            if (ahead == 0) {
                tgi_copy_async_wait<0>();
                __syncthreads();
            }
            if (i % 2 == 0)
                find_weights(scale, key_0, is_edge, is_hiding, factors);
            else
                add(factors, is_hiding,
                    min(static_cast<int>(Keys), (place.keys - key_0 + 3) / 4 * 4));
        }
    }

    /* Puts the warp's rows of D, or of a split, in the place of queries, and the largest score and
     * the sum of weights behind each. */
    __device__ __forceinline__ void put_rows(Real scale)
    {
        const int is_split = p.split_count > 1;
        tgi_attend_add_totals(state);
        tgi_copy_async_commit(); /* a block without steps has not waited for its queries */
        tgi_copy_async_wait<0>();
        __syncthreads(); /* all warps have read queries, weights and exchanged numbers */
        if constexpr (SHARERS > 1) {
            row_array other;
            exchange(state.total, other);
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            state.total[b][half] += other[b][half];
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        {
            const uint32_t own = q + tgi_attend_row<Blocks, Lanes>(b, half) * ROW_BYTES;
            const Real total = state.total[b][half];
            const Real factor = is_split || total == 0 ? Real(1) : 1 / total;
            if (Lanes::find_column() == 0 && sharer == 0)
                tgi_attend_write_two(own + Head * BYTES, state.largest[b][half] * scale, total);
            TGI_FOR_UNROLLED(j, COLUMNS / 8)
            if (j / PAIRS * PASS < columns)
                tgi_attend_write_two(own + (first_column + products::find_pair(j)) * BYTES,
                                     state.sums[b][j][2 * half] * factor,
                                     state.sums[b][j][2 * half + 1] * factor);
        }
    }
};

/* Returns the number of the block's tile. A multiprocessor gets a block of each round, of long
 * tiles first: every other round is dealt out from the last block to the first. */
static __device__ __forceinline__ int tgi_attend_find_real_number(const tgi_attend_args &p)
{
    const int at = static_cast<int>(blockIdx.x), round = tgi_divide(at, p.round_blocks);
    const int first = round * p.round_blocks.value;
    const int last = min(first + p.round_blocks.value, static_cast<int>(p.block_count)) - 1;
    return round % 2 ? first + last - at : at;
}

/* This is the kernel of a row of FP32 or FP64 of attention_kernels.def. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles,
          int HasMatrices = TGI_ATTEND_HAS_MATRICES>
static __device__ __forceinline__ void tgi_attend_in_multiply_adds(const tgi_attend_args &p,
                                                                   char *shared)
{
    enum { SHARERS = TGI_ATTEND_REAL_SHARERS(Head, Queries, Warps) };
    enum { BLOCKS = Queries / 16 * SHARERS / Warps };
    typedef tgi_attend_multiply_adds<Type, Head, BLOCKS, SHARERS, Keys, HasMatrices> steps_type;
    typedef typename steps_type::Real Real;
    static_assert(Tiles == 2, "one of K and one of V, in two places or one");
    const int has_lists = tgi_attend_has_lists(p);
    if (p.split_count > 1)
        tgi_start_next();
    if (has_lists)
        tgi_wait_for_stream();
    const tgi_attend_place place =
        tgi_attend_find_tile<Keys>(p, tgi_attend_find_real_number(p), 0, p.tile_rows);
    if (!has_lists)
        tgi_wait_for_stream();
    if (place.first >= place.row_count)
        return;
    steps_type steps(p, place, tgi_shared_address(shared));
    const Real scale = p.is_plain ? tgi_attend_find_scale<Real>(p) : Real(1);
    steps.run(scale);
    if (p.lets_next_start && p.split_count == 1) /* earlier, several of them share a place */
        tgi_start_next();
    steps.put_rows(scale);
    tgi_attend_store_reals<Real, Head>(p, place, steps.q, steps_type::ROW_BYTES);
}

#endif
