/*
 * Stores the finished sums of a warpgroup, 64 rows, to D, at most 64 columns at a time. They go to
 * shared memory (fragment_staging.cuh), then to D in whole lines, by TMA or by threads
 * (line_store.cuh). Sums of slices are repaired in shared memory, and have their epilogue there.
 */
#ifndef TGI_FRAGMENT_STORE_CUH
#define TGI_FRAGMENT_STORE_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/epilogue/line_store.cuh"
#include "kernels/epilogue/staged_rows.cuh"

/* An order is the place of a store among the stores of a warpgroup. has_before and has_after are 1
 * if the store before, or after, has the same rows and neighbouring columns. */
struct tgi_store_order {
    int index, has_before, has_after;
};

/* This repair does nothing, for sums that need none. wgmma/slice_repair.cuh has the other one. */
struct tgi_no_repair {
    static constexpr int is_on = 0;

    template <class Args> __device__ __forceinline__ explicit tgi_no_repair(const Args &)
    {
    }

    __device__ __forceinline__ void find_rows(const tgi_cluster_tile &, int)
    {
    }

    __device__ __forceinline__ void apply(const tgi_cluster_tile &, uint32_t) const
    {
    }
};

/* Returns the form of a D of 16 bits. */
static __device__ __forceinline__ tgi_narrow_form tgi_find_form(const tgi_gemm_args &gemm,
                                                                const tgi_fragment_output &d)
{
    return {tgi_find_d_type(gemm.problem), d.is_relu};
}

/* Returns the part of D to which a warpgroup stores `cols` columns of its rows. */
template <class Args>
static __device__ __forceinline__ tgi_store_target
tgi_find_fragment_target(const Args &args, const tgi_cluster_tile &tile, int cols)
{
    tgi_store_target target = tgi_find_target(args.gemm, tile.row, tile.col, tile.batch, cols);
    target.rows = min(target.rows, args.d_rows);
    return target;
}

/* Stores staged FP32 sums by threads, to a D of any type, strides and alignment. */
static __device__ __forceinline__ void tgi_store_elements(const tgi_store_target &target,
                                                          uint32_t staged)
{
    const int lane = tgi_thread() % 32, warp = tgi_thread() / 32 % 4;
    /* Lanes run along the lines of D, its columns or rows. */
    const int is_down = target.row == 1 && target.col != 1;
#pragma unroll 1
    for (int first = 0; first < 32; first += 4) {
        float value[4];
        int row_of[4], col_of[4]; /* rows and columns in the staged sums */
#pragma unroll
        for (int i = 0; i < 4; i++) {
            const int line = warp * 16 + (first + i) / 2, place = lane + i % 2 * 32;
            row_of[i] = is_down ? place : line;
            col_of[i] = is_down ? line : place;
            value[i] = tgi_read_shared_4(tgi_find_sum(staged, row_of[i], col_of[i]));
        }
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (row_of[i] < target.rows && col_of[i] < target.cols)
                tgi_write_element(target.data, row_of[i] * target.row + col_of[i] * target.col,
                                  target.type, value[i]);
    }
}

/* Stores staged sums of `cols` columns by threads: as lines of D if d.is_lined is set, else as FP32
 * sums. `before` is the box of the columns before these, or 0. */
static __device__ __forceinline__ void tgi_store_staged(const tgi_fragment_output &d,
                                                        const tgi_store_target &target, int cols,
                                                        uint32_t before, uint32_t staged,
                                                        int has_after)
{
    if (!d.is_lined)
        tgi_store_elements(target, staged);
    else if (tgi_is_fp8(target.type))
        tgi_store_lines<1>(tgi_find_lines(target, 0), {before, cols / 16 - 1}, staged, has_after);
    else
        tgi_store_lines<2>(tgi_find_lines(target, d.is_transposed), {before, cols / 8 - 1}, staged,
                           has_after);
}

/* Stores staged TMA boxes whose lines are rows of D. */
template <int Cols, class Args>
static __device__ __forceinline__ void tgi_store_boxes(const Args &args,
                                                       const tgi_cluster_tile &tile, uint32_t box)
{
    if (tgi_thread() % 128 != 0)
        return;
    tgi_tma_store(&args.d_map, box, tile.col, tile.row, tile.batch);
    if (tgi_find_d_type(args.gemm.problem) == TG_TYPE_FP32 && Cols > 32)
        tgi_tma_store(&args.d_map, box + TGI_BOX_BYTES, tile.col + 32, tile.row, tile.batch);
}

