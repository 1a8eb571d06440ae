/*
 * Sums of tiles whose k is cut, on their way through the workspace: pieces of 64 rows x
 * TGI_WGMMA_PART_COLS columns, as a warpgroup's threads hold them. Of tile t of those, part s, the
 * rows number r and columns number c are piece ((t * parts + s) * row_count + r) * col_count + c.
 */
#ifndef TGI_WGMMA_PIECES_CUH
#define TGI_WGMMA_PIECES_CUH

#include "kernels/ptx.cuh"
#include "kernels/wgmma/finish.cuh"

/* Sums of a thread of a warpgroup that computes tiles of `cols` columns. */
#define TGI_PIECE_SUMS(cols) (TGI_WGMMA_PART_COLS(cols) / 2)

/* This thread's share of the piece; 16 bytes of each thread of the warpgroup lie side by side. */
template <int Sums>
static __device__ __forceinline__ float4 *tgi_find_piece(const tgi_wgmma_args &args, int64_t piece)
{
    return static_cast<float4 *>(args.gemm.workspace) + piece * (Sums / 4 * 128) +
           threadIdx.x % 128;
}

/* The 64 rows number `row` of part `part` of cut tile `cut`. */
template <int Cols, int Count>
static __device__ __forceinline__ void tgi_write_pieces(const tgi_wgmma_args &args, int cut,
                                                        int part, int row, int row_count,
                                                        const float (&sum)[Count])
{
    constexpr int sums = TGI_PIECE_SUMS(Cols), col_count = Count / sums;
    const int64_t first =
        ((static_cast<int64_t>(cut) * args.gemm.k_part_count + part) * row_count + row) * col_count;
#pragma unroll
    for (int col = 0; col < col_count; col++) {
        float4 *target = tgi_find_piece<sums>(args, first + col);
#pragma unroll
        for (int i = 0; i < sums / 4; i++) {
            const float *s = sum + col * sums + 4 * i;
            target[i * 128] = make_float4(s[0], s[1], s[2], s[3]);
        }
    }
}

/* Adds a piece's parts in order, `stride` pieces from one to the next. */
template <int Count>
static __device__ __forceinline__ void tgi_add_pieces(const tgi_wgmma_args &args, int64_t first,
                                                      int64_t stride, float (&sum)[Count])
{
#pragma unroll 2
    for (int part = 0; part < args.gemm.k_part_count; part++) {
        const float4 *source = tgi_find_piece<Count>(args, first + part * stride);
#pragma unroll
        for (int i = 0; i < Count / 4; i++) {
            const float4 value = source[i * 128];
            sum[4 * i] += value.x;
            sum[4 * i + 1] += value.y;
            sum[4 * i + 2] += value.z;
            sum[4 * i + 3] += value.w;
        }
    }
}

#endif
