/*
 * Products by the matrix instructions of a warpgroup, operands brought by the copy engine. A block
 * is a producer warp, which fills stages of A and B in shared memory, movers beside it where lines
 * of A begin anywhere, and one or two warpgroups, which multiply them and store; it works through a
 * list of tiles. Blocks of a cluster have tiles one below the other and bring each other their
 * shares of B, or have parts of k of one tile, which they add among themselves (cluster.cuh).
 *
 *     setup()    barriers
 *     produce()  for each tile, for each step of k: wait until a stage is empty, fill it
 *     move()     of lines of A that begin anywhere: bring them to their places (move.cuh)
 *     consume()  for each tile, for each step of k: wait until a stage is full, multiply it, and
 *                meanwhile store what is kept of the tile before (kept.cuh)
 *     finish()   sums to D (finish.cuh), or of a tile whose k is cut to the cluster's blocks
 *                (cluster.cuh) or to the workspace (pieces.cuh)
 */
#ifndef TGI_WGMMA_CUH
#define TGI_WGMMA_CUH

#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/wgmma/cluster.cuh"
#include "kernels/wgmma/finish.cuh"
#include "kernels/wgmma/move.cuh"
#include "kernels/wgmma/place.cuh"
#include "kernels/wgmma/shape.cuh"
#include "kernels/wgmma/sum.cuh"

/* Unit `index` of the list: a tile or, behind those, a part of k of a tile that is cut. */
template <class Shape>
static __device__ __forceinline__ tgi_wgmma_tile tgi_find_tile(const tgi_wgmma_args &args,
                                                               int index, int rank)
{
    const int cut = index - args.whole_count, row = tgi_find_cluster_row(args, rank);
    const int part = cut < 0 ? 0 : tgi_divide(cut, args.cut);
    tgi_wgmma_tile tile =
        tgi_find_place(args, index - part * args.cut.value, row, Shape::rows, Shape::cols);
    if (cut >= 0) {
        tile.cut = (cut - part * args.cut.value) * args.cluster_rows + row;
        tile.part = part;
    } else if (args.cluster_parts > 1) {
        tile.part = tgi_find_cluster_part(args, rank);
    }
    if (tile.part >= 0) {
        tile.step = tile.part * args.steps_per_part;
        tile.step_end = min(args.step_count, tile.step + args.steps_per_part);
    }
    return tile;
}

/* How the lines of an operand's tile are copied, alike for all blocks that share it: so many boxes,
 * the others of the tile being outside the operand. Those are not loaded, nor along k are lines
 * behind the last group of 8 that has some: the copy engine takes longer to fill lines outside an
 * operand with zeros than to copy lines that exist. The stage then keeps there what an earlier step
 * left, any bits: a line of A counts in one row of sums and a line of B in one column, and those
 * outside D are not stored. For the same reason boxes across k have few lines in the last step,
 * where those behind are not multiplied (tgi_produce, which sets is_edge). */
template <int Across, int Lines, int StepElems>
static __device__ __forceinline__ tgi_wgmma_boxes tgi_find_boxes(const tgi_wgmma_operand &operand,
                                                                 int line, int sharer_count)
{
    tgi_wgmma_boxes boxes = {0, 0};
    if (Across) {
#pragma unroll
        for (int i = 0; i < Lines / StepElems; i++)
            boxes.count += line + i * StepElems < operand.line_count;
        return boxes;
    }
    boxes.is_edge = operand.edge_lines > 0 && line + Lines > operand.line_count;
    boxes.count = (line < operand.line_count) +
                  (sharer_count > 1 && line + boxes.lines(operand) < operand.line_count);
    return boxes;
}

/* Fills the operand's tile of one step with lines from `line` on. The blocks that need the same
 * lines each bring their share of them to all. */
template <int Across, int Lines, int StepElems>
static __device__ __forceinline__ void
tgi_load_tile(const tgi_wgmma_operand &operand, tgi_wgmma_boxes boxes, uint32_t shared,
              uint32_t barrier, int line, int step, int batch, tgi_wgmma_sharers sharers)
{
    const int z = operand.has_batch ? batch : 0, k = step * StepElems;
#pragma unroll
    for (int i = 0; i < (Across ? Lines / StepElems : 1); i++) {
        const int box = sharers.share + i * sharers.count;
        const int first = box * (Across ? StepElems : boxes.lines(operand));
        if (box >= boxes.count)
            break;
        const uint32_t target = shared + first * TGI_WGMMA_STEP_BYTES;
        const int x = Across ? line + first : k, y = Across ? k : line + first;
        if (sharers.count > 1)
            tgi_tma_load_multicast(sharers.ranks, target, boxes.map(operand), barrier, x, y, z);
        else
            tgi_tma_load(target, boxes.map(operand), barrier, x, y, z);
    }
}

