/*
 * Computes attention on FP32 and FP64 operands by multiply-adds of CUDA cores. Warps have the
 * queries, scores and sums of the other kernels (attend_scores.cuh), so that masks, weights and
 * stores are the same. A step has three parts:
 *
 * 1. The lane's scores are products of rows of Q and K in shared memory.
 * 2. Scores become weights, which go to shared memory for the other lanes of their rows.
 * 3. The lane's columns of V, in shared memory, are multiplied by the weights of its rows.
 *
 * V is copied during part 1 and the next K during part 3. The sums of a step begin at zero and are
 * then added to those so far, which bounds their rounding errors for any number of keys.
 */
#ifndef TGI_ATTEND_MULTIPLY_ADDS_CUH
#define TGI_ATTEND_MULTIPLY_ADDS_CUH

#include "kernels/attend/attend.cuh"

/* Read 16 bytes, or one number or two. */
static __device__ __forceinline__ void tgi_attend_read_reals(float (&value)[4], uint32_t shared)
{
    tgi_attend_read_unit(value, shared);
}

static __device__ __forceinline__ void tgi_attend_read_reals(float (&value)[2], uint32_t shared)
{
    tgi_read_shared_8(shared, value);
}

static __device__ __forceinline__ void tgi_attend_read_reals(double (&value)[2], uint32_t shared)
{
    const uint4 unit = tgi_read_shared_unit(shared);
    value[0] = __hiloint2double(static_cast<int>(unit.y), static_cast<int>(unit.x));
    value[1] = __hiloint2double(static_cast<int>(unit.w), static_cast<int>(unit.z));
}

static __device__ __forceinline__ void tgi_attend_read_reals(float (&value)[1], uint32_t shared)
{
    value[0] = tgi_read_shared_4(shared);
}

static __device__ __forceinline__ void tgi_attend_read_reals(double (&value)[1], uint32_t shared)
{
    float word[2];
    tgi_read_shared_8(shared, word);
    value[0] = __hiloint2double(static_cast<int>(__float_as_uint(word[1])),
                                static_cast<int>(__float_as_uint(word[0])));
}

static __device__ __forceinline__ void tgi_attend_write_two(uint32_t shared, float first,
                                                            float second)
{
    tgi_write_shared_8(shared, first, second);
}

static __device__ __forceinline__ void tgi_attend_write_two(uint32_t shared, double first,
                                                            double second)
{
    tgi_write_shared_unit(shared, {static_cast<uint32_t>(__double2loint(first)),
                                   static_cast<uint32_t>(__double2hiint(first)),
                                   static_cast<uint32_t>(__double2loint(second)),
                                   static_cast<uint32_t>(__double2hiint(second))});
}

/* Copies `Rows` rows of `size` elements in the background by `Threads` threads, with zeros up to
 * the next multiple of 32 elements. Rows lie tgi_attend_padded_bytes apart. find(row) returns the
 * address of a row, or TGI_ATTEND_NO_ROW for a row of zeros. */
template <typename Real, int Head, int Rows, int Threads, typename Find>
static __device__ __forceinline__ void tgi_attend_copy_reals(uint32_t tile, const tg_heads &heads,
                                                             int size, int has_units, Find find)
{
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES, ROW_BYTES = Head * BYTES + 16 };
    enum { UNITS = Head / UNIT, ACROSS = UNITS < 32 ? UNITS : 32 }; /* threads of a row */
    const Real *const data = static_cast<const Real *>(heads.data);
    const unsigned thread = static_cast<unsigned>(tgi_thread()), first = thread % ACROSS;
    const int end = min((size + 31) / 32 * (32 / UNIT), static_cast<int>(UNITS));
#pragma unroll 1
    for (int row = static_cast<int>(thread / ACROSS); row < Rows; row += Threads / ACROSS) {
        const int64_t at = find(row);
        const int there = at == TGI_ATTEND_NO_ROW ? 0 : size;
#pragma unroll 1
        for (int unit = static_cast<int>(first); unit < end; unit += ACROSS) {
            const int count = max(0, min(static_cast<int>(UNIT), there - unit * UNIT));
            const uint32_t target = tile + row * ROW_BYTES + unit * 16;
            if (has_units) {
                tgi_copy_async<16>(target, data + (count > 0 ? at + unit * UNIT : 0),
                                   count * BYTES);
                continue;
            }
            TGI_FOR_UNROLLED(e, UNIT)
            tgi_copy_async<BYTES>(
                target + e * BYTES,
                data + (e < count ? at + (unit * UNIT + e) * heads.element_stride : 0),
                e < count ? static_cast<int>(BYTES) : 0);
        }
    }
}

