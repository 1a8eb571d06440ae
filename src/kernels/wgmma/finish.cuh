/*
 * From the sums of a warpgroup, 64 rows, to D: at most 64 columns at a time through shared memory,
 * so that D is written in whole lines.
 */
#ifndef TGI_WGMMA_FINISH_CUH
#define TGI_WGMMA_FINISH_CUH

#include "kernels/hopper.cuh"
#include "kernels/wgmma/mend.cuh"

/* Where the 64 rows of a warpgroup go. */
struct tgi_wgmma_target {
    void *data; /* of element (0, 0) of the tile */
    int64_t row, col;
    int rows, cols; /* inside D, at most 64 */
    tg_type type;
};

static __device__ __forceinline__ tgi_wgmma_target tgi_find_target(const tgi_wgmma_args &args,
                                                                   const tgi_wgmma_tile &tile,
                                                                   int cols)
{
    const tgi_gemm_args &gemm = args.gemm;
    const tgi_problem &p = gemm.problem;
    tgi_wgmma_target target;
    target.rows = static_cast<int>(min(p.m - tile.row, static_cast<int64_t>(64)));
    target.cols = static_cast<int>(min(p.n - tile.col, static_cast<int64_t>(cols)));
    target.type = p.d_type;
    target.row = p.d.row;
    target.col = p.d.col;
    target.data = static_cast<char *>(gemm.d) +
                  tgi_offset(p.d, tile.batch, tile.row, tile.col) * (p.d_type == TG_TYPE_FP32 ? 4
                                                                     : tgi_is_fp8(p.d_type)   ? 1
                                                                                              : 2);
    return target;
}

/* alpha, beta, C, bias and activation on the sums of 64 x 64 elements in shared memory. */
static __device__ __forceinline__ void tgi_apply_epilogue(const tgi_gemm_args &gemm,
                                                          const tgi_wgmma_tile &tile, uint32_t part)
{
    const tgi_problem &p = gemm.problem;
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    constexpr int ahead = 4; /* rows whose C is asked for together */
#pragma unroll 1
    for (int i = 0; i < 32 / ahead; i++) {
        const int col = lane + i % 2 * 32, first = warp * 16 + i / 2 * ahead;
        /* Outside D its last element stands for those that nobody stores. */
        const int64_t place_col = min(tile.col + static_cast<int64_t>(col), p.n - 1);
        float c[ahead], alpha[ahead];
#pragma unroll
        for (int j = 0; j < ahead; j++) {
            const int64_t row = min(tile.row + static_cast<int64_t>(first + j), p.m - 1);
            c[j] = tgi_read_c_fp32(gemm, tile.batch, row, place_col);
            alpha[j] = tgi_find_alpha(gemm, row, place_col);
        }
#pragma unroll
        for (int j = 0; j < ahead; j++) {
            const int64_t row = min(tile.row + static_cast<int64_t>(first + j), p.m - 1);
            float bias = 0.0f;
            if (p.bias != TG_BIAS_NONE)
                bias =
                    tgi_read_element(gemm.bias, p.bias == TG_BIAS_ROW ? row : place_col, p.d_type);
            const uint32_t place = tgi_find_sum(part, first + j, col);
            tgi_write_shared_4(place,
                               tgi_epilogue_fp32(tgi_read_shared_4(place), alpha[j],
                                                 static_cast<float>(p.beta), c[j],
                                                 p.bias != TG_BIAS_NONE, bias, TG_ACTIVATION_NONE));
        }
    }
    if (p.activation == TG_ACTIVATION_NONE && !gemm.d_scale)
        return;
    const float d_scale = gemm.d_scale ? *gemm.d_scale : 1.0f;
    /* Inline, and once: a call would spill the sums that wait for their turn. */
#pragma unroll 1
    for (int i = 0; i < 32; i++) {
        const uint32_t place = tgi_find_sum(part, warp * 16 + i / 2, lane + i % 2 * 32);
        const float value = tgi_activate_fp32(tgi_read_shared_4(place), p.activation);
        tgi_write_shared_4(place, TGI_MULTIPLY_FP32(value, d_scale));
    }
}

