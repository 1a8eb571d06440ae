/*
 * Family wgmma multiplies by warpgroups. TMA brings the operands. A block is warp-specialized: one
 * or two producer warps fill stages of A and B in shared memory, relayout warps beside a single one
 * move lines of A that begin anywhere, and one or two warpgroups multiply the stages and store D.
 * The grid is persistent: a block works through a list of tiles. Blocks of a cluster have tiles one
 * below the other and bring each other their shares of B, or share out k of one tile, whose sums
 * they add among themselves.
 *
 *     setup()    prepares barriers and tensor maps
 *     produce()  for each tile, for each step of k: waits until a stage is empty and fills it; then
 *                fills stages with C (staged_c.cuh)
 *     consume()  for each tile: has its products summed (mainloop.cuh), meanwhile stores the tile
 *                before (epilogue/deferred_store.cuh), then brings the sums to D
 *                (epilogue/fragment_store.cuh) or, with split-K, to the blocks of the cluster
 *                (cluster_split_k.cuh) or to the workspace (partial_tiles.cuh)
 *
 * They have the four tasks of a body (kernels/body.cuh), dealt out to warps: setup() is its setup,
 * produce() its load, and consume() its multiply and finish.
 *
 * The Shape's feed (feed_tma.cuh) decides how a stage is filled, moved and multiplied. A kernel
 * serves two shapes with equal shared memory: lines of A along k and across k, or, for FP8, both
 * types of B. They differ in how stages are filled and multiplied, and share the later code, which
 * is the larger part. A kernel of one shape has that shape twice.
 */
#ifndef TGI_WGMMA_CUH
#define TGI_WGMMA_CUH

#include "kernels/copy/tma_tile.cuh"
#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/wgmma/cluster_split_k.cuh"
#include "kernels/wgmma/feed_registers.cuh"
#include "kernels/wgmma/feed_slices.cuh"
#include "kernels/wgmma/feed_tma.cuh"
#include "kernels/wgmma/feed_transposed.cuh"
#include "kernels/wgmma/feed_unaligned.cuh"
#include "kernels/wgmma/finish_tile.cuh"
#include "kernels/wgmma/kernel_shape.cuh"
#include "kernels/wgmma/staged_c.cuh"

template <class Shape, class Second> static constexpr int tgi_is_one_shape = 0;
template <class Shape> static constexpr int tgi_is_one_shape<Shape, Shape> = 1;

template <class Shape, class Second>
static __device__ __forceinline__ void tgi_setup(const typename Shape::feed::arguments &given,
                                                 const tgi_wgmma_memory<Shape> &memory)
{
    const tgi_wgmma_args &args = Shape::feed::get_args(given);
    if (threadIdx.x == 0) {
        /* A producer warp arrives once, and a relayout warp once for every slot's lines. */
        const int arrivals =
            Shape::producer_warps / Shape::producer_turns +
            (Shape::feed::relayout_warps > 0 ? Shape::rows / TGI_UNALIGNED_LINES : 0);
        const int stages = Shape::is_fitted ? args.work.stage_count : Shape::stages;
        for (int i = 0; i < stages; i++) {
            tgi_barrier_init(memory.full + i * 8, arrivals);
            tgi_barrier_init(memory.empty + i * 8, Shape::group_count * args.work.cluster_rows);
        }
        Shape::feed::init_slots(memory);
        tgi_barrier_init(memory.sent, 1);
        tgi_fence_barrier_init();
        Shape::feed::prefetch_a(given);
        tgi_prefetch_map(&args.b.map);
        if (args.d.is_tma_stored)
            tgi_prefetch_map(&args.d_map);
        if ((Shape::across_a || (Second::across_a && args.is_second)) && args.a.edge_lines > 0)
            tgi_prefetch_map(&args.a.edge_map);
        if (Shape::across_b && args.b.edge_lines > 0)
            tgi_prefetch_map(&args.b.edge_map);
    }
    /* Without this barrier a thread of the block or of its cluster would use a barrier that is not
     * initialized. */
    if (args.work.cluster_rows * args.work.cluster_splits > 1)
        tgi_cluster_barrier();
    else
        __syncthreads();
}

