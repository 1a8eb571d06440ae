/*
 * Family small in tiles that are large beside k, by matrix instructions of FP64 and of 16-bit
 * types, or by multiply-adds of FP32. The threads of a block copy lines of A and B to shared memory
 * element by element, in runs along k or across it, as the lines lie, so that no operand needs to
 * be aligned or repacked. A thread requests its elements of a stage before the products of the
 * previous one. D goes through shared memory, so that a warp stores neighbouring columns. Blocks
 * that share a multiprocessor hide each other's waits.
 *
 *     setup()      takes the shared memory: two stages, then the tile's sums
 *     load()       requests a thread's elements of a step
 *     multiply()   adds the products of a stage to the thread's sums
 *     finish()     puts the sums to shared memory and stores the tile
 */
#ifndef TGI_SMALL_WIDE_CUH
#define TGI_SMALL_WIDE_CUH

#include "kernels/body.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/small/small_shape.h"
#include "kernels/small/small_wide_store.cuh"

/* Lines of A or B in global memory, of which the first line_count exist. */
template <typename T> struct tgi_small_lines {
    const T *data;
    int64_t line_stride, k_stride;
    int line_count, along_k;
};

/* Rows x Cols is the block's tile, Depth the k of a stage, and Row_sums x Col_sums a thread's sums
 * of FP32, which it multiplies; those of matrix instructions are 4 x 4. */
template <tg_type Type, int Rows, int Cols, int Depth, int Row_sums, int Col_sums, int Threads>
struct tgi_small_wide {
    typedef typename tgi_element_of<Type>::type elem;
    typedef typename tgi_element_of<Type>::sum sum_type;
    typedef tgi_small_wide_store<Type, Rows, Cols, Threads> tile_store;
    /* A line is padded, so that neighbouring lines lie in different banks. */
    static constexpr int pitch =
        Depth + TGI_SMALL_WIDE_PAD_BYTES(sizeof(elem)) / static_cast<int>(sizeof(elem));
    static constexpr int sum_pitch = tile_store::sum_pitch;
    static constexpr int is_fma = Type == TG_TYPE_FP32;
    static constexpr int warp_cols = is_fma ? 1 : Cols / 32;
    static constexpr int sum_rows = is_fma ? Row_sums : 4, sum_cols = is_fma ? Col_sums : 4;
    static constexpr int rows_apart = Rows / Row_sums, cols_apart = Cols / Col_sums;
    static constexpr int has_one_tile = 0;
    typedef sum_type sums[sum_rows][sum_cols];
    static_assert(is_fma ? Threads == rows_apart * cols_apart
                         : Threads / 32 == Rows / 16 * warp_cols,
                  "a warp forms 16 x 32 on matrix instructions");

    /* A thread's elements of each stage of A or B with Lines lines: every `stride`-th line of one
     * k, or k of one line. */
    template <int Lines> struct share {
        static constexpr int count = Lines * Depth / Threads;
        const elem *from;
        int64_t move, next;
        int place, shared_move, stride, along_k, k, end;
        elem element[count];

        __device__ __forceinline__ share(const tgi_small_lines<elem> &lines)
        {
            const int thread = tgi_thread();
            along_k = lines.along_k;
            k = along_k ? thread % Depth : thread / Lines;
            const int line = along_k ? thread / Depth : thread % Lines;
            stride = along_k ? Threads / Depth : Threads / Lines;
            end = lines.line_count - line;
            move = stride * (along_k ? lines.line_stride : lines.k_stride);
            next = Depth * lines.k_stride;
            shared_move = along_k ? stride * pitch : stride;
            from = lines.data + line * lines.line_stride + k * lines.k_stride;
            place = line * pitch + k;
        }

        /* Requests the elements of the next stage, which has `left` of k. Elements outside are
         * zeros. */
        __device__ __forceinline__ void load(int64_t left)
        {
            const int k_end = tgi_clamp_count(left, Depth) - k;
            const int limit = along_k ? k_end > 0 ? end : 0 : end > 0 ? k_end : 0;
            const elem *place_from = from;
#pragma unroll
            for (int i = 0; i < count; i++) {
                element[i] = i * stride < limit ? *place_from : elem(0);
                place_from += move;
            }
            from += next;
        }

        __device__ __forceinline__ void keep(elem *shared) const
        {
            elem *to = shared + place;
#pragma unroll
            for (int i = 0; i < count; i++) {
                *to = element[i];
                to += shared_move;
            }
        }
    };

    /* Adds the products of `count` of k, and of zeros up to a multiple of 16, to the warp's
     * sums. */
    static __device__ __forceinline__ void multiply_warp(const uint16_t *a, const uint16_t *b,
                                                         int count, float (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        const int row = warp / warp_cols * 16 + lane % 16;
        const int col = warp % warp_cols * 32 + lane % 8 + lane / 16 * 8;
        uint32_t a_place = tgi_shared_address(a + row * pitch + lane / 16 * 8);
        uint32_t b_place = tgi_shared_address(b + col * pitch + lane / 8 % 2 * 8);
#pragma unroll 1
        for (int k = 0; k < count; k += 16) {
            uint32_t a_words[4], low[4], high[4];
            tgi_read_matrices(a_words, a_place);
            tgi_read_matrices(low, b_place);
            tgi_read_matrices(high, b_place + 16 * pitch * 2);
            tgi_multiply_16x8x16<Type>(sums[0], a_words, low[0], low[1]);
            tgi_multiply_16x8x16<Type>(sums[1], a_words, low[2], low[3]);
            tgi_multiply_16x8x16<Type>(sums[2], a_words, high[0], high[1]);
            tgi_multiply_16x8x16<Type>(sums[3], a_words, high[2], high[3]);
            a_place += 32;
            b_place += 32;
        }
    }

    /* Adds the same products of FP64, with zeros up to a multiple of 4. */
    static __device__ __forceinline__ void multiply_warp(const double *a, const double *b,
                                                         int count, double (&sums)[4][4])
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        a += (warp / warp_cols * 16 + lane / 4) * pitch + lane % 4;
        b += (warp % warp_cols * 32 + lane / 4) * pitch + lane % 4;
#pragma unroll 2
        for (int k = 0; k < count; k += 4) {
            const double a_pair[2] = {a[k], a[8 * pitch + k]};
#pragma unroll
            for (int i = 0; i < 4; i++)
                tgi_multiply_fp64_16x8x4(sums[i], a_pair, b[8 * i * pitch + k]);
        }
    }

