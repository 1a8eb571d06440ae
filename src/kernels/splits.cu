/*
 * Adds the splits of a split-K product, always in the same order, and stores D. A block has
 * threadIdx.x along D, 16 bytes each, and threadIdx.y across the splits. Row y sums splits y, y +
 * blockDim.y and so on, and the rows' sums are added in order.
 */
#include "kernels/add_args.h"
#include "kernels/epilogue/tile_store.cuh"

template <typename T>
static __device__ __forceinline__ void add_vector(tgi_vector<T> &sum, const tgi_vector<T> &more)
{
#pragma unroll
    for (int i = 0; i < tgi_vector<T>::count; i++)
        sum.element[i] += more.element[i];
}

/* Splits whose sums a thread reads at once. Reads one after another would take longer than all the
 * rest. */
#define SPLITS_AT_ONCE 4

/* Blocks of FP64 with an epilogue that share a multiprocessor. With all registers that it may take
 * it would be two, and before 8.0 there are no threads for more. */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define FP64_BLOCKS 2
#else
#define FP64_BLOCKS 3
#endif

/* Reads a vector, of which `left` elements exist. If Is_aligned is 1, all of it does. */
template <int Is_aligned, typename T>
static __device__ __forceinline__ tgi_vector<T> read_vector(const T *source, int64_t left)
{
    tgi_vector<T> vector = {};
    if constexpr (Is_aligned) {
        *reinterpret_cast<uint4 *>(&vector) = *reinterpret_cast<const uint4 *>(source);
    } else {
#pragma unroll
        for (int i = 0; i < tgi_vector<T>::count; i++)
            if (i < left)
                vector.element[i] = source[i];
    }
    return vector;
}

/* Returns the sum of the thread's splits of the elements from `first` on. Splits are `total`
 * elements apart. */
template <int Is_aligned, typename T>
static __device__ __forceinline__ tgi_vector<T> sum_splits(const T *source, int64_t first,
                                                           int64_t total, int split_count)
{
    tgi_vector<T> sum = {};
#pragma unroll 1
    for (int split = threadIdx.y; split < split_count; split += SPLITS_AT_ONCE * blockDim.y) {
        tgi_vector<T> some[SPLITS_AT_ONCE] = {};
#pragma unroll
        for (int i = 0; i < SPLITS_AT_ONCE; i++)
            if (split + i * blockDim.y < split_count)
                some[i] = read_vector<Is_aligned>(source + (split + i * blockDim.y) * total + first,
                                                  total - first);
#pragma unroll
        for (int i = 0; i < SPLITS_AT_ONCE; i++)
            add_vector(sum, some[i]);
    }
    return sum;
}

/* Adds the splits of each row of threads of the block. Returns the sum of the thread's row; all of
 * them are in shared memory. */
template <typename T>
static __device__ __forceinline__ tgi_vector<T>
add_own_splits(const T *source, int64_t first, int64_t total, int split_count,
               tgi_vector<T> (&sums)[TGI_ADD_ROWS_MAX][TGI_ADD_COLS])
{
    tgi_vector<T> sum = {};
    if (first < total && total % tgi_vector<T>::count == 0)
        sum = sum_splits<1>(source, first, total, split_count);
    else if (first < total)
        sum = sum_splits<0>(source, first, total, split_count);
    sums[threadIdx.y][threadIdx.x] = sum;
    /* Without the barrier sums would be added that other rows have not written yet. */
    __syncthreads();
    return sum;
}

/* Adds the splits of the thread's elements over the rows of its block. Row 0 gets the sum. */
template <typename T>
static __device__ __forceinline__ tgi_vector<T> add_rows(const T *source, int64_t first,
                                                         int64_t total, int split_count)
{
    __shared__ tgi_vector<T> sums[TGI_ADD_ROWS_MAX][TGI_ADD_COLS];
    tgi_vector<T> sum = add_own_splits(source, first, total, split_count, sums);
    if (threadIdx.y == 0)
#pragma unroll
        for (int y = 1; y < TGI_ADD_ROWS_MAX; y++)
            if (y < blockDim.y)
                add_vector(sum, sums[y][threadIdx.x]);
    return sum;
}

/* Stores an element of D through the epilogue. */
template <typename T>
static __device__ __forceinline__ void finish(const tgi_gemm_args &args, int64_t batch, int64_t row,
                                              int64_t col, const tgi_column_places &place,
                                              const T (&c)[1], const T (&bias)[1], T (&sum)[1])
{
    tgi_combine_elements(args, row, col, place, c, bias, sum);
    if (tgi_has_further_operands && place.is_inside(0))
        sum[0] = tgi_apply_operands(args, batch, row, col, sum[0]);
    tgi_activate_elements(args, sum);
    tgi_write_elements(args, tgi_offset(args.problem.d, batch, row, col), place, sum);
}