/* Of a stage, for each block. */
template <class Shape>
static __device__ __forceinline__ int
tgi_count_stage_bytes(const tgi_wgmma_args &args, tgi_wgmma_boxes a_boxes, tgi_wgmma_boxes b_boxes)
{
    const int line_bytes =
        Shape::slices > 0 ? args.slice_count * TGI_CHUNK_BYTES : TGI_WGMMA_STEP_BYTES;
    const int a_line_bytes = Shape::is_loose  ? 0 /* moved there */
                             : Shape::is_held ? TGI_WGMMA_STEP_BYTES
                                              : line_bytes;
    return a_boxes.count * a_boxes.lines(args.a) * a_line_bytes +
           b_boxes.count * b_boxes.lines(args.b) * line_bytes;
}

/* Fills the stage at hand with step `step` of a tile, byte_count bytes for each block. */
template <class Shape>
static __device__ __forceinline__ void
tgi_fill_stage(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
               const tgi_ring<Shape::stages> &ring, const tgi_wgmma_tile &tile, int step,
               tgi_wgmma_boxes a_boxes, tgi_wgmma_boxes b_boxes, int byte_count,
               tgi_wgmma_sharers column)
{
    const tgi_wgmma_sharers alone = {1, 0, 0};
    const uint32_t full = memory.full + ring.stage * 8;
    const uint32_t a = memory.stages + ring.stage * Shape::stage_bytes;
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    if (!Shape::has_lone_producer && !tgi_elect())
        return;
    tgi_barrier_expect(full, byte_count);
    if constexpr (Shape::slices > 0 && !Shape::is_held)
        tgi_load_slices<Shape::rows>(args, args.a, a_boxes, a, full, tile.row, step, tile.batch,
                                     alone);
    else if constexpr (!Shape::is_loose) /* which are moved there */
        tgi_load_tile<Shape::across_a, Shape::rows,
                      Shape::is_held ? TGI_CHUNK_ELEMS : Shape::step_elems>(
            args.a, a_boxes, a, full, tile.row, step, tile.batch, alone);
    if constexpr (Shape::slices > 0)
        tgi_load_slices<Shape::cols>(args, args.b, b_boxes, a + Shape::a_bytes, full, tile.col,
                                     step, tile.batch, column);
    else
        tgi_load_tile<Shape::across_b, Shape::b_lines, Shape::step_elems>(
            args.b, b_boxes, a + Shape::a_bytes, full, tile.col, step, tile.batch, column);
}

template <int ClusterRows, class Shape>
static __device__ __forceinline__ void tgi_produce(const tgi_wgmma_args &args,
                                                   const tgi_wgmma_loose *loose,
                                                   const tgi_wgmma_memory<Shape> &memory, int rank)
{
    const tgi_wgmma_sharers column = tgi_find_sharers<ClusterRows>(rank);
    const int has_short =
        (Shape::across_a && args.a.edge_lines > 0) || (Shape::across_b && args.b.edge_lines > 0);
    tgi_ring<Shape::stages> ring;
    tgi_loose_ring slots;
    for (int i = tgi_cluster_index(); i < args.unit_count; i += tgi_cluster_count()) {
        const tgi_wgmma_tile tile = tgi_find_tile<Shape>(args, i, rank);
        tgi_wgmma_boxes a_boxes =
            tgi_find_boxes<Shape::across_a, Shape::rows, Shape::step_elems>(args.a, tile.row, 1);
        tgi_wgmma_boxes b_boxes =
            tgi_find_boxes<Shape::across_b, Shape::b_lines, Shape::step_elems>(args.b, tile.col,
                                                                               column.count);
        const int whole_end = min(tile.step_end, args.step_count - has_short);
        const int byte_count = tgi_count_stage_bytes<Shape>(args, a_boxes, b_boxes);
#pragma unroll 1
        for (int step = tile.step; step < whole_end; step++, ring.advance()) {
            if constexpr (Shape::is_loose)
                tgi_fetch_loose(args, *loose, memory, slots, tile, step);
            tgi_fill_stage(args, memory, ring, tile, step, a_boxes, b_boxes, byte_count, column);
        }
        if (whole_end < tile.step_end) {
            if constexpr (Shape::is_loose)
                tgi_fetch_loose(args, *loose, memory, slots, tile, whole_end);
            a_boxes.is_edge |= Shape::across_a;
            b_boxes.is_edge |= Shape::across_b;
            tgi_fill_stage(args, memory, ring, tile, whole_end, a_boxes, b_boxes,
                           tgi_count_stage_bytes<Shape>(args, a_boxes, b_boxes), column);
            ring.advance();
        }
    }
    tgi_start_next();
    /* Blocks of the cluster still signal this one's barriers. */
    for (int i = 0; column.count > 1 && i < Shape::stages; i++, ring.advance())
        tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
}

