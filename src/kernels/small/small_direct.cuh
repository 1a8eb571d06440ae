/*
 * Forms products of family small without stages. Threads read their elements of A and B where they
 * lie, for a k so short, or a D so small, that stages and barriers would take longer than the
 * products. A thread has some rows of one column of D. Threads share out k. They are neighbours, so
 * that a warp reads a line along k, or differ in the block's second dimension, so that a warp reads
 * neighbouring columns. Sums of 32 neighbours are added in pairs, and then those of one group after
 * another; other threads are added in order, or for a batch-invariant problem as neighbours are. In
 * a second function the blocks of a cluster share out k too, for a D of few elements and a long k.
 * It is one of its own, because code with a barrier of a cluster takes longer even if the barrier
 * is not reached.
 *
 *     setup()      finds the thread's rows, its column and its first k
 *     load()       loads a thread's elements of some values of k, all at once
 *     multiply()   adds their products to the thread's sums
 *     finish()     adds the sums of the threads that share out k, and stores the elements
 */
#ifndef TGI_SMALL_DIRECT_CUH
#define TGI_SMALL_DIRECT_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/cluster_element.cuh"
#include "kernels/ptx/cluster_memory.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/small/small_shape.h"

/* Type is the type of A and B. If Is_clustered is 1, the blocks of a cluster share out k. */
template <tg_type Type, int Is_clustered> struct tgi_direct {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    static constexpr int rows = TGI_SMALL_DIRECT_ROWS, at_once = TGI_SMALL_DIRECT_LOADS;
    /* Sums of FP64 take twice the registers. */
    static constexpr int blocks = TGI_SMALL_DIRECT_BLOCKS * 4 / static_cast<int>(sizeof(sum_type));

    /* A thread's elements of A and B in a batch entry, from its next k on, of which it has every
     * `lanes`-th. */
    struct source {
        const elem *a, *b;
        int64_t a_row, a_stride, b_stride;
        int row_count; /* rows of the thread that lie in D */
    };

    /* Holds the elements of Loads values of k. */
    template <int Loads> struct step {
        elem a[Loads][rows], b[Loads];
    };

    static __device__ __forceinline__ sum_type decode(elem value)
    {
        if constexpr (Type == TG_TYPE_BF16)
            return tgi_fp32_from_bf16(value);
        else if constexpr (Type == TG_TYPE_FP16)
            return tgi_decode_fp16(value);
        else
            return value;
    }

    /* Adds a warp's sums over the neighbours that share k, to all of which it returns the
     * result. */
    static __device__ __forceinline__ void add_neighbours(int lanes, sum_type (&sum)[rows])
    {
#pragma unroll 1
        for (int distance = min(lanes, 32) / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int i = 0; i < rows; i++)
                sum[i] += __shfl_xor_sync(~0u, sum[i], distance);
    }

    sum_type *shared;
    int is_along;         /* 1: threads that share out k are neighbours */
    int lanes, lane;      /* threads of a block that share out k, and this one */
    int cluster, rank;    /* blocks that do so, and this one */
    int cols, thread_col; /* columns of D of the block, and this thread's */
    int64_t row, col;     /* the thread's first row, and its column of D */
    int row_count;

    __device__ __forceinline__ void setup(const tgi_gemm_args &args, sum_type *memory)
    {
        const tgi_problem &p = args.problem;
        shared = memory;
        is_along = args.b_along_k; /* as the launch decides */
        lanes = is_along ? blockDim.x : blockDim.y;
        cols = TGI_SMALL_DIRECT_THREADS / lanes;
        lane = is_along ? threadIdx.x : threadIdx.y;
        cluster = Is_clustered ? gridDim.z : 1;
        rank = Is_clustered ? blockIdx.z : 0;
        thread_col = is_along ? threadIdx.y : threadIdx.x;
        const unsigned n = static_cast<unsigned>(p.n), unit = blockIdx.x * cols + thread_col;
        row = static_cast<int64_t>(unit / n) * rows;
        col = unit % n;
        row_count = static_cast<int>(min(p.m - row, static_cast<int64_t>(rows)));
    }

    /* Loads the elements of the next values of k, of which those with `left` > 0 exist. */
    template <int Loads>
    __device__ __forceinline__ void load(source &from, int left, step<Loads> &next) const
    {
#pragma unroll
        for (int i = 0; i < Loads; i++, left -= lanes * cluster) {
            next.b[i] = left > 0 ? *from.b : elem(0);
#pragma unroll
            for (int j = 0; j < rows; j++)
                next.a[i][j] = left > 0 && j < from.row_count ? from.a[j * from.a_row] : elem(0);
            from.a += from.a_stride;
            from.b += from.b_stride;
        }
    }

    template <int Loads>
    static __device__ __forceinline__ void multiply(sum_type (&sum)[rows], const step<Loads> &next)
    {
#pragma unroll
        for (int i = 0; i < Loads; i++)
#pragma unroll
            for (int j = 0; j < rows; j++)
                sum[j] += decode(next.a[i][j]) * decode(next.b[i]);
    }

    template <int Loads>
    __device__ __forceinline__ void add(source &from, int left, sum_type (&sum)[rows]) const
    {
        step<Loads> next;
        load(from, left, next);
        multiply(sum, next);
    }

    /* Returns the sum of row `i` of the thread's column over the threads of the block that share
     * out k, of which shuffles have added `added`. */
    __device__ __forceinline__ sum_type add_lanes(int i, int added) const
    {
        sum_type sum = {};
#pragma unroll 4
        for (int from = 0; from < lanes; from += added)
            sum += shared[i * TGI_SMALL_DIRECT_THREADS + from * cols + thread_col];
        return sum;
    }

    /* Returns the sum of row `i` over the blocks of the cluster, in order, which have put theirs in
     * place of the sum of their first lane. */
    __device__ __forceinline__ sum_type add_blocks(int i) const
    {
        const sum_type *own = shared + i * TGI_SMALL_DIRECT_THREADS + thread_col;
        sum_type part[TGI_SMALL_DIRECT_CLUSTER], sum = {};
#pragma unroll
        for (int from = 0; from < TGI_SMALL_DIRECT_CLUSTER; from++)
            if (from < cluster)
                tgi_read_remote(part[from], tgi_find_remote(tgi_shared_address(own), from));
#pragma unroll
        for (int from = 0; from < TGI_SMALL_DIRECT_CLUSTER; from++)
            if (from < cluster)
                sum += part[from];
        return sum;
    }

    __device__ __forceinline__ void finish(const tgi_gemm_args &args, int64_t batch,
                                           sum_type (&sum)[rows]) const
    {
        const int threads = TGI_SMALL_DIRECT_THREADS;
        const int is_paired = is_along || (Type != TG_TYPE_FP32 && args.problem.is_batch_invariant);
        const int added = is_paired ? 32 : 1; /* lanes whose sums are added in pairs */
        if (is_along)
            add_neighbours(lanes, sum);
        sum_type *const own = shared + lane * cols + thread_col;
#pragma unroll
        for (int i = 0; i < rows; i++)
            own[i * threads] = sum[i];
        if (is_paired && !is_along) {
#pragma unroll 1
            for (int distance = min(lanes, added) / 2; distance > 0; distance /= 2) {
                /* Without this barrier a thread would add a sum that another has yet to put. */
                __syncthreads();
                if (lane % added < distance) {
#pragma unroll 1
                    for (int i = 0; i < rows * threads; i += threads)
                        own[i] += own[i + distance * cols];
                }
            }
        }
        /* Without this barrier a thread would read sums that others have yet to put. */
        __syncthreads();
        if constexpr (Is_clustered) {
#pragma unroll 1
            for (int i = lane; i < row_count; i += lanes)
                shared[i * threads + thread_col] = add_lanes(i, added);
            tgi_cluster_meet();
        }
#pragma unroll 1
        for (int i = lane; i < row_count && rank == 0; i += lanes) {
            const tgi_column_places place = {0, 1, 1};
            sum_type value[1] = {Is_clustered ? add_blocks(i) : add_lanes(i, added)};
            if (args.is_sum_alone)
                tgi_write_elements(args, tgi_offset(args.problem.d, batch, row + i, col), place,
                                   value);
            else
                tgi_finish_elements(args, batch, row + i, col, place, value);
        }
        /* Without this barrier the next entry's sums would overwrite some yet to be read. */
        if constexpr (Is_clustered)
            tgi_cluster_meet();
        else
            __syncthreads();
    }

    /* Forms the thread's elements of one batch entry after another. */
    static __device__ __forceinline__ void form(const tgi_gemm_args &args, sum_type *memory)
    {
        const tgi_problem &p = args.problem;
        tgi_check_body<tgi_direct>();
        tgi_check_sum<tgi_direct>();
        tgi_direct body;
        body.setup(args, memory);
        const int lane_k = body.rank * body.lanes + body.lane;
        const int step_k = body.cluster * body.lanes; /* from a thread's value of k to its next */
        const int left = body.row_count > 0 ? static_cast<int>(p.k) - lane_k : 0;
        const elem *a = static_cast<const elem *>(args.a) + body.row * p.a.row + lane_k * p.a.col;
        const elem *b = static_cast<const elem *>(args.b) + body.col * p.b.col + lane_k * p.b.row;
        tgi_wait_for_stream();
#pragma unroll 1
        for (int64_t batch = blockIdx.y; batch < p.batch_count; batch += gridDim.y) {
            source own = {a + batch * p.a.batch, b + batch * p.b.batch, p.a.row,
                          step_k * p.a.col,      step_k * p.b.row,      body.row_count};
            sum_type sum[rows] = {};
            int next = left;
#pragma unroll 1
            for (; next > step_k; next -= at_once * step_k)
                body.template add<at_once>(own, next, sum);
            if (next > 0)
                body.template add<1>(own, next, sum);
            body.finish(args, batch, sum);
        }
    }
};

/* Chips before Hopper have no such function, which keeps images small. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_DIRECT(type)
#else
#define TGI_SMALL_DIRECT(type)                                                                     \
    TGI_SMALL_DIRECT_ONE(tgi_direct_##type, type, 0)                                               \
    TGI_SMALL_DIRECT_ONE(tgi_direct_cluster_##type, type, 1)
#endif
#define TGI_SMALL_DIRECT_ONE(name, type, is_clustered)                                             \
    extern "C" __global__ void __launch_bounds__(                                                  \
        TGI_SMALL_DIRECT_THREADS, (tgi_direct<TGI_TYPE_OF(type), is_clustered>::blocks))           \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_direct<TGI_TYPE_OF(type), is_clustered> body;                                  \
        extern __shared__ __align__(128) char shared[];                                            \
        body::form(args, reinterpret_cast<body::sum_type *>(shared));                              \
    }

#endif
