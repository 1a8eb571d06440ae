/*
 * The end of a product whose k was cut into parts: adds the parts, always in the same order, and
 * applies the epilogue. A block has threadIdx.x along D, four elements each, and threadIdx.y across
 * the parts: row y sums parts y, y + blockDim.y, ..., and the rows are added in order.
 */
#ifndef TGI_SIMT_FINISH_CUH
#define TGI_SIMT_FINISH_CUH

#include "kernels/epilogue.cuh"

#define TGI_FINISH_COLS 32
#define TGI_FINISH_ROWS_MAX 16

static __device__ __forceinline__ void sum_parts(float sum[4], const tgi_gemm_args &args,
                                                 const float *source, int64_t first, int64_t total)
{
    if (total % 4 == 0) {
#pragma unroll 8
        for (int part = threadIdx.y; part < args.k_part_count; part += blockDim.y) {
            float4 more = *reinterpret_cast<const float4 *>(source + part * total + first);
            sum[0] += more.x;
            sum[1] += more.y;
            sum[2] += more.z;
            sum[3] += more.w;
        }
        return;
    }
#pragma unroll 4
    for (int part = threadIdx.y; part < args.k_part_count; part += blockDim.y)
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (first + i < total)
                sum[i] += source[part * total + first + i];
}

static __device__ __forceinline__ void finish(const tgi_gemm_args &args)
{
    __shared__ float4 sums[TGI_FINISH_ROWS_MAX][TGI_FINISH_COLS];
    const tgi_problem &p = args.problem;
    int64_t total = p.m * p.n, batch = blockIdx.y;
    int64_t first = (static_cast<int64_t>(blockIdx.x) * TGI_FINISH_COLS + threadIdx.x) * 4;
    float sum[4] = {};
    if (first < total)
        sum_parts(sum, args,
                  static_cast<const float *>(args.workspace) + batch * args.k_part_count * total,
                  first, total);
    sums[threadIdx.y][threadIdx.x] = make_float4(sum[0], sum[1], sum[2], sum[3]);
    /* Else row 0 adds sums that other rows have yet to write. */
    __syncthreads();
    if (threadIdx.y > 0 || first >= total)
        return;
    for (int y = 1; y < blockDim.y; y++) {
        float4 more = sums[y][threadIdx.x];
        sum[0] += more.x;
        sum[1] += more.y;
        sum[2] += more.z;
        sum[3] += more.w;
    }
    int64_t row[4], col[4];
    float c[4];
#pragma unroll
    for (int i = 0; i < 4; i++) {
        /* One division: the next element is the next column, or the first of the next row. */
        row[i] = i == 0 ? first / p.n : row[i - 1];
        col[i] = i == 0 ? first - row[0] * p.n : col[i - 1] + 1;
        if (col[i] == p.n) {
            row[i]++;
            col[i] = 0;
        }
        c[i] = first + i < total ? tgi_read_c_fp32(args, batch, row[i], col[i]) : 0.0f;
    }
#pragma unroll
    for (int i = 0; i < 4; i++)
        if (first + i < total)
            tgi_write_d_fp32(args, batch, row[i], col[i], sum[i], c[i]);
}

#endif
