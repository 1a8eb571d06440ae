/*
 * Brings C of 16 bits through the ring of stages. After the last step of a tile the producer fills
 * further stages with TMA boxes of C, which arrive while the last products are formed and the tile
 * before is stored. The consumers take them as they take steps of k, and release them alike. Each
 * block brings its own C. Blocks that share operands fill equally many stages, those that have
 * splits of one tile need not.
 *
 * A box has 64 rows and 64 columns of C under the 128-byte swizzle; its lines are rows, or columns
 * if c.is_transposed is set. Box (c, g) of a tile has columns 64 c on and the rows of warpgroup g.
 * Boxes wholly outside C are not copied. With C in D's place, a tile of C has been read before its
 * sums are stored; what a box has beside the tile may be stored meanwhile, and is not used.
 */
#ifndef TGI_STAGED_C_CUH
#define TGI_STAGED_C_CUH

#include "kernels/copy/swizzle.cuh"
#include "kernels/epilogue/fragment_epilogue.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/wgmma/mainloop.cuh"

#define TGI_C_BOX_COLS 64

/* The stages of a tile's C. A stage has the boxes of `stage_cols` columns of boxes. */
template <class Shape> struct tgi_c_stages {
    static constexpr int cols = (Shape::cols + TGI_C_BOX_COLS - 1) / TGI_C_BOX_COLS;
    static constexpr int room = Shape::stage_bytes / (TGI_BOX_BYTES * Shape::group_count);
    static constexpr int count = (cols + room - 1) / room;
    static constexpr int stage_cols = (cols + count - 1) / count;
    static_assert(Shape::stage_bytes % 1024 == 0, "the swizzle repeats after 1024 bytes");

    /* Returns the address of box (col, group) in its stage. */
    static __device__ __forceinline__ uint32_t find_box(uint32_t stage, int col, int group)
    {
        return stage + (col % stage_cols * Shape::group_count + group) * TGI_BOX_BYTES;
    }
};

/* Returns where the tile has C from before its epilogue, if it has. The first split of a tile may
 * have C. */
template <class Shape>
static __device__ __forceinline__ int tgi_find_c_source(const tgi_wgmma_args &args,
                                                        const tgi_cluster_tile &tile)
{
    const int is_before = Shape::may_stage_c && args.c.source != TGI_C_LATE &&
                          (args.c.is_summed ? tile.split <= 0 : tile.split_tile < 0);
    return is_before ? args.c.source : TGI_C_LATE;
}

/* Fills the next stage with the boxes of C from column `first` of boxes on. */
template <class Shape>
static __device__ __forceinline__ void
tgi_fill_c_stage(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
                 const tgi_ring<Shape::stages> &ring, const tgi_cluster_tile &tile, int first,
                 int is_bringer)
{
    typedef tgi_c_stages<Shape> stages;
    const uint32_t full = memory.full + ring.stage * 8;
    const uint32_t stage = tgi_find_stage_data(args, memory, ring);
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    if (!Shape::has_lone_producer && !tgi_elect())
        return;
    const int row_room = args.a.line_count - tile.row;
    const int col_room = args.b.line_count - tile.col - first * TGI_C_BOX_COLS;
    const int last_cols = min(stages::cols - first, stages::stage_cols);
    const int group_rows = Shape::find_group_rows(args);
    const int rows = row_room > group_rows ? Shape::group_count : row_room > 0;
    const int cols = min(max((col_room + TGI_C_BOX_COLS - 1) / TGI_C_BOX_COLS, 0), last_cols);
    const int count = is_bringer ? rows * cols : 0;
    tgi_barrier_expect(full, count * args.c.box_lines * TGI_SWIZZLE_BYTES);
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        const int col = rows > 1 ? i / 2 : i, group = rows > 1 ? i % 2 : 0;
        const int x = tile.col + (first + col) * TGI_C_BOX_COLS;
        const int y = tile.row + group * group_rows;
        tgi_tma_load(stages::find_box(stage, col, group), &args.c_map, full,
                     args.c.is_transposed ? y : x, args.c.is_transposed ? x : y, tile.batch);
    }
}

/* Fills the stages of a tile's C. One of two producer warps is the bringer; the other one only
 * arrives. is_own is 1 if the warp fills the next stage. */
template <class Shape>
static __device__ __forceinline__ void
tgi_bring_c(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
            tgi_ring<Shape::stages> &ring, const tgi_cluster_tile &tile, int is_bringer,
            int &is_own)
{
    if constexpr (Shape::may_stage_c) {
        typedef tgi_c_stages<Shape> stages;
        static_assert(Shape::group_count <= 2, "boxes are counted by warpgroups");
#pragma unroll 1
        for (int first = 0; first < stages::cols; first += stages::stage_cols, ring.advance()) {
            if (is_own)
                tgi_fill_c_stage<Shape>(args, memory, ring, tile, first, is_bringer);
            is_own ^= Shape::producer_turns > 1;
        }
    }
}

