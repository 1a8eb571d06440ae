/*
 * Products by the matrix instructions of a warpgroup, operands brought by the copy engine. A block
 * is a producer warp, which fills stages of A and B in shared memory, and one or two warpgroups,
 * which multiply them and store; it works through a list of tiles. Blocks of a cluster have tiles
 * one below the other and bring each other their shares of B, or have parts of k of one tile, which
 * they add among themselves (cluster.cuh).
 *
 *     setup()    barriers
 *     produce()  for each tile, for each step of k: wait until a stage is empty, fill it
 *     consume()  for each tile, for each step of k: wait until a stage is full, multiply it
 *     finish()   sums to D (finish.cuh), or of a tile whose k is cut to the cluster's blocks
 *                (cluster.cuh) or to the workspace (pieces.cuh)
 */
#ifndef TGI_WGMMA_CUH
#define TGI_WGMMA_CUH

#include "kernels/wgmma/cluster.cuh"
#include "kernels/wgmma/finish.cuh"
#include "kernels/wgmma/held.cuh"
#include "kernels/wgmma/instruction.cuh"
#include "kernels/wgmma/place.cuh"
#include "kernels/wgmma/slices.cuh"

#define TGI_BLOCK_LINES 64 /* rows of one instruction; lines of a block of an operand across k */
#define TGI_WARPGROUP 128

/* AType FP32: as TF32. AcrossA, AcrossB: 1 where the operand's lines lie across k. Slices: room for
 * so many of each operand, or 0 where A and B are of the types themselves. IsHeld: 1 where A's
 * are cut in registers. */
template <tg_type AType, tg_type BType, int Rows, int Cols, int ClusterRows, int Stages,
          int Threads, int AcrossA, int AcrossB, int Slices = 0, int IsHeld = 0>
struct tgi_wgmma_shape {
    static constexpr tg_type a_type = AType, b_type = BType;
    static constexpr int rows = Rows, cols = Cols, stages = Stages;
    static constexpr int cluster_rows = ClusterRows; /* 1, or 2: one or two */
    static constexpr int across_a = AcrossA, across_b = AcrossB;
    static constexpr int group_count = Threads / TGI_WARPGROUP - 1; /* that multiply */
    static constexpr int group_rows = Rows / group_count;
    static constexpr int blocks = group_rows / TGI_BLOCK_LINES; /* instructions one below another */
    static constexpr int b_lines = AcrossB ? TGI_WGMMA_LINES(Cols) : Cols;
    static constexpr int slices = Slices, is_held = IsHeld;
    static constexpr int line_bytes = Slices ? Slices * TGI_CHUNK_BYTES : TGI_WGMMA_STEP_BYTES;
    static constexpr int a_bytes = Rows * (IsHeld ? TGI_WGMMA_STEP_BYTES : line_bytes);
    static constexpr int b_bytes = b_lines * line_bytes;
    static constexpr int stage_bytes = a_bytes + b_bytes;
    static constexpr int elem_bytes = AType == TG_TYPE_FP32                            ? 4
                                      : AType == TG_TYPE_BF16 || AType == TG_TYPE_FP16 ? 2
                                                                                       : 1;
    /* The instruction keeps sums of FP8 products to 13 bits, and rounds all sums toward zero: those
     * of each step of FP8 or of slices are added in FP32. */
    static constexpr int is_promoted = elem_bytes == 1 || Slices > 0;
    /* Columns of one instruction: promoted sums need registers for their parts. */
    static constexpr int part_cols = is_promoted && Cols > 192 ? 128 : Cols;
    static constexpr int step_elems = TGI_WGMMA_STEP_BYTES / elem_bytes;
    static constexpr int block_bytes = TGI_BLOCK_LINES * TGI_WGMMA_STEP_BYTES;
};

/* Shared memory: stages, then each warpgroup's part of D, then the barriers. */
template <class Shape> struct tgi_wgmma_memory {
    uint32_t stages, parts, full, empty;

    __device__ explicit tgi_wgmma_memory(char *shared)
    {
        stages = (tgi_shared_address(shared) + 1023) & ~1023u;
        parts = stages + Shape::stages * Shape::stage_bytes;
        full = parts + Shape::group_count * TGI_WGMMA_PART_BYTES;
        empty = full + Shape::stages * 8;
    }
};

/* A stage and how often it has been used: the ring of both sides. */
template <int Stages> struct tgi_ring {
    int stage = 0;
    uint32_t parity = 0;

    __device__ void advance(void)
    {
        if (++stage == Stages) {
            stage = 0;
            parity ^= 1;
        }
    }
};

