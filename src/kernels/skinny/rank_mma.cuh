/*
 * This body of family rank multiplies BF16, FP16 and FP8 by matrix instructions 16 x 8 x 16: 16
 * columns of D times 8 of its rows. The products then cost next to nothing, even if D has fewer
 * rows. The sums of missing rows are not stored.
 *
 * Lines are copied as they lie, in units of 16 bytes, from the unit that holds the first wanted
 * element, and are never shifted. Lines of B whose distance is the number of elements in a unit
 * have the same offset from a unit, whatever the pitch: they are of one kind. There is a warp for
 * each kind, and it multiplies 16 lines of a stage. All sums of a warp are therefore shifted by the
 * same few columns, which matters only when the warps' sums are added. TMA reads only lines at
 * multiples of 16 bytes, so each kind has a map of its own. A lies along k, in units; a warp reads
 * its k of A element by element.
 */
#ifndef TGI_RANK_MMA_CUH
#define TGI_RANK_MMA_CUH

#include "kernels/copy/line_copy.cuh"
#include "kernels/copy/narrow_words.cuh"
#include "kernels/ptx/barrier.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/ptx/opaque.cuh"
#include "kernels/ptx/tma.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/skinny/rank_args.h"
#include "kernels/skinny/skinny.cuh"

/* Rows x Cols is the block's tile. */
template <tg_type Type, int Rows, int Cols, int Depth, int Stages, int Threads>
struct tgi_rank_mma {
    static constexpr int is_fp8 = tgi_narrow_is_fp8(Type);
    typedef typename tgi_narrow<is_fp8>::elem elem;
    typedef float sum;
    typedef tgi_rank_args arguments;
    typedef tgi_skinny_cursor<tgi_rank_mma> cursor;
    static constexpr int along_k = 0, rows = Rows, cols = Cols, depth = Depth, stages = Stages,
                         threads = Threads;
    static constexpr int warps = Threads / 32, width = 16 / sizeof(elem);
    static constexpr int sum_tiles = 1, warp_line_stride = 1, has_fewer_cols = 1;
    /* The units of a line of B, one more than Cols needs, and the instructions that multiply
     * them. */
    static constexpr int units = Cols / width + 1, fragments = units * width / 16;
    /* The tile of sums has room on both sides for columns before and after the tile. */
    static constexpr int sum_first = width, sum_pitch = Cols + 2 * width;
    static_assert(warps == width && Depth == 16 * warps, "a warp for each way to begin");
    static_assert(Cols % width == 0 && units * width % 16 == 0 && Rows % 8 == 0,
                  "whole instructions");

    typedef tgi_lines<elem, TGI_RANK_BOX_LINES, units> b_lines;
    typedef tgi_lines<elem, Rows, Depth / width> a_lines;

    struct shared_stage {
        b_lines b[warps];
        a_lines a;
        alignas(16) uint64_t full; /* barrier of TMA's copies */
    };

    /* Sums [i][j] are of columns from 16 i on of the warp's lines and rows from 8 j on. */
    struct sums {
        float value[fragments][Rows / 8][4];
    };

    static __device__ __forceinline__ int find_warp(void)
    {
        return static_cast<int>(threadIdx.x) / 32;
    }

    /* Returns the warp's lines of B. */
    static __device__ __forceinline__ tgi_line_source<elem> find_b(const tgi_gemm_args &args,
                                                                   const cursor &at)
    {
        const tgi_problem &p = args.problem;
        const int lines = tgi_clamp_count(at.last - at.k, Depth) + warps - 1 - find_warp();
        return {at.b, p.b.row * warps, p.b.col, lines / warps,
                tgi_clamp_count(p.n - at.tile.col, args.tile_cols + width)};
    }

    /* Returns a row of A. */
    static __device__ __forceinline__ tgi_line_source<elem> find_a(const tgi_gemm_args &args,
                                                                   const cursor &at, int row)
    {
        const tgi_problem &p = args.problem;
        return {at.a + row * p.a.row, p.a.row, 1, 1, tgi_clamp_count(p.k - at.k, Depth)};
    }

