/*
 * Products of FP32 operands by slices of 16 bits (kernels/slices/slice_args.h): a stage holds a
 * chunk of all slices of a tile's lines, which are multiplied in pairs, the least product first.
 * Sums that 16 bits might have spoiled are formed anew (mend.cuh).
 */
#ifndef TGI_WGMMA_SLICES_CUH
#define TGI_WGMMA_SLICES_CUH

#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"
#include "kernels/wgmma/place.cuh"

/* Fills the operand's tile of one step with lines from `line` on, slice after slice: the boxes of
 * those of the sharers whose number is less than the count. */
template <int Lines>
static __device__ __forceinline__ void
tgi_load_slices(const tgi_wgmma_args &args, const tgi_wgmma_operand &operand, tgi_wgmma_boxes boxes,
                uint32_t shared, uint32_t barrier, int line, int step, int batch,
                tgi_wgmma_sharers sharers)
{
    const int first = sharers.share * boxes.lines(operand);
    if (sharers.share >= boxes.count)
        return;
    const int chunk = (operand.has_batch ? batch : 0) * args.step_count + step;
    for (int slice = 0; slice < args.slice_count; slice++) {
        const uint32_t target = shared + (slice * Lines + first) * TGI_CHUNK_BYTES;
        const int y = (line + first) / TGI_GROUP_LINES, z = chunk * args.slice_count + slice;
        if (sharers.count > 1)
            tgi_tma_load_multicast(sharers.ranks, target, boxes.map(operand), barrier, 0, y, z);
        else
            tgi_tma_load(target, boxes.map(operand), barrier, 0, y, z);
    }
}

/* Slices of A and of B whose product has this number, 0..8. */
struct tgi_slice_pair {
    int a, b;
};

static __device__ constexpr tgi_slice_pair tgi_find_pair(int product)
{
    constexpr tgi_slice_pair pairs[TGI_SLICE_PRODUCTS] = {{2, 2}, {2, 1}, {1, 2}, {2, 0}, {1, 1},
                                                          {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    return pairs[product];
}

/* Puts the products of one full stage under way, from number First on, those of B's lines from
 * `line` on, in place of `sum`. Unrolled: across the turns of a loop an instruction would wait for
 * the last one's sums. */
template <class Shape, int First>
static __device__ __forceinline__ void
tgi_multiply_products(uint32_t stage, int group, int line,
                      float (&sum)[Shape::blocks][Shape::part_cols / 2])
{
    constexpr int a_units = Shape::rows * TGI_CHUNK_BYTES / 16; /* of a slice */
    constexpr int b_units = Shape::cols * TGI_CHUNK_BYTES / 16;
    constexpr int block_units = 64 * TGI_CHUNK_BYTES / 16, step_units = 2; /* 32 bytes of k */
    const uint64_t a = tgi_describe_64(stage + group * Shape::group_rows * TGI_CHUNK_BYTES);
    const uint64_t b = tgi_describe_64(stage + Shape::a_bytes + line * TGI_CHUNK_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int i = First; i < TGI_SLICE_PRODUCTS; i++)
#pragma unroll
        for (int j = 0; j < TGI_CHUNK_BYTES / 32; j++)
#pragma unroll
            for (int block = 0; block < Shape::blocks; block++) {
                const uint64_t a_lines =
                    a + tgi_find_pair(i).a * a_units + block * block_units + j * step_units;
                const uint64_t b_lines = b + tgi_find_pair(i).b * b_units + j * step_units;
                if (i > First || j > 0)
                    tgi_multiply_lines<Shape, 1>(sum[block], a_lines, b_lines);
                else
                    tgi_multiply_lines<Shape, 0>(sum[block], a_lines, b_lines);
            }
    tgi_wgmma_commit();
}

/* The same of the products that the precision takes. */
template <class Shape>
static __device__ __forceinline__ void
tgi_multiply_slices(uint32_t stage, int group, int line, int first,
                    float (&sum)[Shape::blocks][Shape::part_cols / 2])
{
    if (Shape::slices == 3 && first == 3)
        tgi_multiply_products<Shape, 3>(stage, group, line, sum);
    else if (Shape::slices == 3 && first == 0)
        tgi_multiply_products<Shape, 0>(stage, group, line, sum);
    else
        tgi_multiply_products<Shape, 6>(stage, group, line, sum);
}

/* Takes back the scales of the lines, powers of two, from the sums of 64 rows, where there are
 * any. */
template <int Count>
static __device__ __forceinline__ void
tgi_scale_sums(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, float (&sum)[Count])
{
    if (!args.a_slices.line_scale)
        return;
    const int row = tile.row + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    int col = tile.col + threadIdx.x % 4 * 2;
    const tgi_wgmma_operand &a = args.a, &b = args.b;
    const float *a_scale = args.a_slices.line_scale +
                           (a.has_batch ? static_cast<int64_t>(tile.batch) * a.line_count : 0);
    const float *b_scale = args.b_slices.line_scale +
                           (b.has_batch ? static_cast<int64_t>(tile.batch) * b.line_count : 0);
    const float low = a_scale[min(row, a.line_count - 1)];
    const float high = a_scale[min(row + 8, a.line_count - 1)];
#pragma unroll
    for (int i = 0; i < Count; i += 4, col += 8) {
        if (i % 16 == 0) { /* the scales of all columns at once would not fit in registers */
            __syncwarp();
            col = tgi_make_opaque(col);
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float scale = b_scale[min(col + j, b.line_count - 1)];
            sum[i + j] = sum[i + j] * low * scale;
            sum[i + j + 2] = sum[i + j + 2] * high * scale;
        }
    }
}

#endif
