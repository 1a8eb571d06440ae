/*
 * Forms products of FP32 of family small with a short k and a large D as sums of outer products.
 * They take about as long as their stores, so that a thread stores four columns of a row at once,
 * by 16 bytes, wherever rows of D begin. Rows that are four apart begin equally far behind such a
 * unit. So a warp has every fourth row of the block, and columns that begin where units of its
 * rows do: up to three to the left of its place. It keeps its columns of B in registers and goes
 * down its rows. The block's lines of both operands come to shared memory first. Pieces
 * (small_piece.cuh) start earlier, for the shortest k and a smaller D.
 *
 *     setup()      finds the thread's rows and columns
 *     load()       requests the block's lines of A and B
 *     multiply()   forms the sums of four rows
 *     finish()     stores the sums of four rows
 */
#ifndef TGI_SMALL_OUTER_CUH
#define TGI_SMALL_OUTER_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/element_epilogue.cuh"
#include "kernels/ptx/async_copy.cuh"
#include "kernels/ptx/global_memory.cuh"
#include "kernels/ptx/shared_memory.cuh"
#include "kernels/small/small_shape.h"

/* Depth is the largest k. */
template <int Depth> struct tgi_outer {
    static constexpr int width = TGI_SMALL_OUTER_COLS; /* columns of a unit */
    static constexpr int threads = TGI_SMALL_OUTER_THREADS, most = TGI_SMALL_OUTER_ROWS;
    /* In shared memory lines of one k lie side by side: those of A by warps, and the block's
     * columns of B behind the unit to their left. */
    static constexpr int a_pitch = most + width, b_count = 33 * width, b_pitch = b_count + width;
    typedef tgi_row_piece<float, width> unit;
    typedef float columns[Depth][width];
    typedef float sums[4][width];

    struct lines {
        float a[Depth * a_pitch], b[Depth * b_pitch];
    };

    int warp, lane_row; /* the warp's first row in the block; the thread's four rows of its first */
    int first_row, rows; /* the block's first row, and its rows in D */
    int first_col;       /* the block's first column */
    int lane_col;        /* the thread's unit in the block */
    int shift;           /* columns by which the thread's units begin to the left of it */
    float *d;            /* column 0 of the warp's first row */

    __device__ __forceinline__ void setup(const tgi_outer_args &args)
    {
        const tgi_sums_args &p = args.sums;
        const int lane = threadIdx.x % 32;
        warp = threadIdx.x / 32;
        lane_col = lane % args.across;
        lane_row = lane / args.across * 4;
        first_row = blockIdx.y * most;
        rows = min(most, p.m - first_row);
        first_col = blockIdx.x * args.across * width;
        d = static_cast<float *>(p.d) + blockIdx.z * p.d_batch + (first_row + warp) * p.d_row;
        shift = static_cast<int>(reinterpret_cast<uintptr_t>(d) / sizeof(float) % width);
    }

    /* Requests up to Depth values of k of Count lines, of which those from `begin` to `end` exist.
     * Others are zeros. `place` finds a line's place. */
    template <int Count, int Pitch, class Place>
    static __device__ __forceinline__ void copy(float *shared, const float *from, int64_t line_move,
                                                int64_t k_move, int begin, int end, int k,
                                                const Place &place)
    {
        const int along = k_move == 1;
#pragma unroll 1
        for (int i = 0; i < Count * Depth; i += threads) {
            const int at = i + threadIdx.x;
            const int line = along ? at / Depth : at % Count,
                      own_k = along ? at % Depth : at / Count;
            if (Count * Depth % threads && at >= Count * Depth)
                break;
            const int is_inside = line >= begin && line < end && own_k < k;
            tgi_copy_async<sizeof(float)>(tgi_shared_address(shared + own_k * Pitch + place(line)),
                                          is_inside ? from + line * line_move + own_k * k_move
                                                    : from,
                                          is_inside ? static_cast<int>(sizeof(float)) : 0);
        }
    }

    __device__ __forceinline__ void load(const tgi_sums_args &p, lines &shared) const
    {
        const float *const a = static_cast<const float *>(p.a) + blockIdx.z * p.a_batch;
        const float *const b = static_cast<const float *>(p.b) + blockIdx.z * p.b_batch;
        copy<most, a_pitch>(shared.a, a + first_row * p.a_row, p.a_row, p.a_k, 0, rows, p.k,
                            [](int line) { return line % 4 * (most / 4) + line / 4; });
        copy<b_count, b_pitch>(shared.b, b + (first_col - width) * p.b_col, p.b_col, p.b_k,
                               width - first_col, p.n + width - first_col, p.k,
                               [](int line) { return line; });
        tgi_copy_async_commit();
    }

    /* Reads the thread's columns of B. Those outside D are not stored. */
    __device__ __forceinline__ void read(const lines &shared, columns &b) const
    {
        const float *const from = shared.b + lane_col * width;
#pragma unroll
        for (int k = 0; k < Depth; k++) {
            const unit left = *reinterpret_cast<const unit *>(from + k * b_pitch);
            const unit own = *reinterpret_cast<const unit *>(from + k * b_pitch + width);
            float both[2 * width];
#pragma unroll
            for (int j = 0; j < width; j++) {
                both[j] = left.element[j];
                both[width + j] = own.element[j];
            }
#pragma unroll
            for (int move = 1; move < width; move *= 2)
#pragma unroll
                for (int j = 2 * width - 1; j >= move; j--)
                    both[j] = shift & move ? both[j - move] : both[j];
#pragma unroll
            for (int j = 0; j < width; j++)
                b[k][j] = both[width + j];
        }
    }

    /* Forms the sums of four of the warp's rows, from number `at` on. */
    __device__ __forceinline__ void multiply(const lines &shared, int at, int k_count,
                                             const columns &b, sums &sum) const
    {
        const float *const from = shared.a + warp * (most / 4) + at;
#pragma unroll
        for (int i = 0; i < 4; i++)
#pragma unroll
            for (int j = 0; j < width; j++)
                sum[i][j] = 0.0f;
#pragma unroll
        for (int k = 0; k < Depth; k++) {
            if (k % 4 == 0 && k >= k_count)
                break;
#pragma unroll
            for (int i = 0; i < 4; i += width) {
                const unit a = *reinterpret_cast<const unit *>(from + k * a_pitch + i);
#pragma unroll
                for (int row = 0; row < width; row++)
#pragma unroll
                    for (int j = 0; j < width; j++)
                        sum[i + row][j] = fmaf(a.element[row], b[k][j], sum[i + row][j]);
            }
        }
    }

    /* Stores the sums of four rows, of which the first has number `at`. A sum of -0 becomes +0, as
     * in other rows of order STEPS. */
    __device__ __forceinline__ void finish(const tgi_sums_args &p, int at, const sums &sum) const
    {
        const int col = first_col + lane_col * width - shift;
        const int is_whole = col >= 0 && col + width <= p.n;
        float *to = d + 4 * at * p.d_row + col;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if (warp + 4 * (at + i) < rows) {
                float stored[width];
#pragma unroll
                for (int j = 0; j < width; j++)
                    stored[j] = sum[i][j] + 0;
                if (is_whole) {
                    tgi_write_elements_at(to, stored);
                } else {
#pragma unroll
                    for (int j = 0; j < width; j++)
                        if (col + j >= 0 && col + j < p.n)
                            to[j] = stored[j];
                }
            }
            to += 4 * p.d_row;
        }
    }

    /* Goes down the thread's rows, with columns of B. */
    __device__ __forceinline__ void go_down(const tgi_outer_args &args, const lines &from) const
    {
        columns b;
        read(from, b);
#pragma unroll 1
        for (int at = lane_row; warp + 4 * at < rows; at += 128 / args.across) {
            sums sum;
            multiply(from, at, args.sums.k, b, sum);
            finish(args.sums, at, sum);
        }
    }

    /* Forms the block's part of D. */
    static __device__ __forceinline__ void form(const tgi_outer_args &args)
    {
        tgi_check_body<tgi_outer>();
        tgi_check_sum<tgi_outer>();
        tgi_outer body;
        body.setup(args);
        /* The last blocks of a row have columns only where rows of D begin within units. */
        if (body.first_col >= args.sums.n && !(body.shift | args.sums.d_row % width))
            return;
        tgi_wait_for_stream();
        __shared__ __align__(16) lines shared;
        body.load(args.sums, shared);
        tgi_copy_async_wait<0>();
        /* Without this barrier a thread would read lines that others have yet to copy. */
        __syncthreads();
        body.go_down(args, shared);
    }
};

#define TGI_SMALL_OUTER(name, depth)                                                               \
    extern "C" __global__ void __launch_bounds__(TGI_SMALL_OUTER_THREADS)                          \
        name(const __grid_constant__ tgi_outer_args args)                                          \
    {                                                                                              \
        tgi_outer<depth>::form(args);                                                              \
    }

#endif
