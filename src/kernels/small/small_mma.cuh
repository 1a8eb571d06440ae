/*
 * Family small on matrix instructions of 16-bit types. A block forms a small tile of D, and its
 * warps share out k in steps of 32. A lane loads what it multiplies from global memory to its
 * registers, all of a step at once and the next step beside the products of the last, so that few
 * instructions lie between the start and the loads. At the end the warps' sums are added in order.
 *
 * The order of k within a step is free if A and B have the same one. Lane 4 g + c has k = 8 c to
 * 8 c + 7 of lines g, 16 bytes if they lie along k. The first four are its words of the step's
 * first instruction, the others those of the second.
 */
#ifndef TGI_SMALL_MMA_CUH
#define TGI_SMALL_MMA_CUH

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
            const int count = 8 * i < line_count ? k_count : 0;
            if (vectors && count >= 8) {
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
                element[j] = j < count ? line[j * k_stride] : 0;
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

    struct step {
        tgi_small_fragment<2 * row_fragments> a;
        tgi_small_fragment<col_fragments> b;

        __device__ __forceinline__ void
        multiply(float (&sums)[row_fragments][col_fragments][4]) const
        {
#pragma unroll
            for (int h = 0; h < 2; h++)
#pragma unroll
                for (int i = 0; i < row_fragments; i++) {
                    const uint32_t(&low)[4] = a.word[2 * i], (&high)[4] = a.word[2 * i + 1];
                    const uint32_t a_words[4] = {low[2 * h], high[2 * h], low[2 * h + 1],
                                                 high[2 * h + 1]};
#pragma unroll
                    for (int j = 0; j < col_fragments; j++)
                        tgi_multiply_16x8x16<Type>(sums[i][j], a_words, b.word[j][2 * h],
                                                   b.word[j][2 * h + 1]);
                }
        }
    };

    /* Adds the warp's steps of the tile's split: step `warp`, `warp` + warps and so on. */
    static __device__ __forceinline__ void add_steps(const tgi_gemm_args &args,
                                                     const tgi_block_tile &tile,
                                                     float (&sums)[row_fragments][col_fragments][4])
    {
        const tgi_problem &p = args.problem;
        const int lane = tgi_thread() % 32, g = lane / 4;
        const int64_t first = tgi_find_first_k(args, tile.split);
        const int64_t k = first + tgi_thread() / 32 * step_elems + lane % 4 * 8;
        const uint16_t *a = tgi_find_a<uint16_t>(args, tile, k) + g * p.a.row;
        const uint16_t *b = tgi_find_b<uint16_t>(args, tile, k) + g * p.b.col;
        const int rows = tgi_clamp_count(p.m - tile.row, Rows) - g;
        const int cols = tgi_clamp_count(p.n - tile.col, Cols) - g;
        /* The number of k from the lane's first one on, without those before it in the step. */
        int left = static_cast<int>(min(tgi_count_k(args, first), int64_t{INT32_MAX})) -
                   static_cast<int>(k - first);
        const int a_vectors = args.a_along_k && args.a_vector_elems > 1;
        const int b_vectors = args.b_along_k && args.b_vector_elems > 1;
        step pair[2];
        const auto load = [&](step &one) {
            one.a.load(a, p.a.row, p.a.col, rows, left, a_vectors);
            one.b.load(b, p.b.col, p.b.row, cols, left, b_vectors);
            a += stride * p.a.col;
            b += stride * p.b.row;
            left -= stride;
        };
        const int lane_k = lane % 4 * 8;
        if (left + lane_k <= 0)
            return;
        load(pair[0]);
#pragma unroll 1
        while (left + lane_k > 0) {
            load(pair[1]);
            pair[0].multiply(sums);
            pair[0] = pair[1];
        }
        pair[0].multiply(sums);
    }

    static __device__ __forceinline__ void multiply(const tgi_gemm_args &given, float *shared)
    {
        const int lane = tgi_thread() % 32;
        float *own = shared + tgi_thread() / 32 * Rows * pitch + lane / 4 * pitch + lane % 4 * 2;
        const tgi_grid_schedule<Rows, Cols, TGI_TURN_SPLITS> schedule(given);
        const unsigned end = schedule.end();
#pragma unroll 1
        for (unsigned unit = schedule.begin(); unit < end; unit = schedule.next(unit)) {
            const tgi_gemm_args &args = schedule.problem(given, unit);
            const tgi_block_tile tile = schedule.tile(unit);
            float sums[row_fragments][col_fragments][4] = {};
            add_steps(args, tile, sums);
#pragma unroll
            for (int i = 0; i < row_fragments; i++)
#pragma unroll
                for (int j = 0; j < col_fragments; j++)
#pragma unroll
                    for (int h = 0; h < 2; h++)
                        *reinterpret_cast<float2 *>(own + (16 * i + 8 * h) * pitch + 8 * j) = {
                            sums[i][j][2 * h], sums[i][j][2 * h + 1]};
            /* Without this barrier elements would be stored before the other warps have put
             * their sums. */
            __syncthreads();
            tgi_store_tile<float, Rows, Cols, pitch, warps, Threads>(args, tile, shared);
            /* Without this barrier the next unit's sums would overwrite those not yet stored. */
            __syncthreads();
        }
    }
};

#endif
