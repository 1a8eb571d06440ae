/*
 * Forms tiles of family small that are large beside k: of FP64 and of 16-bit types by their matrix
 * instructions, of FP32 by multiply-adds or by matrix instructions of FP64. The threads of a block
 * copy lines of A and B to shared memory element by element, in runs along k or across it, as the
 * lines lie, so that no operand needs to be aligned or repacked. FP32 in more than two stages is
 * copied in the background, all stages but one ahead. Other elements pass through registers: a
 * thread requests those of a stage before the products of the previous one. D goes through shared
 * memory, so that a warp stores neighbouring columns. Blocks that share a multiprocessor hide each
 * other's waits.
 *
 *     setup()      takes the shared memory: stages, then the tile's sums
 *     load()       requests a thread's elements of a step
 *     multiply()   adds the products of a stage to the thread's sums
 *     finish()     puts the sums to shared memory and stores the tile
 */
#ifndef TGI_SMALL_WIDE_CUH
#define TGI_SMALL_WIDE_CUH

#include "kernels/body.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_wide_fma.cuh"
#include "kernels/small/small_wide_fp64.cuh"
#include "kernels/small/small_wide_lines.cuh"
#include "kernels/small/small_wide_mma.cuh"
#include "kernels/small/small_wide_store.cuh"

/* Names what brings the elements of A and B to shared memory. */
template <bool Is_copied, typename T, int Depth, int Threads, int Is_fp32, int Pad, int Shift>
struct tgi_small_feed {
    template <int Lines>
    using share = tgi_small_share<T, Lines, Depth, Threads, Is_fp32 ? 1 : Depth + Pad,
                                  Is_fp32 ? Lines + Pad : 1>;
};

template <typename T, int Depth, int Threads, int Is_fp32, int Pad, int Shift>
struct tgi_small_feed<true, T, Depth, Threads, Is_fp32, Pad, Shift> {
    template <int Lines> using share = tgi_small_copies<Lines, Depth, Threads, Lines + Pad, Shift>;
};

/* Names what multiplies elements in shared memory. Pitches are those of padded lines. */
template <tg_type Type, int By_fp64> struct tgi_small_products {
    template <int Rows, int Cols, int Row_sums, int Col_sums, int A_pitch, int B_pitch,
              int Sum_pitch>
    using type = tgi_small_wide_mma<Type, Rows, Cols, A_pitch, Sum_pitch>;
};

template <> struct tgi_small_products<TG_TYPE_FP32, 0> {
    template <int... Sizes> using type = tgi_small_wide_fma<Sizes...>;
};

template <> struct tgi_small_products<TG_TYPE_FP32, 1> {
    template <int... Sizes> using type = tgi_small_wide_fp64<Sizes...>;
};

/* Rows x Cols is the block's tile, Depth the k of a stage, and Row_sums x Col_sums a thread's sums
 * of FP32; those of other types are 4 x 4. By_fp64 is 1 for FP32 by matrix instructions of FP64. */
template <tg_type Type, int By_fp64, int Rows, int Cols, int Depth, int Row_sums, int Col_sums,
          int Threads, int Stages>
struct tgi_small_wide {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    typedef tgi_small_wide_store<Type, Rows, Cols, Threads> tile_store;
    static constexpr int is_fp32 = Type == TG_TYPE_FP32, stages = Stages;
    /* 1: stages are copied in the background. */
    static constexpr int is_copied = is_fp32 && Stages > 2;
    /* Lines, or in FP32 all lines of one k, are padded, so that neighbours lie in different
     * banks. */
    static constexpr int pad =
        TGI_SMALL_WIDE_PAD_BYTES(sizeof(elem), By_fp64) / static_cast<int>(sizeof(elem));
    /* Elements by which every fourth k is further, so that all values of k of a line lie in
     * different banks too. */
    static constexpr int shift = By_fp64 ? TGI_SMALL_WIDE_SHIFT : 0;
    static constexpr int pitch = Depth + pad;
    static constexpr int a_pitch = is_fp32 ? Rows + pad : pitch;
    static constexpr int b_pitch = is_fp32 ? Cols + pad : pitch;
    static constexpr int shifts = Depth / 4 * shift;
    static constexpr int a_elems = is_fp32 ? Depth * a_pitch + shifts : Rows * pitch;
    static constexpr int stage_elems =
        a_elems + (is_fp32 ? Depth * b_pitch + shifts : Cols * pitch);
    typedef tgi_small_feed<is_copied, elem, Depth, Threads, is_fp32, pad, shift> feed;
    typedef typename tgi_small_products<Type, By_fp64>::template type<
        Rows, Cols, Row_sums, Col_sums, a_pitch, b_pitch, tile_store::sum_pitch>
        products;
    typedef typename products::sums sums;
    static constexpr int has_one_tile = 0;
    static_assert(Threads * (is_fp32 ? Row_sums * Col_sums : 16) == Rows * Cols,
                  "threads share out the tile");

