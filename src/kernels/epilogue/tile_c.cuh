/*
 * Adds beta times C to the sums of a warpgroup's 64 rows of a tile, which lie as
 * fragment_epilogue.cuh describes. As many pairs of neighbours are read at once as registers hold.
 */
#ifndef TGI_TILE_C_CUH
#define TGI_TILE_C_CUH

#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/ptx/opaque.cuh"

/* Transposes a 4 x 4 matrix of words. Each of four neighbouring lanes has a row of it, whose number
 * is `place`. */
static __device__ __forceinline__ void tgi_transpose_words(int place, uint32_t (&word)[4])
{
#pragma unroll
    for (int bit = 1; bit <= 2; bit *= 2)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (!(i & bit)) {
                uint32_t &low = word[i], &high = word[i + bit];
                const uint32_t other = __shfl_xor_sync(~0u, place & bit ? low : high, bit);
                low = place & bit ? other : low;
                high = place & bit ? high : other;
            }
}

/* The two rows of C at a thread's columns, as pairs of neighbours. */
template <class Pair> struct tgi_c_rows {
    const Pair *row[2];
    int last_col;

    __device__ __forceinline__ tgi_c_rows(const tgi_gemm_args &gemm, const tgi_fragment_place &own)
        : last_col(own.last_col)
    {
        const tgi_layout &layout = gemm.problem.c;
        row[0] =
            static_cast<const Pair *>(gemm.c) + tgi_offset(layout, own.batch, own.row, own.col) / 2;
        row[1] = row[0] + own.find_row(2) * layout.row / 2;
    }

    /* Reads the pairs that belong to the pairs of sums from number `first` on. */
    template <int Pairs> __device__ __forceinline__ void read(int first, Pair (&pair)[Pairs]) const
    {
#pragma unroll
        for (int i = 0; i < Pairs; i++) {
            const int col = (first + i) / 2;
            pair[i] = col * 8 < last_col ? row[i % 2][col * 4] : Pair();
        }
    }

    /* Reads the same pairs of 16-bit elements by units of 16 bytes. A lane reads one of four
     * neighbouring units of a row, and the four lanes of the row exchange their pairs. */
    template <int Pairs>
    __device__ __forceinline__ void read_units(int first, Pair (&pair)[Pairs]) const
    {
        const int place = tgi_reread_thread() % 4;
#pragma unroll
        for (int i = 0; i < Pairs; i += i % 2 ? 7 : 1) {
            const int unit = (first + i) / 2 + place;
            uint4 four = {};
            /* The lane's units begin `place` pairs before its own columns. */
            if (unit * 8 < last_col + 2 * place)
                four = *reinterpret_cast<const uint4 *>(row[i % 2] - place + unit * 4);
            pair[i] = four.x;
            pair[i + 2] = four.y;
            pair[i + 4] = four.z;
            pair[i + 6] = four.w;
        }
#pragma unroll
        for (int i = 0; i < Pairs; i += i % 2 ? 7 : 1) {
            uint32_t word[4] = {pair[i], pair[i + 2], pair[i + 4], pair[i + 6]};
            tgi_transpose_words(place, word);
#pragma unroll
            for (int j = 0; j < 4; j++)
                pair[i + 2 * j] = word[j];
        }
    }
};

/* Returns 1 if rows of C of 16-bit elements are whole units of 16 bytes. */
static __device__ __forceinline__ int tgi_has_c_units(const tgi_gemm_args &gemm)
{
    const tgi_problem &p = gemm.problem;
    return (p.c.row | p.c.batch | p.n) % 8 == 0 && reinterpret_cast<uintptr_t>(gemm.c) % 16 == 0;
}

