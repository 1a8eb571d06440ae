/*
 * Stores the results of attention: rows of D from the registers of a warp, or splits of rows whose
 * keys several blocks share. A second kernel merges the splits (attend_merge.cuh).
 */
#ifndef TGI_ATTEND_STORE_CUH
#define TGI_ATTEND_STORE_CUH

#include "kernels/attend/attend_scores.cuh"

/* Returns the address of the sums of a row of a split. */
template <typename Real>
static __device__ __forceinline__ Real *tgi_attend_find_split(const tgi_attend_args &p, int split,
                                                              int batch, int head, int query)
{
    const tg_attention &a = p.attention;
    const int64_t row = (batch * a.head_count + head) * a.m + query;
    return static_cast<Real *>(p.splits) +
           (row * p.split_count + split) * tgi_attend_split_reals(a.v_head_size);
}

/* Stores the first `count` of eight elements of D from `d` on. */
static __device__ __forceinline__ void tgi_attend_store_unit(const tgi_attend_args &p, uint16_t *d,
                                                             int count, const uint32_t (&pair)[4])
{
    if (p.has_d_units && count >= 8) {
        *reinterpret_cast<uint4 *>(d) = {pair[0], pair[1], pair[2], pair[3]};
        return;
    }
    uint64_t low = static_cast<uint64_t>(pair[1]) << 32 | pair[0];
    uint64_t high = static_cast<uint64_t>(pair[3]) << 32 | pair[2];
#pragma unroll 1
    for (int e = 0; e < min(count, 8); e++) {
        d[e * p.attention.d.element_stride] = static_cast<uint16_t>(low);
        low = low >> 16 | high << 48;
        high >>= 16;
    }
}

/* Stores the log-sum-exp of a row whose largest score is `largest`, base 2. */
template <typename Real>
static __device__ __forceinline__ void tgi_attend_store_log(const tgi_attend_args &p, int64_t at,
                                                            Real largest, Real total)
{
    const Real log_2 = static_cast<Real>(0.6931471805599453);
    static_cast<Real *>(p.attention.log_sum_exp.data)[at] =
        total == 0 ? -INFINITY : tgi_attend_multiply_add(largest, log_2, tgi_attend_log(total));
}

/* Exchanges words among four lanes: word k of lane c becomes word c of lane k. */
static __device__ __forceinline__ void tgi_attend_exchange(uint32_t (&word)[4])
{
    TGI_FOR_UNROLLED(round, 2)
    TGI_FOR_UNROLLED(i, 4)
    if (const int bit = 1 << round; !(i & bit)) {
        const uint32_t upper = tgi_thread() & bit ? ~0u : 0u;
        const uint32_t sent = (word[i] & upper) | (word[i + bit] & ~upper);
        const uint32_t got = __shfl_xor_sync(~0u, sent, bit);
        word[i] = (word[i] & ~upper) | (got & upper);
        word[i + bit] = (word[i + bit] & upper) | (got & ~upper);
    }
}

/* Stores a row of a split. The lane has two sums of each eight. */
template <int Head>
static __device__ __forceinline__ void tgi_attend_store_split(float *split, int v_size,
                                                              const float (&sums)[Head / 8][4],
                                                              int half, float largest, float total)
{
    const int lane = tgi_thread() % 4;
    TGI_FOR_UNROLLED(j, Head / 8)
    if (8 * j + 2 * lane < v_size)
        *reinterpret_cast<float2 *>(split + 8 * j + 2 * lane) = {sums[j][2 * half],
                                                                 sums[j][2 * half + 1]};
    if (lane == 0)
        *reinterpret_cast<float2 *>(split + tgi_attend_split_reals(v_size) - 2) = {largest, total};
}

/* Adds the sums of weights of the four lanes that share rows. */
template <int Head, int Blocks, typename Real, class Lanes>
static __device__ __forceinline__ void
tgi_attend_add_totals(tgi_attend_state<Head, Blocks, Real, Lanes> &state)
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        Real &total = state.total[b][half];
        total += Lanes::exchange(total, 1);
        total += Lanes::exchange(total, 2);
    }
}

/* Stores the warp's rows of a split. */
template <int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_store_splits(const tgi_attend_args &p, const tgi_attend_place &place, float scale,
                        const tgi_attend_state<Head, Blocks> &state)
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const tgi_attend_row_place row =
            tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
        if (row.is_there)
            tgi_attend_store_split<Head>(
                tgi_attend_find_split<float>(p, place.split, place.batch, row.head, row.query),
                static_cast<int>(p.attention.v_head_size), state.sums[b], half,
                state.largest[b][half] * scale, state.total[b][half]);
    }
}

/* Stores the lane's units of the row of D at `d`, 32 elements apart. */
template <int Units>
static __device__ __forceinline__ void tgi_attend_store_units(const tgi_attend_args &p, uint16_t *d,
                                                              const uint32_t (&units)[Units][4])
{
    const int size = static_cast<int>(p.attention.v_head_size), first = tgi_thread() % 4 * 8;
    if (p.has_d_units && size % 8 == 0) {
        TGI_FOR_UNROLLED(j, Units)
        if (32 * j + first < size)
            *reinterpret_cast<uint4 *>(d + first + 32 * j) = {units[j][0], units[j][1], units[j][2],
                                                              units[j][3]};
    } else {
        const int64_t stride = p.attention.d.element_stride;
        uint32_t unit[Units][4];
        TGI_FOR_UNROLLED(j, Units)
        TGI_FOR_UNROLLED(i, 4)
        unit[j][i] = units[j][i];
        /* Registers take no computed index, so units rotate through them. */
#pragma unroll 1
        for (int e = first; e < size; e += 32) {
            tgi_attend_store_unit(p, d + e * stride, size - e, unit[0]);
            TGI_FOR_UNROLLED(j, Units - 1)
            TGI_FOR_UNROLLED(i, 4)
            unit[j][i] = unit[j + 1][i];
        }
    }
}

