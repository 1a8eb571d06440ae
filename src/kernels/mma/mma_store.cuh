/*
 * From the sums of a warp to D, or to the workspace of split-K, 16 rows at a time: the epilogue on
 * the fragments, shared memory, then D in whole lines. Four warps share the boxes that a warpgroup
 * has in epilogue/fragment_staging.cuh, a quarter each.
 */
#ifndef TGI_MMA_STORE_CUH
#define TGI_MMA_STORE_CUH

#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/epilogue/fragment_staging.cuh"
#include "kernels/epilogue/line_store.cuh"
#include "kernels/schedule/tile.cuh"

/* Stores 16 staged rows of FP32 sums, from line `line` of the box on, to a D of any strides. */
template <int Cols>
static __device__ __forceinline__ void tgi_mma_store_elements(const tgi_store_target &target,
                                                              uint32_t box, int line)
{
    const int is_down = target.row == 1;
#pragma unroll 4
    for (int i = tgi_thread() % 32; i < 16 * Cols; i += 32) {
        const int row = line + (is_down ? i % 16 : i / Cols), col = is_down ? i / 16 : i % Cols;
        if (row < target.rows && col < target.cols)
            tgi_write_element(target.data, row * target.row + col * target.col, target.type,
                              tgi_read_shared_4(tgi_find_sum(box, row, col)));
    }
}

/* The place of a warp's next 16 rows, as a warpgroup's tile would lie whose rows of this warp they
 * are. */
static __device__ __forceinline__ tgi_cluster_tile tgi_mma_find_place(const tgi_block_tile &tile,
                                                                      int row, int col)
{
    tgi_cluster_tile place = {};
    place.row = static_cast<int>(tile.row) + row - tgi_thread() / 32 % 4 * 16;
    place.col = static_cast<int>(tile.col) + col;
    place.batch = static_cast<int>(tile.batch);
    return place;
}

/* Returns the part of D, or of the workspace, that the sums go to. */
static __device__ __forceinline__ tgi_store_target
tgi_mma_find_target(const tgi_gemm_args &args, const tgi_cluster_tile &place, int k_part, int cols)
{
    tgi_store_target target = tgi_find_target(args, place.row, place.col, place.batch, cols);
    if (args.k_part_count > 1) {
        const tgi_problem &p = args.problem;
        target.type = TG_TYPE_FP32;
        target.row = p.n;
        target.col = 1;
        target.data =
            static_cast<float *>(args.workspace) +
            ((static_cast<int64_t>(place.batch) * args.k_part_count + k_part) * p.m + place.row) *
                p.n +
            place.col;
    }
    return target;
}

/* Stages sums at their places in D. Columns that are mixed (mma_operand.cuh) lie in pairs. */
template <int IsMixed, int Count>
static __device__ __forceinline__ void tgi_mma_put_fp32(uint32_t box, const float (&sum)[Count])
{
    const int lane = tgi_thread() % 32, c = lane % 4;
    const int line = tgi_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Count; i += 2) {
        const int t = i / 4, h = i / 2 % 2, even = t / 2 * 8 + 2 * h + t % 2;
        const int col = IsMixed ? t / 2 * 16 + c * 4 + t % 2 * 2 : t * 8 + c * 2;
        tgi_write_shared_8(tgi_find_sum(box, line + h * 8, col), sum[IsMixed ? even : i],
                           sum[IsMixed ? even + 4 : i + 1]);
    }
}

/* Reads back the sums that are staged, as a lane has them by tgi_put_fp32. */
template <int Count>
static __device__ __forceinline__ void tgi_mma_get_fp32(uint32_t box, float (&sum)[Count])
{
    const int lane = tgi_thread() % 32, line = tgi_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < Count; i += 2) {
        const uint32_t place = tgi_find_sum(box, line + i / 2 % 2 * 8, i / 4 * 8 + lane % 4 * 2);
        float pair[2];
        tgi_read_shared_8(place, pair);
        sum[i] = pair[0];
        sum[i + 1] = pair[1];
    }
}

/* Finishes and stores a warp's 16 rows of 2 Count columns, whose sums it has staged. It is out of
 * line, once for all kernels of an image, as the epilogue brings code for all types and
 * activations. */
