/*
 * A block of attention on FP32 and FP64 operands: its tiles in shared memory, the copies to them,
 * and what its warps form of them or pass to each other.
 */
#ifndef TGI_ATTEND_REAL_BLOCK_CUH
#define TGI_ATTEND_REAL_BLOCK_CUH

#include "kernels/attend/attend.cuh"
#include "kernels/attend/attend_real_copy.cuh"
#include "kernels/attend/attend_slice_products.cuh"

/* A block whose warps have Blocks x 16 queries each. */
template <tg_type Type, int Head, int Blocks, int Sharers, int Keys, int HasMatrices>
struct tgi_attend_real_block {
    typedef tgi_attend_real<Type> Real;
    enum { SHARERS = Sharers, SCORED = Keys / SHARERS };
    typedef tgi_attend_real_products<Type, Head, Blocks, Keys, SHARERS, HasMatrices> products;
    typedef typename products::Lanes Lanes;
    typedef Real score_array[Blocks][SCORED / 8][4];
    typedef Real row_array[Blocks][2];
    enum { BYTES = sizeof(Real) };
    const tgi_attend_args &p;
    const tgi_attend_place &place;
    const int sharer;                /* number of the warp among those of its rows */
    const uint32_t q, k, v, weights; /* tiles in shared memory, the weights of the warp's rows */
    const uint32_t exchanged;        /* numbers of the warp's rows */
    const Real *const first_k, *const first_v; /* key 0 of K and V without pages */
    const int runs;                            /* see find_runs */

    __device__ __forceinline__ tgi_attend_real_block(const tgi_attend_args &args,
                                                     const tgi_attend_place &at, uint32_t shared)
        : p(args), place(at), sharer(SHARERS > 1 ? tgi_thread() / 32 % SHARERS : 0), q(shared),
          k(q + args.tile_rows * products::PITCH), v(find_end() - Keys * products::V_PITCH),
          weights(find_end() + find_first_row() * products::WEIGHT_PITCH),
          exchanged(find_end() + count_rows() * products::WEIGHT_PITCH +
                    find_first_row() * SHARERS * BYTES),
          first_k(static_cast<const Real *>(args.attention.k.data) +
                  tgi_attend_find_first(args, at, args.attention.k)),
          first_v(static_cast<const Real *>(args.attention.v.data) +
                  tgi_attend_find_first(args, at, args.attention.v)),
          runs(find_runs(args))
    {
    }

    /* Returns bit 0 (Q), 1 (K) and 2 (V) for operands whose rows lie one stride apart and consist
     * of whole units of 16 bytes. Queries of several heads do if heads lie as far apart as their
     * queries, or have one query each. */
    static __device__ __forceinline__ int find_runs(const tgi_attend_args &p)
    {
        const tg_attention &a = p.attention;
        const int is_q_whole = a.head_size % (16 / BYTES) == 0;
        const int is_q_run =
            p.shared_heads == 1 ||
            (!a.has_query_offsets && (a.m == 1 || a.q.head_stride == a.m * a.q.row_stride));
        const int is_key_run = a.page_rows == 0;
        return (p.has_units[0] && is_q_whole && is_q_run) |
               (p.has_units[1] && is_q_whole && is_key_run) << 1 |
               (p.has_units[2] && a.v_head_size % (16 / BYTES) == 0 && is_key_run) << 2;
    }

    /* Returns the number in the block of the warp's first row. */
    static __device__ __forceinline__ int find_first_row(void)
    {
        return Lanes::find_warp() * Blocks * 16;
    }

    /* Returns the number of rows of the block's warps. */
    static __device__ __forceinline__ int count_rows(void)
    {
        return static_cast<int>(blockDim.x / 32) / SHARERS * Blocks * 16;
    }

    /* Returns the address behind the tiles of K and V. */
    __device__ __forceinline__ uint32_t find_end(void) const
    {
        return k + Keys * products::PITCH + (p.tile_places > 1 ? Keys * products::V_PITCH : 0);
    }

    /* Returns the elements of a row of `size` that the first of the sharers has: half of them, or
     * all. */
    static __device__ __forceinline__ int find_share(int size)
    {
        return SHARERS > 1 ? (size + 63) / 64 * 32 : size;
    }