/* Waits until the next stage of the ring is empty and fills it with step `step` of a tile,
 * byte_count bytes for each block. */
template <class Shape>
static __device__ __forceinline__ void
tgi_fill_stage(const typename Shape::feed::arguments &problem,
               const tgi_wgmma_memory<Shape> &memory, const tgi_ring<Shape::stages> &ring,
               const tgi_cluster_tile &tile, int step, tgi_tma_boxes a_boxes, tgi_tma_boxes b_boxes,
               int byte_count, tgi_tma_sharers column)
{
    const uint32_t full = memory.full + ring.stage * 8;
    const uint32_t stage = tgi_find_stage_data(Shape::feed::get_args(problem), memory, ring);
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    if (!Shape::has_lone_producer && !tgi_elect())
        return;
    tgi_barrier_expect(full, byte_count);
    Shape::feed::template load<Shape>(problem, stage, full, tile, step, a_boxes, b_boxes, column);
}

/* Returns 1 if the last step of k has maps of its own, since it has fewer lines across k. */
template <class Shape>
static __device__ __forceinline__ int tgi_has_short_load(const tgi_wgmma_args &args)
{
    return (Shape::across_a && args.a.edge_lines > 0) || (Shape::across_b && args.b.edge_lines > 0);
}

/* Requests the stages of all tiles. One of two producer warps, number `warp`, brings A, the other
 * one B. If there are four, warps 0 and 2 bring A, each to every other stage, warps 1 and 3 B. */
template <int ClusterRows, class Shape>
static __device__ __forceinline__ void tgi_produce(const typename Shape::feed::arguments &given,
                                                   const tgi_wgmma_memory<Shape> &memory, int rank,
                                                   int warp)
{
    typedef typename Shape::feed feed;
    const typename Shape::schedule schedule(feed::get_args(given).work, rank);
    const tgi_tma_sharers column =
        tgi_find_sharers<ClusterRows>(feed::get_args(given).work.cluster_rows, rank);
    const int operand = warp & 1;
    int is_own = Shape::producer_turns == 1 || warp < 2; /* 1: this warp fills the next stage */
    int last = 0, has_short = tgi_has_short_load<Shape>(feed::get_args(schedule.problem(given, 0)));
    tgi_ring<Shape::stages> ring(feed::get_args(given).work.stage_count);
    typename feed::slots slots;
    for (int i = schedule.begin(); i < schedule.end(); last = i, i = schedule.next(i)) {
        const typename feed::arguments &problem = schedule.problem(given, i);
        if (!tgi_is_same_problem(schedule, given, last, i))
            has_short = tgi_has_short_load<Shape>(feed::get_args(problem));
        const tgi_wgmma_args &args = feed::get_args(problem);
        const tgi_cluster_tile tile = schedule.tile(i);
        tgi_tma_boxes a_boxes = tgi_find_boxes<Shape::across_a, Shape::rows, Shape::a_step_elems>(
            args.a, tile.row, 1, Shape::find_tile_rows(args), Shape::find_box_rows(args));
        tgi_tma_boxes b_boxes =
            tgi_find_boxes<Shape::across_b, Shape::b_lines, Shape::step_elems, Shape::cluster_rows>(
                args.b, tile.col, column.count);
        if (Shape::producer_warps > 1 && operand > 0)
            a_boxes.count = 0;
        else if (Shape::producer_warps > 1)
            b_boxes.count = 0;
        /* Code before the first copy takes long, because arguments and instructions are read for
         * the first time. So it runs before the wait, which would delay later tiles too. */
        if (i == schedule.begin())
            tgi_wait_for_stream();
        const int whole_end = min(tile.step_end, args.work.step_count - has_short);
        const int byte_count = feed::template count_bytes<Shape>(problem, a_boxes, b_boxes);
#pragma unroll 1
        for (int step = tile.step; step < whole_end; step++, ring.advance()) {
            feed::fetch(problem, memory, slots, tile, step);
            if (is_own)
                tgi_fill_stage(problem, memory, ring, tile, step, a_boxes, b_boxes, byte_count,
                               column);
            is_own ^= Shape::producer_turns > 1;
        }
        if (whole_end < tile.step_end) {
            feed::fetch(problem, memory, slots, tile, whole_end);
            a_boxes.is_edge |= Shape::across_a;
            if (Shape::across_b)
                b_boxes = tgi_use_edge<Shape::b_lines, Shape::step_elems, Shape::cluster_rows>(
                    b_boxes, column.count);
            if (is_own)
                tgi_fill_stage(problem, memory, ring, tile, whole_end, a_boxes, b_boxes,
                               feed::template count_bytes<Shape>(problem, a_boxes, b_boxes),
                               column);
            is_own ^= Shape::producer_turns > 1;
            ring.advance();
        }
        if (tgi_is_bias_staged<Shape>(args, tile))
            tgi_bring_bias<Shape>(args, memory, ring, tile,
                                  Shape::producer_warps == 1 || operand == 0, is_own);
        if (tgi_find_c_source<Shape>(args, tile) == TGI_C_STAGED)
            tgi_bring_c<Shape>(args, memory, ring, tile, Shape::producer_warps == 1 || operand == 0,
                               is_own);
    }
    if (feed::get_args(given).is_next_early)
        tgi_start_next();
    /* Without these waits the block could end while blocks of the cluster signal its barriers. */
    const int stages = Shape::is_fitted ? feed::get_args(given).work.stage_count : Shape::stages;
    for (int i = 0; column.count > 1 && i < stages; i++, ring.advance())
        tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
}

