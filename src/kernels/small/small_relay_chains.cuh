/*
 * Forms products of family small that are batch invariant and have few elements of D, by
 * multiply-adds of FP32, in the order of the rows that form large ones. A block copies the
 * lines of a small tile of D to shared memory, by lanes that lie along whichever way an operand is
 * contiguous. A thread then adds the products of a chain, one after another: those of an element, a
 * split and a team (kernels.def). Blocks of a cluster share out splits, whose sums are added in
 * order at the end (small_relay_sums.cuh). The code is kept small (small_short.cuh).
 *
 *     setup()      finds the block's tile and its share of k
 *     load()       copies the thread's share of the lines (small_relay_copies.cuh)
 *     multiply()   adds the products of a chain
 *     finish()     adds the sums of splits, and stores the element
 */
#ifndef TGI_SMALL_RELAY_CHAINS_CUH
#define TGI_SMALL_RELAY_CHAINS_CUH

#include "kernels/body.cuh"
#include "kernels/small/small_relay_copies.cuh"
#include "kernels/small/small_relay_sums.cuh"

/* C, the bias and the activation of an element. Behind a reference they would be read from global
 * memory, one after another. */
struct tgi_chain_terms {
    double alpha, beta;
    const void *c, *bias_data;
    int64_t c_row, c_col, c_batch;
    tg_bias bias;
    tg_activation activation;
};

/* Returns the element whose sum is given. Its code lies apart: beside that of sums alone it would
 * take them 0.1 us more. */
static __device__ __noinline__ float tgi_finish_chain(tgi_chain_terms given, int row, int col,
                                                      float sum)
{
    tgi_relay_short_args all;
    all.epilogue.alpha = given.alpha;
    all.epilogue.beta = given.beta;
    all.epilogue.bias = given.bias;
    all.epilogue.activation = given.activation;
    all.c = given.c;
    all.bias = given.bias_data;
    all.c_row = given.c_row;
    all.c_col = given.c_col;
    all.c_batch = given.c_batch;
    const tgi_short_terms<uint32_t> own = tgi_request_terms<uint32_t>(all, TG_TYPE_FP32, row, col);
    return tgi_apply_terms(all, TG_TYPE_FP32, own, sum);
}

struct tgi_relay_chains : tgi_relay_copies<float> {
    static constexpr int unit = 4; /* elements that are read at once */
    /* A team has so many values of k one after another. */
    static constexpr int run_bits = 3, run = 1 << run_bits;
    int first_split, splits; /* the splits that the block forms */
    float *a, *b, *kept;     /* the lines of both operands, and the sums of all splits */

    __device__ __forceinline__ void setup(const tgi_relay_args &args, float *memory)
    {
        const int block_elems = min(args.block_splits * args.split_elems, args.sums.k);
        const int apart = run << args.team_bits;
        first_split = tgi_relay_find_rank(args) * args.block_splits;
        splits = max(0, min(args.block_splits, args.split_count - first_split));
        first_k = first_split * args.split_elems;
        depth = splits > 0 ? min(block_elems, args.sums.k - first_k) : 0;
        padded = (depth + apart - 1) & -apart;
        pitch = TGI_SMALL_RELAY_PITCH(block_elems, 4) / 4;
        a = memory;
        b = a + (pitch << args.relay_bits);
        kept = b + (pitch << args.col_bits);
    }

    /* Returns the sum of a chain: `count` runs of a team, `apart` from each other in two lines. */
    static __device__ __forceinline__ float multiply(const float *a_at, const float *b_at,
                                                     int apart, int count)
    {
        typedef tgi_row_piece<float, unit> piece;
        float sum = 0;
#pragma unroll 2
        for (int i = 0; i < count; i++, a_at += apart, b_at += apart) {
            piece some_a[run / unit], some_b[run / unit];
#pragma unroll
            for (int j = 0; j < run / unit; j++) {
                some_a[j] = reinterpret_cast<const piece *>(a_at)[j];
                some_b[j] = reinterpret_cast<const piece *>(b_at)[j];
            }
#pragma unroll
            for (int j = 0; j < run; j++)
                sum = fma(some_a[j / unit].element[j % unit], some_b[j / unit].element[j % unit],
                          sum);
        }
        return sum;
    }

    /* Returns the sum over the teams, which are neighbouring lanes, in order. */
    static __device__ __forceinline__ float add_teams(const tgi_relay_args &args, float sum)
    {
        const int lane = threadIdx.x % 32 & -(1 << args.team_bits);
        float all = __shfl_sync(~0u, sum, lane);
#pragma unroll 1
        for (int team = 1; team < 1 << args.team_bits; team++)
            all += __shfl_sync(~0u, sum, lane + team);
        return all;
    }