    /* Returns the address of a row's number of sharer `of`. */
    __device__ __forceinline__ uint32_t find_exchanged(int b, int half, int of) const
    {
        return exchanged + ((16 * b + 8 * half + Lanes::find_row()) * SHARERS + of) * BYTES;
    }

    /* Waits for the warps that share the warp's rows, so that those of other rows may be behind or
     * ahead: some warps multiply then while others form weights. */
    static __device__ __forceinline__ void wait_for_sharers(void)
    {
        tgi_named_barrier_sync(1 + Lanes::find_warp(), 32 * SHARERS);
    }

    /* Exchanges a number of each row with the warp that shares them. */
    __device__ __forceinline__ void exchange(const row_array &own, row_array &other) const
    {
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        if (Lanes::find_column() == 0)
            tgi_attend_write_one(find_exchanged(b, half, sharer), own[b][half]);
        wait_for_sharers();
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        tgi_attend_read_one(other[b][half], find_exchanged(b, half, 1 - sharer));
    }

    /* Returns the address of the weights of the lane's two keys of each 8, from `first` on. */
    __device__ __forceinline__ uint32_t find_weight(int b, int half, int first, int j) const
    {
        return weights + (16 * b + 8 * half + Lanes::find_row()) * products::WEIGHT_PITCH +
               (first + 8 * j + Lanes::find_column() * 2) * BYTES;
    }

    /* Adds the scores of both halves of the elements, by way of the place of the weights. */
    __device__ __forceinline__ void join(const Real (&parts)[Blocks][Keys / 8][4],
                                         score_array &scores) const
    {
        enum { COUNT = SCORED / 8 };
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(half, 2)
        TGI_FOR_UNROLLED(j, COUNT)
        {
            const Real(&lent)[4] = parts[b][j + (SHARERS - 1) * COUNT], (&own)[4] = parts[b][j];
            const int x = 2 * half;
            scores[b][j][x] = sharer ? lent[x] : own[x];
            scores[b][j][x + 1] = sharer ? lent[x + 1] : own[x + 1];
            tgi_attend_write_two(find_weight(b, half, (1 - sharer) * SCORED, j),
                                 sharer ? own[x] : lent[x], sharer ? own[x + 1] : lent[x + 1]);
        }
        wait_for_sharers();
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, COUNT)
        TGI_FOR_UNROLLED(i, 4)
        {
            Real other;
            tgi_attend_read_one(other, find_weight(b, i / 2, sharer * SCORED, j) + i % 2 * BYTES);
            scores[b][j][i] += other;
        }
    }

    /* Forms scores by multiply-adds if one is NaN, in the place of the weights. */
    __device__ __forceinline__ void repair(score_array &scores) const
    {
        enum { COUNT = SCORED / 8 };
        Real zero = 0;
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, COUNT)
        TGI_FOR_UNROLLED(i, 4)
        zero = tgi_attend_multiply_add(scores[b][j][i], Real(0), zero);
        if (!__any_sync(~0u, zero != 0))
            return;
