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

/* Returns element `index` of A or B as the sums take it. */
static __device__ __forceinline__ void tgi_read_direct(const void *data, int64_t index, tg_type,
                                                       double &value)
{
    value = static_cast<const double *>(data)[index];
}

static __device__ __forceinline__ void tgi_read_direct(const void *data, int64_t index,
                                                       tg_type type, float &value)
{
    value = tgi_read_element(data, index, type);
}

/* T is the type of the sums. If T is FP32 and Narrow is 0, elements have 32 bits. */
template <typename T, int Narrow> struct tgi_direct {
    static constexpr int rows = TGI_SMALL_DIRECT_ROWS, at_once = TGI_SMALL_DIRECT_STEPS;

    static __device__ __forceinline__ T read(const tgi_gemm_args &args, const void *data,
                                             int64_t index)
    {
        const tg_type type = !Narrow                             ? TG_TYPE_FP32
                             : args.problem.type == TG_TYPE_BF16 ? TG_TYPE_BF16
                                                                 : TG_TYPE_FP16;
        T value;
        tgi_read_direct(data, index, type, value);
        return value;
    }

    /* Adds the products of k, k + lanes, ..., Steps in all, as far as they exist. All their loads
     * are under way at once. `b` and `a` are the offsets of k = 0. */
    template <int Steps>
    static __device__ __forceinline__ void add_steps(const tgi_gemm_args &args, int k, int lanes,
                                                     const int64_t (&a)[rows], int64_t b,
                                                     T (&sum)[rows])
    {
        const tgi_problem &p = args.problem;
        T a_value[Steps][rows], b_value[Steps];
#pragma unroll
        for (int step = 0; step < Steps; step++, k += lanes) {
            const int is_inside = Steps == 1 || k < static_cast<int>(p.k);
            b_value[step] = is_inside ? read(args, args.b, b + k * p.b.row) : T(0);
#pragma unroll
            for (int i = 0; i < rows; i++)
                a_value[step][i] = is_inside ? read(args, args.a, a[i] + k * p.a.col) : T(0);
        }
#pragma unroll
        for (int step = 0; step < Steps; step++)
#pragma unroll
            for (int i = 0; i < rows; i++)
                sum[i] += a_value[step][i] * b_value[step];
    }

    /* Adds the products of every `lanes`-th k from `lane` on. `a` and `b` are the offsets of the
     * first row and of the column. Rows outside D repeat the last one. */
    static __device__ __forceinline__ void add_products(const tgi_gemm_args &args, int64_t a,
                                                        int64_t b, int row_count, int lane,
                                                        int lanes, T (&sum)[rows])
    {
        const int k_count = static_cast<int>(args.problem.k);
        int64_t a_row[rows];
#pragma unroll
        for (int i = 0; i < rows; i++)
            a_row[i] = a + min(i, row_count - 1) * args.problem.a.row;
        int k = lane;
#pragma unroll 1
        for (; k + lanes < k_count; k += at_once * lanes)
            add_steps<at_once>(args, k, lanes, a_row, b, sum);
        if (k < k_count)
            add_steps<1>(args, k, lanes, a_row, b, sum);
    }

    /* Adds a warp's sums over the neighbours that share k, to all of which it returns the
     * result. */
    static __device__ __forceinline__ void add_neighbours(int lanes, T (&sum)[rows])
    {
#pragma unroll 1
        for (int distance = lanes / 2; distance > 0; distance /= 2)
#pragma unroll
            for (int i = 0; i < rows; i++)
                sum[i] += __shfl_xor_sync(~0u, sum[i], distance);
    }

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, T *shared)
    {
        const tgi_problem &p = args.problem;
        const int is_along = args.b_along_k, threads = TGI_SMALL_DIRECT_THREADS;
        const int lanes = is_along ? blockDim.x : blockDim.y, cols = threads / lanes;
        const int lane = is_along ? threadIdx.x : threadIdx.y;
        const int thread_col = is_along ? threadIdx.y : threadIdx.x;
        const unsigned n = static_cast<unsigned>(p.n), unit = blockIdx.x * cols + thread_col;
        const int64_t row = static_cast<int64_t>(unit / n) * rows, col = unit % n;
        const int row_count = static_cast<int>(min(p.m - row, static_cast<int64_t>(rows)));
        tgi_wait_for_stream();
#pragma unroll 1
        for (int64_t batch = blockIdx.y; batch < p.batch_count; batch += gridDim.y) {
            T sum[rows] = {};
            if (row_count > 0)
                add_products(args, tgi_offset(p.a, batch, row, 0), tgi_offset(p.b, batch, 0, col),
                             row_count, lane, lanes, sum);
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
                T value[1] = {};
#pragma unroll 4
                for (int from = 0; from < (is_along ? 1 : lanes); from++)
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
#define TGI_SMALL_DIRECT(name, sum, is_narrow)
#else
#define TGI_SMALL_DIRECT(name, sum, is_narrow)                                                     \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_DIRECT_THREADS)                         \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_direct<sum, is_narrow>::multiply(args, reinterpret_cast<sum *>(shared));               \
    }
#endif

#endif