/* Stores the warp's rows of D. */
template <int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_store_rows(const tgi_attend_args &p, const tgi_attend_place &place, float scale,
                      const tgi_attend_state<Head, Blocks> &state,
                      const uint32_t (&units)[Blocks][2][Head / 32][4])
{
    const tg_attention &a = p.attention;
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const tgi_attend_row_place row =
            tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
        const int query = place.first_query + row.query;
        if (!row.is_there)
            continue;
        tgi_attend_store_units(p,
                               static_cast<uint16_t *>(a.d.data) +
                                   tgi_attend_offset(a.d, place.query_entry, row.head, query),
                               units[b][half]);
        if (tgi_thread() % 4 == 0 && a.has_log_sum_exp)
            tgi_attend_store_log(
                p, tgi_attend_offset(a.log_sum_exp, place.query_entry, row.head, query),
                state.largest[b][half] * scale, state.total[b][half]);
    }
}

/* Stores the warp's rows of D or of a split. Four lanes exchange their elements of D, so that each
 * has eight contiguous ones. The exchange precedes the branches on rows, since all lanes take
 * part. */
template <tg_type Type, int Head, int Blocks>
static __device__ __forceinline__ void tgi_attend_store(const tgi_attend_args &p,
                                                        const tgi_attend_place &place, float scale,
                                                        tgi_attend_state<Head, Blocks> &state)
{
    uint32_t units[Blocks][2][Head / 32][4];
    tgi_attend_add_totals(state);
    if (p.split_count > 1) {
        tgi_attend_store_splits<Head, Blocks>(p, place, scale, state);
        return;
    }
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const float total = state.total[b][half];
        const float factor = total == 0.0f ? 1.0f : 1.0f / total;
        TGI_FOR_UNROLLED(j, Head / 32)
        {
            TGI_FOR_UNROLLED(i, 4)
            {
                const float(&sum)[4] = state.sums[b][4 * j + i];
                units[b][half][j][i] =
                    tgi_encode_pair(Type, sum[2 * half] * factor, sum[2 * half + 1] * factor);
            }
            tgi_attend_exchange(units[b][half][j]);
        }
    }
    tgi_attend_store_rows<Head, Blocks>(p, place, scale, state, units);
}

/* Puts the warp's rows of D into a tile of `Rows` rows of shared memory. */
template <tg_type Type, int Head, int Rows>
static __device__ __forceinline__ void tgi_attend_put_rows(const tgi_attend_state<Head, 1> &state,
                                                           const tgi_attend_line &line)
{
    float factor[2];
    TGI_FOR_UNROLLED(half, 2)
    {
        const float total = state.total[0][half];
        factor[half] = total == 0.0f ? 1.0f : 1.0f / total;
    }
    TGI_FOR_UNROLLED(j, Head / 16)
    {
        uint32_t pair[4];
        TGI_FOR_UNROLLED(i, 4)
        {
            const float *const sum = &state.sums[0][2 * j + i / 2][i % 2 * 2];
            pair[i] = tgi_encode_pair(Type, sum[0] * factor[i % 2], sum[1] * factor[i % 2]);
        }
        tgi_store_matrices(line.template find<Rows>(0, 2 * j), pair);
    }
}

/* Stores elements e .. e + 7 of the row of D at `d`: the sums divided by the sum of weights. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_store_sums(const tgi_attend_args &p, int64_t d,
                                                             int e, const float (&sums)[8],
                                                             float total)
{
    const tg_heads &heads = p.attention.d;
    const float factor = total == 0.0f ? 1.0f : 1.0f / total;
    uint32_t pair[4];
    TGI_FOR_UNROLLED(j, 4)
    pair[j] = tgi_encode_pair(Type, sums[2 * j] * factor, sums[2 * j + 1] * factor);
    tgi_attend_store_unit(p, static_cast<uint16_t *>(heads.data) + d + e * heads.element_stride,
                          static_cast<int>(p.attention.v_head_size) - e, pair);
}

/* Stores elements e and e + 1 of the row of D at `d`, as tgi_attend_store_sums does. */
template <tg_type Type>
static __device__ __forceinline__ void
tgi_attend_store_pair(const tgi_attend_args &p, int64_t d, int e,
                      const tgi_attend_real<Type> (&sums)[2], tgi_attend_real<Type> total)
{
    typedef tgi_attend_real<Type> Real;
    const tg_heads &heads = p.attention.d;
    const Real factor = total == 0 ? Real(1) : 1 / total;
    const int is_last = e + 1 == p.attention.v_head_size;
    const int64_t at = d + e * heads.element_stride;
    if constexpr (Type == TG_TYPE_FP32 || Type == TG_TYPE_FP64) {
        Real *const to = static_cast<Real *>(heads.data) + at;
        if (p.has_d_units && !is_last) {
            tgi_attend_store_two(to, sums[0] * factor, sums[1] * factor);
            return;
        }
        to[0] = sums[0] * factor;
        if (!is_last)
            to[heads.element_stride] = sums[1] * factor;
    } else {
        const uint32_t pair = tgi_encode_pair(Type, sums[0] * factor, sums[1] * factor);
        uint16_t *const to = static_cast<uint16_t *>(heads.data) + at;
        if (p.has_d_units && !is_last) {
            *reinterpret_cast<uint32_t *>(to) = pair;
            return;
        }
        to[0] = static_cast<uint16_t>(pair);
        if (!is_last)
            to[heads.element_stride] = static_cast<uint16_t>(pair >> 16);
    }
}

#endif
