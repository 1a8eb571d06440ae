/*
 * Family bf16d multiplies FP32 by products of slices of BF16, as bf16r does, and slices both
 * operands as it reads them. No pass comes before it, so that a product of few columns takes the
 * time of reading A once. The order of products is that of bf16r, and so are the bits: an
 * instruction of a warp and one of a warpgroup round alike, and the order of k in an instruction
 * does not count.
 *
 * A block has a tile of few columns. Its warps take chunks of k in turn. A lane loads what it
 * multiplies from global memory to its registers, a chunk ahead, so that no warp waits for another.
 * The warps exchange the sums of chunks, which are added in the order of k. The blocks of a cluster
 * share out the runs of k, and all of them add the runs of some elements.
 *
 *     setup()      finds the places in shared memory
 *     load()       loads a lane's elements of a chunk
 *     multiply()   forms the products of the slices of a chunk, and puts their sums
 *     finish()     adds runs, repairs sums that 16 bits might have spoiled, and stores the tile
 *
 * Lane 4 g + c has k = 4 c .. 4 c + 3 of each half of a chunk. Its rows of A are g and g + 8, or
 * 2 g and 2 g + 1 if they are loaded as pairs, from lines across k.
 */
#ifndef TGI_BF16D_CUH
#define TGI_BF16D_CUH

#include "kernels/bf16d/bf16d_sums.cuh"
#include "kernels/body.cuh"
#include "kernels/copy/slice_pairs.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/ptx/warp_mma.cuh"
#include "kernels/schedule/units_in_turn.cuh"

