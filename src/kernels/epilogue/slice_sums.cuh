/*
 * Finishes sums of products of slices (copy/slice_args.h) on their way to D. Scales of FP16 slices
 * are undone, and sums that 16 bits might have spoiled are repaired. The ranges of blocks of lines
 * of A and of B show for most tiles that no sum is spoiled. Doubtful sums are formed again from the
 * operands. Whether a sum is doubtful depends only on its own row and column.
 *
 * Args, the argument of the kernel, has the members gemm, a and b with has_batch and line_count,
 * and a_slices and b_slices.
 */
#ifndef TGI_SLICE_SUMS_CUH
#define TGI_SLICE_SUMS_CUH

#include "kernels/copy/slice_args.h"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/schedule/tile.cuh"

#define TGI_BITS_INFINITE 0x7f800000u
#define TGI_BITS_TOO_LARGE 0x7f7f8000u /* least bits that are infinite in BF16 */
#define TGI_BITS_LARGEST 0x7f7fffffu
#define TGI_REPAIR_ROWS 2 /* rows whose sums are formed together */

/* Returns the range of the block of lines that `line` belongs to, in every lane. */
static __device__ __forceinline__ tgi_range tgi_find_range(const tgi_slice_ranges &slices,
                                                           int batch, int line)
{
    const tgi_range *ranges = slices.ranges + (static_cast<int64_t>(batch) * slices.block_count +
                                               line / slices.block_lines) *
                                                  slices.segment_count;
    tgi_range range = {0, TGI_BITS_LARGEST};
#pragma unroll 1 /* the sums leave few registers */
    for (int i = threadIdx.x % 32; i < slices.segment_count; i += 32) {
        range.largest = max(range.largest, ranges[i].largest);
        range.least = min(range.least, ranges[i].least);
    }
    return {__reduce_max_sync(~0u, range.largest), __reduce_min_sync(~0u, range.least)};
}

/* Returns the range of one line, k elements `stride` apart. FP16 slices have ranges of the largest
 * magnitudes of lines. */
static __device__ __forceinline__ tgi_range tgi_scan_line(const tgi_slice_ranges &slices,
                                                          const float *line, int64_t stride, int k)
{
    tgi_range range = {0, TGI_BITS_LARGEST};
#pragma unroll 2
    for (int i = 0; i < k; i++) {
        const uint32_t bits = __float_as_uint(line[i * stride]) & 0x7fffffffu;
        range.largest = max(range.largest, bits);
        range.least = min(range.least, bits ? bits : TGI_BITS_LARGEST);
    }
    if (slices.line_scale && range.largest)
        range.least = range.largest;
    return range;
}

/* Returns the magnitude up to which sums may have lost more than FP32 would: 0 if none has,
 * infinite if any may. Numbers below 2^-126 may have been taken as zero: slices, of which the last
 * bit is 2^-23 of the number's, products or sums. docs/numerics.md has the derivation. */
template <class Args>
static __device__ __forceinline__ float tgi_find_doubt(const Args &args, const tgi_range &a,
                                                       const tgi_range &b)
{
    const float infinite = __uint_as_float(TGI_BITS_INFINITE);
    const float a_largest = __uint_as_float(a.largest), b_largest = __uint_as_float(b.largest);
    const float a_least = __uint_as_float(a.least), b_least = __uint_as_float(b.least);
    const float k = static_cast<float>(args.gemm.problem.k);
    if (max(a.largest, b.largest) >= TGI_BITS_TOO_LARGE || a_largest * b_largest * k >= 0x1p126f)
        return infinite;
    if (args.a_slices.line_scale) /* FP16: magnitudes beyond its scales */
        return fmaxf(a_largest, b_largest) >= 0x1p60f || fminf(a_least, b_least) < 0x1p-60f
                   ? infinite
                   : 0.0f;
    if (fminf(a_least, b_least) >= 0x1p-100f && a_least * b_least >= 0x1p-98f)
        return 0.0f;
    return k * 0x1p-101f * (a_largest + b_largest + 4.0f);
}

/* Returns 1 in all lanes if one of the warp's 16 x 64 sums is doubtful and lies in D. */
static __device__ __forceinline__ int tgi_has_doubtful(const tgi_problem &p, int first_row,
                                                       int first_col, uint32_t staged, float doubt)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    int is_doubtful = 0;
#pragma unroll 1
    for (int i = 0; i < 32; i++) {
        const int row = warp * 16 + i / 2, col = lane + i % 2 * 32;
        is_doubtful |= first_row + row < p.m && first_col + col < p.n &&
                       !(fabsf(tgi_read_shared_4(tgi_find_sum(staged, row, col))) > doubt);
    }
    return __any_sync(~0u, is_doubtful);
}

