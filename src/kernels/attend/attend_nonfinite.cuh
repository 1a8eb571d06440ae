/*
 * Handles non-finite elements of V, Inf and NaN, of keys that a query may not see. A weight of
 * zero would not remove them. Zeros replace them, and they are added key by key for the rows that
 * see them.
 */
#ifndef TGI_ATTEND_NONFINITE_CUH
#define TGI_ATTEND_NONFINITE_CUH

#include "kernels/attend/attend_scores.cuh"
#include "kernels/ptx/opaque.cuh"

/* Decodes two numbers of the type. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_decode(uint32_t pair, float (&value)[2])
{
    value[0] = Type == TG_TYPE_BF16 ? __uint_as_float(pair << 16) : tgi_decode_fp16(pair & 0xffff);
    value[1] =
        Type == TG_TYPE_BF16 ? __uint_as_float(pair & 0xffff0000u) : tgi_decode_fp16(pair >> 16);
}

/* Returns 1 if any of eight elements is Inf or NaN. */
template <tg_type Type>
static __device__ __forceinline__ int tgi_attend_is_nonfinite(const uint32_t (&words)[4])
{
    const uint32_t rest = Type == TG_TYPE_BF16 ? 0x80u : 0x400u; /* Inf + rest sets the sign */
    uint32_t signs = 0;
    TGI_FOR_UNROLLED(j, 4)
    signs |= (words[j] & 0x7fff7fffu) + (rest << 16 | rest);
    return (signs & 0x80008000u) != 0;
}

/* Replaces the non-finite ones of eight elements by zeros. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_clear_nonfinite_unit(uint32_t (&words)[4])
{
    const uint32_t most = Type == TG_TYPE_BF16 ? 0x7f80u : 0x7c00u;
    TGI_FOR_UNROLLED(j, 4)
    words[j] = ((words[j] & most) == most ? 0 : words[j] & 0xffffu) |
               ((words[j] >> 16 & most) == most ? 0 : words[j] & 0xffff0000u);
}

/* A thread does nothing before it replaces an element. */
struct tgi_attend_unnoticed {
    __device__ __forceinline__ void operator()(void) const
    {
    }
};

/* Replaces non-finite elements by zeros in the share of a tile that thread `thread` of `Threads`
 * has, and calls `notice` before. Returns 1 if there were any. */
template <class Products, int Threads, class Notice = tgi_attend_unnoticed>
static __device__ __forceinline__ int tgi_attend_clear_nonfinite(uint32_t tile, int thread,
                                                                 const Notice &notice = Notice())
{
    enum { UNITS = Products::keys * Products::head / 8 };
    int is_nonfinite = 0;
#pragma unroll 8
    for (int i = thread; i < UNITS; i += Threads) {
        const uint32_t at = tile + 16 * i;
        const uint4 unit = tgi_read_shared_unit(at);
        uint32_t words[] = {unit.x, unit.y, unit.z, unit.w};
        if (!tgi_attend_is_nonfinite<Products::type>(words))
            continue;
        is_nonfinite = 1;
        notice();
        tgi_attend_clear_nonfinite_unit<Products::type>(words);
        tgi_write_shared_unit(at, {words[0], words[1], words[2], words[3]});
    }
    return is_nonfinite;
}

/* Returns element e of the row of V at `at` if it is non-finite, else zero. */
template <tg_type Type>
static __device__ __forceinline__ float tgi_attend_read_nonfinite(const tgi_attend_args &p,
                                                                  int64_t at, int e)
{
    const tg_heads &v = p.attention.v;
    float value[2] = {};
    if (e < p.attention.v_head_size)
        tgi_attend_decode<Type>(static_cast<const uint16_t *>(v.data)[at + e * v.element_stride],
                                value);
    return fabsf(value[0]) < INFINITY ? 0.0f : value[0];
}

/* Returns 1 to all lanes of a warp if the row of V at `at` has a non-finite element. */
template <tg_type Type, int Head>
static __device__ __forceinline__ int tgi_attend_has_nonfinite(const tgi_attend_args &p, int64_t at)
{
    int is_nonfinite = 0;
    TGI_FOR_UNROLLED(i, Head / 32)
    is_nonfinite |= tgi_attend_read_nonfinite<Type>(p, at, 32 * i + tgi_thread() % 32) != 0.0f;
    return __any_sync(~0u, is_nonfinite);
}

/* Finds the weight of key `key` of a step for each row, and whether the row sees the key. */
template <tg_type Type, int Keys, int Blocks>
static __device__ __forceinline__ void
tgi_attend_find_weight(const tgi_attend_args &p, const tgi_attend_place &place, int key_0, int key,
                       const uint32_t (&weights)[Blocks][Keys / 16][4], float (&own)[Blocks][2],
                       int (&is_seen)[Blocks][2])
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const tgi_attend_row_place row =
            tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half));
        uint32_t pair = 0;
        float weight[2];
        /* Opaque words stay in registers. Otherwise the compiler would keep them in local memory
         * and index it. */
        TGI_FOR_UNROLLED(j, Keys / 8)
        {
            const uint32_t word = tgi_make_opaque(weights[b][j / 2][j % 2 * 2 + half]);
            pair = j == key / 8 ? word : pair;
        }
        tgi_attend_decode<Type>(__shfl_sync(~0u, pair, tgi_thread() % 32 / 4 * 4 + key % 8 / 2),
                                weight);
        own[b][half] = key % 2 ? weight[1] : weight[0];
        is_seen[b][half] = key_0 + key >= row.low && key_0 + key < row.high;
    }
}

