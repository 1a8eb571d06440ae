/*
 * Family small without stages. Threads read their elements of A and B where they lie, for a k so
 * short, or a D so small, that stages and barriers would take longer than the products. A thread
 * has some rows of one column of D. Threads share out k. They are neighbours if B lies along k, so
 * that a warp reads a line; else they differ in the block's second dimension, so that a warp reads
 * a row.
 */
#ifndef TGI_SMALL_DIRECT_CUH
#define TGI_SMALL_DIRECT_CUH

#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/small/small_shape.h"

/* Type is the type of A and B. */
template <tg_type Type> struct tgi_direct {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    static constexpr int rows = TGI_SMALL_DIRECT_ROWS, at_once = TGI_SMALL_DIRECT_LOADS;
    /* Sums of FP64 take twice the registers. */
    static constexpr int blocks = TGI_SMALL_DIRECT_BLOCKS * 4 / static_cast<int>(sizeof(sum_type));

    /* A thread's elements of A and B: every `lanes`-th k from its own on. */
    struct share {
        const elem *a, *b;
        int64_t a_row, a_stride, b_stride;
        int row_count; /* rows of the thread that lie in D */

        /* Adds the products of the next Loads values of k, of which those with `left` > 0 exist.
         * All their loads are under way at once. */
        template <int Loads>
        __device__ __forceinline__ void add(int left, int lanes, sum_type (&sum)[rows])
        {
            elem a_value[Loads][rows], b_value[Loads];
#pragma unroll
            for (int load = 0; load < Loads; load++, left -= lanes) {
                b_value[load] = left > 0 ? *b : elem(0);
#pragma unroll
                for (int i = 0; i < rows; i++)
                    a_value[load][i] = left > 0 && i < row_count ? a[i * a_row] : elem(0);
                a += a_stride;
                b += b_stride;
            }
#pragma unroll
            for (int load = 0; load < Loads; load++)
#pragma unroll
                for (int i = 0; i < rows; i++)
                    sum[i] += decode(a_value[load][i]) * decode(b_value[load]);
        }
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

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, sum_type *shared)
    {
        const tgi_problem &p = args.problem;
        const int is_along = args.b_along_k, threads = TGI_SMALL_DIRECT_THREADS;
        const int lanes = is_along ? blockDim.x : blockDim.y, cols = threads / lanes;
        const int lane = is_along ? threadIdx.x : threadIdx.y;
        const int thread_col = is_along ? threadIdx.y : threadIdx.x;
        const unsigned n = static_cast<unsigned>(p.n), unit = blockIdx.x * cols + thread_col;
        const int64_t row = static_cast<int64_t>(unit / n) * rows, col = unit % n;
        const int row_count = static_cast<int>(min(p.m - row, static_cast<int64_t>(rows)));
        const int left = row_count > 0 ? static_cast<int>(p.k) - lane : 0;
        const int added = is_along ? 32 : 1; /* lanes whose sums shuffles have added */
        const elem *a = static_cast<const elem *>(args.a) + row * p.a.row + lane * p.a.col;
        const elem *b = static_cast<const elem *>(args.b) + col * p.b.col + lane * p.b.row;
        tgi_wait_for_stream();
#pragma unroll 1
        for (int64_t batch = blockIdx.y; batch < p.batch_count; batch += gridDim.y) {
            share own = {a + batch * p.a.batch, b + batch * p.b.batch, p.a.row,
                         lanes * p.a.col,       lanes * p.b.row,       row_count};
            sum_type sum[rows] = {};
            int next = left;
#pragma unroll 1
            for (; next > lanes; next -= at_once * lanes)
                own.template add<at_once>(next, lanes, sum);
            if (next > 0)
                own.template add<1>(next, lanes, sum);
            if (is_along)
                add_neighbours(lanes, sum);
#pragma unroll
            for (int i = 0; i < rows; i++)
                shared[i * threads + lane * cols + thread_col] = sum[i];
            /* Without this barrier a thread would read sums that others have yet to put. */
            __syncthreads();
#pragma unroll 1
            for (int i = lane; i < row_count; i += lanes) {
                const tgi_column_places place = {0, 1, 1};
                sum_type value[1] = {};
#pragma unroll 4
                for (int from = 0; from < lanes; from += added)
                    value[0] += shared[i * threads + from * cols + thread_col];
                if (args.is_sum_alone)
                    tgi_write_elements(args, tgi_offset(p.d, batch, row + i, col), place, value);
                else
                    tgi_finish_elements(args, batch, row + i, col, place, value);
            }
            /* Without this barrier the next entry's sums would overwrite some yet to be read. */
            __syncthreads();
        }
    }
};

/* Chips before Hopper have no such function, which keeps images small. */
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ < 900
#define TGI_SMALL_DIRECT(type)
#else
#define TGI_SMALL_DIRECT(type)                                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_DIRECT_THREADS,                         \
                                                 tgi_direct<TGI_TYPE_OF(type)>::blocks)            \
        tgi_direct_##type(const __grid_constant__ tgi_gemm_args args)                              \
    {                                                                                              \
        typedef tgi_direct<TGI_TYPE_OF(type)> body;                                                \
        extern __shared__ __align__(128) char shared[];                                            \
        body::multiply(args, reinterpret_cast<body::sum_type *>(shared));                          \
    }
#endif

#endif