/* The steps of a block, whose warps have Blocks x 16 queries each. */
template <tg_type Type, int Head, int Warps, int Blocks, int Keys> struct tgi_attend_multiply_adds {
    typedef tgi_attend_real<Type> Real;
    typedef Real score_array[Blocks][Keys / 8][4];
    typedef Real row_array[Blocks][2];
    enum { BYTES = sizeof(Real), UNIT = 16 / BYTES, ROWS = 16 * Warps * Blocks };
    enum { ROW_BYTES = Head * BYTES + 16, WEIGHT_BYTES = Keys * BYTES + 16 };
    enum { PAIRS = 4, PASS = 8 * PAIRS }; /* columns of V of a pass: 2 PAIRS for each lane */
    const tgi_attend_args &p;
    const tgi_attend_place &place;
    const uint32_t q, k, v, weights; /* tiles in shared memory */
    tgi_attend_state<Head, Blocks, Real> state;

    __device__ __forceinline__ tgi_attend_multiply_adds(const tgi_attend_args &args,
                                                        const tgi_attend_place &at, uint32_t shared)
        : p(args), place(at), q(shared), k(q + ROWS * ROW_BYTES), v(k + Keys * ROW_BYTES),
          weights(v + Keys * ROW_BYTES)
    {
        tgi_attend_clear(state);
    }

    /* Returns the number in the block of the first row of the lane. */
    static __device__ __forceinline__ int find_first_row(void)
    {
        return tgi_thread() / 32 * Blocks * 16 + tgi_thread() % 32 / 4;
    }

    __device__ __forceinline__ void copy_queries(void) const
    {
        const tg_attention &a = p.attention;
        tgi_attend_copy_reals<Real, Head, ROWS, 32 * Warps>(
            q, a.q, static_cast<int>(a.head_size), p.has_units[0], [&](int row) {
                const tgi_attend_row_place at = tgi_attend_find_row(p, place, row);
                return at.is_there ? tgi_attend_offset(a.q, place.query_entry, at.head,
                                                       place.first_query + at.query)
                                   : TGI_ATTEND_NO_ROW;
            });
    }

    /* Returns the first key of tile i. Tiles are K and V of step after step. */
    __device__ __forceinline__ int find_key(int i) const
    {
        return place.begin + i / 2 * Keys;
    }

    /* Copies tile i, if there is one. */
    __device__ __forceinline__ void copy_keys(int i) const
    {
        const int is_v = i % 2, key_0 = find_key(i);
        const tg_attention &a = p.attention;
        const tg_heads &heads = is_v ? a.v : a.k;
        if (key_0 < place.end)
            tgi_attend_copy_reals<Real, Head, Keys, 32 * Warps>(
                is_v ? v : k, heads, static_cast<int>(is_v ? a.v_head_size : a.head_size),
                p.has_units[1 + is_v], [&](int row) {
                    return key_0 + row < place.keys
                               ? tgi_attend_find_key(p, place, heads, key_0 + row)
                               : TGI_ATTEND_NO_ROW;
                });
        tgi_copy_async_commit();
    }

    /* Forms the scores of a step, unscaled. */
    __device__ __forceinline__ void score(score_array &scores) const
    {
        const uint32_t own_q = q + find_first_row() * ROW_BYTES;
        const uint32_t own_k = k + tgi_thread() % 4 * 2 * ROW_BYTES;
        const int end = static_cast<int>(p.attention.head_size) * BYTES;
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, Keys / 8)
        TGI_FOR_UNROLLED(i, 4)
        scores[b][j][i] = 0;
#pragma unroll 1
        for (int at = 0; at < end; at += 16) {
            Real line[Blocks][2][UNIT];
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(half, 2)
            tgi_attend_read_reals(line[b][half], own_q + (16 * b + 8 * half) * ROW_BYTES + at);
            TGI_FOR_UNROLLED(j, Keys / 8)
            TGI_FOR_UNROLLED(i, 2)
            {
                Real key[UNIT];
                tgi_attend_read_reals(key, own_k + (8 * j + i) * ROW_BYTES + at);
                TGI_FOR_UNROLLED(e, UNIT)
                TGI_FOR_UNROLLED(b, Blocks)
                TGI_FOR_UNROLLED(half, 2)
                scores[b][j][2 * half + i] =
                    tgi_attend_multiply_add(line[b][half][e], key[e], scores[b][j][2 * half + i]);
            }
        }
    }

    /* Turns scores into weights in shared memory, and adds these to their sums. If is_hiding is 1,
     * the weight of a key that a row does not see becomes -1. */
    __device__ __forceinline__ void weigh(Real scale, int key_0, int is_hiding,
                                          const tgi_attend_row_place (&rows)[Blocks][2],
                                          const score_array &scores, row_array &factors)
    {
        row_array references;
        tgi_attend_find_largest<Head, Keys, Blocks>(scale, scores, state, references, factors);
        const int lane = tgi_thread() % 4;
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place &row = rows[b][half];
            const int low = is_hiding ? row.low - key_0 - 2 * lane : -Keys;
            const int high = is_hiding ? row.high - key_0 - 2 * lane : Keys;
            const uint32_t own =
                weights + (find_first_row() + 16 * b + 8 * half) * WEIGHT_BYTES + 2 * lane * BYTES;
            Real total = 0;
            TGI_FOR_UNROLLED(j, Keys / 8)
            {
                Real weight[2];
                TGI_FOR_UNROLLED(i, 2)
                {
                    weight[i] = tgi_attend_exp2(tgi_attend_multiply_add(
                        scores[b][j][2 * half + i], scale, -references[b][half]));
                    total += weight[i];
                    if (8 * j + i < low || 8 * j + i >= high)
                        weight[i] = -1;
                }
                tgi_attend_write_two(own + 8 * j * BYTES, weight[0], weight[1]);
            }
            state.total[b][half] += total;
        }
    }

    /* Rescales the sums so far and adds weights times V. If Is_hiding is 1, negative weights are
     * those of hidden keys, whose V may be Inf or NaN. Such steps go key by key, in less code. */
    template <int Is_hiding> __device__ __forceinline__ void add(const row_array &factors)
    {
        enum { AT_ONCE = Is_hiding ? 1 : static_cast<int>(UNIT) };
        const uint32_t own_weights = weights + find_first_row() * WEIGHT_BYTES;
        const uint32_t own_v = v + tgi_thread() % 4 * 2 * BYTES;
        const int size = static_cast<int>(p.attention.v_head_size);
        TGI_FOR_UNROLLED(pass, Head / PASS)
        {
            Real sums[Blocks][PAIRS][4] = {};
            if (pass * PASS >= size)
                continue;
#pragma unroll 1
            for (int key = 0; key < Keys; key += AT_ONCE) {
                Real weight[Blocks][2][AT_ONCE];
                TGI_FOR_UNROLLED(b, Blocks)
                TGI_FOR_UNROLLED(half, 2)
                tgi_attend_read_reals(weight[b][half], own_weights +
                                                           (16 * b + 8 * half) * WEIGHT_BYTES +
                                                           key * BYTES);
                TGI_FOR_UNROLLED(e, AT_ONCE)
                TGI_FOR_UNROLLED(j, PAIRS)
                {
                    Real value[2];
                    tgi_attend_read_reals(value, own_v + (key + e) * ROW_BYTES +
                                                     (PASS * pass + 8 * j) * BYTES);
                    TGI_FOR_UNROLLED(b, Blocks)
                    TGI_FOR_UNROLLED(i, 4)
                    if (!Is_hiding || !(weight[b][i / 2][e] < 0))
                        sums[b][j][i] = tgi_attend_multiply_add(weight[b][i / 2][e], value[i % 2],
                                                                sums[b][j][i]);
                }
            }
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(j, PAIRS)
            TGI_FOR_UNROLLED(i, 4)
            {
                Real &sum = state.sums[b][PAIRS * pass + j][i];
                sum = tgi_attend_multiply_add(sum, factors[b][i / 2], sums[b][j][i]);
            }
        }
    }

    /* Goes through the tiles. While one is read, the next is copied. */
    __device__ __forceinline__ void run(Real scale)
    {
        row_array factors = {};
#pragma unroll 1
        for (int i = -1; find_key(i) < place.end; i++) {
            const int key_0 = find_key(i), is_edge = tgi_attend_is_edge<Keys>(place, key_0);
            const int is_hiding = is_edge && tgi_attend_hides<Keys>(place, key_0);
            tgi_copy_async_wait<0>();
            __syncthreads(); /* tile i is there, and all warps have read the one before */
            copy_keys(i + 1);
            if (i < 0)
                continue;
            if (i % 2 == 0) {
                score_array scores;
                score(scores);
                if (!p.is_plain)
                    tgi_attend_finish<Keys, Blocks>(p, place, key_0, scores);
                tgi_attend_row_place rows[Blocks][2] = {};
                TGI_FOR_UNROLLED(b, Blocks)
                TGI_FOR_UNROLLED(half, 2)
                if (is_edge) {
                    rows[b][half] = tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
                    tgi_attend_hide_row<Keys>(rows[b][half], key_0, half, scores[b]);
                }
                weigh(scale, key_0, is_hiding, rows, scores, factors);
            } else if (is_hiding) {
                add<1>(factors);
            } else {
                add<0>(factors);
            }
        }
    }

    /* Stores the lane's elements of a row of D, which begins at `d`. */
    __device__ __forceinline__ void store_row(Real *d, int b, int half) const
    {
        const int size = static_cast<int>(p.attention.v_head_size), first = tgi_thread() % 4 * 2;
        const int64_t stride = p.attention.d.element_stride;
        const Real total = state.total[b][half];
        const Real factor = total == 0 ? Real(1) : 1 / total;
        d += first * stride;
        TGI_FOR_UNROLLED(j, Head / 8)
        {
            const Real *const own = &state.sums[b][j][2 * half];
            if (8 * j + first < size)
                d[0] = own[0] * factor;
            if (8 * j + first + 1 < size)
                d[stride] = own[1] * factor;
            d += 8 * stride;
        }
    }

    /* Stores the lane's elements of D or of a split. */
    __device__ __forceinline__ void store(Real scale)
    {
        const tg_attention &a = p.attention;
        tgi_attend_add_totals(state);
        if (p.split_count > 1) {
            tgi_attend_store_splits<Head, Blocks>(p, place, scale, state);
            return;
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        {
            const tgi_attend_row_place row =
                tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
            const int query = place.first_query + row.query;
            if (!row.is_there)
                continue;
            store_row(static_cast<Real *>(a.d.data) +
                          tgi_attend_offset(a.d, place.query_entry, row.head, query),
                      b, half);
            if (tgi_thread() % 4 == 0 && a.has_log_sum_exp)
                tgi_attend_store_log(
                    p, tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, query),
                    state.largest[b][half] * scale, state.total[b][half]);
        }
    }
};