/* What a mover does: of all tiles, step after step, the slots that are its own. */
template <class Shape>
static __device__ __forceinline__ void
tgi_move(const tgi_wgmma_args &args, const tgi_wgmma_loose &loose,
         const tgi_wgmma_memory<Shape> &memory, int rank, int mover)
{
    const tgi_loose_line own(loose);
    tgi_ring<Shape::stages> ring;
    tgi_loose_ring slots;
    for (int i = tgi_cluster_index(); i < args.unit_count; i += tgi_cluster_count()) {
        const tgi_wgmma_tile tile = tgi_find_tile<Shape>(args, i, rank);
#pragma unroll 1
        for (int step = tile.step; step < tile.step_end; step++, ring.advance())
#pragma unroll 1
            for (int line = 0; line < Shape::rows; line += TGI_LOOSE_LINES, slots.advance())
                if (slots.stage % TGI_MOVER_WARPS == mover)
                    tgi_move_slot(memory, own, line, ring, slots);
    }
}

/* 1 for whole tiles of the kinds that are met most, which have code of their own: D is the sum, its
 * rows lines, FP32 where the operands are, else of 16 bits. */
static __device__ __forceinline__ int tgi_is_quick(const tgi_wgmma_args &args, int is_wide)
{
    const tg_type type = tgi_find_d_type(args.gemm.problem);
    return args.gemm.is_sum_alone && (args.is_d_boxed || (args.is_d_lined && !is_wide)) &&
           !args.is_d_turned && args.cluster_parts == 1 && (type == TG_TYPE_FP32) == is_wide &&
           !tgi_is_fp8(type);
}

template <class Shape>
static __device__ __forceinline__ void
tgi_consume(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory, int rank, int group)
{
    const int first = tgi_make_uniform(tgi_cluster_index());
    const int stride = tgi_make_uniform(tgi_cluster_count());
    tgi_ring<Shape::stages> ring;
    tgi_wgmma_kept<Shape::cols> kept;
    for (int i = first; i < args.unit_count; i += stride) {
        tgi_wgmma_tile tile = tgi_find_tile<Shape>(args, i, rank);
        if (Shape::slices == 0 && !args.gemm.is_sum_alone && args.cluster_parts == 1 &&
            tile.cut < 0) {
            tgi_wgmma_tile own = tile;
            own.row += group * TGI_BLOCK_LINES;
            tgi_fetch_for_epilogue(args.gemm, own, Shape::cols);
        }
        float sum[Shape::blocks][Shape::cols / 2] = {};
        tgi_range a_range = {0, UINT32_MAX};
        tgi_sum_tile(args, memory, tile, rank, group, ring, a_range, kept, sum);
        static_assert(Shape::blocks == 1, "a warpgroup has 64 rows");
        if constexpr (Shape::slices > 0) /* whose sums and parts leave few registers to keep it */
            tile = tgi_find_tile<Shape>(args, tgi_make_opaque(i), rank);
        const int row = tile.row;
        tile.row += group * TGI_BLOCK_LINES;
        if constexpr (Shape::is_held) {
            a_range = tgi_tell_range(args, tile, a_range);
        } else if constexpr (Shape::slices > 0) {
            a_range = tgi_find_row_range(args, tile);
            tgi_scale_sums(args, tile, sum[0]);
        }
        if (args.cluster_parts > 1) {
            const int has_pieces = tgi_expect_pieces<Shape>(
                tile.part, args.cluster_parts, memory.sent, threadIdx.x == TGI_WARPGROUP);
            tgi_cluster_barrier(); /* the stages of all its blocks have been read */
            tgi_send_pieces<Shape::cols>(args, tile.part, rank, group, memory.stages, memory.sent,
                                         sum[0]);
            if (has_pieces)
                tgi_barrier_wait(memory.sent, 0);
        }
        const uint32_t part = memory.parts + group * TGI_WGMMA_PART_BYTES;
        if (tile.cut >= 0) {
            tgi_write_pieces<Shape::cols>(args, tile.cut, tile.part, group, Shape::group_count,
                                          sum[0]);
        } else if (tgi_is_quick(args, Shape::is_wide)) {
            /* Few steps would not hide it. */
            const int is_later = Shape::may_keep && args.is_d_boxed &&
                                 i + stride < args.unit_count && args.step_count >= kept.part_count;
            if (is_later) {
                if constexpr (Shape::may_keep)
                    tgi_keep(kept, tile, sum[0], tgi_find_d_type(args.gemm.problem));
                continue;
            }
            if (Shape::is_wide || args.is_d_boxed)
                tgi_store_tile<(Shape::slices > 0), Shape::is_wide>(args, tile, sum[0], part,
                                                                    group + 1, a_range);
            else
                tgi_store_tile_lines(args, tile, sum[0], part);
        } else {
            tile.row = row;
            tgi_finish_pieces<Shape>(args, tile, group, memory.stages, part, sum[0], a_range);
        }
        kept = {}; /* else its registers would be taken till here */
    }
    if (threadIdx.x % TGI_WARPGROUP == 0)
        tgi_tma_store_wait<0>();
}

