/*
 * Declares the parts of a kernel of family wgmma: its tile, types and feed, and its shared memory.
 */
#ifndef TGI_KERNEL_SHAPE_CUH
#define TGI_KERNEL_SHAPE_CUH

#include "kernels/copy/stage_ring.cuh"
#include "kernels/epilogue/deferred_store.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/wgmma/wgmma_args.h"
#include "tilegemm.h"

#define TGI_BLOCK_LINES 64 /* rows of one instruction */
#define TGI_WARPGROUP 128
#define TGI_BIAS_BOX_ELEMS 64 /* biases of a TMA box of a bias that is added as a product */
#define TGI_BIAS_BOX_BYTES 1024

/* FP32 as AType is multiplied as TF32. AcrossA and AcrossB are 1 if the operand's lines lie across
 * k. Feed says how stages are filled and multiplied (feed_tma.cuh). */
template <tg_type AType, tg_type BType, int Rows, int Cols, int ClusterRows, int Stages,
          int Threads, int AcrossA, int AcrossB, class Feed>
struct tgi_wgmma_shape {
    typedef Feed feed;
    /* The schedule of the producer and of relayout warps, and that of warpgroups that multiply. */
    typedef tgi_cluster_schedule<Feed::is_fitted ? 0 : Rows, Cols, 0> schedule;
    typedef tgi_cluster_schedule<Feed::is_fitted ? 0 : Rows, Cols, 1> uniform_schedule;
    static constexpr tg_type a_type = AType, b_type = BType;
    static constexpr int rows = Rows, cols = Cols;
    /* 1: a stage holds the lines that the problem's tiles have, and the launch says how many stages
     * there are; 0: all lines of the kernel's tile. */
    static constexpr int is_fitted = Feed::is_fitted;
    static constexpr int stages = is_fitted ? 0 : TGI_WGMMA_STAGES(Stages, Cols, AcrossB);
    static constexpr int cluster_rows = ClusterRows; /* most tile rows of a cluster: 1, 2 or 4 */
    static constexpr int across_a = AcrossA, across_b = AcrossB;
    static constexpr int group_count = Threads / TGI_WARPGROUP - 1; /* warpgroups that multiply */
    static constexpr int group_rows = Rows / group_count;
    static constexpr int blocks = group_rows / TGI_BLOCK_LINES; /* instructions one below another */
    static constexpr int b_lines = TGI_WGMMA_LINES(Cols, AcrossB);
    static constexpr int a_bytes = Rows * Feed::a_line_bytes;
    static constexpr int b_bytes = b_lines * Feed::b_line_bytes;
    /* Bytes of a stage, at least. */
    static constexpr int stage_bytes = is_fitted ? TGI_FEW_STAGE_LEAST(Rows) : a_bytes + b_bytes;
    static constexpr int elem_bytes = AType == TG_TYPE_FP32                            ? 4
                                      : AType == TG_TYPE_BF16 || AType == TG_TYPE_FP16 ? 2
                                                                                       : 1;
    static constexpr int is_fp8 = AType == TG_TYPE_FP8_E4M3 || AType == TG_TYPE_FP8_E5M2;
    /* 1: the operands are FP32, and so is D. */
    static constexpr int is_wide = Feed::is_sliced || elem_bytes == 4;
    /* The number of steps whose products the instruction sums before they are added in FP32; 0: all
     * steps. The instruction keeps sums of FP8 products to 13 bits, and rounds all sums toward
     * zero. */
    static constexpr int promoted_steps = is_fp8 ? 2 : Feed::is_sliced ? 1 : 0;
    static constexpr int is_promoted = promoted_steps > 0;
    /* 1: sums may be stored as 16-bit numbers while the next tile is multiplied. A tile that is
     * stored at once gains nothing from it, and would have its barriers in the loop of all
     * steps. Relayout warps hold the registers that it needs. */
    static constexpr int may_defer = !is_fitted && !is_promoted && !Feed::has_a_in_registers &&
                                     !is_wide && Feed::relayout_warps == 0 &&
                                     Cols > TGI_FRAGMENT_COLS(Cols);
    typedef tgi_deferred_store<Cols, may_defer> deferred;
    /* The sums that a thread has of each part which blocks of a cluster send each other. */
    static constexpr int sent_sums = TGI_SENT_COLS(Rows, Cols, Feed::is_sliced) / 2;
    /* 1: a bias may be added as a product (mainloop.cuh). */
    static constexpr int may_stage_bias =
        !is_wide && Feed::relayout_warps == 0 && !Feed::has_a_in_registers;
    /* 1: a tile is summed and brought to D in a loop of passes, whose last one has the products.
     * The compiler then keeps the addresses of stages of small tiles in uniform registers, where
     * they would otherwise be moved before each instruction. */
    static constexpr int has_passes =
        may_stage_bias && !is_promoted && !is_fitted && Cols <= (group_count == 1 ? 64 : 16);
    /* 1: before the first tile's products the activation is applied to zeros, so that its code has
     * been read from memory when sums are there. Meanwhile the first stage is waited for, which
     * takes longer than the activation of so few sums. */
    static constexpr int has_first_pass = has_passes && Cols >= 32;
    /* 1: C of 16 bits may come through the stages (staged_c.cuh). */
    static constexpr int may_stage_c = !is_wide && Feed::relayout_warps == 0;
    /* 1: threads read other rows of C of 16 bits before the products of their tile. */
    static constexpr int may_read_c_early = may_stage_c && Cols <= TGI_EARLY_C_COLS;
    /* 1: a single lane of the producer warp works, which takes the least time for a step. If steps
     * are long, the time from the release of a stage to its copies matters more. It is shorter if
     * the whole warp waits, because its uniform registers hold what TMA needs. */
    static constexpr int has_lone_producer = Cols <= 160;
    /* The number of producer warps. If there are two, each copies one operand, because one warp
     * takes longer to request both than a small tile's products of 16 bits take. */
    static constexpr int producer_warps =
        is_fitted ? 4
        : elem_bytes == 2 && !Feed::is_sliced && Feed::relayout_warps == 0 && Rows * Cols <= 64 * 64
            ? 2
            : 1;
    /* The producer warps of an operand, which fill stages in turn. */
    static constexpr int producer_turns = producer_warps > 2 ? producer_warps / 2 : 1;
    /* The registers of a thread of the producer's warpgroup, and of the warpgroups that multiply if
     * there are two. The launch gives each thread 168. */
    static constexpr int producer_registers = Feed::relayout_warps > 0 ? 104 : 40;
    static constexpr int consumer_registers = Feed::relayout_warps > 0 ? 200 : 232;
    static constexpr int c_words = Feed::relayout_warps > 0 ? 16 : 64; /* C words read at once */
    static_assert(producer_registers + 2 * consumer_registers == 3 * 168,
                  "a warpgroup that asks for more than there are waits for ever");
    /* The columns of one instruction. Promoted sums need more registers, for the sums of an
     * instruction. */
    static constexpr int mma_cols = is_promoted && Cols > 192 ? 128 : Cols;
    static constexpr int step_elems = TGI_WGMMA_STEP_BYTES / elem_bytes;
    /* Elements of A in a step. Rows that are sliced in registers are FP32 in shared memory. */
    static constexpr int a_step_elems = Feed::has_a_in_registers ? TGI_CHUNK_ELEMS : step_elems;
    /* Bytes of a TMA box of an operand across k: step_elems lines. */
    static constexpr int block_bytes = step_elems * TGI_WGMMA_STEP_BYTES;
    static constexpr int shared_bytes =
        is_fitted
            ? TGI_FEW_FIXED_BYTES(Rows)
            : TGI_WGMMA_SHARED_BYTES(Rows, Feed::a_line_bytes, Cols, Feed::b_line_bytes, Stages,
                                     Threads, AcrossB, Feed::slot_count, TGI_UNALIGNED_SLOT_BYTES);
    static_assert(Feed::relayout_warps == 0 || (elem_bytes == 2 && group_count == 2),
                  "units are of eight elements, and three warps are free to move them");
    static_assert(blocks == 1, "a warpgroup has 64 rows");
    static_assert(shared_bytes <= TGI_WGMMA_SHARED_MAX, "a multiprocessor has no more for a block");