    static __device__ __forceinline__ void setup(const arguments &args, shared_stage *all)
    {
        if constexpr (TGI_HAS_TMA) {
            if (!args.has_maps)
                return;
            if (threadIdx.x < Stages)
                tgi_barrier_init(tgi_shared_address(&all[threadIdx.x].full), warps);
            tgi_fence_barrier_init();
            if (threadIdx.x % 32 == 0)
                tgi_prefetch_map(&args.lines[find_warp()]);
            /* Without this barrier a warp would arrive at a barrier before it is initialized. */
            __syncthreads();
        }
    }

    static __device__ __forceinline__ void wait(const arguments &args, shared_stage &stage,
                                                uint32_t parity)
    {
        if constexpr (TGI_HAS_TMA)
            if (args.has_maps)
                tgi_barrier_wait(tgi_shared_address(&stage.full), parity);
    }

    /* Loads a stage by TMA. Each warp loads its lines of B, in boxes that have columns of the tile,
     * and the first warp loads A. */
    static __device__ __forceinline__ void load_boxes(const arguments &args, const cursor &at,
                                                      shared_stage &stage)
    {
        const tgi_problem &p = args.gemm.problem;
        const int box_elems = TGI_RANK_BOX_BYTES / static_cast<int>(sizeof(elem));
        const int warp = tgi_make_uniform(find_warp());
        const int wanted = tgi_clamp_count(p.n - at.tile.col, args.gemm.tile_cols) + width - 1;
        const int boxes = min((wanted + box_elems - 1) / box_elems, b_lines::box_count);
        const uint32_t full = tgi_shared_address(&stage.full);
        const int x = static_cast<int>(at.tile.col), k = static_cast<int>(at.k);
        const int z = static_cast<int>(at.tile.batch), m = static_cast<int>(p.m);
        if (!tgi_elect())
            return;
        const int a_bytes = warp == 0 ? a_lines::box_count * m * TGI_RANK_BOX_BYTES : 0;
        tgi_barrier_expect(full, boxes * b_lines::box_bytes + a_bytes);
#pragma unroll
        for (int i = 0; i < a_lines::box_count; i++)
            if (warp == 0)
                tgi_tma_load(stage.a.address(0, 0) + i * a_lines::box_bytes, &args.a, full,
                             k + i * box_elems, 0, args.has_a_batch ? z : 0);
#pragma unroll
        for (int i = 0; i < b_lines::box_count; i++)
            if (i < boxes)
                tgi_tma_load(stage.b[warp].address(0, 0) + i * b_lines::box_bytes,
                             &args.lines[warp], full, x + i * box_elems, k / warps,
                             args.has_b_batch ? z : 0);
    }

    static __device__ __forceinline__ void load(const arguments &args, const cursor &at,
                                                shared_stage &stage)
    {
        if constexpr (TGI_HAS_TMA) {
            if (args.has_maps) {
                load_boxes(args, at, stage);
                return;
            }
        }
        stage.b[find_warp()].copy(find_b(args.gemm, at));
#pragma unroll
        for (int row = find_warp(); row < Rows; row += warps)
            if (row < args.gemm.problem.m)
                stage.a.template copy_units<0, 1>(find_a(args.gemm, at, row), row);
    }

    /* Reads the warp's values of k, one from each unit. The first 8 of an instruction come first in
     * the stage. */
    template <int IsE5m2>
    static __device__ __forceinline__ void read_a(uint32_t (&words)[2], const a_lines &lines,
                                                  int row)
    {
#pragma unroll
        for (int half = 0; half < 2; half++) {
            const int unit = half * 8 + static_cast<int>(threadIdx.x) % 4 * 2;
            const elem low = lines.elem[a_lines::find_place(row, unit) + find_warp()];
            const elem high = lines.elem[a_lines::find_place(row, unit + 1) + find_warp()];
            const uint32_t bits = low | static_cast<uint32_t>(high)
                                            << (8 * static_cast<int>(sizeof(elem)));
            words[half] = is_fp8 ? tgi_widen_pair<IsE5m2>(bits) : bits;
        }
    }