/* Adds the splits of a D that has an epilogue. Behind the sums all threads of the block take part:
 * each finishes single elements, and neighbours those of neighbouring columns. The place of a
 * thread's first element is found while the kernel before still runs, and its C and its bias are
 * requested before the splits. */
template <typename T> static __device__ __forceinline__ void add_splits(const tgi_gemm_args &args)
{
    constexpr int count = tgi_vector<T>::count, block_elems = TGI_ADD_COLS * count;
    __shared__ tgi_vector<T> sums[TGI_ADD_ROWS_MAX][TGI_ADD_COLS];
    const tgi_problem &p = args.problem;
    const int64_t total = p.m * p.n, begin = static_cast<int64_t>(blockIdx.x) * block_elems;
    const int rows = min(static_cast<int>(blockDim.y), args.split_count);
    const int thread = threadIdx.y * TGI_ADD_COLS + threadIdx.x;
    for (int64_t batch = blockIdx.y; batch < p.batch_count; batch += gridDim.y) {
        int at = thread;
#pragma unroll 1
        do {
            const int64_t number = begin + at;
            const int64_t row = total >> 31
                                    ? number / p.n
                                    : static_cast<unsigned>(number) / static_cast<unsigned>(p.n);
            const int64_t col = number - row * p.n;
            const tgi_column_places place = {0, 1, at < block_elems && number < total};
            T c[1] = {}, bias[1] = {}, sum[1];
            tgi_wait_for_stream();
            if (p.epilogue.beta != 0.0)
                tgi_read_elements(args.c, tgi_offset(p.c, batch, row, col), p.c, place, p.d_type,
                                  c);
            if (p.epilogue.bias != TG_BIAS_NONE)
                tgi_read_elements(args.bias, p.epilogue.bias == TG_BIAS_ROW ? row : col, {0, 0, 0},
                                  place, p.d_type, bias);
            if (at == thread)
                add_own_splits(static_cast<const T *>(args.workspace) +
                                   batch * args.split_count * total,
                               begin + threadIdx.x * count, total, args.split_count, sums);
            if (place.is_inside(0)) {
                sum[0] = sums[0][at / count].element[at % count];
#pragma unroll
                for (int y = 1; y < TGI_ADD_ROWS_MAX; y++)
                    if (y < rows)
                        sum[0] += sums[y][at / count].element[at % count];
                finish(args, batch, row, col, place, c, bias, sum);
            }
            at += blockDim.y * TGI_ADD_COLS;
        } while (at < block_elems);
        /* Without the barrier the next batch entry's sums would overwrite sums not yet added. */
        __syncthreads();
    }
}

/* Writes those of a thread's sums that lie in D. D has FP32, FP64 or 16 bits. */
template <int Count>
static __device__ __forceinline__ void write_sums(const tgi_add_args &args, int left,
                                                  const int64_t (&place)[Count],
                                                  const float (&sum)[Count])
{
    if (args.d_type == TG_TYPE_FP32) {
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (i < left)
                static_cast<float *>(args.d)[place[i]] = sum[i];
    } else {
#pragma unroll
        for (int i = 0; i < Count; i++)
            if (i < left)
                static_cast<uint16_t *>(args.d)[place[i]] =
                    args.d_type == TG_TYPE_BF16 ? tgi_encode_bf16(sum[i]) : tgi_encode_fp16(sum[i]);
    }
}

template <int Count>
static __device__ __forceinline__ void write_sums(const tgi_add_args &args, int left,
                                                  const int64_t (&place)[Count],
                                                  const double (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i++)
        if (i < left)
            static_cast<double *>(args.d)[place[i]] = sum[i];
}

/* Finds the elements of a matrix or vector that belong to neighbours in D from (row, col) on. */
template <int Count, typename Index>
static __device__ __forceinline__ void find_places(Index first, unsigned row, unsigned col, int n,
                                                   Index row_stride, Index col_stride,
                                                   Index (&place)[Count])
{
    int left_cols = n - col;
    place[0] = first + row * row_stride + col * col_stride;
#pragma unroll
    for (int i = 1; i < Count; i++) {
        const int is_row_over = --left_cols == 0;
        place[i] = place[i - 1] + (is_row_over ? row_stride - (n - 1) * col_stride : col_stride);
        left_cols = is_row_over ? n : left_cols;
    }
}

/* The terms of the elements that row 0 of the threads finishes. They are copied to shared memory
 * beside the splits: with registers for them fewer blocks would share a multiprocessor. */