template <int Count>
static __device__ __noinline__ void
tgi_mma_finish(const tgi_gemm_args &args, const tgi_cluster_tile place, int k_part, uint32_t box)
{
    constexpr int cols = 2 * Count;
    const tgi_store_target target = tgi_mma_find_target(args, place, k_part, cols);
    const int is_lined = target.col == 1, is_wide = target.type == TG_TYPE_FP32 || !is_lined;
    if (args.k_part_count == 1 && !(args.is_sum_alone && is_wide)) {
        float sum[Count];
        /* Without this barrier lanes would read what others have yet to write. */
        __syncwarp();
        tgi_mma_get_fp32(box, sum);
        /* Without this barrier lanes would overwrite what others still read. */
        __syncwarp();
        if (!args.is_sum_alone)
            tgi_apply_epilogue(args, place, sum);
        if (is_wide)
            tgi_put_fp32<cols>(box, sum, 0);
        else if (tgi_is_fp8(target.type))
            tgi_put_bytes<cols>(box, sum, target.type);
        else
            tgi_put_16bit<cols>(box, sum, 0, target.type);
    }
    /* Without this barrier lanes would read what others have yet to write. */
    __syncwarp();
    if (!is_lined)
        tgi_mma_store_elements<cols>(target, box, tgi_thread() / 32 % 4 * 16);
    else if (tgi_is_fp8(target.type))
        tgi_store_lines<1>(tgi_find_lines(target, 0), {0, 0}, box, 0);
    else
        tgi_store_lines<2>(tgi_find_lines(target, 0), {0, 0}, box, 0);
    /* Without this barrier lanes would overwrite the rows that others still read. */
    __syncwarp();
}

/* Stores `cols` 16-bit numbers of each of a warp's 16 rows, which it has staged in a box, wherever
 * the rows begin. It is out of line because line_store.cuh brings much code. */
static __device__ __noinline__ void
tgi_mma_store_rows(const tgi_gemm_args &args, const tgi_cluster_tile place, int cols, uint32_t box)
{
    const tgi_store_target target = tgi_find_target(args, place.row, place.col, place.batch, cols);
    tgi_store_lines<2>(tgi_find_lines(target, 0), {0, 0}, box, 0);
}

/* Stores one unit of 8 columns, or what of it lies left of the end of D: `elems` of them. */
static __device__ __forceinline__ void tgi_mma_store_unit(uint16_t *data, uint32_t unit, int elems)
{
    if (elems >= 8) {
        *reinterpret_cast<uint4 *>(data) = tgi_read_shared_unit(unit);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < elems; i++)
        data[i] = tgi_read_shared_2(unit + 2 * i);
}

/* Stores sums as numbers of Type, 16 rows at a time, to a D whose rows are contiguous. Four
 * warps share two boxes, of which each warp has 16 lines. A warp stages 16 rows in one box and the
 * next 16 in the other. */
template <tg_type Type, int Parts, int Count>
static __device__ __forceinline__ void
tgi_mma_store_packed(const tgi_gemm_args &args, const tgi_block_tile &tile, int row, int col,
                     const float (&sums)[Parts][Count], uint32_t boxes)
{
    constexpr int cols = 2 * Count, units = cols / 8, row_step = 32 / units;
    const tgi_problem &p = args.problem;
    const int lane = tgi_thread() % 32, first_line = tgi_thread() / 32 % 4 * 16;
    const int64_t own_row = tile.row + row + lane / units;
    const int64_t own_col = tile.col + col + lane % units * 8;
    const int elems = static_cast<int>(min(p.n - own_col, static_cast<int64_t>(8)));
    int rows_left = static_cast<int>(min(p.m - own_row, static_cast<int64_t>(16 * Parts)));
    uint16_t *data =
        static_cast<uint16_t *>(args.d) + tgi_offset(p.d, tile.batch, own_row, own_col);
#pragma unroll 1
    for (int i = 0; i < Parts; i++) {
        const uint32_t box = boxes + i % 2 * TGI_BOX_BYTES;
#pragma unroll
        for (int j = 0; j < Parts; j++) /* registers have no index that is computed */
            if (i == j)
#pragma unroll
                for (int t = 0; t < Count; t += 2) {
                    const int line = first_line + lane / 4 + t / 2 % 2 * 8;
                    const uint32_t pair = tgi_encode_pair(Type, sums[j][t], sums[j][t + 1]);
                    tgi_write_shared_4(tgi_find_unit(box, line, t / 4) + lane % 4 * 4,
                                       __uint_as_float(pair));
                }
        /* Without this barrier lanes would read what others have yet to write, and overwrite in
         * the next turn what they still read of the last. */
        __syncwarp();
        if (args.d_vector_elems == 8) {
#pragma unroll
            for (int j = 0; j < 16; j += row_step)
                if (rows_left > j)
                    tgi_mma_store_unit(
                        data + j * p.d.row,
                        tgi_find_unit(box, first_line + lane / units + j, lane % units), elems);
        } else {
            tgi_mma_store_rows(args, tgi_mma_find_place(tile, row + 16 * i, col), cols, box);
        }
        rows_left -= 16;
        data += 16 * p.d.row;
    }
}