/* Sums the products of a tile by the feed of its shape. */
template <class Shape>
static __device__ __forceinline__ void
tgi_sum_tile(const tgi_wgmma_args &args, char *shared, int rank, int group,
             const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
             typename Shape::feed::repair &repair, typename Shape::deferred &deferred,
             float (&sum)[Shape::blocks][Shape::cols / 2])
{
    const tgi_wgmma_memory<Shape> memory(shared);
    const tgi_consumer<Shape> at = {args, memory, rank, group};
    Shape::feed::template sum<Shape>(at, tile, ring, repair, deferred, sum);
}

/* Sums the products of a tile by the shape that the problem has. There are none in pass 0. */
template <class Shape, class Second>
static __device__ __forceinline__ void
tgi_sum_pass(int pass, const tgi_wgmma_args &args, char *shared, int rank, int group,
             const tgi_cluster_tile &tile, tgi_ring<Shape::stages> &ring,
             typename Shape::feed::repair &repair, typename Shape::deferred &deferred,
             float (&sum)[Shape::blocks][Shape::cols / 2])
{
    if (Shape::has_passes && pass == 0)
        return;
    if (!tgi_is_one_shape<Shape, Second> && args.is_second)
        tgi_sum_tile<Second>(args, shared, rank, group, tile, ring, repair, deferred, sum);
    else
        tgi_sum_tile<Shape>(args, shared, rank, group, tile, ring, repair, deferred, sum);
}

/* Does what consumers need once, and waits for the kernel before. */
template <class Shape>
static __device__ __forceinline__ void
tgi_begin_consumer(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory, int group)
{
    if (Shape::may_stage_bias && args.c.bias == TG_BIAS_ROW)
        tgi_write_ones(memory, group);
    tgi_read_store_arguments<Shape>(args);
    tgi_wait_for_stream();
}

/* Brings the sums of a tile to D, or to the workspace or the blocks of the cluster that add them.
 * Returns 1 if the store is deferred. */