/* Unit `index` of the list: a tile or, behind those, a part of k of a tile that is cut. */
template <class Shape>
static __device__ __forceinline__ tgi_wgmma_tile tgi_find_tile(const tgi_wgmma_args &args,
                                                               int index, int rank)
{
    const int cut = index - args.whole_count, row = tgi_find_cluster_row(args, rank);
    tgi_wgmma_tile tile =
        tgi_find_place(args, cut < 0 ? index : args.whole_count + cut % args.cut_count, row,
                       Shape::rows, Shape::cols);
    if (cut >= 0) {
        tile.cut = cut % args.cut_count * args.cluster_rows + row;
        tile.part = cut / args.cut_count;
    } else if (args.cluster_parts > 1) {
        tile.part = tgi_find_cluster_part(args, rank);
    }
    if (tile.part >= 0) {
        tile.step = tile.part * args.steps_per_part;
        tile.step_end = min(args.step_count, tile.step + args.steps_per_part);
    }
    return tile;
}

/* Boxes of the operand's tile from `line` on that have lines of the operand. The others are not
 * loaded: the copy engine takes longer to fill lines outside an operand with zeros than to copy
 * lines that exist. The stage then keeps there what an earlier step left, any bits: a line of A
 * counts in one row of sums and a line of B in one column, and those outside D are not stored. */
template <int Across, int Lines>
static __device__ __forceinline__ int tgi_count_boxes(const tgi_wgmma_operand &operand, int line,
                                                      int sharer_count)
{
    if (!Across)
        return (line < operand.line_count) +
               (sharer_count > 1 && line + operand.box_lines < operand.line_count);
    int count = 0;
#pragma unroll
    for (int i = 0; i < Lines / TGI_BLOCK_LINES; i++)
        count += line + i * TGI_BLOCK_LINES < operand.line_count;
    return count;
}

/* Fills the operand's tile of one step with lines from `line` on, those of the first `boxes` boxes.
 * The blocks that need the same lines each bring their share of them to all. */
template <int Across, int Lines, int StepElems>
static __device__ __forceinline__ void
tgi_load_tile(const tgi_wgmma_operand &operand, uint32_t shared, uint32_t barrier, int line,
              int boxes, int step, int batch, tgi_wgmma_sharers sharers)
{
    const int z = operand.has_batch ? batch : 0, k = step * StepElems;
#pragma unroll
    for (int i = 0; i < (Across ? Lines / TGI_BLOCK_LINES : 1); i++) {
        const int box = sharers.share + i * sharers.count, first = box * operand.box_lines;
        if (box >= boxes)
            break;
        const uint32_t target = shared + first * TGI_WGMMA_STEP_BYTES;
        const int x = Across ? line + first : k, y = Across ? k : line + first;
        if (sharers.count > 1)
            tgi_load_box_to(sharers.ranks, target, &operand.map, barrier, x, y, z);
        else
            tgi_load_box(target, &operand.map, barrier, x, y, z);
    }
}

template <int ClusterRows, class Shape>
static __device__ __forceinline__ void tgi_produce(const tgi_wgmma_args &args,
                                                   const tgi_wgmma_memory<Shape> &memory, int rank)
{
    const tgi_wgmma_sharers alone = {1, 0, 0}, column = tgi_find_sharers<ClusterRows>(rank);
    tgi_ring<Shape::stages> ring;
    for (int i = tgi_cluster_index(); i < args.unit_count; i += tgi_cluster_count()) {
        const tgi_wgmma_tile tile = tgi_find_tile<Shape>(args, i, rank);
        /* Of a whole tile, alike for all blocks that share it. */
        const int a_boxes =
            tgi_count_boxes<Shape::across_a, Shape::rows>(args.a, tile.row, alone.count);
        const int b_boxes =
            tgi_count_boxes<Shape::across_b, Shape::b_lines>(args.b, tile.col, column.count);
        const int line_bytes =
            Shape::slices > 0 ? args.slice_count * TGI_CHUNK_BYTES : TGI_WGMMA_STEP_BYTES;
        const int byte_count =
            a_boxes * args.a.box_lines * (Shape::is_held ? TGI_WGMMA_STEP_BYTES : line_bytes) +
            b_boxes * args.b.box_lines * line_bytes;
        for (int step = tile.step; step < tile.step_end; step++, ring.advance()) {
            const uint32_t full = memory.full + ring.stage * 8;
            const uint32_t a = memory.stages + ring.stage * Shape::stage_bytes;
            tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
            tgi_barrier_expect(full, byte_count);
            if constexpr (Shape::slices > 0) {
                if constexpr (Shape::is_held)
                    tgi_load_tile<0, Shape::rows, TGI_CHUNK_ELEMS>(
                        args.a, a, full, tile.row, a_boxes, step, tile.batch, alone);
                else
                    tgi_load_slices<Shape::rows>(args, args.a, a, full, tile.row, a_boxes, step,
                                                 tile.batch, alone);
                tgi_load_slices<Shape::cols>(args, args.b, a + Shape::a_bytes, full, tile.col,
                                             b_boxes, step, tile.batch, column);
            } else {
                tgi_load_tile<Shape::across_a, Shape::rows, Shape::step_elems>(
                    args.a, a, full, tile.row, a_boxes, step, tile.batch, alone);
                tgi_load_tile<Shape::across_b, Shape::b_lines, Shape::step_elems>(
                    args.b, a + Shape::a_bytes, full, tile.col, b_boxes, step, tile.batch, column);
            }
        }
    }
    tgi_start_next();
    /* Blocks of the cluster still signal this one's barriers. */
    for (int i = 0; column.count > 1 && i < Shape::stages; i++, ring.advance())
        tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
}