/* Stores sums as FP32, from the warp's first one on. Pairs of neighbours can be stored at once, and
 * four lanes store 32 bytes in a row. */
template <int Parts, int Count>
static __device__ __forceinline__ void tgi_mma_store_pairs(const tgi_store_target &target,
                                                           const float (&sums)[Parts][Count])
{
    const int lane = tgi_thread() % 32, first_row = lane / 4, first_col = lane % 4 * 2;
    float *data = static_cast<float *>(target.data) + first_row * target.row + first_col;
#pragma unroll
    for (int i = 0; i < 2 * Parts; i++)
#pragma unroll
        for (int t = 0; t < Count / 4; t++)
            if (first_row + 8 * i < target.rows && first_col + 8 * t < target.cols) {
                const float *pair = &sums[i / 2][4 * t + i % 2 * 2];
                *reinterpret_cast<float2 *>(data + 8 * i * target.row + 8 * t) = {pair[0], pair[1]};
            }
}

/* Returns 1 if pairs of FP32 of the target's rows can be stored at once. */
static __device__ __forceinline__ int tgi_mma_has_pairs(const tgi_store_target &target)
{
    return target.type == TG_TYPE_FP32 && target.col == 1 && target.row % 2 == 0 &&
           target.cols % 2 == 0 && reinterpret_cast<uintptr_t>(target.data) % 8 == 0;
}

/* Stores Parts times 16 rows of sums, of which sum 4 t + 2 h + j of part i is of row 16 i + lane /
 * 4 + 8 h and of column 8 t + 2 (lane % 4) + j from (row, col) of the tile on. The block has
 * TGI_MMA_STORE_BYTES of `shared` memory for it. */
template <class Math, int IsMixed, int Parts, int Count>
static __device__ __forceinline__ void
tgi_mma_store(const tgi_gemm_args &args, const tgi_block_tile &tile, int row, int col,
              const float (&sums)[Parts][Count], uint32_t shared)
{
    const uint32_t box = shared + tgi_thread() / 128 * (2 * TGI_BOX_BYTES);
    if constexpr (!IsMixed) {
        tgi_cluster_tile first = {};
        first.batch = static_cast<int>(tile.batch);
        first.row = static_cast<int>(tile.row) + row;
        first.col = static_cast<int>(tile.col) + col;
        const tgi_store_target target = tgi_mma_find_target(args, first, tile.k_part, 2 * Count);
        if ((args.is_sum_alone || args.k_part_count > 1) && tgi_mma_has_pairs(target)) {
            tgi_mma_store_pairs(target, sums);
            return;
        }
    }
    if constexpr (sizeof(typename Math::elem) == 2) {
        if (args.is_sum_alone && args.k_part_count == 1 && args.problem.d_type == Math::type &&
            args.problem.d.col == 1) {
            tgi_mma_store_packed<Math::type>(args, tile, row, col, sums, box);
            return;
        }
    }
#pragma unroll 1
    for (int i = 0; i < Parts; i++) {
        const tgi_cluster_tile place = tgi_mma_find_place(tile, row + 16 * i, col);
        if (tile.row + row + 16 * i >= args.problem.m || place.col >= args.problem.n)
            break;
#pragma unroll
        for (int j = 0; j < Parts; j++) /* registers have no index that is computed */
            if (i == j)
                tgi_mma_put_fp32<IsMixed>(box, sums[j]);
        tgi_mma_finish<Count>(args, place, tile.k_part, box);
    }
}

#endif
