/*
 * Products of FP32 operands by slices of 16 bits (kernels/slices/args.h): a stage holds a chunk of
 * all slices of a tile's lines, which are multiplied in pairs, the least product first. Sums that
 * 16 bits might have spoiled are found by the operands' ranges and formed anew from the operands.
 */
#ifndef TGI_WGMMA_SLICES_CUH
#define TGI_WGMMA_SLICES_CUH

#include "kernels/wgmma/finish.cuh"
#include "kernels/wgmma/instruction.cuh"

#define TGI_BITS_INFINITE 0x7f800000u
#define TGI_BITS_LARGEST 0x7f7fffffu

/* Fills the operand's tile of one step with lines from `line` on, slice after slice: the boxes of
 * those of the sharers whose number is less than `boxes`. */
template <int Lines>
static __device__ __forceinline__ void
tgi_load_slices(const tgi_wgmma_args &args, const tgi_wgmma_operand &operand, uint32_t shared,
                uint32_t barrier, int line, int boxes, int step, int batch,
                tgi_wgmma_sharers sharers)
{
    const int first = sharers.share * operand.box_lines;
    if (sharers.share >= boxes)
        return;
    const int chunk = (operand.has_batch ? batch : 0) * args.step_count + step;
    for (int slice = 0; slice < args.slice_count; slice++) {
        const uint32_t target = shared + (slice * Lines + first) * TGI_CHUNK_BYTES;
        const int y = (line + first) / TGI_GROUP_LINES, z = chunk * args.slice_count + slice;
        if (sharers.count > 1)
            tgi_load_box_to(sharers.ranks, target, &operand.map, barrier, 0, y, z);
        else
            tgi_load_box(target, &operand.map, barrier, 0, y, z);
    }
}

/* Puts the products of one full stage under way, from number First on, those of B's lines from
 * `line` on, in place of `sum`. Unrolled: across the turns of a loop an instruction would wait for
 * the last one's sums. */
