/* Finishes and masks scores of attention in the registers of a warp, and turns them into
 * weights. */
#ifndef TGI_ATTEND_SCORES_CUH
#define TGI_ATTEND_SCORES_CUH

#include "kernels/attend/attend_real.cuh"
#include "kernels/attend/attend_tile.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"

/* A lane has rows g and g + 8 of each 16 of its warp, and columns 2 c and 2 c + 1 of each 8 keys.
 * These are the lanes of mma.sync, of which lane 4 g + c has row g and column c. */
struct tgi_attend_lanes {
    /* Returns the number of the warp among those with rows of their own. */
    static __device__ __forceinline__ int find_warp(void)
    {
        return tgi_thread() / 32;
    }

    static __device__ __forceinline__ int find_row(void)
    {
        return tgi_thread() % 32 / 4;
    }

    static __device__ __forceinline__ int find_column(void)
    {
        return tgi_thread() % 4;
    }

    /* Returns the value of the lane of the same row whose column differs in `bit`, 1 or 2. */
    template <typename T> static __device__ __forceinline__ T exchange(T value, int bit)
    {
        return __shfl_xor_sync(~0u, value, bit);
    }
};

/* The state of a lane after the keys so far. A warp has Blocks x 16 queries. */
template <int Head, int Blocks, typename Real = float, class Lanes = tgi_attend_lanes>
struct tgi_attend_state {
    Real largest[Blocks][2]; /* largest unscaled scores of whole rows */
    Real total[Blocks][2];   /* sums of the lane's own weights */
    Real sums[Blocks][Head / 8][4];
};

template <int Head, int Blocks, typename Real, class Lanes>
static __device__ __forceinline__ void
tgi_attend_clear(tgi_attend_state<Head, Blocks, Real, Lanes> &state)
{
    TGI_FOR_UNROLLED(b, Blocks)
    {
        TGI_FOR_UNROLLED(half, 2)
        {
            state.largest[b][half] = -INFINITY;
            state.total[b][half] = 0.0f;
        }
        TGI_FOR_UNROLLED(j, Head / 8)
        TGI_FOR_UNROLLED(i, 4)
        state.sums[b][j][i] = 0.0f;
    }
}

/* Read or write a unit of 16 bytes of numbers in shared memory. */
static __device__ __forceinline__ void tgi_attend_read_unit(float (&value)[4], uint32_t shared)
{
    const uint4 unit = tgi_read_shared_unit(shared);
    const uint32_t words[] = {unit.x, unit.y, unit.z, unit.w};
    TGI_FOR_UNROLLED(i, 4)
    value[i] = __uint_as_float(words[i]);
}

static __device__ __forceinline__ void tgi_attend_read_unit(double (&value)[2], uint32_t shared)
{
    const uint4 unit = tgi_read_shared_unit(shared);
    value[0] = __hiloint2double(static_cast<int>(unit.y), static_cast<int>(unit.x));
    value[1] = __hiloint2double(static_cast<int>(unit.w), static_cast<int>(unit.z));
}

static __device__ __forceinline__ void tgi_attend_write_unit(uint32_t shared,
                                                             const float (&value)[4])
{
    tgi_write_shared_unit(shared, {__float_as_uint(value[0]), __float_as_uint(value[1]),
                                   __float_as_uint(value[2]), __float_as_uint(value[3])});
}

/* Returns the number in the block of the lane's row g (`half` 0) or g + 8 (`half` 1) of 16 rows. */
template <int Blocks, class Lanes = tgi_attend_lanes>
static __device__ __forceinline__ int tgi_attend_row(int block, int half)
{
    return (Lanes::find_warp() * Blocks + block) * 16 + half * 8 + Lanes::find_row();
}

/* A row of scores has a head, a query, a place among the keys, and the keys that it sees. */
struct tgi_attend_row_place {
    int is_there, head, query;
    int place, low, high;
};

static __device__ __forceinline__ int
tgi_attend_find_place(const tgi_attend_args &p, const tgi_attend_place &place, int query)
{
    return p.is_bottom ? query + place.keys - place.queries : query;
}

/* Returns row `at` of the rows of the place's heads, which belongs to head `head` of these. */
static __device__ __forceinline__ tgi_attend_row_place
tgi_attend_make_row(const tgi_attend_args &p, const tgi_attend_place &place, int at, int head)
{
    tgi_attend_row_place made;
    made.is_there = at < place.row_count;
    made.head = place.first_head + head;
    made.query = at - head * place.queries;
    made.place = tgi_attend_find_place(p, place, made.query);
    made.low = max(0, made.place - p.before);
    made.high = min(place.keys, made.place + p.after + 1);
    return made;
}

