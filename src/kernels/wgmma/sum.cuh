/* The sums of a tile: a warpgroup waits for stage after stage and multiplies its rows of it. */
#ifndef TGI_WGMMA_SUM_CUH
#define TGI_WGMMA_SUM_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"
#include "kernels/wgmma/held.cuh"
#include "kernels/wgmma/kept.cuh"
#include "kernels/wgmma/pieces.cuh"
#include "kernels/wgmma/place.cuh"
#include "kernels/wgmma/shape.cuh"
#include "kernels/wgmma/slices.cuh"
#include "kernels/wgmma/turned.cuh"

/* Lets the producers that fill this stage have it back, from rank `first` on. */
static __device__ __forceinline__ void tgi_release(uint32_t empty, int sharer_count, int first,
                                                   int thread)
{
    if (sharer_count > 1) {
        if (thread < sharer_count)
            tgi_barrier_arrive_remote(empty, first + thread);
    } else if (thread == 0) {
        tgi_barrier_arrive(empty);
    }
}

/* Puts products of one full stage under way, those of B's lines from `line` on, of Count times 32
 * bytes of k from number `first` on: added to `sum` or, where IsSum is 0, in its place. */
template <class Shape, int IsSum, int Count = TGI_WGMMA_STEP_PRODUCTS>
static __device__ __forceinline__ void
tgi_multiply_stage(uint32_t stage, int group, int line, int first,
                   float (&sum)[Shape::blocks][Shape::part_cols / 2])
{
    constexpr int across_step = 32 * TGI_WGMMA_STEP_BYTES / Shape::elem_bytes; /* 32 bytes of k */
    constexpr int a_step = Shape::across_a ? across_step : 32;
    constexpr int b_step = Shape::across_b ? across_step : 32;
    const uint64_t a =
        tgi_describe(stage + group * Shape::group_rows * TGI_WGMMA_STEP_BYTES + first * a_step,
                     Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    const uint64_t b =
        tgi_describe(stage + Shape::a_bytes + line * TGI_WGMMA_STEP_BYTES + first * b_step,
                     Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int j = 0; j < Count; j++)
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++) {
            const uint64_t a_lines = a + (block * Shape::block_bytes + j * a_step) / 16;
            if (IsSum || j > 0)
                tgi_multiply_lines<Shape, 1>(sum[block], a_lines, b + j * b_step / 16);
            else
                tgi_multiply_lines<Shape, 0>(sum[block], a_lines, b + j * b_step / 16);
        }
    tgi_wgmma_commit();
}

/* A stage, 0: none, its barriers, and the parity of the phase in which it is filled. */
struct tgi_wgmma_stage {
    uint32_t data, full, empty, parity;
};

template <class Shape>
static __device__ __forceinline__ tgi_wgmma_stage
tgi_find_stage(const tgi_wgmma_memory<Shape> &memory, const tgi_ring<Shape::stages> &ring)
{
    return {
        static_cast<uint32_t>(tgi_make_uniform(memory.stages + ring.stage * Shape::stage_bytes)),
        memory.full + ring.stage * 8, memory.empty + ring.stage * 8, ring.parity};
}

/* Adds the products of one full stage, or of FP8 of `next` too, which is waited for, in FP32.
 * release(stage): called when it has been read, of two as soon as each has. */
template <class Shape, class Release>
static __device__ __forceinline__ void
tgi_promote_stages(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile,
                   const tgi_wgmma_stage &stage, const tgi_wgmma_stage &next, int group,
                   tgi_range &range, const Release &release,
                   float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int has_next = Shape::promoted_steps > 1 && next.data;
    tgi_held_rows held;
    if constexpr (Shape::is_held) {
        static_assert(Shape::blocks == 1, "a warpgroup holds 64 rows");
        const int first = group * TGI_BLOCK_LINES;
        tgi_cut_rows(stage.data + first * TGI_WGMMA_STEP_BYTES,
                     args.a.line_count - tile.row - first, range, held);
    }
#pragma unroll
    for (int line = 0; line < Shape::cols; line += Shape::part_cols) {
        const int is_last = line + Shape::part_cols >= Shape::cols;
        float part[Shape::blocks][Shape::part_cols / 2];
        if constexpr (Shape::is_held)
            tgi_multiply_held_rows<Shape>(stage.data, line, held, part[0]);
        else if constexpr (Shape::slices > 0)
            tgi_multiply_slices<Shape>(stage.data, group, line, args.first_product, part);
        else
            tgi_multiply_stage<Shape, 0>(stage.data, group, line, 0, part);
        if (has_next) {
            if (line == 0)
                tgi_barrier_wait(next.full, next.parity);
            tgi_multiply_stage<Shape, 1>(next.data, group, line, 0, part);
        }
        if (has_next && is_last) {
            tgi_wgmma_wait<1>();
            release(stage);
        }
        tgi_wgmma_wait<0>();
        if (is_last)
            release(has_next ? next : stage);
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++)
#pragma unroll
            for (int i = 0; i < Shape::part_cols / 2; i++)
                sum[block][line / 2 + i] += part[block][i];
    }
}

/* Of the last step of k that alone is multiplied which the operands have: the rest of its stage may
 * be what another step has left. 1 where it is less than a step. */
static __device__ __forceinline__ int tgi_is_short(const tgi_wgmma_args &args)
{
    return args.last_products < TGI_WGMMA_STEP_PRODUCTS;
}

/* Adds the whole steps of a tile whose sums are neither promoted nor of rows in registers. A stage
 * is given back as soon as the next one's products are under way. Meanwhile what is kept of the
 * tile before is stored. */