/* Sums of weights times non-finite elements, each of them 0, Inf or NaN. They lie in local memory,
 * because registers take no computed index. In the loop over keys no other sum changes with them:
 * the compiler would otherwise move all sums about between products. */
template <int Head, int Blocks> struct tgi_attend_nonfinite_sums {
    float sums[Head / 8][Blocks][4];
    int used;

    __device__ __forceinline__ tgi_attend_nonfinite_sums(void)
    {
        is_used() = 0;
    }

    /* Returns 1 if the sums have been cleared and added to. An opaque address keeps this number in
     * local memory too. */
    __device__ __forceinline__ int &is_used(void)
    {
        return (&used)[tgi_make_opaque(0)];
    }
};

/* Adds weights times the non-finite elements of V that tgi_attend_clear_nonfinite replaced in the
 * step from key_0 on, key by key, for the keys that each row sees. */
template <tg_type Type, int Keys, int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_add_nonfinite(const tgi_attend_args &p, const tgi_attend_place &place, int key_0,
                         const uint32_t (&weights)[Blocks][Keys / 16][4],
                         tgi_attend_nonfinite_sums<Head, Blocks> &nonfinite)
{
    const int is_used = nonfinite.is_used();
#pragma unroll 1
    for (int j = 0; j < Head / 8 && !is_used; j++)
        TGI_FOR_UNROLLED(i, 4 * Blocks)
    nonfinite.sums[j][i / 4][i % 4] = 0.0f;
    nonfinite.is_used() = 1;
#pragma unroll 1
    for (int key = 0; key < min(Keys, place.keys - key_0); key++) {
        const int64_t at = tgi_attend_find_key(p, place, p.attention.v, key_0 + key);
        float own[Blocks][2];
        int is_seen[Blocks][2];
        if (!tgi_attend_has_nonfinite<Type, Head>(p, at))
            continue;
        tgi_attend_find_weight<Type, Keys, Blocks>(p, place, key_0, key, weights, own, is_seen);
#pragma unroll 1
        for (int j = 0; j < Head / 8; j++) {
            const int e = 8 * j + tgi_thread() % 4 * 2;
            const float value[] = {tgi_attend_read_nonfinite<Type>(p, at, e),
                                   tgi_attend_read_nonfinite<Type>(p, at, e + 1)};
            TGI_FOR_UNROLLED(b, Blocks)
            TGI_FOR_UNROLLED(i, 4)
            if (is_seen[b][i / 2] && value[i % 2] != 0.0f)
                nonfinite.sums[j][b][i] =
                    fmaf(own[b][i / 2], value[i % 2], nonfinite.sums[j][b][i]);
        }
    }
}

/* Adds the sums of non-finite elements, if there are any, to those of the others. */
template <int Head, int Blocks>
static __device__ __forceinline__ void
tgi_attend_finish_nonfinite(tgi_attend_nonfinite_sums<Head, Blocks> &nonfinite,
                            tgi_attend_state<Head, Blocks> &state)
{
    if (!nonfinite.is_used())
        return;
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(j, Head / 8)
    TGI_FOR_UNROLLED(i, 4)
    state.sums[b][j][i] += nonfinite.sums[j][b][i];
}

/* Returns the sum of the weights of the keys that a row sees times non-finite elements in column e
 * of V, or zero if there are none. */
template <tg_type Type>
static __device__ __forceinline__ float
tgi_attend_sum_nonfinite(const tgi_attend_args &p, const tgi_attend_place &place,
                         const tgi_attend_row_place &row, float largest, int e)
{
    const tg_attention &a = p.attention;
    const uint16_t *const q =
        static_cast<const uint16_t *>(a.q.data) +
        tgi_attend_offset(a.q, place.query_entry, row.head, place.first_query + row.query);
    float sum = 0.0f;
#pragma unroll 1
    for (int key = row.low; key < row.high; key++) {
        const float value =
            tgi_attend_read_nonfinite<Type>(p, tgi_attend_find_key(p, place, a.v, key), e);
        const uint16_t *const k =
            static_cast<const uint16_t *>(a.k.data) + tgi_attend_find_key(p, place, a.k, key);
        float score = 0.0f;
#pragma unroll 1
        for (int i = 0; value != 0.0f && i < a.head_size; i++) {
            float x[2], y[2];
            tgi_attend_decode<Type>(q[i * a.q.element_stride], x);
            tgi_attend_decode<Type>(k[i * a.k.element_stride], y);
            score = fmaf(x[0], y[0], score);
        }
        if (value != 0.0f)
            sum = fmaf(tgi_ptx_exp2((score - largest) * p.scale), value, sum);
    }
    return sum;
}

/* Replaces each of eight elements of D, from e on, whose column of V has non-finite elements, by
 * the weighted sum of these. */
template <tg_type Type>
static __device__ __forceinline__ void
tgi_attend_put_right(const tgi_attend_args &p, const tgi_attend_place &place,
                     const tgi_attend_row_place &row, float largest, int e, uint32_t (&unit)[4])
{
#pragma unroll 1
    for (int i = 0; i < 8; i++) {
        const float sum = tgi_attend_sum_nonfinite<Type>(p, place, row, largest, e + i);
        const uint32_t own =
            sum == 0.0f ? unit[0] & 0xffffu : tgi_encode_pair(Type, sum, 0.0f) & 0xffffu;
        TGI_FOR_UNROLLED(j, 4)
        unit[j] = unit[j] >> 16 | (j < 3 ? unit[(j + 1) % 4] : own) << 16;
    }
}

#endif
