/*
 * Moves lines that begin at any byte to the places where matrix instructions read them. TMA reads
 * only from multiples of 16 bytes. Every eighth line has the same offset from such a unit: these
 * lines are of one kind, and a TMA box copies them to a slot, each from the unit in which it
 * begins. A slot has 64 lines of 144 bytes, those of one kind together. Relayout warps shift 128
 * bytes of each into a box of the stage.
 */
#ifndef TGI_UNALIGNED_RELAYOUT_CUH
#define TGI_UNALIGNED_RELAYOUT_CUH

#include "kernels/copy/shifted_unit.cuh"
#include "kernels/copy/swizzle.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/copy/unaligned_lines.h"

#define TGI_UNALIGNED_KIND_BYTES (TGI_UNALIGNED_SLOT_BYTES / TGI_UNALIGNED_KINDS)

/* A lane has two lines of a slot, `line` and the one 32 away, which is of the same kind.
 * Neighbouring lanes have lines of different kinds and of different places in their boxes, so that
 * neither their reads nor their writes have bank conflicts. */
struct tgi_unaligned_line {
    int line, shift; /* line 0..63; bytes from the unit that it begins in to the line */

    __device__ __forceinline__ explicit tgi_unaligned_line(const tgi_unaligned_lines &lines)
    {
        const int lane = tgi_thread() % 32, kind = lane % TGI_UNALIGNED_KINDS;
        line = (lane / TGI_UNALIGNED_KINDS + kind) % 8 * TGI_UNALIGNED_KINDS + kind;
        shift = static_cast<int>(lines.shifts >> (4 * kind) & 15);
    }
};

/* Moves a slot's 64 lines to a box of the stage, by one warp. */
static __device__ __forceinline__ void tgi_move_lines(const tgi_unaligned_line &own, uint32_t slot,
                                                      uint32_t box)
{
    /* It is opaque, because addresses derived from it would otherwise fill registers. */
    const int line = tgi_make_opaque(own.line);
    /* All units are read before the first is written, so that the lane waits for shared memory
     * once. */
    uint4 unit[2][9];
#pragma unroll
    for (int h = 0; h < 2; h++) {
        const int at = line ^ (32 * h);
        const uint32_t source = slot + at % TGI_UNALIGNED_KINDS * TGI_UNALIGNED_KIND_BYTES +
                                at / TGI_UNALIGNED_KINDS * TGI_UNALIGNED_LINE_BYTES;
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

#endif