    /* Reads 16 columns from `col` on of the warp's 16 lines as the instruction takes them. FP8
     * comes in pairs of columns. The first columns of the pairs become rows 0 to 7 of the
     * instruction, the second ones rows 8 to 15. */
    template <int IsE5m2>
    static __device__ __forceinline__ void read_b(uint32_t (&words)[4], const b_lines &lines,
                                                  int col)
    {
        const int lane = threadIdx.x % 32;
        if constexpr (is_fp8) {
            uint32_t pairs[2]; /* [i]: columns 2 g and 2 g + 1, the i-th 8 of k */
            tgi_read_two_matrices_transposed(pairs, lines.address(lane % 16, col / width));
#pragma unroll
            for (int i = 0; i < 2; i++) {
                words[2 * i] = tgi_widen_pair<IsE5m2>(__byte_perm(pairs[i], 0, 0x4420));
                words[2 * i + 1] = tgi_widen_pair<IsE5m2>(__byte_perm(pairs[i], 0, 0x4431));
            }
        } else {
            const int line = lane / 16 * 8 + lane % 8, half = lane / 8 % 2;
            tgi_read_matrices_transposed(words, lines.address(line, col / width + half));
        }
    }

    template <int IsE5m2>
    static __device__ __forceinline__ void add_lines(const uint32_t (&a)[Rows / 8][2],
                                                     const shared_stage &stage, sums &total)
    {
#pragma unroll
        for (int i = 0; i < fragments; i++) {
            uint32_t b[4];
            read_b<IsE5m2>(b, stage.b[find_warp()], i * 16);
#pragma unroll
            for (int j = 0; j < Rows / 8; j++)
                tgi_multiply_16x8x16<Type>(total.value[i][j], b, a[j][0], a[j][1]);
        }
    }

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, const cursor &,
                                                    const shared_stage &stage, sums &total)
    {
        uint32_t a[Rows / 8][2];
#pragma unroll
        for (int j = 0; j < Rows / 8; j++) {
            const int row = j * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
            if (is_fp8 && args.problem.type == TG_TYPE_FP8_E5M2)
                read_a<1>(a[j], stage.a, row);
            else
                read_a<0>(a[j], stage.a, row);
        }
        if (is_fp8 && args.problem.b_type == TG_TYPE_FP8_E5M2)
            add_lines<1>(a, stage, total);
        else
            add_lines<0>(a, stage, total);
    }

    /* Adds sums to those of the tile. The code has no branches, because code that runs once is slow
     * to fetch. */
    static __device__ __forceinline__ void add_fragment(const float (&fragment)[Rows / 8][4],
                                                        float *tile)
    {
        const int lane = threadIdx.x % 32;
        /* A row of the instruction is a column of the tile. `near` is the distance of the columns
         * of neighbouring rows, `far` that of the columns of rows 8 apart. */
        const int near = is_fp8 ? 2 : 1, far = is_fp8 ? 1 : 8;
        float *first = tile + lane % 4 * 2 * sum_pitch + lane / 4 * near;
#pragma unroll
        for (int j = 0; j < Rows / 8; j++)
#pragma unroll
            for (int s = 0; s < 4; s++)
                first[(j * 8 + s % 2) * sum_pitch + s / 2 * far] += fragment[j][s];
    }

    /* Adds the warps' sums one warp after another. Each warp is two fragments behind the previous
     * one. At a distance of one fragment it would reach columns to which that warp still adds. */
    static __device__ __forceinline__ void finish(const tgi_gemm_args &args, const cursor &at,
                                                  const sums &total, float *tile)
    {
        float *first = tile + sum_first - find_b(args, at).find_shift();
#pragma unroll 1
        for (int i = threadIdx.x; i < Rows * sum_pitch; i += Threads)
            tile[i] = 0.0f;
        const int behind = find_warp() * 2;
#pragma unroll 1
        for (int round = 0; round < fragments + 2 * (warps - 1); round++) {
            /* Without this barrier sums would be added to what is not yet zero, or by two warps
             * at once. */
            __syncthreads();
#pragma unroll
            for (int i = 0; i < fragments; i++)
                /* The index is opaque, so that total.value stays in registers. */
                if (tgi_make_opaque(round - behind) == i)
                    add_fragment(total.value[i], first + i * 16);
        }
    }
};

#endif
