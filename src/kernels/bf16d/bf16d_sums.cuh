/*
 * Adds the sums of family bf16d: of chunks, which the warps of a block exchange, and of runs of k,
 * which the blocks of a cluster share out. Then repairs sums that 16 bits might have spoiled, and
 * stores the tile.
 */
#ifndef TGI_BF16D_SUMS_CUH
#define TGI_BF16D_SUMS_CUH

#include "kernels/bf16d/bf16d_args.h"
#include "kernels/epilogue/slice_sums.cuh"
#include "kernels/ptx/cluster.cuh"
#include "kernels/ptx/cluster_element.cuh"
#include "kernels/ptx/cluster_memory.cuh"

/* Tells whether all numbers that a thread has sliced are plain: 0, or of magnitudes from
 * 2^-TGI_BF16D_PLAIN to 2^TGI_BF16D_PLAIN. No sum of products of plain numbers is doubtful. A test
 * of both limits for each number would take as long as its slices. */
struct tgi_bf16d_magnitudes {
    float squares = 0.0f;        /* the sum of the squares; not a number if one is none */
    uint32_t least = UINT32_MAX; /* the bits without the sign, two times, less one */

    __device__ __forceinline__ void widen(const float (&value)[2])
    {
#pragma unroll
        for (int i = 0; i < 2; i++) {
            squares = fmaf(value[i], value[i], squares);
            least = min(least, 2u * __float_as_uint(value[i]) - 1u); /* 0 becomes UINT32_MAX */
        }
    }

    __device__ __forceinline__ int are_plain(void) const
    {
        const float most = __uint_as_float((127u + 2u * TGI_BF16D_PLAIN) << 23);
        return squares < most && least >= ((127u - TGI_BF16D_PLAIN) << 24) - 1u;
    }
};

/* Returns 1 if lanes load pairs of neighbouring rows of A, from lines across k. */
static __device__ __forceinline__ int tgi_bf16d_has_pairs(const tgi_gemm_args &args,
                                                          const tgi_block_tile &tile)
{
    const int64_t left = args.problem.m - tile.row;
    return !args.a_along_k && args.a_vector_elems > 1 && (left >= TGI_BF16D_ROWS || left % 2 == 0);
}

