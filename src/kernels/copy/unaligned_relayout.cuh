/*
 * Lines that begin at any byte, moved to where matrix instructions take them. TMA reads from
 * multiples of 16 bytes alone. Every eighth line begins alike between two such units, so a box has
 * those, and brings each from the unit that it begins in to a slot: 64 lines of 128 bytes and a
 * unit more, those of one kind together. Relayout warps shift them into a box of the stage.
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

/* A lane's two lines of a slot: `line` and that 32 away, which begin alike. Neighbouring lanes have
 * lines of different kinds and of different places in their boxes, so that what they read and what
 * they write lies in different banks. */
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
    /* Opaque, or addresses derived from it would fill registers. */
    const int line = tgi_make_opaque(own.line);
    /* All units are read before the first is written: each by itself would be waited for. */
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
