/*
 * The end of a product whose k was cut into parts: adds the parts, always in the same order, and
 * stores. A block has threadIdx.x along D and threadIdx.y across the parts: row y sums parts y,
 * y + blockDim.y, ..., and the rows' sums are added in order.
 */
#include "kernels/tile_io.cuh"
#include "kernels/tile_shape.h"

template <typename T> static __device__ __forceinline__ void add_parts(const tgi_gemm_args &args)
{
    __shared__ T sums[TGI_PART_THREADS];
    const int64_t total = args.problem.m * args.problem.n;
    const int64_t index = static_cast<int64_t>(blockIdx.x) * blockDim.x + threadIdx.x;
    for (int64_t batch = blockIdx.y; batch < args.problem.batch_count; batch += gridDim.y) {
        const T *part =
            static_cast<const T *>(args.workspace) + batch * args.k_part_count * total + index;
        T sum = T(0);
        if (index < total) {
#pragma unroll 8
            for (int i = threadIdx.y; i < args.k_part_count; i += blockDim.y)
                sum += part[i * total];
        }
        sums[threadIdx.y * blockDim.x + threadIdx.x] = sum;
        /* Without it row 0 would add sums that others have yet to put. */
        __syncthreads();
        if (threadIdx.y == 0 && index < total) {
            for (int y = 1; y < blockDim.y; y++)
                sum += sums[y * blockDim.x + threadIdx.x];
            tgi_store(args, batch, index / args.problem.n, index % args.problem.n, sum);
        }
        /* Without it the next batch entry's sums would overwrite some not yet added. */
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(TGI_PART_THREADS)
    tgi_add_parts_fp32(const __grid_constant__ tgi_gemm_args args)
{
    add_parts<float>(args);
}

extern "C" __global__ void __launch_bounds__(TGI_PART_THREADS)
    tgi_add_parts_fp64(const __grid_constant__ tgi_gemm_args args)
{
    add_parts<double>(args);
}