template <class Shape>
static __device__ __forceinline__ void tgi_setup(const tgi_wgmma_args &args,
                                                 const tgi_wgmma_loose *loose,
                                                 const tgi_wgmma_memory<Shape> &memory)
{
    if (threadIdx.x == 0) {
        for (int i = 0; i < Shape::stages; i++) {
            tgi_barrier_init(memory.full + i * 8,
                             1 + Shape::is_loose * (Shape::rows / TGI_LOOSE_LINES));
            tgi_barrier_init(memory.empty + i * 8, Shape::group_count * args.cluster_rows);
        }
        for (int i = 0; i < memory.loose_slots; i++) {
            tgi_barrier_init(memory.loose_full + i * 8, 1);
            tgi_barrier_init(memory.loose_empty + i * 8, 1);
        }
        tgi_barrier_init(memory.sent, 1);
        tgi_fence_barrier_init();
        if constexpr (Shape::is_loose) {
            for (int i = 0; i < TGI_LOOSE_KINDS; i++)
                tgi_prefetch_map(&loose->map[i]);
        } else {
            tgi_prefetch_map(&args.a.map);
        }
        tgi_prefetch_map(&args.b.map);
        if (Shape::across_a && args.a.edge_lines > 0)
            tgi_prefetch_map(&args.a.edge_map);
        if (Shape::across_b && args.b.edge_lines > 0)
            tgi_prefetch_map(&args.b.edge_map);
    }
    if (args.cluster_rows * args.cluster_parts > 1)
        tgi_cluster_barrier();
    else
        __syncthreads();
}

/* loose: of a Shape that is loose. */
template <class Shape>
static __device__ __forceinline__ void
tgi_wgmma_multiply(const tgi_wgmma_args &args, const tgi_wgmma_loose *loose, char *shared)
{
    const tgi_wgmma_memory<Shape> memory(shared);
    const int group = tgi_make_uniform(static_cast<int>(threadIdx.x) / TGI_WARPGROUP);
    const int rank = tgi_make_uniform(tgi_cluster_rank());
    tgi_setup(args, loose, memory);
    tgi_wait_for_stream();
    if (group == 0) {
        if (Shape::group_count > 1)
            tgi_lower_registers<Shape::producer_registers>();
        const int warp = tgi_make_uniform(static_cast<int>(threadIdx.x) / 32);
        if constexpr (Shape::is_loose) {
            if (warp > 0) {
                tgi_move(args, *loose, memory, rank, warp - 1);
                return;
            }
        }
        if (warp != 0 || (Shape::has_lone_producer && !tgi_elect()))
            return;
        if (Shape::cluster_rows > 1 && args.cluster_rows > 1)
            tgi_produce<Shape::cluster_rows>(args, loose, memory, rank);
        else
            tgi_produce<1>(args, loose, memory, rank);
    } else {
        if (Shape::group_count > 1)
            tgi_raise_registers<Shape::consumer_registers>();
        tgi_consume<Shape>(args, memory, rank, group - 1);
    }
}

#endif