/* Rows of contiguous 16-bit elements that may start between two words: whole words where they fit,
 * the ends by themselves. Four rows at a time are read before the first is written. */
static __device__ __forceinline__ void tgi_store_rows_16bit(const tgi_wgmma_target &target,
                                                            uint32_t part)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    uint16_t *data = static_cast<uint16_t *>(target.data) + warp * 16 * target.row;
    const int end = min(16, target.rows - warp * 16);
    for (int first = 0; first < end; first += 4) {
        uint32_t pair[4];
        int col[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int row = warp * 16 + first + i;
            const uint64_t address = reinterpret_cast<uint64_t>(data + (first + i) * target.row);
            /* Lane 31 of a row that starts between two words has its last element and its first. */
            col[i] = 2 * lane + static_cast<int>(address >> 1 & 1);
            pair[i] = tgi_pack(target.type, tgi_read_shared_4(tgi_find_sum(part, row, col[i])),
                               tgi_read_shared_4(tgi_find_sum(part, row, (col[i] + 1) % 64)));
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            uint16_t *line = data + (first + i) * target.row;
            if (first + i >= end)
                break;
            if (col[i] < 63 && col[i] + 1 < target.cols) {
                *reinterpret_cast<uint32_t *>(line + col[i]) = pair[i];
            } else {
                if (col[i] < target.cols)
                    line[col[i]] = static_cast<uint16_t>(pair[i]);
                if (col[i] == 63 && target.cols > 0)
                    line[0] = static_cast<uint16_t>(pair[i] >> 16);
            }
        }
    }
}

/* Threads store what boxes cannot: D of any strides and alignment. */
static __device__ __forceinline__ void tgi_store_part(const tgi_wgmma_target &target, uint32_t part)
{
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32 % 4;
    if (target.col == 1 && (target.type == TG_TYPE_BF16 || target.type == TG_TYPE_FP16)) {
        tgi_store_rows_16bit(target, part);
        return;
    }
    /* Lanes along the lines of D, columns or rows. */
    const int is_down = target.row == 1 && target.col != 1;
    for (int first = 0; first < 32; first += 4) {
        float value[4];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int line = warp * 16 + (first + i) / 2, place = lane + i % 2 * 32;
            value[i] = tgi_read_shared_4(
                tgi_find_sum(part, is_down ? place : line, is_down ? line : place));
        }
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int line = warp * 16 + (first + i) / 2, place = lane + i % 2 * 32;
            const int row = is_down ? place : line, col = is_down ? line : place;
            if (row < target.rows && col < target.cols)
                tgi_write_element(target.data, row * target.row + col * target.col, target.type,
                                  value[i]);
        }
    }
}

/* Puts sums of Cols columns into boxes whose lines are those columns, and has them stored, after
 * the stores before them. */
template <int Cols, int Count>
static __device__ __forceinline__ void
tgi_store_turned_boxes(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile,
                       const float (&sum)[Count], uint32_t box, int barrier)
{
    const int is_leader = threadIdx.x % 128 == 0;
    const int is_16bit = args.gemm.problem.d_type != TG_TYPE_FP32;
    if (is_leader)
        tgi_store_box_wait<0>();
    tgi_meet(barrier, 128); /* the boxes have been read */
    if (is_16bit)
        tgi_put_turned_16bit<Cols>(box, sum, args.gemm.problem.d_type);
    else
        tgi_put_turned_fp32<Cols>(box, sum);
    tgi_fence_bulk_copy();
    tgi_meet(barrier, 128); /* the boxes have been written */
    if (is_leader) {
        tgi_store_box(&args.d, box, tile.row, tile.col, tile.batch);
        if (!is_16bit)
            tgi_store_box(&args.d, box + TGI_BOX_BYTES, tile.row + 32, tile.col, tile.batch);
    }
}

/* Puts sums of Cols columns into the box, mends those of slices, and has it stored, after at most
 * `Pending` stores before it; all that tgi_finish_part does where D takes boxes. */