static __device__ __forceinline__ tgi_attend_row_place
tgi_attend_find_row(const tgi_attend_args &p, const tgi_attend_place &place, int row)
{
    const int at = place.first + row;
    int head = 0;
    if (p.shared_heads > 1 && at < place.row_count)
        head = static_cast<int>(static_cast<unsigned>(at) / static_cast<unsigned>(place.queries));
    return tgi_attend_make_row(p, place, at, head);
}

/* Finishes the scores of the first `Pass` keys from key `first` on, and makes them scores to base
 * 2. */
template <int Pass, int Keys, int Blocks, class Lanes, typename Real>
static __device__ __forceinline__ void
tgi_attend_finish_group(const tgi_attend_args &p, const tgi_attend_place &place, int first,
                        Real (&scores)[Blocks][Keys / 8][4])
{
    const Real log2_e = static_cast<Real>(TGI_ATTEND_LOG2_E);
    const tg_attention &a = p.attention;
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    {
        const tgi_attend_row_place row =
            tgi_attend_find_row(p, place, tgi_attend_row<Blocks, Lanes>(b, half));
        const int64_t stride = a.bias.element_stride;
        const int low = row.is_there ? row.low - first : Keys, high = row.high - first;
        const Real slope =
            a.has_slopes ? static_cast<const Real *>(a.slopes)[row.head] * log2_e : Real(0);
        const Real *bias = NULL;
        if (a.has_bias)
            bias = static_cast<const Real *>(a.bias.data) +
                   tgi_attend_offset(a.bias, place.query_entry, row.head,
                                     place.first_query + row.query) +
                   first * stride;
        TGI_FOR_UNROLLED(i, Pass / 4)
        {
            const int key = i / 2 * 8 + i % 2;
            Real &score = scores[b][i / 2][2 * half + i % 2];
            score *= tgi_attend_find_scale<Real>(p);
            if (tgi_attend_has_cap<Real>(p))
                score = tgi_attend_soften(p, score);
            if (a.has_bias && key >= low && key < high)
                score += bias[key * stride] * log2_e;
            if (a.has_slopes)
                score -= slope * tgi_attend_magnitude(static_cast<Real>(row.place - first - key));
        }
    }
}

/* Finishes scores that need more than a factor, GROUP keys after another. Scores rotate from one to
 * the next, because registers take no computed index. */
template <int Keys, int Blocks, class Lanes = tgi_attend_lanes, int GROUP = Keys % 16 ? 8 : 16,
          typename Real>
static __device__ __forceinline__ void tgi_attend_finish(const tgi_attend_args &p,
                                                         const tgi_attend_place &place, int key_0,
                                                         Real (&scores)[Blocks][Keys / 8][4])
{
    const int first = key_0 + Lanes::find_column() * 2;
#pragma unroll 1
    for (int group = 0; group < Keys; group += GROUP) {
        tgi_attend_finish_group<GROUP, Keys, Blocks, Lanes>(p, place, first + group, scores);
        TGI_FOR_UNROLLED(b, Blocks)
        TGI_FOR_UNROLLED(i, GROUP / 2)
        {
            const Real kept = scores[b][i / 4][i % 4];
            TGI_FOR_UNROLLED(j, Keys / GROUP - 1)
            scores[b][j * (GROUP / 8) + i / 4][i % 4] =
                scores[b][(j + 1) * (GROUP / 8) + i / 4][i % 4];
            scores[b][(Keys - GROUP) / 8 + i / 4][i % 4] = kept;
        }
    }
}

/* Hides the keys that a row does not see. The row is number `half` of the lane's two rows of 16. */
template <int Keys, class Lanes = tgi_attend_lanes, typename Real>
static __device__ __forceinline__ void tgi_attend_hide_row(const tgi_attend_row_place &row,
                                                           int key_0, int half,
                                                           Real (&scores)[Keys / 8][4])
{
    const int first = key_0 + Lanes::find_column() * 2;
    const int low = row.low - first, high = row.high - first;
    TGI_FOR_UNROLLED(j, Keys / 8)
    TGI_FOR_UNROLLED(i, 2)
    if (8 * j + i < low || 8 * j + i >= high)
        scores[j][2 * half + i] = -INFINITY;
}

/* Hides the keys that the warp's rows do not see. */
template <int Keys, int Blocks, typename Real>
static __device__ __forceinline__ void tgi_attend_hide(const tgi_attend_args &p,
                                                       const tgi_attend_place &place, int key_0,
                                                       Real (&scores)[Blocks][Keys / 8][4])
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    tgi_attend_hide_row<Keys>(tgi_attend_find_row(p, place, tgi_attend_row<Blocks>(b, half)), key_0,
                              half, scores[b]);
}

