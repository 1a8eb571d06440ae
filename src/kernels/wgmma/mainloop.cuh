/*
 * Declares the main loop of family wgmma. A warpgroup waits for stage after stage of a tile,
 * multiplies its 64 rows and releases the stage. Sums are added in place, or promoted: formed
 * separately for each stage and added in FP32.
 */
#ifndef TGI_MAINLOOP_CUH
#define TGI_MAINLOOP_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warpgroup_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/wgmma/kernel_shape.cuh"

/* A consumer is warpgroup number `group` of the block's warpgroups that multiply, with the problem
 * of the current tile, to which a tile whose store is deferred belongs too. */
template <class Shape> struct tgi_consumer {
    const tgi_wgmma_args &args;
    const tgi_wgmma_memory<Shape> &memory;
    int rank, group;
};

/* Returns the address of a stage in shared memory. */
template <class Shape>
static __device__ __forceinline__ uint32_t
tgi_find_stage_data(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
                    const tgi_ring<Shape::stages> &ring)
{
    return memory.stages +
           ring.stage * (Shape::is_fitted ? args.work.stage_bytes : Shape::stage_bytes);
}

/* Returns the place of a warpgroup's lines of A in a stage. Boxes across k have places for all rows
 * of an instruction. */
template <class Shape>
static __device__ __forceinline__ int tgi_find_a_lines(const tgi_wgmma_args &args, int group)
{
    const int rows = Shape::across_a ? Shape::group_rows : Shape::find_group_rows(args);
    return Shape::group_count > 1 ? group * rows * TGI_WGMMA_STEP_BYTES : 0;
}

/* Returns the address of B's lines in a stage. */
template <class Shape>
static __device__ __forceinline__ uint32_t tgi_find_b_lines(const tgi_wgmma_args &args,
                                                            uint32_t stage)
{
    return stage + (Shape::is_fitted ? args.work.a_stage_bytes : Shape::a_bytes);
}

/* A stage in shared memory (0: none), its barriers, and the parity of the phase in which it is
 * filled. */
struct tgi_wgmma_stage {
    uint32_t data, full, empty, parity;
};

template <class Shape>
static __device__ __forceinline__ tgi_wgmma_stage
tgi_find_stage(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
               const tgi_ring<Shape::stages> &ring)
{
    return {static_cast<uint32_t>(tgi_make_uniform(tgi_find_stage_data(args, memory, ring))),
            memory.full + ring.stage * 8, memory.empty + ring.stage * 8, ring.parity};
}

/* A release gives a stage back to the producers of all blocks that fill it. */
template <class Shape> struct tgi_stage_release {
    int thread, sharer_count, first_sharer;

    __device__ __forceinline__ tgi_stage_release(const tgi_wgmma_args &args, int rank)
        : thread(threadIdx.x % TGI_WARPGROUP),
          sharer_count(Shape::cluster_rows > 1 ? args.work.cluster_rows : 1),
          first_sharer(rank - tgi_find_cluster_row(args.work, rank))
    {
    }

    /* Blocks of family few arrive at their own barrier as at others', because a branch would make
     * each step longer. */
    __device__ __forceinline__ void operator()(uint32_t empty) const
    {
        if (Shape::is_fitted || sharer_count > 1) {
            if (thread < sharer_count)
                tgi_barrier_arrive_remote(empty, first_sharer + thread);
        } else if (thread == 0) {
            tgi_barrier_arrive(empty);
        }
    }
};

/* Issues products of a full stage, with B's lines from `line` on, for Count times 32 bytes of k
 * from number `first` on. They are added to `sum`, or replace it if IsSum is 0. */
template <class Shape, int IsSum, int Count = TGI_WGMMA_STEP_PRODUCTS>
static __device__ __forceinline__ void
tgi_multiply_stage(const tgi_wgmma_args &args, uint32_t stage, int group, int line, int first,
                   float (&sum)[Shape::blocks][Shape::mma_cols / 2])
{
    constexpr int across_stride = 32 * TGI_WGMMA_STEP_BYTES / Shape::elem_bytes; /* 32 bytes of k */
    constexpr int a_stride = Shape::across_a ? across_stride : 32;
    constexpr int b_stride = Shape::across_b ? across_stride : 32;
    const uint64_t a = tgi_describe(stage + tgi_find_a_lines<Shape>(args, group) + first * a_stride,
                                    Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    const uint64_t b = tgi_describe(tgi_find_b_lines<Shape>(args, stage) +
                                        line * TGI_WGMMA_STEP_BYTES + first * b_stride,
                                    Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int j = 0; j < Count; j++)
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++) {
            const uint64_t a_lines = a + (block * Shape::block_bytes + j * a_stride) / 16;
            if (IsSum || j > 0)
                tgi_multiply_lines<Shape, 1>(sum[block], a_lines, b + j * b_stride / 16);
            else
                tgi_multiply_lines<Shape, 0>(sum[block], a_lines, b + j * b_stride / 16);
        }
    tgi_wgmma_commit();
}