template <class Shape>
static __device__ __forceinline__ void
tgi_add_steps(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
              const tgi_wgmma_tile &tile, int rank, int group, tgi_ring<Shape::stages> &ring,
              tgi_wgmma_kept<Shape::cols> &kept, float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int thread = threadIdx.x % TGI_WARPGROUP;
    const int sharer_count = Shape::cluster_rows > 1 ? args.cluster_rows : 1;
    const int first_sharer = rank - tgi_find_cluster_row(args, rank);
    const int whole_end = min(tile.step_end, args.step_count - tgi_is_short(args));
    uint32_t used = 0; /* the barrier of the stage that is being multiplied */
    int step = tile.step;
#pragma unroll 1
    while (step < whole_end || (Shape::may_keep && kept.left > 0)) {
        if (step < whole_end) {
            const tgi_wgmma_stage stage = tgi_find_stage<Shape>(memory, ring);
            tgi_barrier_wait(stage.full, stage.parity);
            tgi_multiply_stage<Shape, 1>(stage.data, group, 0, 0, sum);
            tgi_wgmma_wait<1>();
            if (used)
                tgi_release(used, sharer_count, first_sharer, thread);
            used = stage.empty;
            ring.advance();
            step++;
        }
        if (Shape::may_keep && kept.left > 0)
            tgi_store_kept(args, kept, memory.parts + group * TGI_WGMMA_PART_BYTES, group + 1);
    }
    tgi_wgmma_wait<0>();
    if (used)
        tgi_release(used, sharer_count, first_sharer, thread);
}

/* Adds the last step, which is short. */
template <class Shape>
static __device__ __forceinline__ void
tgi_add_short_step(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory, int rank,
                   int group, tgi_ring<Shape::stages> &ring,
                   float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const tgi_wgmma_stage stage = tgi_find_stage<Shape>(memory, ring);
    tgi_barrier_wait(stage.full, stage.parity);
#pragma unroll 1
    for (int i = 0; i < args.last_products; i++) {
        tgi_multiply_stage<Shape, 1, 1>(stage.data, group, 0, i, sum);
        tgi_wgmma_wait<0>();
    }
    tgi_release(stage.empty, Shape::cluster_rows > 1 ? args.cluster_rows : 1,
                rank - tgi_find_cluster_row(args, rank), threadIdx.x % TGI_WARPGROUP);
    ring.advance();
}

/* The same where each step's products are done before the next one's begin. Promoted sums: a run of
 * k starts from zero, and what it has come to is added to the runs before it, so that rounding
 * errors grow with the root of k. */
template <class Shape>
static __device__ __forceinline__ void
tgi_sum_apart(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
              const tgi_wgmma_tile &tile, int rank, int group, tgi_ring<Shape::stages> &ring,
              tgi_range &range, float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int thread = threadIdx.x % TGI_WARPGROUP;
    const int sharer_count = Shape::cluster_rows > 1 ? args.cluster_rows : 1;
    const int first_sharer = rank - tgi_find_cluster_row(args, rank);
    const auto release = [&](const tgi_wgmma_stage &stage) {
        tgi_release(stage.empty, sharer_count, first_sharer, thread);
    };
    int step = tile.step, has_runs = 0;
    do {
        const tgi_wgmma_stage stage = tgi_find_stage<Shape>(memory, ring);
        if (Shape::slices > 0 && step % TGI_RUN_CHUNKS == 0 && step > tile.step) {
            if (has_runs)
                tgi_add_runs<Shape>(args, group, sum);
            tgi_start_run<Shape>(args, group, sum);
            has_runs = 1;
        }
        tgi_barrier_wait(stage.full, stage.parity);
        if constexpr (Shape::is_turned) {
            tgi_turned_rows held;
            tgi_turn_rows(stage.data + group * TGI_BLOCK_LINES * TGI_WGMMA_STEP_BYTES, held);
            tgi_multiply_turned_rows<Shape>(stage.data, held, sum[0]);
            tgi_wgmma_wait<0>(); /* the rows' registers are free again */
            release(stage);
        } else {
            tgi_wgmma_stage next = {};
            if (Shape::promoted_steps > 1 && step + 1 < tile.step_end) {
                step++;
                ring.advance();
                next = tgi_find_stage<Shape>(memory, ring);
            }
            tgi_promote_stages<Shape>(args, tile, stage, next, group, range, release, sum);
        }
        ring.advance();
    } while (++step < tile.step_end);
    if (Shape::slices > 0 && has_runs)
        tgi_add_runs<Shape>(args, group, sum);
}

template <class Shape>
static __device__ __forceinline__ void
tgi_sum_tile(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
             const tgi_wgmma_tile &tile, int rank, int group, tgi_ring<Shape::stages> &ring,
             tgi_range &range, tgi_wgmma_kept<Shape::cols> &kept,
             float (&sum)[Shape::blocks][Shape::cols / 2])
{
    if constexpr (!Shape::is_in_place) {
        tgi_sum_apart<Shape>(args, memory, tile, rank, group, ring, range, sum);
    } else {
        tgi_add_steps<Shape>(args, memory, tile, rank, group, ring, kept, sum);
        if (tile.step_end == args.step_count && tgi_is_short(args))
            tgi_add_short_step<Shape>(args, memory, rank, group, ring, sum);
    }
#pragma unroll
    for (int block = 0; block < Shape::blocks; block++)
        tgi_pin_sums(sum[block]);
}

#endif