/* Returns the largest of `before` and the scores of row `half` of the lane's two rows of 16. */
template <int Keys, int Blocks, class Lanes, typename Real>
static __device__ __forceinline__ Real
tgi_attend_find_row_largest(const Real (&scores)[Keys / 8][4], int half, Real before)
{
    enum { CHAINS = Blocks > 1 ? 1 : 4 }; /* four chains or more hide the latency */
    Real most[CHAINS];
    TGI_FOR_UNROLLED(i, CHAINS)
    most[i] = before;
    TGI_FOR_UNROLLED(j, Keys / 8)
    most[j % CHAINS] = tgi_attend_larger(
        most[j % CHAINS], tgi_attend_larger(scores[j][2 * half], scores[j][2 * half + 1]));
    Real largest = most[0];
    if constexpr (CHAINS == 4)
        largest = tgi_attend_larger(tgi_attend_larger(most[0], most[1]),
                                    tgi_attend_larger(most[2], most[3]));
    largest = tgi_attend_larger(largest, Lanes::exchange(largest, 1));
    return tgi_attend_larger(largest, Lanes::exchange(largest, 2));
}

/* Makes `largest` the largest score of a row. Finds the reference of its weights and the factor
 * that rescales the earlier sums, and rescales the sum of weights. The reference is the largest
 * score, scaled. The largest weight is then 1, which is exact. With a smaller reference its
 * rounding error would be missing in the sum of weights, and a V of ones would show it. */
template <int Head, int Blocks, typename Real, class Lanes>
static __device__ __forceinline__ void
tgi_attend_raise(Real scale, Real largest, int b, int half,
                 tgi_attend_state<Head, Blocks, Real, Lanes> &state, Real &reference, Real &factor)
{
    const Real before = state.largest[b][half];
    const Real scaled = largest == -INFINITY ? Real(0) : tgi_attend_multiply(largest, scale);
    factor = tgi_attend_exp2(tgi_attend_multiply(before, scale) - scaled);
    state.largest[b][half] = largest;
    state.total[b][half] *= factor;
    reference = scaled;
}

/* Finds the largest score, the reference and the factor of each row. */
template <int Head, int Keys, int Blocks>
static __device__ __forceinline__ void
tgi_attend_find_largest(float scale, const float (&scores)[Blocks][Keys / 8][4],
                        tgi_attend_state<Head, Blocks> &state, float (&references)[Blocks][2],
                        float (&factors)[Blocks][2])
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    tgi_attend_raise(scale,
                     tgi_attend_find_row_largest<Keys, Blocks, tgi_attend_lanes>(
                         scores[b], half, state.largest[b][half]),
                     b, half, state, references[b][half], factors[b][half]);
}

/* Turns word `at` (0 .. 4 Blocks - 1) of the scores of 16 keys into weights of the type, and adds
 * the weights to their sum. Two matrices of weights side by side are one operand of the product
 * with V. */
template <tg_type Type, int Head, int Keys, int Blocks>
static __device__ __forceinline__ void
tgi_attend_weigh_word(float scale, int keys, int at, const float (&scores)[Blocks][Keys / 8][4],
                      const float (&references)[Blocks][2], tgi_attend_state<Head, Blocks> &state,
                      uint32_t (&weights)[Blocks][Keys / 16][4])
{
    const int b = at / 4, i = at % 4, half = i % 2;
    const float *const pair = &scores[b][2 * keys + i / 2][2 * half];
    const float first = tgi_ptx_exp2(fmaf(pair[0], scale, -references[b][half]));
    const float second = tgi_ptx_exp2(fmaf(pair[1], scale, -references[b][half]));
    state.total[b][half] += first + second;
    weights[b][keys][i] = tgi_encode_pair(Type, first, second);
}

/* Turns all scores into weights. */
template <tg_type Type, int Head, int Keys>
static __device__ __forceinline__ void
tgi_attend_weigh(float scale, const float (&scores)[1][Keys / 8][4],
                 const float (&references)[1][2], tgi_attend_state<Head, 1> &state,
                 uint32_t (&weights)[1][Keys / 16][4])
{
    TGI_FOR_UNROLLED(at, Keys / 4)
    tgi_attend_weigh_word<Type, Head, Keys, 1>(scale, at / 4, at % 4, scores, references, state,
                                               weights);
}

/* Returns 1 to all lanes of a warp if the largest score of any of its rows has grown. */
template <int Blocks>
static __device__ __forceinline__ int tgi_attend_has_grown(const float (&factors)[Blocks][2])
{
    int has_grown = 0;
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    has_grown |= factors[b][half] != 1.0f;
    return __any_sync(~0u, has_grown);
}

/* Rescales the earlier sums. */
template <int Head, int Blocks>
static __device__ __forceinline__ void tgi_attend_rescale(const float (&factors)[Blocks][2],
                                                          tgi_attend_state<Head, Blocks> &state)
{
    TGI_FOR_UNROLLED(b, Blocks)
    TGI_FOR_UNROLLED(half, 2)
    TGI_FOR_UNROLLED(j, Head / 8)
    TGI_FOR_UNROLLED(i, 2)
    state.sums[b][j][2 * half + i] *= factors[b][half];
}

#endif