/* Fills a stage with the bias of a tile's columns, or of each warpgroup's rows. */
template <class Shape>
static __device__ __forceinline__ void
tgi_fill_bias_stage(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
                    const tgi_ring<Shape::stages> &ring, const tgi_cluster_tile &tile,
                    int is_bringer)
{
    constexpr int most = (Shape::cols + TGI_BIAS_BOX_ELEMS - 1) / TGI_BIAS_BOX_ELEMS;
    const uint32_t full = memory.full + ring.stage * 8;
    const uint32_t stage = tgi_find_stage_data(args, memory, ring);
    const int is_row = args.c.bias == TG_BIAS_ROW;
    const int first = is_row ? tile.row : tile.col;
    const int room = (is_row ? args.a.line_count : args.b.line_count) - first;
    const int step = is_row ? Shape::find_group_rows(args) : TGI_BIAS_BOX_ELEMS;
    const int end = is_bringer ? min(room, (is_row ? Shape::group_count : most) * step) : 0;
    tgi_barrier_wait(memory.empty + ring.stage * 8, ring.parity ^ 1);
    if (!Shape::has_lone_producer && !tgi_elect())
        return;
    int count = 0;
#pragma unroll 1
    for (int i = 0; i < end; i += step, count++)
        tgi_tma_load(stage + count * TGI_BIAS_BOX_BYTES, &args.c_map, full, first + i, 0, 0);
    tgi_barrier_expect(full, count * TGI_BIAS_BOX_BYTES);
}

/* Fills the next stage with a tile's bias. One of two producer warps is the bringer; the other one
 * only arrives. is_own is 1 if the warp fills the next stage. */
template <class Shape>
static __device__ __forceinline__ void
tgi_bring_bias(const tgi_wgmma_args &args, const tgi_wgmma_memory<Shape> &memory,
               tgi_ring<Shape::stages> &ring, const tgi_cluster_tile &tile, int is_bringer,
               int &is_own)
{
    if (is_own)
        tgi_fill_bias_stage<Shape>(args, memory, ring, tile, is_bringer);
    is_own ^= Shape::producer_turns > 1;
    ring.advance();
}

/* Adds beta times a box of C to the sums of this thread from number First on. */
template <tg_type Type, int First, int Count>
static __device__ __forceinline__ void tgi_add_c_box(const tgi_wgmma_args &args, uint32_t box,
                                                     float (&sum)[Count])
{
    constexpr int end = First + TGI_C_BOX_COLS / 2 < Count ? First + TGI_C_BOX_COLS / 2 : Count;
    const float beta = args.c.beta;
    const int lane = tgi_reread_thread() % 32, warp = tgi_reread_thread() / 32 % 4;
    uint32_t word[(end - First) / 8][4];
    if (args.c.is_transposed) {
        const int line = lane / 16 * 8 + lane % 8, unit = warp * 2 + lane / 8 % 2;
#pragma unroll
        for (int i = 0; i < (end - First) / 8; i++)
            tgi_read_matrices_transposed(word[i], tgi_find_unit(box, line + i * 16, unit));
    } else {
        const int line = warp * 16 + lane % 16;
#pragma unroll
        for (int i = 0; i < (end - First) / 8; i++)
            tgi_read_matrices(word[i], tgi_find_unit(box, line, i * 2 + lane / 16));
    }
#pragma unroll
    for (int i = First; i < end; i += 2) {
        float c[2];
        tgi_decode_pair<Type>(word[(i - First) / 8][i / 2 % 4], c);
        /* Opaque, or the compiler would merge this code with that of another type. */
#pragma unroll
        for (int j = 0; j < 2; j++)
            sum[i + j] = tgi_make_opaque(TGI_FMA_FP32(beta, c[j], sum[i + j]));
    }
}

/* Adds beta times the boxes of a tile's C from column Col of boxes on, and releases their stages.
 * `barrier` is the named barrier of the warpgroup. */
template <class Shape, tg_type Type, int Col>
static __device__ __forceinline__ void tgi_add_c_boxes(const tgi_consumer<Shape> &at,
                                                       tgi_ring<Shape::stages> &ring, int barrier,
                                                       float (&sum)[Shape::cols / 2])
{
    typedef tgi_c_stages<Shape> stages;
    const tgi_wgmma_stage stage = tgi_find_stage<Shape>(at.args, at.memory, ring);
    if (Col % stages::stage_cols == 0)
        tgi_barrier_wait(stage.full, stage.parity);
    tgi_add_c_box<Type, Col * TGI_C_BOX_COLS / 2>(at.args,
                                                  stages::find_box(stage.data, Col, at.group), sum);
    if constexpr (Col + 1 == stages::cols || (Col + 1) % stages::stage_cols == 0) {
        tgi_fence_async_proxy();
        /* Without this barrier the stage would be overwritten while other warps still read it. */
        tgi_named_barrier_sync(barrier, 128);
        const tgi_stage_release<Shape> release(at.args, at.rank);
        release(stage.empty);
        ring.advance();
    }
    if constexpr (Col + 1 < stages::cols)
        tgi_add_c_boxes<Shape, Type, Col + 1>(at, ring, barrier, sum);
}

/* Adds beta times the staged C of a tile. */
template <class Shape>
static __device__ __forceinline__ void tgi_add_staged_c(const tgi_consumer<Shape> &at,
                                                        tgi_ring<Shape::stages> &ring, int barrier,
                                                        float (&sum)[Shape::cols / 2])
{
    if constexpr (Shape::may_stage_c) {
        if (tgi_find_d_type(at.args.gemm.problem) == TG_TYPE_BF16)
            tgi_add_c_boxes<Shape, TG_TYPE_BF16, 0>(at, ring, barrier, sum);
        else
            tgi_add_c_boxes<Shape, TG_TYPE_FP16, 0>(at, ring, barrier, sum);
    }
}

#endif
