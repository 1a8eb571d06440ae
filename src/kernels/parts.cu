/*
 * Ends a split-K product: adds the parts, always in the same order, and stores D. A block has
 * threadIdx.x along D, 16 bytes each, and threadIdx.y across the parts. Row y sums parts y, y +
 * blockDim.y and so on, and the rows' sums are added in order.
 */
#include "kernels/epilogue/tile_store.cuh"

template <typename T>
static __device__ __forceinline__ void add_vector(tgi_vector<T> &sum, const tgi_vector<T> &more)
{
#pragma unroll
    for (int i = 0; i < tgi_vector<T>::count; i++)
        sum.element[i] += more.element[i];
}

/* Returns the sum of the thread's parts of the elements from `first` on; parts are `total`
 * apart. */
template <typename T>
static __device__ __forceinline__ tgi_vector<T> sum_parts(const T *source, int64_t first,
                                                          int64_t total, int part_count)
{
    constexpr int count = tgi_vector<T>::count;
    tgi_vector<T> sum = {};
    if (total % count == 0) {
#pragma unroll 8
        for (int part = threadIdx.y; part < part_count; part += blockDim.y)
            add_vector(sum,
                       *reinterpret_cast<const tgi_vector<T> *>(source + part * total + first));
        return sum;
    }
#pragma unroll 4
    for (int part = threadIdx.y; part < part_count; part += blockDim.y)
#pragma unroll
        for (int i = 0; i < count; i++)
            if (first + i < total)
                sum.element[i] += source[part * total + first + i];
    return sum;
}

/* An element of D. The next one is in the next column, or the first of the next row. */
struct place {
    int64_t row, col;

    __device__ __forceinline__ place find_next(int64_t col_count) const
    {
        return col + 1 == col_count ? place{row + 1, 0} : place{row, col + 1};
    }
};

/* Stores elements of D from number `first` on, row by row. */
template <typename T>
static __device__ __forceinline__ void store(const tgi_gemm_args &args, int64_t batch,
                                             int64_t first, int64_t total, const tgi_vector<T> &sum)
{
    constexpr int count = tgi_vector<T>::count;
    const int64_t n = args.problem.n;
    place at[count];
    typename tgi_terms_of<T>::type terms[count];
    /* All reads come before the first write, which might be to the same matrix. */
#pragma unroll
    for (int i = 0; i < count; i++) {
        at[i] = i == 0 ? place{first / n, first % n} : at[i - 1].find_next(n);
        if (first + i < total)
            tgi_read_terms(args, batch, at[i].row, at[i].col, &terms[i]);
    }
#pragma unroll
    for (int i = 0; i < count; i++)
        if (first + i < total)
            tgi_write_d(args, batch, at[i].row, at[i].col, sum.element[i], terms[i]);
}

template <typename T> static __device__ __forceinline__ void add_parts(const tgi_gemm_args &args)
{
    __shared__ tgi_vector<T> sums[TGI_PART_ROWS_MAX][TGI_PART_COLS];
    const int64_t total = args.problem.m * args.problem.n;
    const int64_t first =
        (static_cast<int64_t>(blockIdx.x) * TGI_PART_COLS + threadIdx.x) * tgi_vector<T>::count;
    for (int64_t batch = blockIdx.y; batch < args.problem.batch_count; batch += gridDim.y) {
        tgi_vector<T> sum = {};
        if (first < total)
            sum = sum_parts(static_cast<const T *>(args.workspace) +
                                batch * args.k_part_count * total,
                            first, total, args.k_part_count);
        sums[threadIdx.y][threadIdx.x] = sum;
        /* Without the barrier row 0 would add sums that other rows have not written yet. */
        __syncthreads();
        if (threadIdx.y == 0 && first < total) {
            for (int y = 1; y < blockDim.y; y++)
                add_vector(sum, sums[y][threadIdx.x]);
            store(args, batch, first, total, sum);
        }
        /* Without the barrier the next batch entry's sums would overwrite sums not yet added. */
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(TGI_PART_COLS *TGI_PART_ROWS_MAX)
    tgi_add_parts_fp32(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
    add_parts<float>(args);
}

extern "C" __global__ void __launch_bounds__(TGI_PART_COLS *TGI_PART_ROWS_MAX)
    tgi_add_parts_fp64(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
    add_parts<double>(args);
}