/* Repairs the warp's 16 rows of 64 x 64 sums in shared memory, which the warp has written. Sums of
 * magnitudes up to `doubt`, if they are doubtful themselves, are replaced by sums of FP32
 * multiply-adds along k. A lane has columns 32 apart, and lines outside D repeat the last line. It
 * is a call, because inline it would take the registers of sums that wait. */
template <class Args>
static __device__ __noinline__ void tgi_repair_doubtful(const Args &args, float doubt,
                                                        int first_row, int first_col, int batch,
                                                        uint32_t staged)
{
    const tgi_problem &p = args.gemm.problem;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    __syncwarp(); /* a lane must not read sums that others have yet to write */
    if (!tgi_has_doubtful(p, first_row, first_col, staged, doubt))
        return;
    const int k = static_cast<int>(p.k), last_row = static_cast<int>(p.m) - 1;
    const float *a = static_cast<const float *>(args.gemm.a) + tgi_offset(p.a, batch, 0, 0);
    const float *b = static_cast<const float *>(args.gemm.b) + tgi_offset(p.b, batch, 0, 0);
#pragma unroll 1
    for (int half = 0; half < 2; half++) {
        const int col = lane + half * 32;
        const float *b_col = b + min(first_col + col, static_cast<int>(p.n) - 1) * p.b.col;
        const tgi_range b_range = tgi_scan_line(args.b_slices, b_col, p.b.row, k);
#pragma unroll 1
        for (int row = warp * 16; row < warp * 16 + 16; row += TGI_REPAIR_ROWS) {
            const int own_row = min(first_row + row + lane % TGI_REPAIR_ROWS, last_row);
            const tgi_range a_range =
                tgi_scan_line(args.a_slices, a + own_row * p.a.row, p.a.col, k);
            float sum[TGI_REPAIR_ROWS] = {};
#pragma unroll 2
            for (int l = 0; l < k; l++) {
                const float value = b_col[l * p.b.row];
                const int first = first_row + row;
#pragma unroll
                for (int i = 0; i < TGI_REPAIR_ROWS; i++)
                    sum[i] =
                        fmaf(a[min(first + i, last_row) * p.a.row + l * p.a.col], value, sum[i]);
            }
#pragma unroll
            for (int i = 0; i < TGI_REPAIR_ROWS; i++) {
                const tgi_range row_range = {__shfl_sync(~0u, a_range.largest, i),
                                             __shfl_sync(~0u, a_range.least, i)};
                const float own_doubt = tgi_find_doubt(args, row_range, b_range);
                const uint32_t place = tgi_find_sum(staged, row + i, col);
                if (own_doubt > 0.0f && !(fabsf(tgi_read_shared_4(place)) > own_doubt))
                    tgi_write_shared_4(place, sum[i]);
            }
        }
    }
}

/* Repairs the warp's 16 rows of 64 x 64 sums in shared memory where their ranges leave doubt.
 * a_block is the range of these rows, or a wider one. */
template <class Args>
static __device__ __forceinline__ void tgi_repair_rows(const Args &args, const tgi_range &a_block,
                                                       int first_row, int first_col, int batch,
                                                       uint32_t staged)
{
    if (first_col >= args.gemm.problem.n)
        return; /* such columns have no ranges */
    const float doubt = tgi_find_doubt(
        args, a_block, tgi_find_range(args.b_slices, args.b.has_batch ? batch : 0, first_col));
    if (doubt != 0.0f)
        tgi_repair_doubtful(args, doubt, first_row, first_col, batch, staged);
}

/* Undoes the scales of lines of FP16 slices, which are powers of two, in the sums of 64 rows. */
template <class Args, int Count>
static __device__ __forceinline__ void
tgi_scale_sums(const Args &args, const tgi_cluster_tile &tile, float (&sum)[Count])
{
    if (!args.a_slices.line_scale)
        return;
    const int row = tile.row + threadIdx.x / 32 % 4 * 16 + threadIdx.x % 32 / 4;
    int col = tile.col + threadIdx.x % 4 * 2;
    const auto &a = args.a, &b = args.b;
    const float *a_scale = args.a_slices.line_scale +
                           (a.has_batch ? static_cast<int64_t>(tile.batch) * a.line_count : 0);
    const float *b_scale = args.b_slices.line_scale +
                           (b.has_batch ? static_cast<int64_t>(tile.batch) * b.line_count : 0);
    const float low = a_scale[min(row, a.line_count - 1)];
    const float high = a_scale[min(row + 8, a.line_count - 1)];
#pragma unroll
    for (int i = 0; i < Count; i += 4, col += 8) {
        if (i % 16 == 0) {
            /* Otherwise the compiler would read the scales of all columns at once, which do not fit
             * in registers. */
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