/* A tile of sums lies as the lanes of a warp hold it: 64 sums of 8 rows and 8 columns together. */
template <int Cols, int Threads> struct tgi_bf16d_sums {
    static constexpr int rows = TGI_BF16D_ROWS;
    static constexpr int tile_elems = rows * Cols, own_elems = (tile_elems + Threads - 1) / Threads;
    static constexpr int at_once = TGI_BF16D_AT_ONCE;
    typedef float run[own_elems]; /* the thread's sums of a run */

    float *chunks, *runs; /* the sums of chunks that are exchanged; of runs */
    uint32_t *ranges;     /* largest and least of A, of B; 1: some numbers are not plain */

    /* The barriers of the exchange come before the first thread finds numbers that are not
     * plain. */
    __device__ __forceinline__ void setup(char *shared)
    {
        chunks = reinterpret_cast<float *>(shared);
        ranges = reinterpret_cast<uint32_t *>(chunks + 2 * at_once * tile_elems);
        runs = reinterpret_cast<float *>(ranges + TGI_BF16D_RANGE_BYTES / 4);
        if (tgi_thread() < 5)
            ranges[tgi_thread()] = tgi_thread() % 2 ? TGI_BITS_LARGEST : 0;
    }

    /* Returns the place of the sums of a chunk. */
    __device__ __forceinline__ float *find_chunk(int number) const
    {
        return chunks + number * tile_elems;
    }

    /* Adds the sums of `count` chunks from place `first` on, in order, to the thread's elements of
     * the run. */
    __device__ __forceinline__ void add_chunks(int first, int count, run &sum) const
    {
        const float *from = find_chunk(first);
#pragma unroll
        for (int i = 0; i < own_elems; i++) {
            const int elem = tgi_thread() + i * Threads;
            if (tile_elems % Threads != 0 && elem >= tile_elems)
                break;
            if (count == at_once) {
#pragma unroll
                for (int chunk = 0; chunk < at_once; chunk++)
                    sum[i] += from[chunk * tile_elems + elem];
            } else {
#pragma unroll 1
                for (int chunk = 0; chunk < count; chunk++)
                    sum[i] += from[chunk * tile_elems + elem];
            }
        }
    }

    /* Ends the run of this number of the block. Block 0 adds its runs, the others keep each. */
    __device__ __forceinline__ void end_run(int rank, int number, run &sum) const
    {
        const int is_more = rank == 0 && number > 0;
        float *target = runs + (rank == 0 ? 0 : number) * tile_elems;
#pragma unroll
        for (int i = 0; i < own_elems; i++) {
            const int elem = tgi_thread() + i * Threads;
            if (tile_elems % Threads != 0 && elem >= tile_elems)
                break;
            target[elem] = is_more ? target[elem] + sum[i] : sum[i];
            sum[i] = 0.0f;
        }
    }

    /* Returns a word of shared memory of block `rank` of the cluster of `count`. */
    static __device__ __forceinline__ float read(const float *word, int rank, int count)
    {
        float value;
        if (count == 1)
            return *word;
        tgi_read_remote(value, tgi_find_remote(tgi_shared_address(word), rank));
        return value;
    }

    /* Extends the block's range of A, or of B if `operand` is 1, by `count` lines. Each warp scans
     * every so many of them. */
    __device__ __forceinline__ void scan(int operand, const float *line, int64_t line_stride,
                                         int64_t k_stride, int count, int k) const
    {
#pragma unroll 1
        for (int i = tgi_thread() / 32; i < count; i += Threads / 32) {
            uint32_t largest = 0, least = TGI_BITS_LARGEST;
#pragma unroll 1
            for (int at = tgi_thread() % 32; at < k; at += 32) {
                const float value = line[i * line_stride + at * k_stride];
                const uint32_t bits = __float_as_uint(value) & 0x7fffffffu;
                largest = max(largest, bits);
                least = min(least, bits ? bits : TGI_BITS_LARGEST);
            }
            atomicMax(&ranges[2 * operand], largest);
            atomicMin(&ranges[2 * operand + 1], least);
        }
    }

    /* Returns the magnitude up to which sums of the tile may be spoiled (tgi_find_doubt). */
    __device__ __forceinline__ float find_doubt(const tgi_bf16d_args &args,
                                                const tgi_block_tile &tile) const
    {
        const tgi_problem &p = args.gemm.problem;
        int is_plain = 1;
#pragma unroll 1
        for (int rank = 0; rank < args.gemm.split_count; rank++) {
            const float *word = reinterpret_cast<const float *>(ranges) + 4;
            is_plain &= __float_as_uint(read(word, rank, args.gemm.split_count)) == 0;
        }
        if (is_plain)
            return 0.0f;
        const float *a = static_cast<const float *>(args.gemm.a);
        const float *b = static_cast<const float *>(args.gemm.b);
        scan(0, a + tgi_offset(p.a, tile.batch, tile.row, 0), p.a.row, p.a.col,
             static_cast<int>(min(p.m - tile.row, int64_t{rows})), static_cast<int>(p.k));
        scan(1, b + tgi_offset(p.b, tile.batch, 0, tile.col), p.b.col, p.b.row,
             static_cast<int>(min(p.n - tile.col, int64_t{Cols})), static_cast<int>(p.k));
        /* Without this barrier a thread would read ranges that others have yet to extend. */
        __syncthreads();
        return tgi_find_doubt(args, {ranges[0], ranges[1]}, {ranges[2], ranges[3]});
    }

    /* Returns element `elem` of the tile, the sum of its runs in order. */
    __device__ __forceinline__ float add_runs(const tgi_gemm_args &args, int elem) const
    {
        constexpr int together = 4;
        const int count = args.split_count;
        const int run_elems = TGI_RUN_CHUNKS * TGI_CHUNK_ELEMS;
        const int of_block = static_cast<int>(args.split_elems / run_elems);
        const int run_count = static_cast<int>((args.problem.k + run_elems - 1) / run_elems);
        float sum = read(runs + elem, 0, count);
#pragma unroll 1
        for (int first = of_block; count > 1 && first < run_count; first += together) {
            float part[together];
#pragma unroll
            for (int i = 0; i < together; i++) {
                const int run = min(first + i, run_count - 1);
                part[i] = read(runs + run % of_block * tile_elems + elem, run / of_block, count);
            }
#pragma unroll
            for (int i = 0; i < together; i++)
                if (first + i < run_count)
                    sum += part[i];
        }
        return sum;
    }

    /* Returns the sum of element (row, col) of D, by FP32 multiply-adds if it is doubtful. */
    static __device__ __noinline__ float repair(const tgi_bf16d_args &args, int64_t batch,
                                                int64_t row, int64_t col, float sum)
    {
        const tgi_problem &p = args.gemm.problem;
        const int k = static_cast<int>(p.k);
        const float *a = static_cast<const float *>(args.gemm.a) + tgi_offset(p.a, batch, row, 0);
        const float *b = static_cast<const float *>(args.gemm.b) + tgi_offset(p.b, batch, 0, col);
        const float doubt = tgi_find_doubt(args, tgi_scan_line(args.a_slices, a, p.a.col, k),
                                           tgi_scan_line(args.b_slices, b, p.b.row, k));
        if (doubt == 0.0f || fabsf(sum) > doubt)
            return sum;
        sum = 0.0f;
#pragma unroll 2
        for (int i = 0; i < k; i++)
            sum = fmaf(a[i * p.a.col], b[i * p.b.row], sum);
        return sum;
    }

    /* Returns the place of an element of the tile among its sums. */
    static __device__ __forceinline__ int find_place(int row, int col, int has_pairs)
    {
        const int line = has_pairs ? row % 2 * 8 + row / 2 : row;
        return (col / 8 * 2 + line / 8) * 64 + line % 8 * 8 + col % 8;
    }

    /* Stores the block's share of the elements of a tile. */
    __device__ __forceinline__ void finish(const tgi_bf16d_args &args, const tgi_block_tile &tile,
                                           const tgi_bf16d_magnitudes &sum) const
    {
        const tgi_gemm_args &gemm = args.gemm;
        const tgi_problem &p = gemm.problem;
        const int count = gemm.split_count;
        if (!sum.are_plain())
            ranges[4] = 1;
        /* Without these barriers a thread would read what others have yet to write. */
        if (count > 1)
            tgi_cluster_meet();
        else
            __syncthreads();
        const float doubt = find_doubt(args, tile);
        const int has_pairs = tgi_bf16d_has_pairs(gemm, tile);
        const int is_along_rows = p.d.row == 1;
#pragma unroll 1
        for (int i = tile.split * Threads + tgi_thread(); i < tile_elems; i += count * Threads) {
            const int row = is_along_rows ? i % rows : i / Cols;
            const int col = is_along_rows ? i / rows : i % Cols;
            if (tile.row + row >= p.m || tile.col + col >= p.n)
                continue;
            float value[1] = {add_runs(gemm, find_place(row, col, has_pairs))};
            if (doubt != 0.0f)
                value[0] = repair(args, tile.batch, tile.row + row, tile.col + col, value[0]);
            const tgi_column_places place = {0, 1, 1};
            if (gemm.is_sum_alone)
                tgi_write_elements(gemm,
                                   tgi_offset(p.d, tile.batch, tile.row + row, tile.col + col),
                                   place, value);
            else
                tgi_finish_elements(gemm, tile.batch, tile.row + row, tile.col + col, place, value);
        }
        /* Without this barrier a block could end while others still read its shared memory. */
        if (count > 1)
            tgi_cluster_meet();
    }
};

#endif