/* Returns 1 if the last step of k is not a whole one. Only existing k are then multiplied, because
 * the rest of the stage may hold data of another step. */
static __device__ __forceinline__ int tgi_is_short(const tgi_wgmma_args &args)
{
    return args.work.last_products < TGI_WGMMA_STEP_PRODUCTS;
}

/* Returns 1 if the bias of this tile is added as a product. The first split has it. */
template <class Shape>
static __device__ __forceinline__ int tgi_is_bias_staged(const tgi_wgmma_args &args,
                                                         const tgi_cluster_tile &tile)
{
    return Shape::may_stage_bias && args.c.bias != TG_BIAS_NONE && tile.split <= 0;
}

/* The type of a bias that is added as a product: that of the operands, or BF16 beside FP8. */
template <class Shape> struct tgi_bias_product {
    static constexpr tg_type a_type = Shape::is_fp8 ? TG_TYPE_BF16 : Shape::a_type;
};

/* Returns the address of the warpgroup's TGI_BIAS_BOX_BYTES in the place of terms. They are ones in
 * the type of the bias if a bias of rows is added as a product. The instruction reads these
 * eight lines again and again, which compute-sanitizer takes for 16 lines of all the tile's columns
 * side by side. Stages follow, so that such lines would lie in the block's memory too. */
template <class Shape>
static __device__ __forceinline__ uint32_t tgi_find_ones(const tgi_wgmma_memory<Shape> &memory,
                                                         int group)
{
    static_assert(TGI_TERM_BYTES >= TGI_BIAS_BOX_BYTES, "the ones have room");
    return memory.terms + group * TGI_BIAS_BOX_BYTES;
}

/* Writes the ones. */
template <class Shape>
static __device__ __forceinline__ void tgi_write_ones(const tgi_wgmma_memory<Shape> &memory,
                                                      int group)
{
    const uint32_t place = tgi_find_ones(memory, group) + tgi_reread_thread() % TGI_WARPGROUP * 8;
    const float two =
        __uint_as_float(tgi_bias_product<Shape>::a_type == TG_TYPE_BF16 ? 0x3f803f80 : 0x3c003c00);
    tgi_write_shared_8(place, two, two);
    tgi_fence_async_proxy();
    /* Without this barrier the product would read what other warps have yet to write. */
    tgi_named_barrier_sync(group + 1, TGI_WARPGROUP);
}

/* Multiplies biases at `b` of as many columns as an instruction has. The products are added to
 * `sum`, or replace it if IsSum is 0. */
template <class Shape, int IsSum>
static __device__ __forceinline__ void tgi_multiply_bias(const uint32_t (&a)[4], uint64_t b,
                                                         float (&sum)[Shape::mma_cols / 2])
{
    tgi_wgmma_fence();
    tgi_multiply_registers_across<tgi_bias_product<Shape>, IsSum>(sum, a, b);
    tgi_wgmma_commit();
    tgi_wgmma_wait<0>();
}

/* Adds a bias to the sums of a tile, as a product. The next stage has boxes of 64 biases and seven
 * lines of zeros, because those lie outside the bias. They are lines of B across k for a bias of
 * columns. The instruction reads the eight lines twice. A, in registers, has 1/2 for the first line
 * each time, so that sums grow by the bias, infinite or not. The biases of a warpgroup's rows are
 * the first k of A, whose others are zero, and B has ones. Promoted sums take the product as they
 * take that of a step. */