    /* Returns the rows of D that a tile covers. */
    static __device__ __forceinline__ int find_tile_rows(const tgi_wgmma_args &args)
    {
        return is_fitted ? args.work.tile_rows : Rows;
    }

    /* Returns the rows of D that a warpgroup has. */
    static __device__ __forceinline__ int find_group_rows(const tgi_wgmma_args &args)
    {
        return is_fitted ? args.d_rows : TGI_BLOCK_LINES;
    }

    /* Return the bytes of a line of a TMA box of A and of B. */
    static __device__ __forceinline__ int find_a_line_bytes(const tgi_wgmma_args &args)
    {
        return is_fitted && across_a ? args.a_line_bytes : Feed::a_line_bytes;
    }

    static __device__ __forceinline__ int find_b_line_bytes(const tgi_wgmma_args &args)
    {
        return across_b ? args.b_line_bytes : Feed::b_line_bytes;
    }

    /* Returns the rows of a TMA box of A across k. */
    static __device__ __forceinline__ int find_box_rows(const tgi_wgmma_args &args)
    {
        return is_fitted ? args.d_rows : a_step_elems;
    }
};

/* Addresses in shared memory: what each warpgroup stages of D, then its terms, then the barriers,
 * then stages, then slots of lines that a relayout warp moves. */
