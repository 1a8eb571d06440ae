/*
 * This feed has lines of A that begin at any byte. TMA copies them to a ring of slots, 64 lines
 * each. Three relayout warps beside the producer move them to the stage
 * (copy/unaligned_relayout.cuh), so that no pass repacks A. A slot always belongs to the same warp.
 */
#ifndef TGI_FEED_UNALIGNED_CUH
#define TGI_FEED_UNALIGNED_CUH

#include "kernels/copy/unaligned_relayout.cuh"
#include "kernels/wgmma/feed_tma.cuh"

/* Moves one slot to the stage, as the tile's lines from `line` on. The slot is waited for before
 * the stage. When the slot was requested, the stage had been released at most once less often than
 * is waited for here. A relayout warp that has no slots in some steps cannot know this otherwise,
 * since a barrier's parity would not tell. */
template <class Shape>
static __device__ __forceinline__ void
tgi_relayout_slot(const tgi_wgmma_memory<Shape> &memory, const tgi_unaligned_line &own, int line,
                  const tgi_ring<Shape::stages> &ring, const tgi_ring<TGI_UNALIGNED_SLOTS> &slots)
{
    tgi_barrier_wait(memory.slot_full + slots.stage * 8, slots.parity);
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    tgi_move_lines(own, memory.slots + slots.stage * TGI_UNALIGNED_SLOT_BYTES,
                   memory.stages + ring.stage * Shape::stage_bytes + line * TGI_WGMMA_STEP_BYTES);
    tgi_fence_async_proxy(); /* makes the lines visible to matrix instructions */
    __syncwarp();            /* all lanes have written their lines and passed the fence */
    if (tgi_thread() % 32 == 0) {
        tgi_barrier_arrive(memory.slot_empty + slots.stage * 8);
        tgi_barrier_arrive(memory.full + ring.stage * 8);
    }
}

struct tgi_feed_unaligned : tgi_feed_tma {
    typedef tgi_unaligned_args arguments;
    typedef tgi_ring<TGI_UNALIGNED_SLOTS> slots;
    static constexpr int slot_count = TGI_UNALIGNED_SLOTS, relayout_warps = 3;

    static __device__ __forceinline__ const tgi_wgmma_args &get_args(const arguments &given)
    {
        return given.wgmma;
    }

    template <class Shape>
    static __device__ __forceinline__ void init_slots(const tgi_wgmma_memory<Shape> &memory)
    {
        for (int i = 0; i < slot_count; i++) {
            tgi_barrier_init(memory.slot_full + i * 8, 1);
            tgi_barrier_init(memory.slot_empty + i * 8, 1);
        }
    }

    static __device__ __forceinline__ void prefetch_a(const arguments &given)
    {
        for (int i = 0; i < TGI_UNALIGNED_KINDS; i++)
            tgi_prefetch_map(&given.a_lines.map[i]);
    }

    /* Waits until slots are empty and fetches the tile's rows of a step. Slots of rows wholly
     * outside A are not fetched, and what they hold reaches only sums that are not stored. */
    template <class Shape>
    static __device__ __forceinline__ void fetch(const arguments &given,
                                                 const tgi_wgmma_memory<Shape> &memory, slots &ring,
                                                 const tgi_cluster_tile &tile, int step)
    {
        const tgi_wgmma_args &args = given.wgmma;
        const int k = step * Shape::step_elems, batch = args.a.has_batch ? tile.batch : 0;
#pragma unroll 1
        for (int row = tile.row; row < tile.row + Shape::rows;
             row += TGI_UNALIGNED_LINES, ring.advance()) {
            const uint32_t full = memory.slot_full + ring.stage * 8;
            const uint32_t slot = memory.slots + ring.stage * TGI_UNALIGNED_SLOT_BYTES;
            tgi_barrier_wait(memory.slot_empty + ring.stage * 8, ring.parity ^ 1);
            if (!Shape::has_lone_producer && !tgi_elect())
                continue;
            if (row >= args.a.line_count) {
                tgi_barrier_arrive(full);
                continue;
            }
            tgi_barrier_expect(full, TGI_UNALIGNED_SLOT_BYTES);
            const int x = Shape::across_a ? row : k;
            const int y = (Shape::across_a ? k : row) / TGI_UNALIGNED_KINDS;
#pragma unroll
            for (int i = 0; i < TGI_UNALIGNED_KINDS; i++)
                tgi_tma_load(slot + i * TGI_UNALIGNED_KIND_BYTES, &given.a_lines.map[i], full, x, y,
                             batch);
        }
    }

    template <class Shape>
    static __device__ __forceinline__ int count_bytes(const arguments &given, tgi_tma_boxes,
                                                      tgi_tma_boxes b_boxes)
    {
        return b_boxes.count * b_boxes.lines(given.wgmma.b) * Shape::find_b_line_bytes(given.wgmma);
    }

    template <class Shape>
    static __device__ __forceinline__ void
    load(const arguments &given, uint32_t stage, uint32_t full, const tgi_cluster_tile &tile,
         int step, tgi_tma_boxes, tgi_tma_boxes b_boxes, tgi_tma_sharers column)
    {
        tgi_load_tile<Shape::across_b, Shape::b_lines, Shape::step_elems>(
            given.wgmma.b, b_boxes, stage + Shape::a_bytes, full, tile.col, step, tile.batch,
            column);
    }

    /* Moves the slots that belong to relayout warp `warp`, step after step of all tiles. */
    template <class Shape>
    static __device__ __forceinline__ void
    relayout(const arguments &given, const tgi_wgmma_memory<Shape> &memory, int rank, int warp)
    {
        const typename Shape::schedule schedule(given.wgmma.work, rank);
        tgi_ring<Shape::stages> ring;
        slots at;
        tgi_unaligned_line own(schedule.problem(given, 0).a_lines);
        int last = 0;
        for (int i = schedule.begin(); i < schedule.end(); last = i, i = schedule.next(i)) {
            if (!tgi_is_same_problem(schedule, given, last, i))
                own = tgi_unaligned_line(schedule.problem(given, i).a_lines);
            const tgi_cluster_tile tile = schedule.tile(i);
#pragma unroll 1
            for (int step = tile.step; step < tile.step_end; step++, ring.advance())
#pragma unroll 1
                for (int line = 0; line < Shape::rows; line += TGI_UNALIGNED_LINES, at.advance())
                    if (at.stage % relayout_warps == warp)
                        tgi_relayout_slot(memory, own, line, ring, at);
        }
    }
};

#endif
