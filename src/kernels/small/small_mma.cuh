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

/* A lane loads its elements singly, 8 along k, by pairs along k, or by pairs of lines, of which all
 * or none exist. */
typedef enum tgi_small_access {
    TGI_SMALL_SINGLE,
    TGI_SMALL_UNITS,
    TGI_SMALL_K_PAIRS,
    TGI_SMALL_LINE_PAIRS
} tgi_small_access;

/* Returns how an operand is loaded whose lines allow `elems` neighbours at once. */
template <int Has_pairs>
static __device__ __forceinline__ tgi_small_access tgi_small_find_access(int along_k, int elems)
{
    if (Has_pairs && elems == 2)
        return along_k ? TGI_SMALL_K_PAIRS : TGI_SMALL_LINE_PAIRS;
    return along_k && elems > 1 ? TGI_SMALL_UNITS : TGI_SMALL_SINGLE;
}

/* A lane's elements of Lines lines of an operand, 8 lines apart, in a step of 32 of k. */
template <int Lines, int Has_pairs> struct tgi_small_fragment {
    uint32_t word[Lines][4];

    /* Loads the elements of lines 2 g and 2 g + 1, which are neighbours. */
    __device__ __forceinline__ void load_line_pairs(const uint16_t *data, int64_t k_stride,
                                                    int k_count)
    {
        static_assert(Lines == 2, "a lane has one pair of lines");
        uint32_t pair[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            pair[j] = j < k_count ? *reinterpret_cast<const uint32_t *>(data + j * k_stride) : 0;
#pragma unroll
        for (int j = 0; j < 4; j++) {
            word[0][j] = __byte_perm(pair[2 * j], pair[2 * j + 1], 0x5410);
            word[1][j] = __byte_perm(pair[2 * j], pair[2 * j + 1], 0x7632);
        }
    }

    /* Loads a step from `data`, the lane's first element of it. line_count lines, from the lane's
     * first on, and k_count of k exist; the others are zero. */
    __device__ __forceinline__ void load(const uint16_t *data, int64_t line_stride,
                                         int64_t k_stride, int line_count, int k_count,
                                         tgi_small_access access)
    {
        if (Has_pairs && access == TGI_SMALL_LINE_PAIRS) {
            load_line_pairs(data, k_stride, line_count > 0 ? k_count : 0);
            return;
        }
#pragma unroll
        for (int i = 0; i < Lines; i++) {
            const uint16_t *line = data + 8 * i * line_stride;
            if (8 * i >= line_count) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    word[i][j] = 0;
                continue;
            }
            if (access == TGI_SMALL_UNITS && k_count >= 8) {
                const uint4 unit = *reinterpret_cast<const uint4 *>(line);
                word[i][0] = unit.x;
                word[i][1] = unit.y;
                word[i][2] = unit.z;
                word[i][3] = unit.w;
                continue;
            }
            if (Has_pairs && access == TGI_SMALL_K_PAIRS) {
#pragma unroll
                for (int j = 0; j < 4; j++)
                    word[i][j] =
                        2 * j < k_count ? *reinterpret_cast<const uint32_t *>(line + 2 * j) : 0;
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

/* Rows x Cols is the block's tile. If Has_pairs is 1, operands may be loaded by pairs. Kernels
 * without that code are faster where it is not needed. */
template <tg_type Type, int Rows, int Cols, int Threads, int Has_pairs> struct tgi_small_mma {
    static constexpr int warps = Threads / 32, step_elems = 32, stride = warps * step_elems;
    static constexpr int row_fragments = Rows / 16, col_fragments = Cols / 8;
    /* The pitch of a warp's sums in shared memory puts pairs of neighbouring lines into different
     * banks. */
    static constexpr int pitch = Cols + 8;

    typedef float sums[row_fragments][col_fragments][4];
    static constexpr int has_one_tile = 0;

    /* Holds a lane's words of a step. */
    struct step {
        tgi_small_fragment<2 * row_fragments, Has_pairs> a;
        tgi_small_fragment<col_fragments, Has_pairs> b;
    };

    /* Holds the addresses and limits of the lane's elements of a tile, from the next step on. */
    struct source {
        const tgi_problem &p;
        const uint16_t *a, *b;
        int rows, cols; /* lines that exist, from the lane's first one on */
        int left;       /* k from the lane's first one on, without those before it in the step */
        tgi_small_access a_access, b_access;

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile)
            : p(args.problem)
        {
            const int lane = tgi_thread() % 32, g = lane / 4;
            const int64_t first = tgi_find_first_k(args, tile.split);
            const int64_t k = first + tgi_thread() / 32 * step_elems + lane % 4 * 8;
            a_access = tgi_small_find_access<Has_pairs>(args.a_along_k, args.a_vector_elems);
            b_access = tgi_small_find_access<Has_pairs>(args.b_along_k, args.b_vector_elems);
            const int row = g << (a_access == TGI_SMALL_LINE_PAIRS);
            const int col = g << (b_access == TGI_SMALL_LINE_PAIRS);
            a = tgi_find_a<uint16_t>(args, tile, k) + row * p.a.row;
            b = tgi_find_b<uint16_t>(args, tile, k) + col * p.b.col;
            rows = tgi_clamp_count(p.m - tile.row, Rows) - row;
            cols = tgi_clamp_count(p.n - tile.col, Cols) - col;
            left = static_cast<int>(min(tgi_count_k(args, first), int64_t{INT32_MAX})) -
                   static_cast<int>(k - first);
        }
    };

    float *shared, *own; /* sums of the block's warps, and the lane's first one */
    /* Pairs of lines lie side by side in the tile. Then the lane's two rows do, and the columns of
     * its two instructions. */
    int has_row_pairs, has_col_pairs;
    tgi_block_tile tile;

    __device__ __forceinline__ void setup(const tgi_gemm_args &args, float *memory)
    {
        const int lane = tgi_thread() % 32;
        has_row_pairs = tgi_small_find_access<Has_pairs>(args.a_along_k, args.a_vector_elems) ==
                        TGI_SMALL_LINE_PAIRS;
        has_col_pairs = tgi_small_find_access<Has_pairs>(args.b_along_k, args.b_vector_elems) ==
                        TGI_SMALL_LINE_PAIRS;
        shared = memory;
        own = shared + tgi_thread() / 32 * Rows * pitch + (lane / 4 << has_row_pairs) * pitch +
              (lane % 4 * 2 << has_col_pairs);
    }

    static __device__ __forceinline__ void load(source &copies, step &one)
    {
        const tgi_problem &p = copies.p;
        one.a.load(copies.a, p.a.row, p.a.col, copies.rows, copies.left, copies.a_access);
        one.b.load(copies.b, p.b.col, p.b.row, copies.cols, copies.left, copies.b_access);
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
        const int row_apart = has_row_pairs ? pitch : 8 * pitch;
#pragma unroll
        for (int i = 0; i < row_fragments; i++)
#pragma unroll
            for (int j = 0; j < col_fragments; j++)
#pragma unroll
                for (int h = 0; h < 2; h++) {
                    float *to = own + 16 * i * pitch + h * row_apart;
                    const float2 pair = {sum[i][j][2 * h], sum[i][j][2 * h + 1]};
                    if (Has_pairs && has_col_pairs) {
                        to[j] = pair.x;
                        to[j + 2] = pair.y;
                    } else {
                        *reinterpret_cast<float2 *>(to + 8 * j) = pair;
                    }
                }
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
