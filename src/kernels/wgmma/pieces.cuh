/*
 * Sums on their way through the workspace, as a warpgroup's threads hold them: 16 bytes of each
 * thread side by side.
 *
 * Of tiles whose k is cut, in pieces of 64 rows x TGI_WGMMA_PART_COLS columns: of tile t of those,
 * part s, the rows number r and columns number c are piece
 * ((t * parts + s) * row_count + r) * col_count + c.
 *
 * Of products of slices, whose k is summed in runs: a place for each block of the grid.
 */
#ifndef TGI_WGMMA_PIECES_CUH
#define TGI_WGMMA_PIECES_CUH

#include "kernels/wgmma/finish.cuh"

/* Sums of a thread of a warpgroup that computes tiles of `cols` columns. */
#define TGI_PIECE_SUMS(cols) (TGI_WGMMA_PART_COLS(cols) / 2)

/* This thread's share of sums number `index` of `Sums` a thread. */
template <int Sums>
static __device__ __forceinline__ float4 *tgi_find_sums(void *memory, int64_t index)
{
    return static_cast<float4 *>(memory) + index * (Sums / 4 * 128) + threadIdx.x % 128;
}

template <int Count>
static __device__ __forceinline__ void tgi_write_sums(float4 *target, const float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i += 4)
        target[i * 32] = make_float4(sum[i], sum[i + 1], sum[i + 2], sum[i + 3]);
}

template <int Count>
static __device__ __forceinline__ void tgi_add_sums(const float4 *source, float (&sum)[Count])
{
#pragma unroll
    for (int i = 0; i < Count; i += 4) {
        const float4 value = source[i * 32];
        sum[i] += value.x;
        sum[i + 1] += value.y;
        sum[i + 2] += value.z;
        sum[i + 3] += value.w;
    }
}

/* The 64 rows number `row` of part `part` of cut tile `cut`. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_write_pieces(const tgi_wgmma_args &args, int cut,
                                                        int part, int row, int row_count,
                                                        const float (&sum)[Count])
{
    constexpr int sums = TGI_PIECE_SUMS(Cols);
    const int64_t first =
        ((static_cast<int64_t>(cut) * args.gemm.k_part_count + part) * row_count + row) *
        (Count / sums);
    tgi_write_sums(tgi_find_sums<sums>(args.gemm.workspace, first), sum);
}

/* Adds a piece's parts in order, `stride` pieces from one to the next. */
template <int Count>
static __device__ __forceinline__ void tgi_add_pieces(const tgi_wgmma_args &args, int64_t first,
                                                      int64_t stride, float (&sum)[Count])
{
#pragma unroll 2
    for (int part = 0; part < args.gemm.k_part_count; part++)
        tgi_add_sums(tgi_find_sums<Count>(args.gemm.workspace, first + part * stride), sum);
}

/* Adds what the tile's runs of k so far have come to. */
template <class Shape>
static __device__ __forceinline__ void tgi_add_runs(const tgi_wgmma_args &args, int group,
                                                    float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int first = (static_cast<int>(blockIdx.x) * Shape::group_count + group) * Shape::blocks;
#pragma unroll
    for (int block = 0; block < Shape::blocks; block++)
        tgi_add_sums(tgi_find_sums<Shape::cols / 2>(args.run_sums, first + block), sum[block]);
}

/* Puts the sums of all runs so far in that place, and starts another. */
template <class Shape>
static __device__ __forceinline__ void tgi_start_run(const tgi_wgmma_args &args, int group,
                                                     float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int first = (static_cast<int>(blockIdx.x) * Shape::group_count + group) * Shape::blocks;
#pragma unroll
    for (int block = 0; block < Shape::blocks; block++) {
        tgi_write_sums(tgi_find_sums<Shape::cols / 2>(args.run_sums, first + block), sum[block]);
#pragma unroll
        for (int i = 0; i < Shape::cols / 2; i++)
            sum[block][i] = 0.0f;
    }
}

#endif