template <class Shape>
static __device__ __forceinline__ void
tgi_add_staged_bias(const tgi_consumer<Shape> &at, tgi_ring<Shape::stages> &ring,
                    float (&sum)[Shape::blocks][Shape::cols / 2])
{
    if constexpr (Shape::may_stage_bias) {
        const uint32_t half = tgi_bias_product<Shape>::a_type == TG_TYPE_BF16 ? 0x3f00 : 0x3800;
        const int thread = tgi_reread_thread() % TGI_WARPGROUP, is_first = thread % 4 == 0;
        const uint32_t word = is_first ? half : 0;
        uint32_t a[4] = {word, word, word, word};
        const tgi_wgmma_stage stage = tgi_find_stage<Shape>(at.args, at.memory, ring);
        uint64_t b = tgi_describe(stage.data, TGI_BIAS_BOX_BYTES, 0);
        uint64_t b_stride = Shape::mma_cols / TGI_BIAS_BOX_ELEMS * TGI_BIAS_BOX_BYTES / 16;
        tgi_barrier_wait(stage.full, stage.parity);
        if (at.args.c.bias == TG_BIAS_ROW) {
            const uint32_t biases = stage.data + at.group * TGI_BIAS_BOX_BYTES +
                                    (thread / 32 * 16 + thread % 32 / 4) * 2;
            a[0] = is_first ? tgi_read_shared_2(biases) : 0;
            a[1] = is_first ? tgi_read_shared_2(biases + 16) : 0;
            a[2] = a[3] = 0;
            b = tgi_describe(tgi_find_ones(at.memory, at.group), 0, 0);
            b_stride = 0;
        }
        if constexpr (Shape::is_promoted) {
#pragma unroll
            for (int line = 0; line < Shape::cols; line += Shape::mma_cols, b += b_stride) {
                float short_sums[Shape::mma_cols / 2];
                tgi_multiply_bias<Shape, 0>(a, b, short_sums);
#pragma unroll
                for (int i = 0; i < Shape::mma_cols / 2; i++)
                    sum[0][line / 2 + i] += short_sums[i];
            }
        } else {
            tgi_multiply_bias<Shape, 1>(a, b, sum[0]);
        }
        const tgi_stage_release<Shape> release(at.args, at.rank);
        release(stage.empty);
        ring.advance();
    }
}

/* Adds the whole steps of a tile in place. A stage is released as soon as the products of the next
 * one are issued. Meanwhile the deferred store of the previous tile goes on. */
template <class Shape>
static __device__ __forceinline__ void
tgi_add_steps(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile,
              tgi_ring<Shape::stages> &ring, typename Shape::deferred &deferred,
              float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const tgi_wgmma_args &args = at.args;
    const tgi_wgmma_memory<Shape> &memory = at.memory;
    const tgi_stage_release<Shape> release(args, at.rank);
    const int whole_end = min(tile.step_end, args.work.step_count - tgi_is_short(args));
    uint32_t used = 0; /* the barrier of the stage that is being multiplied; 0: none */
    int step = tile.step;
#pragma unroll 1
    while (step < whole_end || deferred.left > 0) {
        if (step < whole_end) {
            const tgi_wgmma_stage stage = tgi_find_stage<Shape>(args, memory, ring);
            tgi_barrier_wait(stage.full, stage.parity);
            tgi_multiply_stage<Shape, 1>(args, stage.data, at.group, 0, 0, sum);
            tgi_wgmma_wait<1>();
            if (used)
                release(used);
            used = stage.empty;
            ring.advance();
            step++;
        }
        if (deferred.left > 0)
            deferred.store_next(args.d_map, memory.boxes + at.group * TGI_FRAGMENT_BYTES,
                                at.group + 1);
    }
    tgi_wgmma_wait<0>();
    if (used)
        release(used);
}

/* Adds the last step of a tile, which is short, in place. */
template <class Shape>
static __device__ __forceinline__ void
tgi_add_short_step(const tgi_consumer<Shape> &at, tgi_ring<Shape::stages> &ring,
                   float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const tgi_wgmma_stage stage = tgi_find_stage<Shape>(at.args, at.memory, ring);
    tgi_barrier_wait(stage.full, stage.parity);
#pragma unroll 1
    for (int i = 0; i < at.args.work.last_products; i++)
        tgi_multiply_stage<Shape, 1, 1>(at.args, stage.data, at.group, 0, i, sum);
    tgi_wgmma_wait<0>();
    const tgi_stage_release<Shape> release(at.args, at.rank);
    release(stage.empty);
    ring.advance();
}

/* Adds all steps of a tile in place. Products of one step may still be computed while those of the
 * next are issued. */