template <class Shape>
static __device__ __forceinline__ int
tgi_bring_to_d(const tgi_consumer<Shape> &at, tgi_cluster_tile tile, int may_defer,
               typename Shape::feed::repair &repair, typename Shape::deferred &deferred,
               float (&sum)[Shape::cols / 2])
{
    typedef typename Shape::feed feed;
    const tgi_wgmma_args &args = at.args;
    const int group = at.group;
    /* They arrive while the blocks of the cluster exchange sums. */
    tgi_fragment_vectors vectors = tgi_request_vectors<Shape>(args, tile, group);
    const tgi_cluster_tile whole = tile;
    tile.row += group * Shape::find_group_rows(args);
    feed::finish(args, tile, repair, sum);
    if (args.work.cluster_splits > 1)
        tgi_exchange_partial_tiles<Shape>(at, tile.split, sum);
    const uint32_t staged = at.memory.boxes + group * TGI_FRAGMENT_BYTES;
    if (tile.split_tile >= 0) {
        tgi_write_partial_tiles<Shape::cols>(args, tile.split_tile, tile.split, group,
                                             Shape::group_count, sum);
    } else if (tgi_is_plain_store<Shape>(args)) {
        if (may_defer && args.d.is_tma_stored) {
            deferred.begin(tile, sum, tgi_find_form(args.gemm, args.d));
            return 1;
        }
        if constexpr (Shape::is_wide)
            tgi_store_wide_boxes(args, tile, sum, staged, group + 1, repair);
        else if (args.d.is_tma_stored)
            tgi_store_narrow_boxes(args, tile, sum, staged, group + 1);
        else
            tgi_store_tile_lines(args, tile, sum, staged);
    } else {
        tgi_store_partial_tiles<Shape>(args, whole, group, at.memory.stages, staged, vectors, sum,
                                       repair);
    }
    return 0;
}

template <class Shape, class Second>
static __device__ __forceinline__ void tgi_consume(const typename Shape::feed::arguments &given,
                                                   char *shared, int rank, int group)
{
    typedef typename Shape::feed feed;
    const tgi_wgmma_memory<Shape> memory(shared);
    const typename Shape::uniform_schedule schedule(feed::get_args(given).work, rank);
    tgi_ring<Shape::stages> ring(feed::get_args(given).work.stage_count);
    typename Shape::deferred deferred;
    tgi_begin_consumer(feed::get_args(given), memory, group);
    for (int i = schedule.begin(); i < schedule.end(); i = schedule.next(i)) {
        const tgi_wgmma_args &args = feed::get_args(schedule.problem(given, i));
        const tgi_consumer<Shape> at = {args, memory, rank, group};
        tgi_cluster_tile tile = schedule.tile(i);
        const int has_epilogue = !feed::is_sliced && !args.gemm.is_sum_alone &&
                                 args.work.cluster_splits == 1 && tile.split_tile < 0;
        tgi_brought_c<Shape> c(args, tile);
        const int has_terms = has_epilogue && !args.is_activation_alone;
        /* Code for terms lies in one place, since a plain tile waits for each code it jumps to. */
        if (has_terms || c.source != TGI_C_LATE) {
            c.read(at, tile);
            if (has_terms)
                tgi_find_terms(at, tile).copy(c.source != TGI_C_LATE);
        }
        float sum[Shape::blocks][Shape::cols / 2] = {};
        typename feed::repair repair(args);
        /* Opaque, or the compiler would give a pass 0 code of its own. */
        int pass =
            tgi_make_opaque(!Shape::has_first_pass || !has_epilogue || !args.is_activation_alone ||
                                    c.source != TGI_C_LATE || i != schedule.begin()
                                ? 1
                                : 0);
        int is_deferred = 0;
#pragma unroll 1
        do {
            if constexpr (Shape::has_passes) {
                /* Sums that an activation has touched would not be summed to at full rate. */
                float fresh[Shape::blocks][Shape::cols / 2] = {};
                tgi_sum_pass<Shape, Second>(pass, args, shared, rank, group, tile, ring, repair,
                                            deferred, fresh);
                tgi_pin_sums(fresh[0]);
                tgi_copy_opaque(fresh[0], sum[0]);
            } else {
                tgi_sum_pass<Shape, Second>(pass, args, shared, rank, group, tile, ring, repair,
                                            deferred, sum);
                tgi_pin_sums(sum[0]);
            }
            if (feed::is_sliced) /* sums of slices leave no registers for the tile */
                tile = schedule.tile(tgi_make_opaque(i));
            if (has_epilogue || c.source != TGI_C_LATE)
                tgi_finish_tile<Shape>(at, tile, has_epilogue, c, ring, sum[0]);
            /* Few steps would not hide the store. */
            const int may_defer = Shape::may_defer && schedule.next(i) < schedule.end() &&
                                  tgi_is_same_problem(schedule, given, i, schedule.next(i)) &&
                                  args.work.step_count >= deferred.box_count;
            if (!Shape::has_passes || pass)
                is_deferred = tgi_bring_to_d<Shape>(at, tile, may_defer, repair, deferred, sum[0]);
        } while (Shape::has_passes && pass++ == 0);
        if (is_deferred)
            continue;
        deferred = {}; /* its old value would occupy registers up to here */
    }
    /* Without this wait the block could end while TMA still reads its shared memory. */
    if (threadIdx.x % TGI_WARPGROUP == 0)
        tgi_tma_store_wait<0>();
}

