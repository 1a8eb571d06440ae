/*
 * Lines of A that begin anywhere. The copy engine reads from multiples of 16 bytes alone, so a box
 * has every eighth line, which begin alike between two such units, and brings each from the unit
 * that it begins in. Three warps beside the producer, the movers, bring the lines to where they
 * belong in the stage: no pass writes A anew. What they move lies in a ring of its own, 64 lines of
 * 128 bytes, and what the shift needs, in each of its slots; a slot is always the same mover's.
 */
#ifndef TGI_WGMMA_MOVE_CUH
#define TGI_WGMMA_MOVE_CUH

#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/units.cuh"
#include "kernels/wgmma/part.cuh"
#include "kernels/wgmma/place.cuh"
#include "kernels/wgmma/shape.cuh"

#define TGI_LOOSE_KIND_BYTES (TGI_LOOSE_SLOT_BYTES / TGI_LOOSE_KINDS)

typedef tgi_ring<TGI_LOOSE_SLOTS> tgi_loose_ring;

/* The producer's side of a step: waits until slots are empty and fetches the tile's rows. Those
 * wholly outside A are not fetched; what is moved for them reaches sums that are not stored. */
template <class Shape>
static __device__ __forceinline__ void
tgi_fetch_loose(const tgi_wgmma_args &args, const tgi_wgmma_loose &loose,
                const tgi_wgmma_memory<Shape> &memory, tgi_loose_ring &ring,
                const tgi_wgmma_tile &tile, int step)
{
    const int k = step * Shape::step_elems, batch = args.a.has_batch ? tile.batch : 0;
#pragma unroll 1
    for (int row = tile.row; row < tile.row + Shape::rows; row += TGI_LOOSE_LINES, ring.advance()) {
        const uint32_t full = memory.loose_full + ring.stage * 8;
        const uint32_t slot = memory.loose + ring.stage * TGI_LOOSE_SLOT_BYTES;
        tgi_barrier_wait(memory.loose_empty + ring.stage * 8, ring.parity ^ 1);
        if (!Shape::has_lone_producer && !tgi_elect())
            continue;
        if (row >= args.a.line_count) {
            tgi_barrier_arrive(full);
            continue;
        }
        tgi_barrier_expect(full, TGI_LOOSE_SLOT_BYTES);
        const int x = Shape::across_a ? row : k, y = (Shape::across_a ? k : row) / TGI_LOOSE_KINDS;
#pragma unroll
        for (int i = 0; i < TGI_LOOSE_KINDS; i++)
            tgi_tma_load(slot + i * TGI_LOOSE_KIND_BYTES, &loose.map[i], full, x, y, batch);
    }
}

/* A lane's two lines of a slot: this one and that 32 away, which begin alike. Lanes that are
 * neighbours have lines of different kinds and of different places in their boxes, so that what
 * they read and what they write lies in different banks. */
struct tgi_loose_line {
    int line, shift; /* of the 64; bytes from the unit that it begins in */

    __device__ __forceinline__ explicit tgi_loose_line(const tgi_wgmma_loose &loose)
    {
        const int lane = tgi_thread() % 32, kind = lane % TGI_LOOSE_KINDS;
        line = (lane / TGI_LOOSE_KINDS + kind) % 8 * TGI_LOOSE_KINDS + kind;
        shift = static_cast<int>(loose.shifts >> (4 * kind) & 15);
    }
};

/* Moves a slot's lines to a box of 64 lines of the stage. */
static __device__ __forceinline__ void tgi_move_lines(const tgi_loose_line &own, uint32_t slot,
                                                      uint32_t box)
{
    const int line = tgi_make_opaque(own.line); /* whose addresses would fill registers */
    /* All are read before the first is written: each by itself would be waited for. */
    uint4 unit[2][9];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int at = line ^ (32 * h);
        const uint32_t source = slot + at % TGI_LOOSE_KINDS * TGI_LOOSE_KIND_BYTES +
                                at / TGI_LOOSE_KINDS * TGI_LOOSE_LINE_BYTES;
#pragma unroll
        for (int i = 0; i < 9; i++)
            unit[h][i] = tgi_read_shared_unit(source + 16 * i);
    }
#pragma unroll
    for (int h = 0; h < 2; h++)
#pragma unroll
        for (int i = 0; i < 8; i++)
            tgi_write_shared_unit(tgi_find_unit(box, line ^ (32 * h), i),
                                  tgi_cut_unit(unit[h][i], unit[h][i + 1], own.shift));
}

/* The mover's side of a slot, which is the tile's lines from `line` on. The slot is waited for
 * first: when it was asked for, the stage had been given back at least as often but once as it is
 * waited for here. A mover that has nothing of some steps cannot know otherwise, and a barrier's
 * parity would not tell. */
template <class Shape>
static __device__ __forceinline__ void
tgi_move_slot(const tgi_wgmma_memory<Shape> &memory, const tgi_loose_line &own, int line,
              const tgi_ring<Shape::stages> &ring, const tgi_loose_ring &slots)
{
    tgi_barrier_wait(memory.loose_full + slots.stage * 8, slots.parity);
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    tgi_move_lines(own, memory.loose + slots.stage * TGI_LOOSE_SLOT_BYTES,
                   memory.stages + ring.stage * Shape::stage_bytes + line * TGI_WGMMA_STEP_BYTES);
    tgi_fence_async_proxy(); /* as which the matrix instructions read */
    __syncwarp();
    if (tgi_thread() % 32 == 0) {
        tgi_barrier_arrive(memory.loose_empty + slots.stage * 8);
        tgi_barrier_arrive(memory.full + ring.stage * 8);
    }
}

#endif