/* Adds beta times pairs of C to the pairs of sums from number `first` on. */
template <tg_type Type, class Pair, int Pairs, int Count>
static __device__ __forceinline__ void tgi_add_pairs(float beta, int first,
                                                     const Pair (&pair)[Pairs], float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Pairs; i++) {
        float c[2];
        tgi_decode_pair<Type>(pair[i], c);
        /* Opaque, or the compiler would merge this code with that of another type. */
#pragma unroll
        for (int j = 0; j < 2; j++) {
            float &to = sum[2 * (first + i) + j];
            to = tgi_make_opaque(TGI_FMA_FP32(beta, c[j], to));
        }
    }
}

/* A turn reads so many of Count pairs, at most Most, in as few turns as that takes. */
template <int Count, int Most>
static constexpr int tgi_turn_pairs = Count / ((Count + Most - 1) / Most);

/* Adds beta times C by pairs of neighbours of a row. At most `Words` registers hold them. */
template <int Words, int Count>
static __device__ __forceinline__ void tgi_add_c_pairs(const tgi_gemm_args &gemm,
                                                       const tgi_fragment_place &own, tg_type type,
                                                       float (&sum)[Count])
{
    constexpr int pairs = Count / 2;
    constexpr int few = tgi_turn_pairs<pairs, Words / 2>, many = tgi_turn_pairs<pairs, Words>;
    static_assert(pairs % few == 0 && pairs % many == 0, "all turns read as many pairs");
    const float beta = static_cast<float>(gemm.problem.epilogue.beta);
    if (type == TG_TYPE_FP32) {
        const tgi_c_rows<uint2> c(gemm, own);
#pragma unroll
        for (int first = 0; first < pairs; first += few) {
            uint2 pair[few];
            c.read(first, pair);
            tgi_add_pairs<TG_TYPE_FP32>(beta, first, pair, sum);
        }
        return;
    }
    const tgi_c_rows<uint32_t> c(gemm, own);
#pragma unroll
    for (int first = 0; first < pairs; first += many) {
        uint32_t pair[many];
        if constexpr (many % 8 == 0) {
            if (tgi_has_c_units(gemm))
                c.read_units(first, pair);
            else
                c.read(first, pair);
        } else {
            c.read(first, pair);
        }
        if (type == TG_TYPE_BF16)
            tgi_add_pairs<TG_TYPE_BF16>(beta, first, pair, sum);
        else
            tgi_add_pairs<TG_TYPE_FP16>(beta, first, pair, sum);
    }
}

/* The places of a thread's next sums for tgi_read_elements. */
struct tgi_fragment_elements {
    const tgi_fragment_place &own;

    __device__ __forceinline__ int row(int i) const
    {
        return own.find_row(i);
    }

    __device__ __forceinline__ int col(int i) const
    {
        return own.find_col(i);
    }

    __device__ __forceinline__ int is_inside(int) const
    {
        return 1;
    }
};

/* Adds beta times C. */
template <int Words, int Count>
static __device__ __forceinline__ void
tgi_add_tile_c(const tgi_gemm_args &gemm, const tgi_cluster_tile &tile, float (&sum)[Count])
{
    const float beta = static_cast<float>(gemm.problem.epilogue.beta);
    const tg_type type = tgi_find_d_type(gemm.problem);
    if (beta == 0.0f)
        return;
    tgi_fragment_place own(gemm.problem, tile);
    const int are_pairs = tgi_has_c_pairs(gemm, type);
    if (are_pairs) {
        tgi_add_c_pairs<Words>(gemm, own, type, sum);
    } else {
#pragma unroll 1
        for (int i = 0; i < Count; i += 8) {
            float c[8];
            tgi_read_elements(gemm.c, tgi_offset(gemm.problem.c, own.batch, own.row, own.col),
                              gemm.problem.c, tgi_fragment_elements{own}, type, c);
#pragma unroll
            for (int j = 0; j < 8; j++)
                sum[j] = TGI_FMA_FP32(beta, c[j], sum[j]);
            tgi_rotate<8>(sum);
            own.move(gemm.problem, 16);
        }
    }
}

#endif