template <int IsSliced, int Cols, int Pending, int Count>
static __device__ __forceinline__ void
tgi_store_boxes(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, const float (&sum)[Count],
                int first, uint32_t box, int barrier, const tgi_range &a_range)
{
    const int is_leader = threadIdx.x % 128 == 0;
    const int is_16bit = args.gemm.problem.d_type != TG_TYPE_FP32;
    if (is_leader && is_16bit)
        tgi_store_box_wait<Pending>();
    else if (is_leader)
        tgi_store_box_wait<0>();
    tgi_meet(barrier, 128); /* the box has been read */
    if (is_16bit)
        tgi_put_16bit<Cols>(box, sum, first, args.gemm.problem.d_type);
    else
        tgi_put_fp32<Cols>(box, sum, first);
    if (IsSliced && args.b_slices.ranges)
        tgi_mend_part(args, a_range, tile.row, tile.col, tile.batch, box);
    tgi_fence_bulk_copy();
    tgi_meet(barrier, 128); /* the box has been written */
    if (is_leader) {
        tgi_store_box(&args.d, box, tile.col, tile.row, tile.batch);
        if (!is_16bit && Cols > 32)
            tgi_store_box(&args.d, box + TGI_BOX_BYTES, tile.col + 32, tile.row, tile.batch);
    }
}

/* Stores the 64 rows of a warpgroup where D takes boxes; `part` is its shared memory, with two
 * boxes, `barrier` its barrier. IsSliced: the sums are of slices, a_range the rows' range. */
template <int IsSliced, int Count>
static __device__ __forceinline__ void
tgi_store_tile(const tgi_wgmma_args &args, tgi_wgmma_tile tile, const float (&sum)[Count],
               uint32_t part, int barrier, const tgi_range &a_range)
{
    constexpr int cols = TGI_WGMMA_PART_COLS(2 * Count);
    const int is_16bit = args.gemm.problem.d_type != TG_TYPE_FP32;
    /* The last store may be of the first box. */
    tgi_store_boxes<IsSliced, cols, 0>(args, tile, sum, 0, part, barrier, a_range);
#pragma unroll
    for (int first = cols / 8; first < Count / 4; first += cols / 8) {
        tile.col += cols;
        tgi_store_boxes<IsSliced, cols, 1>(args, tile, sum, first,
                                           part + is_16bit * (8 * first / cols % 2) * TGI_BOX_BYTES,
                                           barrier, a_range);
    }
}

/* Stores 64 rows of as many columns as lie together, any D: part number `index` of several, which
 * may still be read from the memory of the one before. MayTurn 0: is_d_turned is not set. */
template <int IsSliced, int MayTurn, int Count>
static __device__ __forceinline__ void
tgi_finish_part(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, const float (&sum)[Count],
                int index, uint32_t part, int barrier, const tgi_range &a_range)
{
    if (MayTurn && args.is_d_turned) {
        tgi_store_turned_boxes<2 * Count>(args, tile, sum, part, barrier);
        return;
    }
    if (args.is_d_boxed) {
        const int is_16bit = args.gemm.problem.d_type != TG_TYPE_FP32;
        tgi_store_boxes<IsSliced, 2 * Count, 1>(
            args, tile, sum, 0, part + is_16bit * (index & 1) * TGI_BOX_BYTES, barrier, a_range);
        return;
    }
    tgi_meet(barrier, 128); /* the last part has been read */
    tgi_put_fp32<2 * Count>(part, sum, 0);
    if (IsSliced && args.b_slices.ranges)
        tgi_mend_part(args, a_range, tile.row, tile.col, tile.batch, part);
    tgi_meet(barrier, 128); /* this one has been written */
    if (!args.is_sum_alone)
        tgi_apply_epilogue(args.gemm, tile, part);
    tgi_meet(barrier, 128); /* the epilogue has been applied */
    tgi_store_part(tgi_find_target(args, tile, 2 * Count), part);
}

#endif