    /* Forms the block's chains, and keeps the sums of splits in the first block. */
    __device__ __forceinline__ void form_splits(const tgi_relay_args &args) const
    {
        const int elem_bits = args.relay_bits + args.col_bits, apart = run << args.team_bits;
        const int team = threadIdx.x & ((1 << args.team_bits) - 1);
        const int count = splits << elem_bits << args.team_bits;
        float *const first = tgi_relay_find_first(args, kept) + (first_split << elem_bits);
        /* Threads of a warp go on together. */
#pragma unroll 1
        for (int i = threadIdx.x; (i & ~31) < count; i += blockDim.x) {
            /* Threads behind the last chain add that of others. */
            const int own = min(i, count - 1) >> args.team_bits, split = own >> elem_bits;
            const int at = own & ((1 << elem_bits) - 1);
            const int begin = split * args.split_elems, place = begin + team * run;
            const float sum = multiply(a + (at >> args.col_bits) * pitch + place,
                                       b + (at & ((1 << args.col_bits) - 1)) * pitch + place, apart,
                                       (min(args.split_elems, padded - begin) + apart - 1) >>
                                           (run_bits + args.team_bits));
            const float all = args.team_bits > 0 ? add_teams(args, sum) : sum;
            if (team == 0 && i < count)
                first[own] = all;
        }
    }

    /* Returns the sum of an element over all splits, in the order of tgi_relay_add_splits. Four are
     * read at once, since each waits for shared memory. */
    static __device__ __forceinline__ float add_splits(const tgi_relay_args &args,
                                                       const float *shared, int apart)
    {
        float total = -0.0f;
#pragma unroll 1
        for (int y = 0; y < min(args.add_rows, args.split_count); y += 4) {
            float some[4] = {};
#pragma unroll 1
            for (int split = y; split < args.split_count; split += args.add_rows)
#pragma unroll
                for (int i = 0; i < 4; i++)
                    if (split + i < args.split_count)
                        some[i] += shared[(split + i) * apart];
#pragma unroll
            for (int i = 0; i < 4; i++)
                if (y + i < args.split_count)
                    total += some[i];
        }
        return total;
    }

    /* A sum that is zero is +0, except where one team after another is added to the first. */
    __device__ __forceinline__ void finish(const tgi_relay_short_args &all, int row, int col) const
    {
        const tgi_relay_args &args = all.relay;
        const tgi_epilogue &e = all.epilogue;
        const float *const own = kept + threadIdx.x;
        float sum = *own;
        if (args.split_count > 1)
            sum = add_splits(args, own, 1 << args.relay_bits << args.col_bits);
        else if (args.team_bits == 0)
            sum += 0.0f;
        if (row >= args.sums.m || col >= args.sums.n)
            return;
        if (tgi_has_short_terms(args.sums))
            sum = tgi_finish_chain({e.alpha, e.beta, all.c, all.bias, all.c_row, all.c_col,
                                    all.c_batch, e.bias, e.activation},
                                   row, col, sum);
        tgi_relay_store<TG_TYPE_FP32>(args, row, col, sum);
    }

    static __device__ __forceinline__ void form(const tgi_relay_short_args &all)
    {
        const tgi_relay_args &args = all.relay;
        const tgi_sums_args &p = args.sums;
        extern __shared__ __align__(16) char memory[];
        tgi_check_body<tgi_relay_chains>();
        tgi_check_sum<tgi_relay_chains>();
        tgi_relay_chains body;
        body.setup(args, reinterpret_cast<float *>(memory));
        const int row = blockIdx.y << args.relay_bits, thread = threadIdx.x;
        const int col = blockIdx.x >> args.cluster_bits << args.col_bits;
        const line own_a = body.find_line(args, args.relay_bits, row, p.m - 1,
                                          static_cast<const float *>(p.a) + blockIdx.z * p.a_batch,
                                          p.a_row, p.a_k, body.a);
        const line own_b = body.find_line(args, args.col_bits, col, p.n - 1,
                                          static_cast<const float *>(p.b) + blockIdx.z * p.b_batch,
                                          p.b_col, p.b_k, body.b);
        tgi_wait_for_stream();
        body.load(own_a, own_b);
        /* Without this barrier chains would be added that others have yet to copy. */
        __syncthreads();
        body.form_splits(args);
        if (tgi_relay_wait_for_sums(args) && thread < 1 << args.relay_bits << args.col_bits)
            body.finish(all, row + (thread >> args.col_bits),
                        col + (thread & ((1 << args.col_bits) - 1)));
    }
};

#define TGI_SMALL_RELAY_CHAINS(name)                                                               \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_RELAY_THREADS)                          \
        name(const __grid_constant__ tgi_relay_short_args args)                                    \
    {                                                                                              \
        tgi_relay_chains::form(args);                                                              \
    }

#endif