template <class Shape>
static __device__ __forceinline__ void
tgi_produce_in_cluster(const typename Shape::feed::arguments &given, char *shared, int rank,
                       int warp)
{
    /* Opaque, or producers of family few would find the address again in each step. */
    const uint32_t address =
        Shape::is_fitted ? tgi_make_opaque(tgi_shared_address(shared)) : tgi_shared_address(shared);
    const tgi_wgmma_memory<Shape> memory(address);
    /* Code for blocks that are alone would double the producers of family few. */
    if (Shape::is_fitted ||
        (Shape::cluster_rows > 1 && Shape::feed::get_args(given).work.cluster_rows > 1))
        tgi_produce<Shape::cluster_rows, Shape>(given, memory, rank, warp);
    else
        tgi_produce<1, Shape>(given, memory, rank, warp);
}

template <class Shape, class Second>
static __device__ __forceinline__ void
tgi_wgmma_multiply(const typename Shape::feed::arguments &given, char *shared)
{
    typedef typename Shape::feed feed;
    static_assert(Second::stages == Shape::stages && Second::stage_bytes == Shape::stage_bytes &&
                      Second::shared_bytes == Shape::shared_bytes,
                  "both shapes have the same memory");
    static_assert(Second::producer_warps == Shape::producer_warps &&
                      Second::has_lone_producer == Shape::has_lone_producer,
                  "both shapes have the same producers");
    const tgi_wgmma_args &args = feed::get_args(given);
    const tgi_wgmma_memory<Shape> memory(shared);
    const int group = tgi_make_uniform(static_cast<int>(threadIdx.x) / TGI_WARPGROUP);
    const int rank = tgi_make_uniform(tgi_cluster_rank());
    tgi_setup<Shape, Second>(given, memory);
    if (group == 0) {
        if (Shape::group_count > 1)
            tgi_lower_registers<Shape::producer_registers>();
        const int warp = tgi_make_uniform(static_cast<int>(threadIdx.x) / 32);
        if (feed::relayout_warps > 0 && warp >= Shape::producer_warps) {
            feed::relayout(given, memory, rank, warp - Shape::producer_warps);
            return;
        }
        if (warp >= Shape::producer_warps || (Shape::has_lone_producer && !tgi_elect()))
            return;
        if (Shape::across_a != Second::across_a && args.is_second)
            tgi_produce_in_cluster<Second>(given, shared, rank, warp);
        else
            tgi_produce_in_cluster<Shape>(given, shared, rank, warp);
    } else {
        if (Shape::group_count > 1)
            tgi_raise_registers<Shape::consumer_registers>();
        tgi_consume<Shape, Second>(given, shared, rank, group - 1);
    }
}

#endif