/* Cols is the number of columns of the tile. */
template <int Cols, int Threads> struct tgi_bf16d {
    static constexpr int rows = TGI_BF16D_ROWS, cols = Cols, warps = Threads / 32;
    static constexpr int col_fragments = Cols / 8, at_once = TGI_BF16D_AT_ONCE;
    static constexpr int has_one_tile = 1;
    typedef tgi_bf16d_sums<Cols, Threads> exchange;
    typedef tgi_bf16d_magnitudes sums; /* the sums of runs are in shared memory */
    static_assert(at_once % warps == 0, "a warp has as many chunks of an exchange as the others");

    /* Four values of k of each half of a chunk, of one line. */
    typedef float line[2][4];

    /* Holds a lane's elements of a chunk. */
    struct step {
        line a[2], b[col_fragments];
    };

    /* A lane's slices of a chunk, by slices and halves. */
    struct slices {
        uint32_t a[3][2][4], b[3][2][col_fragments][2];
    };

    /* Holds the addresses of the lane's elements of a tile. A line outside the operand stands for
     * the last one. */
    struct source {
        const tgi_problem &p;
        const float *a[2], *b[col_fragments];
        int lane_k;
        int a_vectors, b_vectors; /* 1: 16 bytes along k are loaded together */
        int a_pairs;              /* 1: two neighbouring rows are */

        __device__ __forceinline__ source(const tgi_gemm_args &args, const tgi_block_tile &tile)
            : p(args.problem)
        {
            const int lane = tgi_thread() % 32, g = lane / 4;
            const int row_last = tgi_clamp_count(p.m - tile.row, rows) - 1;
            const int col_last = tgi_clamp_count(p.n - tile.col, Cols) - 1;
            lane_k = lane % 4 * 4;
            a_vectors = args.a_along_k && args.a_vector_elems > 1;
            b_vectors = args.b_along_k && args.b_vector_elems > 1;
            a_pairs = tgi_bf16d_has_pairs(args, tile);
            const float *first_a =
                static_cast<const float *>(args.a) + tgi_offset(p.a, tile.batch, tile.row, lane_k);
            const float *first_b =
                static_cast<const float *>(args.b) + tgi_offset(p.b, tile.batch, lane_k, tile.col);
#pragma unroll
            for (int i = 0; i < 2; i++) {
                const int row = a_pairs ? 2 * g + i : g + 8 * i;
                a[i] = first_a + min(row, a_pairs ? row_last - 1 + i : row_last) * p.a.row;
            }
#pragma unroll
            for (int i = 0; i < col_fragments; i++)
                b[i] = first_b + min(g + 8 * i, col_last) * p.b.col;
        }
    };

    exchange added;
    tgi_block_tile tile;
    int chunk_begin, chunk_end; /* the block's chunks */

    __device__ __forceinline__ void setup(const tgi_bf16d_args &, char *shared)
    {
        added.setup(shared);
    }

    /* Loads a line from its first k of a chunk on, of which `left` exist, one by one. */
    static __device__ __forceinline__ void load_elements(const float *data, int64_t stride,
                                                         int left, line &elements)
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int i = 0; i < 4; i++)
                elements[half][i] = 16 * half + i < left ? data[(16 * half + i) * stride] : 0.0f;
    }

    static __device__ __forceinline__ void load_vectors(const float *data, line &elements)
    {
#pragma unroll
        for (int half = 0; half < 2; half++)
            *reinterpret_cast<float4 *>(elements[half]) =
                __ldg(reinterpret_cast<const float4 *>(data + 16 * half));
    }

    static __device__ __forceinline__ void load(const source &from, int chunk, step &next)
    {
        const tgi_problem &p = from.p;
        const int64_t first = static_cast<int64_t>(chunk) * TGI_CHUNK_ELEMS;
        const int64_t a_first = first * p.a.col, b_first = first * p.b.row;
        const int is_whole = first + TGI_CHUNK_ELEMS <= p.k;
        const int left = is_whole ? TGI_CHUNK_ELEMS : static_cast<int>(p.k - first) - from.lane_k;
        if (is_whole && from.a_vectors) {
            load_vectors(from.a[0] + a_first, next.a[0]);
            load_vectors(from.a[1] + a_first, next.a[1]);
        } else if (is_whole && from.a_pairs) {
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int i = 0; i < 4; i++) {
                    const float2 pair = __ldg(reinterpret_cast<const float2 *>(
                        from.a[0] + a_first + (16 * half + i) * p.a.col));
                    next.a[0][half][i] = pair.x;
                    next.a[1][half][i] = pair.y;
                }
        } else {
            load_elements(from.a[0] + a_first, p.a.col, left, next.a[0]);
            load_elements(from.a[1] + a_first, p.a.col, left, next.a[1]);
        }
        if (is_whole && from.b_vectors) {
#pragma unroll
            for (int i = 0; i < col_fragments; i++)
                load_vectors(from.b[i] + b_first, next.b[i]);
        } else {
#pragma unroll
            for (int i = 0; i < col_fragments; i++)
                load_elements(from.b[i] + b_first, p.b.row, left, next.b[i]);
        }
    }

    /* Slices the lane's elements of a chunk. */
    static __device__ __forceinline__ void slice(const step &own, sums &sum, slices &sliced)
    {
        uint32_t word[3];
#pragma unroll
        for (int half = 0; half < 2; half++)
#pragma unroll
            for (int j = 0; j < 2; j++) {
#pragma unroll
                for (int i = 0; i < 2; i++) {
                    float pair[2] = {own.a[i][half][2 * j], own.a[i][half][2 * j + 1]};
                    sum.widen(pair);
                    tgi_take_slices(pair, word);
#pragma unroll
                    for (int n = 0; n < 3; n++)
                        sliced.a[n][half][2 * j + i] = word[n];
                }
#pragma unroll
                for (int i = 0; i < col_fragments; i++) {
                    float pair[2] = {own.b[i][half][2 * j], own.b[i][half][2 * j + 1]};
                    sum.widen(pair);
                    tgi_take_slices(pair, word);
#pragma unroll
                    for (int n = 0; n < 3; n++)
                        sliced.b[n][half][i][j] = word[n];
                }
            }
    }

    /* Forms the six products of a chunk, each over both halves before the next one, and puts their
     * sums in place `place` of those that are exchanged. */
    __device__ __forceinline__ void multiply(const slices &sliced, int place) const
    {
        float total[col_fragments][4] = {};
#pragma unroll
        for (int product = 3; product < TGI_SLICE_PRODUCTS; product++)
#pragma unroll
            for (int half = 0; half < 2; half++)
#pragma unroll
                for (int i = 0; i < col_fragments; i++) {
                    const tgi_slice_pair own = tgi_find_pair(product);
                    const uint32_t(&b)[2] = sliced.b[own.b][half][i];
                    tgi_multiply_16x8x16<TG_TYPE_BF16>(total[i], sliced.a[own.a][half], b[0], b[1]);
                }
        float *target = added.find_chunk(place) + tgi_thread() % 32 * 2;
#pragma unroll
        for (int i = 0; i < col_fragments; i++)
#pragma unroll
            for (int h = 0; h < 2; h++)
                *reinterpret_cast<float2 *>(target + (2 * i + h) * 64) = {total[i][2 * h],
                                                                          total[i][2 * h + 1]};
    }

    /* Sums the block's runs of a tile. */
    template <class Schedule, typename Unit>
    __device__ __forceinline__ void sum(const tgi_bf16d_args &given, const Schedule &schedule,
                                        Unit unit, sums &sum)
    {
        const tgi_gemm_args &args = schedule.problem(given, unit).gemm;
        tile = schedule.tile(unit);
        const int64_t first = tgi_find_first_k(args, tile.split);
        const int64_t end = min(args.problem.k, first + args.split_elems);
        chunk_begin = static_cast<int>(first / TGI_CHUNK_ELEMS);
        chunk_end = static_cast<int>((end + TGI_CHUNK_ELEMS - 1) / TGI_CHUNK_ELEMS);
        sum = sums();
        const source from(args, tile);
        typename exchange::run run = {};
        int chunk = chunk_begin + tgi_make_uniform(tgi_thread() / 32), turn = 0;
        step next = {};
        if (chunk < chunk_end)
            load(from, chunk, next);
#pragma unroll 1
        for (int base = chunk_begin; base < chunk_end; base += at_once, turn ^= 1) {
            const int stop = min(base + at_once, chunk_end);
#pragma unroll 1
            for (; chunk < stop; chunk += warps) {
                slices sliced;
                slice(next, sum, sliced);
                if (chunk + warps < chunk_end)
                    load(from, chunk + warps, next);
                multiply(sliced, turn * at_once + chunk - base);
            }
            /* Without this barrier a thread would add sums that other warps have yet to put. It
             * adds them before the next barrier, and warps put theirs in these places again behind
             * that one. */
            __syncthreads();
            added.add_chunks(turn * at_once, stop - base, run);
            if (stop == chunk_end || stop % TGI_RUN_CHUNKS == 0)
                added.end_run(tile.split, (base - chunk_begin) / TGI_RUN_CHUNKS, run);
        }
    }

    template <class Schedule, typename Unit>
    __device__ __forceinline__ void finish(const tgi_bf16d_args &given, const Schedule &schedule,
                                           Unit unit, const sums &sum) const
    {
        added.finish(schedule.problem(given, unit), tile, sum);
    }
};

#endif