template <class Shape> struct tgi_wgmma_memory {
    static constexpr int slot_count = Shape::feed::slot_count;
    static constexpr int barrier_count = Shape::is_fitted ? TGI_FEW_STAGES_MAX : Shape::stages;
    static constexpr int fixed_bytes =
        TGI_WGMMA_FIXED_BYTES(Shape::group_count, barrier_count + slot_count);
    static constexpr int barriers_end = Shape::group_count * (TGI_FRAGMENT_BYTES + TGI_TERM_BYTES) +
                                        2 * 8 * barrier_count + 8 + 2 * 8 * slot_count;
    static_assert(barriers_end <= fixed_bytes, "barriers end before the stages");
    /* The stages of family few depend on the problem, and the launch counts them. */
    static_assert(Shape::shared_bytes ==
                      fixed_bytes + (Shape::is_fitted ? 0
                                                      : Shape::stages * Shape::stage_bytes +
                                                            slot_count * TGI_UNALIGNED_SLOT_BYTES),
                  "the launch asks for as many bytes");

    uint32_t boxes, terms;
    uint32_t full, empty;           /* barriers of each stage */
    uint32_t sent;                  /* barrier of partial tiles from the cluster */
    uint32_t slot_full, slot_empty; /* barriers of each slot */
    uint32_t stages, slots;

    __device__ explicit tgi_wgmma_memory(char *shared)
        : tgi_wgmma_memory(tgi_shared_address(shared))
    {
    }

    __device__ explicit tgi_wgmma_memory(uint32_t first)
    {
        boxes = first;
        terms = boxes + Shape::group_count * TGI_FRAGMENT_BYTES;
        full = terms + Shape::group_count * TGI_TERM_BYTES;
        empty = full + barrier_count * 8;
        sent = empty + barrier_count * 8;
        slot_full = sent + 8;
        slot_empty = slot_full + slot_count * 8;
        stages = first + fixed_bytes;
        slots = stages + Shape::stages * Shape::stage_bytes;
    }
};

#endif