template <typename T> struct add_terms {
    tgi_vector<T> c[TGI_ADD_COLS], bias[TGI_ADD_COLS];

    /* Requests this thread's terms from (row, col) on, of which `left` lie in D. */
    __device__ __forceinline__ void request(const tgi_add_terms &terms, unsigned row, unsigned col,
                                            int n, int left)
    {
        constexpr int count = tgi_vector<T>::count;
        int64_t c_place[count];
        int bias_place[count];
        find_places(blockIdx.y * terms.c_batch, row, col, n, terms.c_row, terms.c_col, c_place);
        find_places(0, row, col, n, terms.bias_row, terms.bias_col, bias_place);
        tgi_wait_for_stream();
#pragma unroll
        for (int i = 0; i < count; i++) {
            const int is_inside = threadIdx.y == 0 && i < left;
            tgi_copy_async_if<sizeof(T)>(tgi_shared_address(&c[threadIdx.x].element[i]),
                                         static_cast<const T *>(terms.c) + c_place[i],
                                         is_inside && terms.beta != 0.0);
            tgi_copy_async_if<sizeof(T)>(tgi_shared_address(&bias[threadIdx.x].element[i]),
                                         static_cast<const T *>(terms.bias) + bias_place[i],
                                         is_inside && terms.bias);
        }
        tgi_copy_async_commit();
    }

    /* Applies the terms that this thread requested. */
    __device__ __forceinline__ void apply(const tgi_add_terms &terms, tgi_vector<T> &sum) const
    {
        tgi_copy_async_wait<0>();
#pragma unroll
        for (int i = 0; i < tgi_vector<T>::count; i++) {
            T &value = sum.element[i];
            TGI_COMBINE(value, TGI_MULTIPLY_FP64, TGI_FMA_FP64, terms.alpha, value,
                        terms.beta != 0.0, terms.beta, c[threadIdx.x].element[i]);
            if (terms.bias)
                value = tgi_add_bias_fp64(value, bias[threadIdx.x].element[i]);
            if (terms.activation == TG_ACTIVATION_RELU)
                value = tgi_limit_sum(value);
        }
    }
};

/* Adds the splits of a D that is sums alone or, with HasTerms, sums with terms. Places are found
 * while the kernel before still runs. */
template <int HasTerms, typename T>
static __device__ __forceinline__ void add_sums(const tgi_add_args &args,
                                                const tgi_add_terms &terms)
{
    constexpr int count = tgi_vector<T>::count;
    const int first = (blockIdx.x * TGI_ADD_COLS + threadIdx.x) * count;
    const int left = args.total - first;
    const unsigned n = args.n, row = first / n, col = first % n;
    int64_t place[count];
    find_places(blockIdx.y * args.d_batch, row, col, n, args.d_row, args.d_col, place);
    const T *source =
        static_cast<const T *>(args.sums) + blockIdx.y * args.split_count * int64_t(args.total);
    tgi_vector<T> sum;
    if constexpr (HasTerms) {
        __shared__ add_terms<T> own;
        own.request(terms, row, col, n, left);
        sum = add_rows(source, first, args.total, args.split_count);
        if (threadIdx.y == 0)
            own.apply(terms, sum);
    } else {
        tgi_wait_for_stream();
        sum = add_rows(source, first, args.total, args.split_count);
    }
    if (threadIdx.y == 0)
        write_sums(args, left, place, sum.element);
}

extern "C" __global__ void __launch_bounds__(TGI_ADD_COLS *TGI_ADD_ROWS_MAX)
    tgi_add_splits_fp32(const __grid_constant__ tgi_gemm_args args)
{
    add_splits<float>(args);
}

extern "C" __global__ void __launch_bounds__(TGI_ADD_COLS *TGI_ADD_ROWS_MAX, FP64_BLOCKS)
    tgi_add_splits_fp64(const __grid_constant__ tgi_gemm_args args)
{
    add_splits<double>(args);
}

extern "C" __global__ void __launch_bounds__(TGI_ADD_COLS *TGI_ADD_ROWS_MAX)
    tgi_add_sums_fp32(const __grid_constant__ tgi_add_args args)
{
    add_sums<0, float>(args, {});
}

extern "C" __global__ void __launch_bounds__(TGI_ADD_COLS *TGI_ADD_ROWS_MAX)
    tgi_add_sums_fp64(const __grid_constant__ tgi_add_args args)
{
    add_sums<0, double>(args, {});
}

extern "C" __global__ void __launch_bounds__(TGI_ADD_COLS *TGI_ADD_ROWS_MAX, FP64_BLOCKS)
    tgi_add_terms_fp64(const __grid_constant__ tgi_add_terms_args args)
{
    add_sums<1, double>(args.sums, args.terms);
}
