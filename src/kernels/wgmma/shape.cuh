/*
 * What a kernel of family wgmma is made of: its tile and types, its shared memory, and the ring of
 * stages that produce() and consume() both go round.
 */
#ifndef TGI_WGMMA_SHAPE_CUH
#define TGI_WGMMA_SHAPE_CUH

#include "kernels/ptx/shared_memory.cuh"
#include "kernels/slices/slice_args.h"
#include "kernels/tile_shape.h"
#include "tilegemm.h"

#define TGI_BLOCK_LINES 64 /* rows of one instruction */
#define TGI_WARPGROUP 128
#define TGI_MOVER_WARPS 3 /* with the producer's a warpgroup */

/* AType FP32: as TF32. AcrossA, AcrossB: 1 where the operand's lines lie across k. Slices: room for
 * so many of each operand, or 0 where A and B are of the types themselves. IsHeld: 1 where A's
 * are cut in registers. IsLoose: 1 where A's lines begin anywhere (move.cuh). */
template <tg_type AType, tg_type BType, int Rows, int Cols, int ClusterRows, int Stages,
          int Threads, int AcrossA, int AcrossB, int Slices = 0, int IsHeld = 0, int IsLoose = 0>
struct tgi_wgmma_shape {
    static constexpr tg_type a_type = AType, b_type = BType;
    static constexpr int rows = Rows, cols = Cols;
    static constexpr int stages = TGI_WGMMA_STAGES(Stages, Cols, AcrossB);
    static constexpr int cluster_rows = ClusterRows; /* 1, or 2: one or two */
    static constexpr int across_a = AcrossA, across_b = AcrossB;
    static constexpr int group_count = Threads / TGI_WARPGROUP - 1; /* that multiply */
    static constexpr int group_rows = Rows / group_count;
    static constexpr int blocks = group_rows / TGI_BLOCK_LINES; /* instructions one below another */
    static constexpr int b_lines = TGI_WGMMA_LINES(Cols, AcrossB);
    static constexpr int slices = Slices, is_held = IsHeld, is_loose = IsLoose;
    /* The instruction takes words across k from registers alone. */
    static constexpr int is_turned = AType == TG_TYPE_FP32 && AcrossA;
    static constexpr int line_bytes = Slices ? Slices * TGI_CHUNK_BYTES : TGI_WGMMA_STEP_BYTES;
    static constexpr int a_bytes = Rows * (IsHeld ? TGI_WGMMA_STEP_BYTES : line_bytes);
    static constexpr int b_bytes = b_lines * line_bytes;
    static constexpr int stage_bytes = a_bytes + b_bytes;
    static constexpr int elem_bytes = AType == TG_TYPE_FP32                            ? 4
                                      : AType == TG_TYPE_BF16 || AType == TG_TYPE_FP16 ? 2
                                                                                       : 1;
    /* The operands are FP32, so that D is. */
    static constexpr int is_wide = Slices > 0 || elem_bytes == 4;
    /* The instruction keeps sums of FP8 products to 13 bits, and rounds all sums toward zero: those
     * of each two steps of FP8, or of each of slices, are added in FP32. */
    static constexpr int promoted_steps = elem_bytes == 1 ? 2 : Slices > 0 ? 1 : 0;
    static constexpr int is_promoted = promoted_steps > 0;
    /* Products are added to the tile's sums, while those of the step before may be under way. */
    static constexpr int is_in_place = !is_promoted && !is_turned;
    /* Their sums may be stored as 16-bit numbers while the next tile is multiplied. Of a single
     * part it would hide nothing, and its barriers would be in the loop of all steps; movers have
     * the registers that it needs. */
    static constexpr int may_keep = is_in_place && !is_wide && !IsLoose &&
                                    Cols > TGI_WGMMA_PART_COLS(Cols);
    /* One lane produces: it takes the least time for a step. Where steps are long the time from a
     * stage that is given back to its copies counts, which is less where the warp, whose registers
     * hold what the copy engine needs, waits together. */
    static constexpr int has_lone_producer = Cols <= 160;
    /* Of a thread of the producer's warpgroup, and of those that multiply, where two do: of the 168
     * that the launch gives each. */
    static constexpr int producer_registers = IsLoose ? 104 : 40;
    static constexpr int consumer_registers = IsLoose ? 200 : 232;
    static_assert(producer_registers + 2 * consumer_registers == 3 * 168,
                  "one that asks for more than there are waits for ever");
    /* Columns of one instruction: promoted sums need registers for their parts. */
    static constexpr int part_cols = is_promoted && Cols > 192 ? 128 : Cols;
    static constexpr int step_elems = TGI_WGMMA_STEP_BYTES / elem_bytes;
    /* Of an operand across k, a box: step_elems lines of it. */
    static constexpr int block_bytes = step_elems * TGI_WGMMA_STEP_BYTES;
    static constexpr int shared_bytes =
        TGI_WGMMA_SHARED_BYTES(Rows, a_bytes / Rows, Cols, line_bytes, Stages, Threads, AcrossB) +
        (IsLoose ? TGI_LOOSE_SHARED_BYTES : 0);
    static_assert(!IsLoose || (elem_bytes == 2 && group_count == 2),
                  "units are of eight elements, and three warps are free to move them");
    static_assert(shared_bytes <= 227 << 10, "a multiprocessor has no more for a block");
};

/* Shared memory: stages, then lines of A that are yet to be moved, then each warpgroup's part of D,
 * then the barriers. */
template <class Shape> struct tgi_wgmma_memory {
    uint32_t stages, loose, parts, full, empty, sent, loose_full, loose_empty;

    static constexpr int loose_slots = Shape::is_loose ? TGI_LOOSE_SLOTS : 0;

    __device__ explicit tgi_wgmma_memory(char *shared)
    {
        stages = (tgi_shared_address(shared) + 1023) & ~1023u;
        loose = stages + Shape::stages * Shape::stage_bytes;
        parts = loose + loose_slots * TGI_LOOSE_SLOT_BYTES;
        full = parts + Shape::group_count * TGI_WGMMA_PART_BYTES;
        empty = full + Shape::stages * 8;
        sent = empty + Shape::stages * 8;
        loose_full = sent + 8;
        loose_empty = loose_full + loose_slots * 8;
        static_assert(1024 + Shape::stages * (Shape::stage_bytes + 16) +
                              loose_slots * (TGI_LOOSE_SLOT_BYTES + 16) +
                              Shape::group_count * TGI_WGMMA_PART_BYTES + 8 ==
                          Shape::shared_bytes,
                      "the host counts what lies here, and what aligns it");
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

#endif
