/* Adds states of rows of D in order: those of splits, by a kernel of its own, or of a block's
 * warps. */
#ifndef TGI_ATTEND_MERGE_CUH
#define TGI_ATTEND_MERGE_CUH

#include "kernels/attend/attend_store.cuh"

/* Returns the address of the splits of row `at` of D, or NULL if the batch entry has no such
 * row. */
template <typename Real>
static __device__ __forceinline__ const Real *
tgi_attend_find_merged(const tgi_attend_args &p, unsigned at, int &entry, int &head, int &row)
{
    const tg_attention &a = p.attention;
    const unsigned heads = static_cast<unsigned>(a.head_count);
    const unsigned rows = static_cast<unsigned>(a.m);
    const int batch = static_cast<int>(at / rows / heads);
    if (batch >= a.batch_count)
        return NULL;
    row = static_cast<int>(at % rows);
    head = static_cast<int>(at / rows % heads);
    entry = batch;
    const Real *const splits = tgi_attend_find_split<Real>(p, 0, batch, head, row);
    if (a.has_query_offsets) {
        const int first = a.query_offsets[batch];
        if (row >= a.query_offsets[batch + 1] - first)
            return NULL;
        entry = 0;
        row += first;
    }
    return splits;
}

/* Adds the splits first, first + stride, ... of a row of D to the state of a warp: the largest
 * score, the sum of weights, and every 32nd sum from the lane's number on. Splits of a round are
 * read together, so that the warp waits for them once. */
template <typename Real>
static __device__ __forceinline__ void
tgi_attend_add_splits(const tgi_attend_args &p, const Real *splits, int first, int stride,
                      Real (&end)[2], Real (&sums)[TGI_ATTEND_HEAD_MAX / 32])
{
    enum { ROUND = 16 / sizeof(Real), EACH = TGI_ATTEND_HEAD_MAX / 32 };
    const int size = static_cast<int>(p.attention.v_head_size), lane = tgi_thread() % 32;
    const int reals = static_cast<int>(tgi_attend_split_reals(size));
#pragma unroll 1
    for (int begin = first; begin < p.split_count; begin += ROUND * stride) {
        Real ends[ROUND][2], own[ROUND][EACH], largest = end[0];
        TGI_FOR_UNROLLED(i, ROUND)
        {
            const Real *const split = splits + (begin + i * stride) * reals;
            const int is_there = begin + i * stride < p.split_count;
            ends[i][0] = is_there ? split[reals - 2] : static_cast<Real>(-INFINITY);
            ends[i][1] = is_there ? split[reals - 1] : Real(0);
            TGI_FOR_UNROLLED(j, EACH)
            own[i][j] = is_there && 32 * j + lane < size ? split[32 * j + lane] : Real(0);
        }
        TGI_FOR_UNROLLED(i, ROUND)
        largest = tgi_attend_larger(largest, ends[i][0]);
        const Real finite = largest == -INFINITY ? Real(0) : largest;
        const Real factor = tgi_attend_exp2(end[0] - finite);
        end[0] = largest;
        end[1] *= factor;
        TGI_FOR_UNROLLED(j, EACH)
        sums[j] *= factor;
        TGI_FOR_UNROLLED(i, ROUND)
        {
            const Real weight = tgi_attend_exp2(ends[i][0] - finite);
            end[1] = tgi_attend_multiply_add(weight, ends[i][1], end[1]);
            TGI_FOR_UNROLLED(j, EACH)
            sums[j] = tgi_attend_multiply_add(weight, own[i][j], sums[j]);
        }
    }
}

/* Adds `count` states of a row in their order, by `threads` threads, two columns of D each. Calls
 * store(e, largest, total, sums) for columns e and e + 1, of `size`. */
template <typename Real, typename Store>
static __device__ __forceinline__ void
tgi_attend_add_in_order(const Real (*states)[TGI_ATTEND_HEAD_MAX], const Real (*ends)[2], int count,
                        int size, int thread, int threads, Store store)
{
    Real largest = -INFINITY;
#pragma unroll 4
    for (int w = 0; w < count; w++)
        largest = tgi_attend_larger(largest, ends[w][0]);
    const Real finite = largest == -INFINITY ? Real(0) : largest;
#pragma unroll 1
    for (int e = 2 * thread; e < size; e += 2 * threads) {
        Real total = 0, sums[2] = {};
#pragma unroll 4
        for (int w = 0; w < count; w++) {
            const Real weight = tgi_attend_exp2(ends[w][0] - finite);
            total = tgi_attend_multiply_add(weight, ends[w][1], total);
            sums[0] = tgi_attend_multiply_add(weight, states[w][e], sums[0]);
            sums[1] = tgi_attend_multiply_add(weight, states[w][e + 1], sums[1]);
        }
        store(e, largest, total, sums);
    }
}

/* Adds the splits of tgi_attend_count_merged rows of D in a block. Warps that share a row take its
 * splits in turn, and then add their states in order, two columns of D a lane. */
template <tg_type Type>
static __device__ __forceinline__ void tgi_attend_merge(const tgi_attend_args &p)
{
    enum { WARPS = TGI_ATTEND_MERGE_WARPS_MAX, SIZE = TGI_ATTEND_HEAD_MAX };
    typedef tgi_attend_real<Type> Real;
    __shared__ Real states[WARPS][SIZE], ends[WARPS][2];
    const tg_attention &a = p.attention;
    const int size = static_cast<int>(a.v_head_size);
    const int warp = tgi_thread() / 32, lane = tgi_thread() % 32;
    const int row_count = tgi_attend_count_merged(p.split_count);
    const int sharers = tgi_attend_count_merge_warps(p.split_count) / row_count;
    int entry, head, row;
    if (a.has_query_offsets)
        tgi_wait_for_stream();
    const Real *const splits = tgi_attend_find_merged<Real>(
        p, blockIdx.x * static_cast<unsigned>(row_count) + static_cast<unsigned>(warp / sharers),
        entry, head, row);
    if (!a.has_query_offsets)
        tgi_wait_for_stream();
    tgi_start_next();
    if (splits) {
        Real end[2] = {-INFINITY, 0}, value[SIZE / 32] = {};
        tgi_attend_add_splits(p, splits, warp % sharers, sharers, end, value);
        TGI_FOR_UNROLLED(j, SIZE / 32)
        states[warp][32 * j + lane] = value[j];
        if (lane < 2)
            ends[warp][lane] = end[lane];
    }
    __syncthreads();
    if (!splits)
        return;
    const int first = warp / sharers * sharers;
    tgi_attend_add_in_order<Real>(
        states + first, ends + first, sharers, size, tgi_thread() - 32 * first, 32 * sharers,
        [&](int e, Real largest, Real total, const Real(&sums)[2]) {
            if (e == 0 && a.has_log_sum_exp)
                tgi_attend_store_log(p, tgi_attend_offset(a.log_sum_exp, entry, head, row), largest,
                                     total);
            tgi_attend_store_pair<Type>(p, tgi_attend_offset(a.d, entry, head, row), e, sums,
                                        total);
        });
}

#endif