template <class Shape>
static __device__ __forceinline__ void
tgi_sum_in_place(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile,
                 tgi_ring<Shape::stages> &ring, typename Shape::deferred &deferred,
                 float (&sum)[Shape::blocks][Shape::cols / 2])
{
    tgi_add_steps<Shape>(at, tile, ring, deferred, sum);
    if (tile.step_end == at.args.work.step_count && tgi_is_short(at.args))
        tgi_add_short_step<Shape>(at, ring, sum);
}

/* The products of a stage for tgi_sum_promoted, with both operands in shared memory. */
template <class Shape> struct tgi_plain_products {
    struct a_rows {
    };

    __device__ __forceinline__ void read_a(const tgi_consumer<Shape> &, const tgi_cluster_tile &,
                                           uint32_t, a_rows &) const
    {
    }

    __device__ __forceinline__ void
    multiply(const tgi_consumer<Shape> &at, uint32_t stage, int line, const a_rows &,
             float (&short_sums)[Shape::blocks][Shape::mma_cols / 2]) const
    {
        tgi_multiply_stage<Shape, 0>(at.args, stage, at.group, line, 0, short_sums);
    }
};

/* The runs of k for tgi_sum_promoted, if k is one run. */
template <class Shape> struct tgi_no_runs {
    __device__ __forceinline__ void begin_step(const tgi_consumer<Shape> &,
                                               const tgi_cluster_tile &, int,
                                               float (&)[Shape::blocks][Shape::cols / 2])
    {
    }

    __device__ __forceinline__ void end(const tgi_consumer<Shape> &,
                                        float (&)[Shape::blocks][Shape::cols / 2])
    {
    }
};

/* Adds the products of one full stage in FP32. For FP8 it also waits for stage `next`, if there is
 * one, and adds its products. A stage is released as soon as it has been read. */
template <class Shape, class Products>
static __device__ __forceinline__ void
tgi_promote_stages(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile,
                   const tgi_wgmma_stage &stage, const tgi_wgmma_stage &next,
                   const Products &products, const tgi_stage_release<Shape> &release,
                   float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int has_next = Shape::promoted_steps > 1 && next.data;
    typename Products::a_rows rows;
    products.read_a(at, tile, stage.data, rows);
#pragma unroll
    for (int line = 0; line < Shape::cols; line += Shape::mma_cols) {
        const int is_last = line + Shape::mma_cols >= Shape::cols;
        float short_sums[Shape::blocks][Shape::mma_cols / 2];
        products.multiply(at, stage.data, line, rows, short_sums);
        if (has_next) {
            if (line == 0)
                tgi_barrier_wait(next.full, next.parity);
            tgi_multiply_stage<Shape, 1>(at.args, next.data, at.group, line, 0, short_sums);
        }
        if (has_next && is_last) {
            tgi_wgmma_wait<1>();
            release(stage.empty);
        }
        tgi_wgmma_wait<0>();
        if (is_last)
            release(has_next ? next.empty : stage.empty);
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++)
#pragma unroll
            for (int i = 0; i < Shape::mma_cols / 2; i++)
                sum[block][line / 2 + i] += short_sums[block][i];
    }
}

/* Adds all steps of a tile with promoted sums. The products of a step, or of two steps of FP8, are
 * complete before the next ones begin. A run of k starts from zero, and its sums are added to those
 * of earlier runs, so that rounding errors grow with the square root of k. */
template <class Shape, class Products, class Runs>
static __device__ __forceinline__ void
tgi_sum_promoted(const tgi_consumer<Shape> &at, const tgi_cluster_tile &tile,
                 tgi_ring<Shape::stages> &ring, const Products &products, Runs runs,
                 float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const tgi_stage_release<Shape> release(at.args, at.rank);
    int step = tile.step;
    do {
        const tgi_wgmma_stage stage = tgi_find_stage<Shape>(at.args, at.memory, ring);
        runs.begin_step(at, tile, step, sum);
        tgi_barrier_wait(stage.full, stage.parity);
        tgi_wgmma_stage next = {};
        if (Shape::promoted_steps > 1 && step + 1 < tile.step_end) {
            step++;
            ring.advance();
            next = tgi_find_stage<Shape>(at.args, at.memory, ring);
        }
        tgi_promote_stages<Shape>(at, tile, stage, next, products, release, sum);
        ring.advance();
    } while (++step < tile.step_end);
    runs.end(at, sum);
}

#endif