/* Lets the producers that fill this stage have it back, from rank `first` on. */
static __device__ __forceinline__ void tgi_release(uint32_t empty, int sharer_count, int first,
                                                   int thread)
{
    if (sharer_count > 1) {
        if (thread < sharer_count)
            tgi_barrier_arrive_at(empty, first + thread);
    } else if (thread == 0) {
        tgi_barrier_arrive(empty);
    }
}

/* Puts products of one full stage under way, those of B's lines from `line` on: added to `sum` or,
 * where IsSum is 0, in its place. */
template <class Shape, int IsSum>
static __device__ __forceinline__ void
tgi_multiply_stage(uint32_t stage, int group, int line,
                   float (&sum)[Shape::blocks][Shape::part_cols / 2])
{
    constexpr int across_step = 32 * TGI_WGMMA_STEP_BYTES / Shape::elem_bytes; /* 32 bytes of k */
    constexpr int a_step = Shape::across_a ? across_step : 32;
    constexpr int b_step = Shape::across_b ? across_step : 32;
    const uint64_t a = tgi_describe(stage + group * Shape::group_rows * TGI_WGMMA_STEP_BYTES,
                                    Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    const uint64_t b = tgi_describe(stage + Shape::a_bytes + line * TGI_WGMMA_STEP_BYTES,
                                    Shape::block_bytes, 8 * TGI_WGMMA_STEP_BYTES);
    tgi_wgmma_fence();
#pragma unroll
    for (int j = 0; j < TGI_WGMMA_STEP_BYTES / 32; j++)
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

/* Adds the products of one full stage in FP32. */
template <class Shape>
static __device__ __forceinline__ void
tgi_promote_stage(const tgi_wgmma_args &args, const tgi_wgmma_tile &tile, uint32_t stage, int group,
                  tgi_range &range, float (&sum)[Shape::blocks][Shape::cols / 2])
{
    tgi_held_rows held;
    if constexpr (Shape::is_held) {
        static_assert(Shape::blocks == 1, "a warpgroup holds 64 rows");
        const int first = group * TGI_BLOCK_LINES;
        tgi_cut_rows(stage + first * TGI_WGMMA_STEP_BYTES, args.a.line_count - tile.row - first,
                     range, held);
    }
#pragma unroll
    for (int line = 0; line < Shape::cols; line += Shape::part_cols) {
        float part[Shape::blocks][Shape::part_cols / 2];
        if constexpr (Shape::is_held)
            tgi_multiply_held_rows<Shape>(stage, line, held, part[0]);
        else if constexpr (Shape::slices > 0)
            tgi_multiply_slices<Shape>(stage, group, line, args.first_product, part);
        else
            tgi_multiply_stage<Shape, 0>(stage, group, line, part);
        tgi_wgmma_wait<0>();
#pragma unroll
        for (int block = 0; block < Shape::blocks; block++)
#pragma unroll
            for (int i = 0; i < Shape::part_cols / 2; i++)
                sum[block][line / 2 + i] += part[block][i];
    }
}

/* The sums of a tile. A stage is given back as soon as the next one's products are under way.
 * Promoted sums: a run of k starts from zero, and what it has come to is added to the runs before
 * it, so that rounding errors grow with the root of k. */
template <class Shape>
static __device__ __forceinline__ void
tgi_sum_tile(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
             const tgi_wgmma_tile &tile, int rank, int group, tgi_ring<Shape::stages> &ring,
             tgi_range &range, float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const int thread = threadIdx.x % TGI_WARPGROUP;
    const int sharer_count = Shape::cluster_rows > 1 ? args.cluster_rows : 1;
    const int first_sharer = rank - tgi_find_cluster_row(args, rank);
    uint32_t used = 0; /* the barrier of the stage that is being multiplied */
    int step = tile.step, has_runs = 0;
    do {
        const uint32_t stage = memory.stages + ring.stage * Shape::stage_bytes;
        if (Shape::slices > 0 && step % TGI_RUN_CHUNKS == 0 && step > tile.step) {
            if (has_runs)
                tgi_add_runs<Shape>(args, group, sum);
            tgi_start_run<Shape>(args, group, sum);
            has_runs = 1;
        }
        tgi_barrier_wait(memory.full + ring.stage * 8, ring.parity);
        if constexpr (Shape::is_promoted) {
            tgi_promote_stage<Shape>(args, tile, stage, group, range, sum);
            tgi_release(memory.empty + ring.stage * 8, sharer_count, first_sharer, thread);
        } else {
            tgi_multiply_stage<Shape, 1>(stage, group, 0, sum);
            tgi_wgmma_wait<1>();
            if (used)
                tgi_release(used, sharer_count, first_sharer, thread);
            used = memory.empty + ring.stage * 8;
        }
        ring.advance();
    } while (++step < tile.step_end);
    if (!Shape::is_promoted) {
        tgi_wgmma_wait<0>();
        tgi_release(used, sharer_count, first_sharer, thread);
    }
    if (Shape::slices > 0 && has_runs)
        tgi_add_runs<Shape>(args, group, sum);
#pragma unroll
    for (int block = 0; block < Shape::blocks; block++)
        tgi_pin_sums(sum[block]);
}

template <class Shape>
static __device__ __forceinline__ void
tgi_consume(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory, int rank, int group)
{
    tgi_ring<Shape::stages> ring;
    for (int i = tgi_cluster_index(); i < args.unit_count; i += tgi_cluster_count()) {
        tgi_wgmma_tile tile = tgi_find_tile<Shape>(args, i, rank);
        float sum[Shape::blocks][Shape::cols / 2] = {};
        tgi_range a_range = {0, UINT32_MAX};
        tgi_sum_tile(args, memory, tile, rank, group, ring, a_range, sum);
        static_assert(Shape::blocks == 1, "a warpgroup has 64 rows");
        const int row = tile.row;
        tile.row += group * TGI_BLOCK_LINES;
        if constexpr (Shape::is_held) {
            a_range = tgi_tell_range(args, tile, a_range);
        } else if constexpr (Shape::slices > 0) {
            a_range = tgi_find_row_range(args, tile);
            tgi_scale_sums(args, tile, sum[0]);
        }
        if (args.cluster_parts > 1) {
            tgi_cluster_barrier(); /* the stages of all its blocks have been read */
            tgi_send_pieces<Shape::cols>(args, tile.part, rank, group, memory.stages, sum[0]);
            tgi_cluster_barrier(); /* the pieces are there */
        }
        const uint32_t part = memory.parts + group * TGI_WGMMA_PART_BYTES;
        if (tile.cut >= 0) {
            tgi_write_pieces<Shape::cols>(args, tile.cut, tile.part, group, Shape::group_count,
                                          sum[0]);
        } else if (args.is_d_boxed && args.cluster_parts == 1) {
            tgi_store_tile<(Shape::slices > 0)>(args, tile, sum[0], part, group + 1, a_range);
        } else {
            tile.row = row;
            tgi_finish_pieces<Shape>(args, tile, group, memory.stages, part, sum[0], a_range);
        }
    }
    if (threadIdx.x % TGI_WARPGROUP == 0)
        tgi_store_box_wait<0>();
}

template <class Shape>
static __device__ __forceinline__ void tgi_setup(const tgi_wgmma_args &args,
                                                 const tgi_wgmma_memory<Shape> &memory)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < Shape::stages; i++) {
            tgi_barrier_init(memory.full + i * 8, 1);
            tgi_barrier_init(memory.empty + i * 8, Shape::group_count * args.cluster_rows);
        }
        tgi_fence_barrier_init();
        tgi_prefetch_map(&args.a.map);
        tgi_prefetch_map(&args.b.map);
    }
    if (args.cluster_rows * args.cluster_parts > 1)
        tgi_cluster_barrier();
    else
        __syncthreads();
}

template <class Shape>
static __device__ __forceinline__ void tgi_wgmma_multiply(const tgi_wgmma_args &args, char *shared)
{
    const tgi_wgmma_memory<Shape> memory(shared);
    const int group = static_cast<int>(threadIdx.x) / TGI_WARPGROUP;
    const int rank = tgi_cluster_rank();
    tgi_setup(args, memory);
    tgi_wait_for_stream();
    if (group == 0) {
        if (Shape::group_count > 1)
            tgi_lower_registers<40>();
        if (threadIdx.x == 0 && Shape::cluster_rows > 1 && args.cluster_rows > 1)
            tgi_produce<Shape::cluster_rows>(args, memory, rank);
        else if (threadIdx.x == 0)
            tgi_produce<1>(args, memory, rank);
    } else {
        if (Shape::group_count > 1)
            tgi_raise_registers<232>();
        tgi_consume<Shape>(args, memory, rank, group - 1);
    }
}

#endif