/* Stores staged TMA boxes whose lines are columns of D. */
template <class Args>
static __device__ __forceinline__ void
tgi_store_transposed_boxes(const Args &args, const tgi_cluster_tile &tile, uint32_t box)
{
    if (tgi_thread() % 128 != 0)
        return;
    tgi_tma_store(&args.d_map, box, tile.row, tile.col, tile.batch);
    if (tgi_find_d_type(args.gemm.problem) == TG_TYPE_FP32)
        tgi_tma_store(&args.d_map, box + TGI_BOX_BYTES, tile.row + 32, tile.col, tile.batch);
}

/* Stores the 64 rows of a warpgroup by TMA, along D's rows of FP32. `staged` is the warpgroup's
 * shared memory, two boxes, and `barrier` its named barrier. */
template <class Args, class Repair, int Count>
static __device__ __forceinline__ void
tgi_store_wide_boxes(const Args &args, tgi_cluster_tile tile, const float (&sum)[Count],
                     uint32_t staged, int barrier, const Repair &repair)
{
    constexpr int cols = TGI_FRAGMENT_COLS(2 * Count);
#pragma unroll
    for (int first = 0; first < Count / 4; first += cols / 8, tile.col += cols) {
        /* The last store of the previous tile may still read the box. */
        if (tgi_thread() % 128 == 0)
            tgi_tma_store_wait<0>();
        /* Without this barrier the box would be overwritten before TMA has read it. */
        tgi_named_barrier_sync(barrier, 128);
        tgi_put_fp32<cols>(staged, sum, first);
        repair.apply(tile, staged);
        tgi_fence_async_proxy();
        /* Without this barrier TMA would store what other warps have yet to write. */
        tgi_named_barrier_sync(barrier, 128);
        tgi_store_boxes<cols>(args, tile, staged);
    }
}

/* Stores them by TMA along D's rows of 16-bit numbers. All sums are packed first, so that what a
 * tile executes of the code for several types lies side by side. */
template <class Args, int Count>
static __device__ __forceinline__ void
tgi_store_narrow_boxes(const Args &args, tgi_cluster_tile tile, const float (&sum)[Count],
                       uint32_t staged, int barrier)
{
    constexpr int cols = TGI_FRAGMENT_COLS(2 * Count), count = 2 * Count / cols;
    uint32_t pair[Count / 2];
    tgi_pack_sums(sum, 0, tgi_find_form(args.gemm, args.d), pair);
#pragma unroll
    for (int i = 0; i < count; i++, tile.col += cols) {
        const uint32_t box = staged + i % 2 * TGI_BOX_BYTES;
        if (i % 2 == 0) {
            /* The stores before may still read both boxes. */
            if (tgi_thread() % 128 == 0)
                tgi_tma_store_wait<0>();
            /* Without this barrier boxes would be overwritten before TMA has read them. */
            tgi_named_barrier_sync(barrier, 128);
        }
        tgi_put_pairs<cols>(box, pair, i * (cols / 4));
        tgi_fence_async_proxy();
        /* Without this barrier TMA would store what other warps have yet to write. */
        tgi_named_barrier_sync(barrier, 128);
        if (tgi_thread() % 128 == 0)
            tgi_tma_store(&args.d_map, box, tile.col, tile.row, tile.batch);
    }
}

/* Stores the 64 rows of a warpgroup by threads, along D's rows of 16-bit elements. Each warp stores
 * the lines that it has staged, so that it waits for no other warp. */
template <class Args, int Count>
static __device__ __forceinline__ void
tgi_store_tile_lines(const Args &args, const tgi_cluster_tile &tile, const float (&sum)[Count],
                     uint32_t staged)
{
    constexpr int cols = TGI_FRAGMENT_COLS(2 * Count);
    const tgi_narrow_form form = tgi_find_form(args.gemm, args.d);
    tgi_store_rows lines = tgi_find_lines(tgi_find_fragment_target(args, tile, 2 * Count), 0);
    tgi_store_box before = {0, cols / 8 - 1};
#pragma unroll 1
    for (int i = 0; lines.bytes > 0 && i < 2 * Count / cols; i++) {
        const uint32_t box = staged + i % 2 * TGI_BOX_BYTES;
        const int has_after = lines.bytes >= 2 * cols + 16;
#pragma unroll
        for (int j = 0; j < 2 * Count / cols; j++) /* registers take no computed index */
            if (i == j)
                tgi_put_16bit<cols>(box, sum, j * (cols / 8), form);
        /* Without the barrier lanes would read a box that others still write. */
        __syncwarp();
        tgi_store_box_lines<2>(lines, min(lines.bytes, 2 * cols), before, box, has_after);
        /* Without the barrier lanes would overwrite a box that others still read. */
        __syncwarp();
        before.box = has_after ? box : 0;
        lines.data += 2 * cols;
        lines.bytes -= 2 * cols;
    }
}

