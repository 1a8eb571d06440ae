/*
 * Stores the sums of a warp to D, or to the workspace of split-K, 16 rows at a time. The epilogue
 * is applied to fragments, which go through shared memory and leave in whole lines. Four warps
 * share the boxes that a warpgroup has in epilogue/fragment_staging.cuh, a quarter each.
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

/* Returns the place of a warpgroup's tile of which the warp's next 16 rows are this warp's rows. */
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
tgi_mma_find_target(const tgi_gemm_args &args, const tgi_cluster_tile &place, int split, int cols)
{
    tgi_store_target target = tgi_find_target(args, place.row, place.col, place.batch, cols);
    if (args.split_count > 1) {
        const tgi_problem &p = args.problem;
        target.type = TG_TYPE_FP32;
        target.row = p.n;
        target.col = 1;
        target.data =
            static_cast<float *>(args.workspace) +
            ((static_cast<int64_t>(place.batch) * args.split_count + split) * p.m + place.row) *
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

/* Reads back the staged sums, in the order in which a lane has them for tgi_put_fp32. */
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

/* Applies the epilogue to a warp's 16 rows of 2 Count columns, which it has staged, and stores
 * them. It is out of line, once for all kernels of an image, because the epilogue contains code for
 * all types and activations. */
template <int Count>
static __device__ __noinline__ void
tgi_mma_finish(const tgi_gemm_args &args, const tgi_cluster_tile place, int split, uint32_t box)
{
    constexpr int cols = 2 * Count;
    const tgi_store_target target = tgi_mma_find_target(args, place, split, cols);
    const int is_lined = target.col == 1, is_wide = target.type == TG_TYPE_FP32 || !is_lined;
    if (args.split_count == 1 && !(args.is_sum_alone && is_wide)) {
        float sum[Count];
        /* Without this barrier lanes would read what others have yet to write. */
        __syncwarp();
        tgi_mma_get_fp32(box, sum);
        /* Without this barrier lanes would overwrite what others still read. */
        __syncwarp();
        if (!args.is_sum_alone)
            tgi_apply_epilogue(args, place, tgi_fragment_vectors(args, place), sum);
        if (is_wide)
            tgi_put_fp32<cols>(box, sum, 0);
        else if (tgi_is_fp8(target.type))
            tgi_put_bytes<cols>(box, sum, target.type);
        else
            tgi_put_16bit<cols>(box, sum, 0, {target.type, 0});
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

/* The lines of D that a warp stores are rows, or columns if those are contiguous. A lane stores a
 * unit of 16 bytes of every lines_apart-th of them. */
struct tgi_mma_lines {
    uint16_t *data; /* the lane's first line, from the warp's first element on */
    int64_t pitch;  /* elements from line to line */
    int count;      /* lines inside D from the lane's first on */
    int elems;      /* elements of a line inside D, from the warp's first on; 0 or less: none */
};

/* Stores the lane's part of a line of Units units, which begins at an aligned unit of memory. */
template <int Units>
static __device__ __forceinline__ void tgi_mma_store_unit(uint16_t *data, int elems, uint32_t box,
                                                          int line)
{
    const int unit = tgi_thread() % Units, left = elems - 8 * unit;
    const uint32_t from = tgi_find_unit(box, line, unit);
    if (left >= 8) {
        *reinterpret_cast<uint4 *>(data + 8 * unit) = tgi_read_shared_unit(from);
        return;
    }
#pragma unroll 1
    for (int i = 0; i < left; i++)
        data[8 * unit + i] = tgi_read_shared_2(from + 2 * i);
}

/* Stores the lane's part of a line that begins anywhere: whole units of memory, then the elements
 * in front of them and behind them, a few a lane. */
template <int Units>
static __device__ __forceinline__ void tgi_mma_store_shifted(uint16_t *data, int elems,
                                                             uint32_t box, int line)
{
    const int unit = tgi_thread() % Units;
    const int head = min(static_cast<int>(-reinterpret_cast<uintptr_t>(data) & 15) / 2, elems);
    const int tail = head + (elems - head) / 8 * 8, first = head + 8 * unit;
    if (first < tail)
        *reinterpret_cast<uint4 *>(data + first) = tgi_cut_unit(
            tgi_read_shared_unit(tgi_find_unit(box, line, unit)),
            tgi_read_shared_unit(tgi_find_unit(box, line, min(unit + 1, Units - 1))), 2 * head);
#pragma unroll 1
    for (int i = unit; i < head + elems - tail; i += Units) {
        const int elem = i < head ? i : tail + i - head;
        data[elem] = tgi_read_shared_2(tgi_find_unit(box, line, elem / 8) + elem % 8 * 2);
    }
}

/* Transposes an 8 x 8 matrix of 16-bit numbers, of which lane 4 g + c has columns 2 c and 2 c + 1
 * of row g. */
static __device__ __forceinline__ uint32_t tgi_mma_transpose(uint32_t pair)
{
    const int lane = tgi_thread() % 32, from = lane % 4 * 8 + lane / 8;
    const uint32_t first = __shfl_sync(~0u, pair, from), second = __shfl_sync(~0u, pair, from + 4);
    return __byte_perm(first, second, lane / 4 % 2 ? 0x7632 : 0x5410);
}

/* Stages 16 lines of D as numbers of Type. They are rows of a fragment, or columns 16 fragment ..
 * 16 fragment + 15, which lie across the matrices that the warp holds. */
template <tg_type Type, int Are_cols, int Fragments, int Count>
static __device__ __forceinline__ void tgi_mma_stage(const float (&sums)[Fragments][Count],
                                                     int fragment, uint32_t box)
{
    const int lane = tgi_thread() % 32, line = tgi_thread() / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int i = 0; i < (Are_cols ? 4 * Fragments : Count / 2); i++) {
        const int half = i % 2, unit = i / 2;
        const float *sum = Are_cols ? &sums[unit / 2][8 * fragment + 4 * half + unit % 2 * 2]
                                    : &sums[fragment][4 * unit + 2 * half];
        uint32_t pair = tgi_encode_pair(Type, sum[0], sum[1]);
        if (Are_cols)
            pair = tgi_mma_transpose(pair);
        tgi_write_shared_4(tgi_find_unit(box, line + 8 * half, unit) + lane % 4 * 4,
                           __uint_as_float(pair));
    }
}

/* Stores sums as numbers of Type, 16 lines at a time, to a D whose rows, or columns if Are_cols,
 * are contiguous. Four warps share two boxes, of which each warp has 16 lines. A warp stages 16
 * lines in one box and the next 16 in the other. */
template <tg_type Type, int Are_cols, int Fragments, int Count>
static __device__ __forceinline__ void
tgi_mma_store_packed(const tgi_gemm_args &args, const tgi_block_tile &tile, int row, int col,
                     const float (&sums)[Fragments][Count], uint32_t boxes)
{
    constexpr int groups = Are_cols ? Count / 8 : Fragments;
    constexpr int units = Are_cols ? 2 * Fragments : Count / 4, lines_apart = 32 / units;
    const tgi_problem &p = args.problem;
    const int own = tgi_thread() % 32 / units, first_line = tgi_thread() / 32 % 4 * 16 + own;
    const int64_t first_row = tile.row + row + (Are_cols ? 0 : own);
    const int64_t first_col = tile.col + col + (Are_cols ? own : 0);
    const int64_t lines_left = Are_cols ? p.n - first_col : p.m - first_row;
    const int64_t elems_left = Are_cols ? p.m - first_row : p.n - first_col;
    tgi_mma_lines lines;
    lines.data =
        static_cast<uint16_t *>(args.d) + tgi_offset(p.d, tile.batch, first_row, first_col);
    lines.pitch = Are_cols ? p.d.col : p.d.row;
    lines.elems = static_cast<int>(min(elems_left, static_cast<int64_t>(8 * units)));
    lines.count =
        lines.elems > 0 ? static_cast<int>(min(lines_left, static_cast<int64_t>(16 * groups))) : 0;
#pragma unroll 1
    for (int i = 0; i < groups; i++) {
        const uint32_t box = boxes + i % 2 * TGI_BOX_BYTES;
#pragma unroll
        for (int j = 0; j < groups; j++) /* registers have no index that is computed */
            if (i == j)
                tgi_mma_stage<Type, Are_cols>(sums, j, box);
        /* Without this barrier lanes would read what others have yet to write, and overwrite in
         * the next iteration what they still read of the last. */
        __syncwarp();
        if (args.d_vector_elems == 8) {
#pragma unroll
            for (int j = 0; j < 16; j += lines_apart)
                if (lines.count > j)
                    tgi_mma_store_unit<units>(lines.data + j * lines.pitch, lines.elems, box,
                                              first_line + j);
        } else {
#pragma unroll
            for (int j = 0; j < 16; j += lines_apart)
                if (lines.count > j)
                    tgi_mma_store_shifted<units>(lines.data + j * lines.pitch, lines.elems, box,
                                                 first_line + j);
        }
        lines.count -= 16;
        lines.data += 16 * lines.pitch;
    }
}

/* Stores sums as FP32, from the warp's first one on. Pairs of neighbours can be stored at once, so
 * that four lanes store 32 consecutive bytes. */
template <int Fragments, int Count>
static __device__ __forceinline__ void tgi_mma_store_pairs(const tgi_store_target &target,
                                                           const float (&sums)[Fragments][Count])
{
    const int lane = tgi_thread() % 32, first_row = lane / 4, first_col = lane % 4 * 2;
    float *data = static_cast<float *>(target.data) + first_row * target.row + first_col;
#pragma unroll
    for (int i = 0; i < 2 * Fragments; i++)
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

/* Stores Fragments times 16 rows of sums, of which sum 4 t + 2 h + j of fragment i is of row 16 i +
 * lane / 4 + 8 h and of column 8 t + 2 (lane % 4) + j from (row, col) of the tile on. The block has
 * TGI_MMA_STORE_BYTES of `shared` memory for it. */
template <class Math, int IsMixed, int Fragments, int Count>
static __device__ __forceinline__ void
tgi_mma_store(const tgi_gemm_args &args, const tgi_block_tile &tile, int row, int col,
              const float (&sums)[Fragments][Count], uint32_t shared)
{
    const uint32_t box = shared + tgi_thread() / 128 * (2 * TGI_BOX_BYTES);
    if constexpr (!IsMixed) {
        tgi_cluster_tile first = {};
        first.batch = static_cast<int>(tile.batch);
        first.row = static_cast<int>(tile.row) + row;
        first.col = static_cast<int>(tile.col) + col;
        const tgi_store_target target = tgi_mma_find_target(args, first, tile.split, 2 * Count);
        if ((args.is_sum_alone || args.split_count > 1) && tgi_mma_has_pairs(target)) {
            tgi_mma_store_pairs(target, sums);
            return;
        }
    }
    if constexpr (sizeof(typename Math::elem) == 2) {
        const tgi_problem &p = args.problem;
        if (args.is_sum_alone && args.split_count == 1 && p.d_type == Math::type) {
            if (p.d.col == 1) {
                tgi_mma_store_packed<Math::type, 0>(args, tile, row, col, sums, box);
                return;
            }
            if (p.d.row == 1) {
                tgi_mma_store_packed<Math::type, 1>(args, tile, row, col, sums, box);
                return;
            }
        }
    }
#pragma unroll 1
    for (int i = 0; i < Fragments; i++) {
        const tgi_cluster_tile place = tgi_mma_find_place(tile, row + 16 * i, col);
        if (tile.row + row + 16 * i >= args.problem.m || place.col >= args.problem.n)
            break;
#pragma unroll
        for (int j = 0; j < Fragments; j++) /* registers have no index that is computed */
            if (i == j)
                tgi_mma_put_fp32<IsMixed>(box, sums[j]);
        tgi_mma_finish<Count>(args, place, tile.split, box);
    }
}

#endif
