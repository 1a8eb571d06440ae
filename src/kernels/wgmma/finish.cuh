/*
 * From the sums of a warpgroup, 64 rows, to D: 64 columns at a time through shared memory, so that
 * D is written in whole lines.
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

/* Stores the 64 rows of a warpgroup; `part` is its shared memory, `barrier` its barrier. IsSliced:
 * 1 where these may be sums of slices, a_range then that of the warp's rows of A. */
template <int IsSliced, int Count>
static __device__ __forceinline__ void tgi_finish(const tgi_wgmma_args &args, tgi_wgmma_tile tile,
                                                  const float (&sum)[Count], uint32_t part,
                                                  int barrier, tgi_range a_range = {})
{
    const int is_leader = threadIdx.x % 128 == 0;
    const tg_type type = args.gemm.problem.d_type;
    const int is_16bit = args.is_d_boxed && type != TG_TYPE_FP32;
    constexpr int cols = 2 * Count < TGI_WGMMA_PART_COLS ? 2 * Count : TGI_WGMMA_PART_COLS;
#pragma unroll
    for (int first = 0; first < Count / 4; first += 8, tile.col += cols) {
        const uint32_t box = is_16bit ? part + first / 8 % 2 * TGI_BOX_BYTES : part;
        if (is_leader && is_16bit)
            tgi_store_box_wait<1>();
        else if (is_leader)
            tgi_store_box_wait<0>();
        tgi_meet(barrier, 128); /* the box has been read */
        if (is_16bit)
            tgi_put_16bit(box, sum, first, type);
        else
            tgi_put_fp32(box, sum, first);
        if (IsSliced && args.b_slices.ranges)
            tgi_mend_part(args, a_range, tile.row, tile.col, tile.batch, part);
        if (args.is_d_boxed)
            tgi_fence_bulk_copy();
        tgi_meet(barrier, 128); /* the box has been written */
        if (!args.is_d_boxed) {
            const tgi_wgmma_target target = tgi_find_target(args, tile, cols);
            if (!args.is_sum_alone)
                tgi_apply_epilogue(args.gemm, tile, part);
            tgi_meet(barrier, 128); /* the epilogue has been applied */
            tgi_store_part(target, part);
        } else if (is_leader) {
            tgi_store_box(&args.d, box, tile.col, tile.row, tile.batch);
            if (!is_16bit && cols > 32)
                tgi_store_box(&args.d, box + TGI_BOX_BYTES, tile.col + 32, tile.row, tile.batch);
        }
    }
}

#endif
