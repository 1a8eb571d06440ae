/*
 * Forms products of family small by matrix instructions of 16-bit types. A block forms a small tile
 * of D, and its warps share out k in steps of 32. A lane loads what it multiplies from global
 * memory to its registers, all of a step at once and the next step beside the products of the last,
 * so that few instructions lie between the start and the loads. At the end the warps' sums are
 * added in order.
 *
 * The order of k within a step is free if A and B have the same one. Lane 4 g + c has k = 8 c to
 * 8 c + 7 of lines g, 16 bytes if they lie along k. The first four are its words of the step's
 * first instruction, the others those of the second.
 *
 *     setup()      finds the place of the lane's sums in shared memory
 *     load()       loads a lane's words of a step
 *     multiply()   adds the products of a step to the warp's sums
 *     finish()     adds the sums of the warps, in shared memory, and stores the tile
 */
#ifndef TGI_SMALL_MMA_CUH
#define TGI_SMALL_MMA_CUH

#include "kernels/body.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* A lane's elements of Lines lines of an operand, 8 lines apart, in a step of 32 of k. */
template <int Lines> struct tgi_small_fragment {
    uint32_t word[Lines][4];

    /* Loads a step from `data`, element (g, 8 c) of it. line_count lines, from the lane's first on,
     * and k_count of k exist; the others are zero. If Vectors is 1, 16 bytes along k are
     * aligned. */
    __device__ __forceinline__ void load(const uint16_t *data, int64_t line_stride,
                                         int64_t k_stride, int line_count, int k_count, int vectors)
    {
#pragma unroll
        for (int i = 0; i < Lines; i++) {
            const uint16_t *line = data + 8 * i * line_stride;
            if (8 * i >= line_count) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    word[i][j] = 0;
                continue;
            }
            if (vectors && k_count >= 8) {
                const uint4 unit = *reinterpret_cast<const uint4 *>(line);
                word[i][0] = unit.x;
                word[i][1] = unit.y;
                word[i][2] = unit.z;
                word[i][3] = unit.w;
                continue;
            }
            uint32_t element[8];
#pragma unroll
            for (int j = 0; j < 8; j++)
                element[j] = j < k_count ? line[j * k_stride] : 0;
#pragma unroll
            for (int j = 0; j < 4; j++)
                word[i][j] = element[2 * j] | element[2 * j + 1] << 16;
        }
    }
};

/* Rows x Cols is the block's tile. */
template <tg_type Type, int Rows, int Cols, int Threads> struct tgi_small_mma {
    static constexpr int warps = Threads / 32, step_elems = 32, stride = warps * step_elems;
    static constexpr int row_fragments = Rows / 16, col_fragments = Cols / 8;
    /* The pitch of a warp's sums in shared memory puts pairs of neighbouring lines into different
     * banks. */
    static constexpr int pitch = Cols + 8;

    typedef float sums[row_fragments][col_fragments][4];
    static constexpr int has_one_tile = 0;

    /* Holds a lane's words of a step. */
    struct step {
        tgi_small_fragment<2 * row_fragments> a;
        tgi_small_fragment<col_fragments> b;
    };

    /* Holds the addresses and limits of the lane's elements of a tile, from the next step on. */
    struct source {
        const tgi_problem &p;
        const uint16_t *a, *b;
        int rows, cols; /* lines that exist, from the lane's first one on */
        int left;       /* k from the lane's first one on, without those before it in the step */
        int a_vectors, b_vectors;

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile)
            : p(args.problem)
        {
            const int lane = tgi_thread() % 32, g = lane / 4;
            const int64_t first = tgi_find_first_k(args, tile.split);
            const int64_t k = first + tgi_thread() / 32 * step_elems + lane % 4 * 8;
            a = tgi_find_a<uint16_t>(args, tile, k) + g * p.a.row;
            b = tgi_find_b<uint16_t>(args, tile, k) + g * p.b.col;
            rows = tgi_clamp_count(p.m - tile.row, Rows) - g;
            cols = tgi_clamp_count(p.n - tile.col, Cols) - g;
            left = static_cast<int>(min(tgi_count_k(args, first), int64_t{INT32_MAX})) -
                   static_cast<int>(k - first);
            a_vectors = args.a_along_k && args.a_vector_elems > 1;
            b_vectors = args.b_along_k && args.b_vector_elems > 1;
        }
    };

    float *shared, *own; /* sums of the block's warps, and the lane's first one */
    tgi_block_tile tile;

    __device__ __forceinline__ void setup(const tgi_gemm_args &, float *memory)
    {
        const int lane = tgi_thread() % 32;
        shared = memory;
        own = shared + tgi_thread() / 32 * Rows * pitch + lane / 4 * pitch + lane % 4 * 2;
    }

    static __device__ __forceinline__ void load(source &copies, step &one)
    {
        const tgi_problem &p = copies.p;
        one.a.load(copies.a, p.a.row, p.a.col, copies.rows, copies.left, copies.a_vectors);
        one.b.load(copies.b, p.b.col, p.b.row, copies.cols, copies.left, copies.b_vectors);
        copies.a += stride * p.a.col;
        copies.b += stride * p.b.row;
        copies.left -= stride;
    }

    static __device__ __forceinline__ void multiply(sums &sum, const step &one)
    {
#pragma unroll
        for (int h = 0; h < 2; h++)
#pragma unroll
            for (int i = 0; i < row_fragments; i++) {
                const uint32_t(&low)[4] = one.a.word[2 * i], (&high)[4] = one.a.word[2 * i + 1];
                const uint32_t a_words[4] = {low[2 * h], high[2 * h], low[2 * h + 1],
                                             high[2 * h + 1]};
#pragma unroll
                for (int j = 0; j < col_fragments; j++)
                    tgi_multiply_16x8x16<Type>(sum[i][j], a_words, one.b.word[j][2 * h],
                                               one.b.word[j][2 * h + 1]);
            }
    }

    /* Adds the warp's steps of the tile's split: step `warp`, `warp` + warps and so on. */
    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_gemm_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        const tgi_gemm_args &args = schedule.problem(given, unit);
        tile = schedule.tile(unit);
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
#pragma unroll
                for (int s = 0; s < 4; s++)
                    sum[i][j][s] = 0.0f;
        source copies(args, tile);
        tgi_wait_for_stream();
        step pair[2];
        const int lane_k = tgi_thread() % 32 % 4 * 8;
        if (copies.left + lane_k <= 0)
            return;
        load(copies, pair[0]);
#pragma unroll 1
        while (copies.left + lane_k > 0) {
            load(copies, pair[1]);
            multiply(sum, pair[0]);
            pair[0] = pair[1];
        }
        multiply(sum, pair[0]);
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_gemm_args &given, const Schedule &schedule,
                                           Unit unit, const sums &sum) const
    {
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
#pragma unroll
                for (int h = 0; h < 2; h++)
                    *reinterpret_cast<float2 *>(own + (16 * i + 8 * h) * pitch +
                                                8 * j) = {sum[i][j][2 * h], sum[i][j][2 * h + 1]};
        /* Without this barrier elements would be stored before the other warps have put their
         * sums. */
        __syncthreads();
        tgi_store_tile<float, Rows, Cols, pitch, warps, Threads>(schedule.problem(given, unit),
                                                                 tile, shared);
        /* Without this barrier the next unit's sums would overwrite those not yet stored. */
        __syncthreads();
    }
};

#endif