    /* Adds the same products by multiply-adds. A thread has rows rows_apart and columns cols_apart
     * apart. */
    static __device__ __forceinline__ void
    multiply_thread(const float *a, const float *b, int count, float (&sums)[Row_sums][Col_sums])
    {
        a += tgi_thread() / cols_apart * pitch;
        b += tgi_thread() % cols_apart * pitch;
#pragma unroll 1
        for (int k = 0; k < count; k += 4) {
            float4 rows[Row_sums], cols[Col_sums];
#pragma unroll
            for (int i = 0; i < Row_sums; i++)
                rows[i] = *reinterpret_cast<const float4 *>(a + rows_apart * i * pitch + k);
#pragma unroll
            for (int j = 0; j < Col_sums; j++)
                cols[j] = *reinterpret_cast<const float4 *>(b + cols_apart * j * pitch + k);
#pragma unroll
            for (int i = 0; i < Row_sums; i++)
#pragma unroll
                for (int j = 0; j < Col_sums; j++) {
                    sums[i][j] = fmaf(rows[i].x, cols[j].x, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].y, cols[j].y, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].z, cols[j].z, sums[i][j]);
                    sums[i][j] = fmaf(rows[i].w, cols[j].w, sums[i][j]);
                }
        }
    }

    /* A thread's share of the steps of a tile, from the next one on. */
    struct source {
        share<Rows> a;
        share<Cols> b;
        int64_t left; /* k of the next step, and behind it */

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile,
                                          int64_t first)
            : a({tgi_find_a<elem>(args, tile, first), args.problem.a.row, args.problem.a.col,
                 tgi_clamp_count(args.problem.m - tile.row, Rows), args.a_along_k}),
              b({tgi_find_b<elem>(args, tile, first), args.problem.b.col, args.problem.b.row,
                 tgi_clamp_count(args.problem.n - tile.col, Cols), args.b_along_k}),
              left(tgi_count_k(args, first))
        {
        }
    };

    elem *stages;
    tgi_block_tile tile;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, char *shared)
    {
        stages = reinterpret_cast<elem *>(shared);
    }

    /* Requests the elements of the step that has `left` of k, and those behind it. */
    static __device__ __forceinline__ void load(source &copies, int64_t left)
    {
        copies.a.load(left);
        copies.b.load(left);
    }

    /* Adds the products of `count` of k of a stage. */
    static __device__ __forceinline__ void multiply(sums &sum, const elem *stage, int count)
    {
        if constexpr (is_fma)
            multiply_thread(stage, stage + Rows * pitch, count, sum);
        else
            multiply_warp(stage, stage + Rows * pitch, count, sum);
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        constexpr int stage_elems = (Rows + Cols) * pitch;
        const tgi_gemm_args &args = schedule.problem(given, unit);
        tile = schedule.tile(unit);
#pragma unroll
        for (int i = 0; i < sum_rows; i++)
#pragma unroll
            for (int j = 0; j < sum_cols; j++)
                sum[i][j] = sum_type(0);
        source copies(args, tile, tgi_find_first_k(args, tile.split));
        elem *stage = stages;
        load(copies, copies.left);
#pragma unroll 1
        for (; copies.left > 0; copies.left -= Depth) {
            copies.a.keep(stage);
            copies.b.keep(stage + Rows * pitch);
            /* Without this barrier lines would be multiplied that others have not put yet. Those of
             * the stage before the last one are no longer read. */
            __syncthreads();
            if (copies.left > Depth)
                load(copies, copies.left - Depth);
            multiply(sum, stage, tgi_clamp_count(copies.left, Depth));
            stage = stage == stages ? stages + stage_elems : stages;
        }
        /* Without this barrier sums would overwrite lines that others have yet to multiply. */
        __syncthreads();
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, const sums &sum) const
    {
        const int lane = tgi_thread() % 32, warp = tgi_thread() / 32;
        sum_type *const shared = reinterpret_cast<sum_type *>(stages);
        sum_type *own =
            is_fma ? shared + tgi_thread() / cols_apart * sum_pitch + tgi_thread() % cols_apart
                   : shared + (warp / warp_cols * 16 + lane / 4) * sum_pitch +
                         warp % warp_cols * 32 + lane % 4 * 2;
#pragma unroll
        for (int i = 0; i < sum_rows; i++)
#pragma unroll
            for (int j = 0; j < sum_cols; j++)
                own[is_fma ? rows_apart * i * sum_pitch + cols_apart * j
                           : j / 2 * 8 * sum_pitch + 8 * i + j % 2] = sum[i][j];
        /* Without this barrier elements would be stored before the other warps have put their
         * sums. */
        __syncthreads();
        tile_store::store(schedule.problem(given, unit), tile, shared);
        /* Without this barrier the next unit's lines would overwrite sums not yet stored. */
        __syncthreads();
    }
};

#endif