/* This is the kernel of a row of FP32 or FP64 of attention_kernels.def. */
template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_multiply_adds(const tgi_attend_args &p,
                                                                   char *shared)
{
    typedef tgi_attend_multiply_adds<Type, Head, Warps, Queries / 16 / Warps, Keys> steps_type;
    typedef typename steps_type::Real Real;
    static_assert(Tiles == 2, "one of K and one of V");
    const int has_lists = tgi_attend_has_lists(p);
    if (p.lets_next_start)
        tgi_start_next();
    if (has_lists)
        tgi_wait_for_stream();
    const tgi_attend_place place = tgi_attend_find_block<Queries, Keys>(p, blockIdx.x, 0);
    if (!has_lists)
        tgi_wait_for_stream();
    if (place.first >= place.row_count)
        return;
    steps_type steps(p, place, tgi_shared_address(shared));
    const Real scale = p.is_plain ? tgi_attend_find_scale<Real>(p) : Real(1);
    steps.copy_queries();
    steps.run(scale);
    steps.store(scale);
}

template <tg_type Type, int Head, int Warps, int Queries, int Keys, int Tiles>
static __device__ __forceinline__ void tgi_attend_in_few_multiply_adds(const tgi_attend_args &p,
                                                                       char *shared)
{
    tgi_attend_in_multiply_adds<Type, Head, Warps, Queries, Keys, Tiles>(p, shared);
}

#endif