template <class Shape, int First>
static __device__ __forceinline__ void
tgi_multiply_products(uint32_t stage, int group, int line,
                      float (&sum)[Shape::blocks][Shape::part_cols / 2])
{
    /* Slices of A and of B. */
    constexpr int pairs[TGI_SLICE_PRODUCTS][2] = {{2, 2}, {2, 1}, {1, 2}, {2, 0}, {1, 1},
                                                  {0, 2}, {1, 0}, {0, 1}, {0, 0}};
    constexpr int a_units = Shape::rows * TGI_CHUNK_BYTES / 16; /* of a slice */
    constexpr int b_units = Shape::cols * TGI_CHUNK_BYTES / 16;
    constexpr int block_units = 64 * TGI_CHUNK_BYTES / 16, step_units = 2; /* 32 bytes of k */
    const uint64_t a = tgi_describe_slices(stage + group * Shape::group_rows * TGI_CHUNK_BYTES);
    const uint64_t b = tgi_describe_slices(stage + Shape::a_bytes + line * TGI_CHUNK_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int i = First; i < TGI_SLICE_PRODUCTS; i++)
#pragma unroll
        for (int j = 0; j < TGI_CHUNK_BYTES / 32; j++)
#pragma unroll
            for (int block = 0; block < Shape::blocks; block++) {
                const uint64_t a_lines =
                    a + pairs[i][0] * a_units + block * block_units + j * step_units;
                const uint64_t b_lines = b + pairs[i][1] * b_units + j * step_units;
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

/* The range of `lines` lines from a multiple of TGI_RANGE_LINES on, in every lane. */
static __device__ __forceinline__ tgi_range tgi_find_range(const tgi_wgmma_slices &slices,
                                                           int batch, int line, int lines)
{
    const int block_end = min((line + lines - 1) / TGI_RANGE_LINES + 1, slices.block_count);
    const tgi_range *ranges =
        slices.ranges + static_cast<int64_t>(batch) * slices.block_count * slices.segment_count;
    uint32_t largest = 0, least = TGI_BITS_LARGEST;
#pragma unroll 1 /* the sums leave few registers */
    for (int i = line / TGI_RANGE_LINES * slices.segment_count + threadIdx.x % 32;
         i < block_end * slices.segment_count; i += 32) {
        largest = max(largest, ranges[i].largest);
        least = min(least, ranges[i].least);
    }
    return {__reduce_max_sync(~0u, largest), __reduce_min_sync(~0u, least)};
}

/* Sums of this magnitude or less may have lost more than FP32 would: 0 where none has, infinite
 * where any may. What is below 2^-126 may be taken as zero: a slice, whose last bit is 2^-23 of its
 * number's, a product or a sum. docs/numerics.md has the derivation. */
static __device__ __forceinline__ float tgi_find_doubt(const tgi_wgmma_args &args,
                                                       const tgi_wgmma_tile &tile, int cols)
{
    const tgi_range a =
        tgi_find_range(args.a_slices, args.a.has_batch ? tile.batch : 0, tile.row, TGI_RANGE_LINES);
    const tgi_range b =
        tgi_find_range(args.b_slices, args.b.has_batch ? tile.batch : 0, tile.col, cols);
    const float infinite = __uint_as_float(TGI_BITS_INFINITE);
    const float a_largest = __uint_as_float(a.largest), b_largest = __uint_as_float(b.largest);
    const float a_least = __uint_as_float(a.least), b_least = __uint_as_float(b.least);
    const float k = static_cast<float>(args.gemm.problem.k);
    if (a.largest >= TGI_BITS_INFINITE || b.largest >= TGI_BITS_INFINITE ||
        a_largest * b_largest * k >= 0x1p126f)
        return infinite;
    if (args.a_slices.line_scale) /* FP16: beyond its scales */
        return fmaxf(a_largest, b_largest) >= 0x1p60f || fminf(a_least, b_least) < 0x1p-60f
                   ? infinite
                   : 0.0f;
    if (fminf(a_least, b_least) >= 0x1p-100f && a_least * b_least >= 0x1p-98f)
        return 0.0f;
    return k * 0x1p-101f * (a_largest + b_largest + 4.0f);
}

/* The thread's sums by FP32 multiply-adds along k, from the operands as they lie. Lines outside D
 * repeat the last. */
template <int Count>
static __device__ __forceinline__ void
tgi_sum_in_fp32(const tgi_gemm_args &gemm, const tgi_wgmma_tile &tile, float (&sum)[Count])
{
    const tgi_problem &p = gemm.problem;
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n);
    const int end = min(static_cast<int>(p.k), tile.step_end * TGI_CHUNK_ELEMS);
#pragma unroll
    for (int i = 0; i < Count; i++)
        sum[i] = 0.0f;
#pragma unroll 1
    for (int k = tile.step * TGI_CHUNK_ELEMS; k < end; k++) {
        int row = tile.row + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
        int col = tile.col + threadIdx.x % 4 * 2;
        /* Neither the addresses of all lines, kept from step to step, nor the elements of all
         * columns at once would fit in registers. */
        asm volatile("" : "+r"(row), "+r"(col));
        const float *a = static_cast<const float *>(gemm.a) + tgi_offset(p.a, tile.batch, 0, k);
        const float *b = static_cast<const float *>(gemm.b) + tgi_offset(p.b, tile.batch, k, 0);
        const float low = a[min(row, m - 1) * p.a.row], high = a[min(row + 8, m - 1) * p.a.row];
#pragma unroll
        for (int i = 0; i < Count; i += 4, col += 8) {
            if (i % 16 == 0) {
                __syncwarp();
                asm volatile("" : "+r"(col));
            }
#pragma unroll
            for (int j = 0; j < 2; j++) {
                const float value = b[min(col + j, n - 1) * p.b.col];
                sum[i + j] = fmaf(low, value, sum[i + j]);
                sum[i + j + 2] = fmaf(high, value, sum[i + j + 2]);
            }
        }
    }
}

/* Takes back the scales of the lines: powers of two. */
template <int Count>
static __device__ __forceinline__ void
tgi_scale_sums(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, float (&sum)[Count])
{
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
            asm volatile("" : "+r"(col));
        }
#pragma unroll
        for (int j = 0; j < 2; j++) {
            const float scale = b_scale[min(col + j, b.line_count - 1)];
            sum[i + j] = sum[i + j] * low * scale;
            sum[i + j + 2] = sum[i + j + 2] * high * scale;
        }
    }
}

/* 1 in all lanes of a warp where one of its sums that lie in D is not larger than `doubt`. */
template <int Count>
static __device__ __forceinline__ int tgi_has_doubtful(const tgi_problem &p,
                                                       const tgi_wgmma_tile &tile, float doubt,
                                                       const float (&sum)[Count])
{
    const int lane = threadIdx.x % 32;
    const int64_t row = tile.row + threadIdx.x / 32 % 4 * 16 + lane / 4;
    int is_doubtful = 0;
#pragma unroll
    for (int i = 0; i < Count; i++) {
        const int64_t col = tile.col + lane % 4 * 2 + i / 4 * 8 + i % 2;
        is_doubtful |= row + i / 2 % 2 * 8 < p.m && col < p.n && !(fabsf(sum[i]) > doubt);
    }
    return __any_sync(~0u, is_doubtful);
}

/* Makes the sums of 64 rows right where the slices did not hold the operands. */
template <int Count>
static __device__ __forceinline__ void
tgi_mend_sums(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, float (&sum)[Count])
{
    const float doubt = tgi_find_doubt(args, tile, 2 * Count);
    if (doubt > 0.0f && tgi_has_doubtful(args.gemm.problem, tile, doubt, sum))
        tgi_sum_in_fp32(args.gemm, tile, sum);
    else if (args.a_slices.line_scale)
        tgi_scale_sums(args, tile, sum);
}

#endif