    /* Holds a thread's share of the steps of a tile, from the next one on. */
    struct source {
        typename feed::template share<Rows> a;
        typename feed::template share<Cols> b;
        int64_t left;          /* k of the next step, and behind it */
        int is_low, is_narrow; /* 1: the lower, or right, half of the tile lies outside D */

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile,
                                          int64_t first)
            : a({tgi_find_a<elem>(args, tile, first), args.problem.a.row, args.problem.a.col,
                 tgi_clamp_count(args.problem.m - tile.row, Rows), args.a_along_k}),
              b({tgi_find_b<elem>(args, tile, first), args.problem.b.col, args.problem.b.row,
                 tgi_clamp_count(args.problem.n - tile.col, Cols), args.b_along_k}),
              left(tgi_count_k(args, first)), is_low(args.problem.m - tile.row <= Rows / 2),
              is_narrow(args.problem.n - tile.col <= Cols / 2)
        {
        }
    };

    elem *memory;
    tgi_block_tile tile;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, char *shared)
    {
        memory = reinterpret_cast<elem *>(shared);
    }

    /* Requests the elements of the step that has `left` of k, and those behind it, in FP32 for the
     * stage at the given address. */
    static __device__ __forceinline__ void load(source &copies, int64_t left, uint32_t stage)
    {
        copies.a.load(left, stage);
        copies.b.load(left, stage + a_elems * 4);
    }

    /* Adds the products of `count` of k of a stage. */
    static __device__ __forceinline__ void multiply(sums &sum, const source &copies,
                                                    const elem *stage, int count)
    {
        products::multiply(stage, stage + a_elems, count, copies.is_low, copies.is_narrow, sum);
    }

    /* Adds the products of all steps, whose stages are copied in the background. Turns before step
     * 0 only request stages, so that the code has the copies once. */
    __device__ __forceinline__ void multiply_copied(source &copies, sums &sum) const
    {
        constexpr uint32_t bytes = stage_elems * 4, last = (Stages - 1) * bytes;
        const uint32_t ring = tgi_shared_address(memory);
        uint32_t fill = 0, read = 0;
        int64_t left = copies.left; /* k of the step to request, and behind it */
#pragma unroll 1
        for (int step = 1 - Stages; copies.left > 0; step++) {
            if (step >= 0)
                tgi_wait_for_stage<tgi_small_wide>();
            if (left > 0)
                load(copies, left, ring + fill);
            tgi_copy_async_commit();
            left -= Depth;
            fill = fill == last ? 0 : fill + bytes;
            if (step < 0)
                continue;
            multiply(sum, copies, memory + read / 4, tgi_clamp_count(copies.left, Depth));
            read = read == last ? 0 : read + bytes;
            copies.left -= Depth;
        }
        tgi_copy_async_wait<0>();
    }

    /* Adds the products of all steps, whose elements pass through registers. */
    __device__ __forceinline__ void multiply_loaded(source &copies, sums &sum) const
    {
        elem *stage = memory;
        load(copies, copies.left, 0);
#pragma unroll 1
        for (; copies.left > 0; copies.left -= Depth) {
            copies.a.keep(stage);
            copies.b.keep(stage + a_elems);
            /* Without this barrier lines would be multiplied that others have not put yet. Those of
             * the stage before the last one are no longer read. */
            __syncthreads();
            if (copies.left > Depth)
                load(copies, copies.left - Depth, 0);
            multiply(sum, copies, stage, tgi_clamp_count(copies.left, Depth));
            stage = stage == memory ? memory + stage_elems : memory;
        }
    }

    /* Sums the unit's tile over its split of k. */
    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        tile = schedule.tile(unit);
#pragma unroll
        for (auto &row : sum)
#pragma unroll
            for (auto &element : row)
                element = 0;
        source copies(args, tile, tgi_find_first_k(args, tile.split));
        tgi_wait_for_stream();
        if constexpr (is_copied)
            multiply_copied(copies, sum);
        else
            multiply_loaded(copies, sum);
        /* Without this barrier sums would overwrite lines that others have yet to multiply. */
        __syncthreads();
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, const sums &sum) const
    {
        sum_type *const shared = reinterpret_cast<sum_type *>(memory);
        products::keep(shared, sum);
        /* Without this barrier elements would be stored before the other warps have put their
         * sums. */
        __syncthreads();
        tile_store::store(schedule.problem(given, unit), tile, shared);
        /* Without this barrier the next unit's lines would overwrite sums not yet stored. */
        __syncthreads();
    }
};

#define TGI_SMALL_WIDE(name, elem_type, by_fp64, rows, cols, depth, row_sums, col_sums, stages,    \
                       threads)                                                                    \
    extern "C" __global__ void __launch_bounds__(                                                  \
        threads, TGI_SMALL_WIDE_BLOCKS((row_sums) * (col_sums), threads,                           \
                                       sizeof(tgi_element_of<TGI_TYPE_OF(elem_type)>::type)))      \
        name(const __grid_constant__ tgi_gemm_args args)                                           \
    {                                                                                              \
        typedef tgi_small_wide<TGI_TYPE_OF(elem_type), by_fp64, rows, cols, depth, row_sums,       \
                               col_sums, threads, stages>                                          \
            body;                                                                                  \
        constexpr int bytes =                                                                      \
            TGI_SMALL_WIDE_SHARED_BYTES(rows, cols, depth, stages, sizeof(body::elem), by_fp64);   \
        static_assert((stages)*body::stage_elems * sizeof(body::elem) <= bytes &&                  \
                          (rows)*body::tile_store::sum_pitch * sizeof(body::sum_type) <= bytes,    \
                      "lines and sums have room");                                                 \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_form_tiles<body>(tgi_grid_schedule<rows, cols, TGI_UNITS_SPLITS>(args), args, shared); \
    }

#endif
