/*
 * Computes D = epilogue(0), because no product is formed if alpha = 0 or k = 0. It takes any
 * strides, any batch, and C in place. Blocks along x take chunks of a batch entry, whose elements
 * follow one another along the dimension with the smaller stride, so that a warp reads and writes
 * whole lines. Blocks along y take batch entries.
 */
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/scale.h"

/* Returns at / size for at < size + chunk, without a division of 64 bits where size is large. */
static __device__ __forceinline__ int64_t tgi_find_carry(int64_t at, int64_t size, int chunk)
{
    if (size > chunk)
        return at >= size;
    return static_cast<unsigned>(at) / static_cast<unsigned>(size);
}

/* The places of a thread's elements of a chunk. Element i lies lines[i] lines and steps[i] elements
 * within a line from the chunk's first one. */
struct tgi_scale_places {
    int64_t lines[TGI_SCALE_ELEMENTS], steps[TGI_SCALE_ELEMENTS], left;
    int is_by_cols;

    __device__ __forceinline__ int64_t row(int i) const
    {
        return is_by_cols ? steps[i] : lines[i];
    }

    __device__ __forceinline__ int64_t col(int i) const
    {
        return is_by_cols ? lines[i] : steps[i];
    }

    __device__ __forceinline__ int is_inside(int i) const
    {
        return static_cast<int>(i * blockDim.x + threadIdx.x) < left;
    }
};

template <typename T> static __device__ __forceinline__ void tgi_scale(const tgi_gemm_args &args)
{
    const tgi_problem &problem = args.problem;
    const int is_by_cols = llabs(problem.d.row) < llabs(problem.d.col);
    const int64_t inner = is_by_cols ? problem.m : problem.n, count = problem.m * problem.n;
    const int chunk = static_cast<int>(blockDim.x) * TGI_SCALE_ELEMENTS;
    const int64_t step = static_cast<int64_t>(gridDim.x) * chunk;
    for (int64_t batch = blockIdx.y; batch < problem.batch_count; batch += gridDim.y)
        for (int64_t i = static_cast<int64_t>(blockIdx.x) * chunk; i < count; i += step) {
            const int64_t line = i / inner, first = i % inner;
            tgi_scale_places places;
            T sum[TGI_SCALE_ELEMENTS] = {};
            places.left = count - i;
            places.is_by_cols = is_by_cols;
#pragma unroll
            for (int j = 0; j < TGI_SCALE_ELEMENTS; j++) {
                const int64_t ahead = threadIdx.x + j * blockDim.x;
                places.lines[j] = tgi_find_carry(first + ahead, inner, chunk);
                places.steps[j] = ahead - places.lines[j] * inner;
            }
            tgi_finish_elements(args, batch, is_by_cols ? first : line, is_by_cols ? line : first,
                                places, sum);
        }
}

extern "C" __global__ void tgi_scale_fp32(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
    tgi_scale<float>(args);
}

extern "C" __global__ void tgi_scale_fp64(const __grid_constant__ tgi_gemm_args args)
{
    tgi_wait_for_stream();
    tgi_scale<double>(args);
}