/* Stages 64 rows of sums of Cols columns, in D's type if D has lines, else as FP32. If MayTranspose
 * is 0, d.is_transposed is not set. */
template <int MayTranspose, int Cols, int Count>
static __device__ __forceinline__ void tgi_put_staged(const tgi_gemm_args &gemm,
                                                      const tgi_fragment_output &d,
                                                      const float (&sum)[Count], uint32_t staged)
{
    const tg_type type = tgi_find_d_type(gemm.problem);
    const int is_16bit = d.is_lined && type != TG_TYPE_FP32;
    if (d.is_lined && tgi_is_fp8(type))
        tgi_put_bytes<Cols>(staged, sum, type);
    else if (MayTranspose && d.is_transposed) {
        if (is_16bit)
            tgi_put_transposed_16bit<Cols>(staged, sum, tgi_find_form(gemm, d));
        else
            tgi_put_transposed_fp32<Cols>(staged, sum);
    } else if (is_16bit) {
        tgi_put_16bit<Cols>(staged, sum, 0, tgi_find_form(gemm, d));
    } else {
        tgi_put_fp32<Cols>(staged, sum, 0);
    }
}

/* Stores 64 rows of the columns that are stored together, to any D. Earlier stores may still read
 * shared memory. Only sums of slices are passed without their epilogue. */
template <class Args, class Repair, int Count>
static __device__ __forceinline__ void
tgi_store_fragment(const Args &args, const tgi_cluster_tile &tile,
                   const tgi_fragment_vectors &vectors, const float (&sum)[Count],
                   tgi_store_order order, uint32_t boxes, int barrier, const Repair &repair)
{
    constexpr int IsSliced = Repair::is_on, MayTranspose = !Repair::is_on;
    const int is_transposed = MayTranspose && args.d.is_transposed;
    const int is_leader = tgi_thread() % 128 == 0;
    /* Shared memory has room for two boxes: one is staged while the other is stored. */
    const int has_two = args.d.is_lined && tgi_find_d_type(args.gemm.problem) != TG_TYPE_FP32;
    const uint32_t other = boxes + (~order.index & 1) * TGI_BOX_BYTES;
    const uint32_t staged = boxes + has_two * (order.index & 1) * TGI_BOX_BYTES;
    if (is_leader && has_two && order.index > 0)
        tgi_tma_store_wait<1>();
    else if (is_leader)
        tgi_tma_store_wait<0>();
    /* Without the barrier the box would be overwritten before it has been read. */
    tgi_named_barrier_sync(barrier, 128);
    tgi_put_staged<MayTranspose, 2 * Count>(args.gemm, args.d, sum, staged);
    repair.apply(tile, staged);
    if constexpr (IsSliced)
        if (!args.gemm.is_sum_alone)
            tgi_finish_staged<2 * Count>(args.gemm, tile, vectors, staged);
    if (args.d.is_tma_stored)
        tgi_fence_async_proxy();
    /* Without the barrier a box would be stored that other warps still write. */
    tgi_named_barrier_sync(barrier, 128);
    /* The next store writes this one's last bytes only if it has a unit or more. */
    const int are_beside = has_two && !is_transposed;
    const int64_t wide =
        args.gemm.problem.n - 16 / tgi_count_bytes(tgi_find_d_type(args.gemm.problem));
    if (IsSliced && !args.d.is_tma_stored && (!args.d.is_lined || args.d.is_transposed))
        tgi_store_elements(tgi_find_fragment_target(args, tile, 2 * Count), staged);
    else if (!args.d.is_tma_stored)
        tgi_store_staged(args.d, tgi_find_fragment_target(args, tile, 2 * Count), 2 * Count,
                         are_beside && order.has_before && tile.col <= wide ? other : 0, staged,
                         are_beside && order.has_after && tile.col + 2 * Count <= wide);
    else if (is_transposed)
        tgi_store_transposed_boxes(args, tile, staged);
    else
        tgi_store_boxes<2 * Count>(args, tile, staged);
}

/* Applies the epilogue to 64 rows of the columns that are stored together, and stores them. C is
 * read here. The sums are overwritten. */
template <class Args, class Repair, int Count>
static __device__ __forceinline__ void
tgi_finish_fragment(const Args &args, const tgi_cluster_tile &tile,
                    const tgi_fragment_vectors &vectors, float (&sum)[Count], tgi_store_order order,
                    uint32_t boxes, int barrier, const Repair &repair)
{
    if (!Repair::is_on && !args.gemm.is_sum_alone)
        tgi_apply_epilogue(args.gemm, tile, vectors, sum);
    tgi_store_fragment(args, tile, vectors, sum, order, boxes, barrier, repair);
}

#endif
