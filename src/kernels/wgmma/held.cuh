/*
 * Rows of A that stay FP32 up to shared memory: the threads that multiply cut them into slices of
 * BF16 in their registers, whence the instruction takes them. So a large operand that few columns
 * meet is read once, and no pass writes its slices. A thread of the warpgroup gives the stage back
 * when its own products are done: their fence is the whole warpgroup's, so that by then all warps
 * have read their rows.
 */
#ifndef TGI_WGMMA_HELD_CUH
#define TGI_WGMMA_HELD_CUH

#include "kernels/wgmma/slices.cuh"

/* Of the thread: slice, 16 steps of k, register of the instruction. */
typedef uint32_t tgi_held_rows[3][2][4];

/* Cuts a chunk of 64 rows at `shared`, lines of 128 bytes under the 128-byte swizzle, of which
 * row_count exist, and widens `range` by those; its `least` is counted from -1. */
static __device__ __forceinline__ void tgi_cut_rows(uint32_t shared, int row_count,
                                                    tgi_range &range, tgi_held_rows &held)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
#pragma unroll
    for (int i = 0; i < 8; i++) {
        const int row = warp * 16 + lane / 4 + i % 2 * 8;
        const uint32_t mask = row < row_count ? 0x7fffffffu : 0;
        const uint32_t place = tgi_find_unit(shared, row, i / 2 * 2 + lane % 4 / 2) + lane % 2 * 8;
        float value[2];
        tgi_read_shared_8(place, value);
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint32_t bits = __float_as_uint(value[j]) & mask;
            range.largest = max(range.largest, bits);
            range.least = min(range.least, bits - 1u); /* 0 becomes UINT32_MAX */
        }
#pragma unroll
        for (int slice = 0; slice < 3; slice++) {
            const uint32_t pair = tgi_encode_pair(TG_TYPE_BF16, value[0], value[1]);
            held[slice][i / 4][i % 4] = pair;
            value[0] -= __uint_as_float(pair << 16);
            value[1] -= __uint_as_float(pair & 0xffff0000u);
        }
    }
}

/* Puts the six products of bf16x6 of a chunk under way, those of B's lines from `line` on, in place
 * of `sum`. */
template <class Shape>
static __device__ __forceinline__ void tgi_multiply_held_rows(uint32_t stage, int line,
                                                              const tgi_held_rows &held,
                                                              float (&sum)[Shape::part_cols / 2])
{
    constexpr int b_units = Shape::cols * TGI_CHUNK_BYTES / 16; /* of a slice */
    const uint64_t b = tgi_describe_64(stage + Shape::a_bytes + line * TGI_CHUNK_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int i = 3; i < TGI_SLICE_PRODUCTS; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const uint64_t b_lines = b + tgi_find_pair(i).b * b_units + j * 2;
            if (i > 3 || j > 0)
                tgi_multiply_registers<Shape, 1>(sum, held[tgi_find_pair(i).a][j], b_lines);
            else
                tgi_multiply_registers<Shape, 0>(sum, held[tgi_find_pair(i).a][j], b_lines);
        }
    tgi_wgmma_commit();
}

/* The range of the warp's rows over the steps of k of a tile, from those of its lanes; of a tile
 * that is cut, for the kernel that adds its parts. */
static __device__ __forceinline__ tgi_range tgi_tell_range(const tgi_wgmma_args &args,
                                                           const tgi_wgmma_tile &tile,
                                                           tgi_range range)
{
    const int row = tile.row + static_cast<int>(threadIdx.x) / 32 % 4 * TGI_HELD_LINES;
    range.largest = __reduce_max_sync(~0u, range.largest);
    range.least = __reduce_min_sync(~0u, range.least);
    range.least += range.least != UINT32_MAX;
    if (tile.cut >= 0 && row < args.a.line_count && threadIdx.x % 32 == 0) {
        const tgi_wgmma_slices &slices = args.a_slices;
        const int64_t block =
            static_cast<int64_t>(args.a.has_batch ? tile.batch : 0) * slices.block_count +
            row / TGI_HELD_LINES;
        slices.ranges[block * slices.segment_count + tile.part] = range;
    }
    range.least = min(range.least, TGI_BITS_LARGEST);
    return range;
}

#endif