#pragma unroll 1
        for (int i = 0; i < Blocks * COUNT * 4; i++) {
            const int b = i / (4 * COUNT), half = i / 2 % 2, j = i / 4 % COUNT;
            const int key = sharer * SCORED + 8 * j + Lanes::find_column() * 2 + i % 2;
            const int row = find_first_row() + 16 * b + 8 * half + Lanes::find_row();
            Real sum = 0;
#pragma unroll 1
            for (int e = 0; e < static_cast<int>(p.attention.head_size); e++) {
                Real x, y;
                tgi_attend_read_one(x, q + row * products::PITCH + e * BYTES);
                tgi_attend_read_one(y, k + key * products::PITCH + e * BYTES);
                sum = tgi_attend_multiply_add(x, y, sum);
            }
            tgi_attend_write_one(find_weight(b, half, sharer * SCORED, j) + i % 2 * BYTES, sum);
        }
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(j, COUNT)
        TGI_FOR_UNROLLED(i, 4)
        tgi_attend_read_one(scores[b][j][i],
                            find_weight(b, i / 2, sharer * SCORED, j) + i % 2 * BYTES);
    }

    /* Forms the scores of the warp's rows and keys. Matrix instructions read queries as often as
     * keys: warps that share rows first form parts of all of their scores, each of half of the
     * elements. */
    __device__ __forceinline__ void score(score_array &scores) const
    {
        const int size = static_cast<int>(p.attention.head_size);
        const uint32_t queries = q + find_first_row() * products::PITCH;
        if constexpr (SHARERS > 1 && HasMatrices) {
            const int half = find_share(size), first = sharer * half * BYTES;
            Real parts[Blocks][Keys / 8][4];
            products::score(queries + first, k + first, sharer ? size - half : half, parts);
            join(parts, scores);
        } else {
            products::score(queries, k + sharer * SCORED * products::PITCH, size, scores);
        }
        if constexpr (products::IS_SLICED)
            repair(scores);
    }

    /* Returns the first key of tile i. Tiles are K and V of step after step. */
    __device__ __forceinline__ int find_key(int i) const
    {
        return place.begin + i / 2 * Keys;
    }

    /* Returns the offset of a row of Q, or of K or V if is_key is 1, or TGI_ATTEND_NO_ROW. */
    __device__ __forceinline__ int64_t find_offset(const tg_heads &heads, int is_key, int row) const
    {
        if (is_key)
            return row < place.keys ? tgi_attend_find_key(p, place, heads, row) : TGI_ATTEND_NO_ROW;
        const tgi_attend_row_place at = tgi_attend_find_row(p, place, row);
        return at.is_there ? tgi_attend_offset(heads, place.query_entry, at.head,
                                               place.first_query + at.query)
                           : TGI_ATTEND_NO_ROW;
    }

    /* Copies tile i, of K or V, or the queries if i is -1. All have one code, since it is long. */
    __device__ __forceinline__ void copy_tile(int i) const
    {
        const tg_attention &a = p.attention;
        const int is_key = i >= 0, is_v = is_key && i % 2, first = is_key ? find_key(i) : 0;
        const tg_heads &heads = is_v ? a.v : is_key ? a.k : a.q;
        const uint32_t tile = is_v ? v : is_key ? k : q;
        const int pitch =
            is_v ? static_cast<int>(products::V_PITCH) : static_cast<int>(products::PITCH);
        const int size = static_cast<int>(is_v ? a.v_head_size : a.head_size);
        const int rows = is_key ? static_cast<int>(Keys) : p.tile_rows;
        const int there = is_key ? place.keys - first : place.row_count - place.first;
        const int64_t stride = is_key || a.m > 1 ? heads.row_stride : heads.head_stride;
        if (runs >> (is_key + is_v) & 1) {
            const Real *const source =
                is_v     ? first_v + first * stride
                : is_key ? first_k + first * stride
                         : static_cast<const Real *>(heads.data) + find_offset(heads, 0, 0);
            tgi_attend_fill_reals<Real, Head>(tile, pitch, source, stride, rows, size, there);
        } else {
            tgi_attend_copy_reals<Real>(
                tile, pitch, heads, rows, size, p.has_units[is_key + is_v],
                [&](int row) { return find_offset(heads, is_key, first + row); });
        }
    }

    /* Returns 1 to all threads if twice a value of the first `there` rows of the tile of V is Inf
     * or NaN: zero times it is NaN. Warps share the tile. */
    __device__ __forceinline__ int has_nonfinite_value(int there) const
    {
        enum { UNIT = 16 / BYTES };
        const int size = static_cast<int>(p.attention.v_head_size);
        Real zero = 0;
        const tgi_attend_dealt_units<UNIT> dealt(size);
#pragma unroll 1
        for (int e = dealt.element; e < size; e += dealt.width)
#pragma unroll 1
            for (int key = dealt.row; key < there; key += dealt.apart) {
                Real unit[UNIT];
                tgi_attend_read_unit(unit, v + key * products::V_PITCH + e * BYTES);
                TGI_FOR_UNROLLED(i, UNIT)
                zero = tgi_attend_multiply_add(unit[i] + unit[i], Real(0), zero);
            }
        return __syncthreads_or(zero != 0);
    }
};

#endif
