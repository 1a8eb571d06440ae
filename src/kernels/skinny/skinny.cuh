/*
 * Families dot and rank form a D of few rows, whose time is that of reading B once. A block streams
 * B in stages of lines, enough of them that the memory system is never idle. A stage also has the
 * same k of A.
 *
 *   dot:  a line runs along k, one for each of the tile's columns.
 *   rank: a line runs along n, one for each of the stage's k.
 *
 * The body decides the layout of a stage and how it is multiplied: fma.cuh has multiply-adds of
 * FP32 or FP64, dot_mma.cuh and rank_mma.cuh have matrix instructions on narrower types. A body has
 *
 *     elem, sum              types of B's elements and of sums
 *     arguments              the kernel's argument: tgi_gemm_args, or what holds them
 *     along_k, rows, cols    1 for dot; the tile
 *     has_fewer_cols         1: tiles have tile_cols of the arguments, no more than cols
 *     depth, threads         k of a stage; threads of a block
 *     sum_tiles              tiles of sums in shared memory that add up to the block's
 *     sum_first, sum_pitch   sums before the tile's first; from row to row
 *     warp_line_stride       lines from a warp's first of a stage to the next warp's
 *
 * and, where its stages lie in shared memory,
 *
 *     stages                 how many there are
 *     shared_stage, sums     a stage; a lane's sums, zero where a tile begins
 *     setup                  prepares the stages, once
 *     load, wait             issues the copies of a stage; waits for those that it leaves to TMA
 *     multiply               adds the products of a stage
 *     finish                 puts a tile's sums into shared memory, from where tgi_skinny_store
 *                            brings them to D
 *
 * These are the four of kernels/body.cuh. The loop that calls them is here, because B is read
 * without a pause: a block loads the first steps of its next tile while it still multiplies the
 * last ones of a tile.
 */
#ifndef TGI_SKINNY_CUH
#define TGI_SKINNY_CUH

#include "kernels/body.cuh"
#include "kernels/copy/tile_copy.cuh"
#include "kernels/epilogue/tile_store.cuh"
#include "kernels/schedule/unit_ranges.cuh"
#include "kernels/skinny/rank_args.h"

static __device__ __forceinline__ const tgi_gemm_args &tgi_get_gemm(const tgi_gemm_args &args)
{
    return args;
}

static __device__ __forceinline__ const tgi_gemm_args &tgi_get_gemm(const tgi_rank_args &args)
{
    return args.gemm;
}

template <typename Body>
static __device__ __forceinline__ int tgi_find_tile_cols(const tgi_gemm_args &args)
{
    return Body::has_fewer_cols ? args.tile_cols : Body::cols;
}

/* A cursor is the place of a block in its work: a tile, and steps of the body's depth along k
 * within it. */
template <typename Body> struct tgi_skinny_cursor {
    typedef typename Body::elem elem;
    typedef tgi_range_schedule<Body::has_fewer_cols> schedule;

    int64_t unit, end; /* the first unit of this block's next tile; the block's end */
    tgi_block_tile tile;
    int64_t k, last;   /* the next step's first k, and the end of this block's range in the tile */
    const elem *a, *b; /* at k: row 0 of A, and the warp's first line of B */

    /* Returns the problem that the tile belongs to. */
    template <class Args>
    __device__ __forceinline__ const Args &find_problem(const Args &given) const
    {
        return schedule::problem_before(given, unit);
    }

    __device__ __forceinline__ void enter(const tgi_gemm_args &given, const schedule &work)
    {
        if (unit >= end)
            return;
        const tgi_gemm_args &args = schedule::problem(given, unit);
        const tgi_problem &p = args.problem;
        work.take(args, tgi_find_tile_cols<Body>(args), unit, tile, k, last);
        const int first_line = threadIdx.x / 32 * Body::warp_line_stride;
        a = static_cast<const elem *>(args.a) + tile.batch * p.a.batch + k * p.a.col;
        b = static_cast<const elem *>(args.b) + tile.batch * p.b.batch + k * p.b.row +
            tile.col * p.b.col + first_line * (Body::along_k ? p.b.col : p.b.row);
    }

    /* Advances by a step. Returns 1 if that was the last one in the tile. */
    __device__ __forceinline__ int advance(const tgi_gemm_args &given)
    {
        const tgi_gemm_args &args = find_problem(given);
        k += Body::depth;
        a += Body::depth * args.problem.a.col;
        b += Body::depth * args.problem.b.row;
        return k >= last;
    }
};

/* Stores the first `used` columns of a whole tile if D is the sum alone, as BF16 or FP16, a row a
 * warp. The epilogue's code is long, and waits element by element. */
template <typename Body>
static __device__ __forceinline__ void tgi_skinny_store_16(const tgi_gemm_args &args,
                                                           const tgi_block_tile &tile, int used,
                                                           const float *sums)
{
    const tgi_problem &p = args.problem;
    const int cols = tgi_clamp_count(p.n - tile.col, used);
    for (int row = threadIdx.x / 32; row < p.m; row += Body::threads / 32) {
        uint16_t *d = static_cast<uint16_t *>(args.d) + tile.batch * p.d.batch + row * p.d.row +
                      tile.col * p.d.col;
#pragma unroll 4
        for (int col = threadIdx.x % 32; col < cols; col += 32) {
            float sum = 0.0f;
#pragma unroll
            for (int from = 0; from < Body::sum_tiles; from++)
                sum += sums[(from * Body::rows + row) * Body::sum_pitch + col];
            d[col * p.d.col] =
                p.d_type == TG_TYPE_BF16 ? tgi_encode_bf16(sum) : tgi_encode_fp16(sum);
        }
    }
}

/* Stores the sums of a tile. Splits that the tile does not have are zero, so that all tiles
 * have split_count of them. */
template <typename Body>
static __device__ __forceinline__ void tgi_skinny_store(const tgi_gemm_args &given,
                                                        const tgi_skinny_cursor<Body> &at,
                                                        const typename Body::sum *sums)
{
    typedef typename Body::sum sum;
    const tgi_gemm_args &args = at.find_problem(given);
    const int rows = Body::rows, cols = Body::cols;
    tgi_block_tile tile = at.tile;
    const int used = tgi_find_tile_cols<Body>(args);
    if constexpr (sizeof(typename Body::elem) < 4)
        if (args.is_sum_alone && args.split_count == 1 &&
            (args.problem.d_type == TG_TYPE_BF16 || args.problem.d_type == TG_TYPE_FP16)) {
            tgi_skinny_store_16<Body>(args, tile, used, sums + Body::sum_first);
            return;
        }
    tgi_store_tile<sum, rows, cols, Body::sum_pitch, Body::sum_tiles, Body::threads>(
        args, tile, sums + Body::sum_first, used);
    if (args.split_count == 1 || at.last < args.problem.k)
        return;
    while (++tile.split < args.split_count) {
        sum *target =
            static_cast<sum *>(args.workspace) +
            (tile.batch * args.split_count + tile.split) * args.problem.m * args.problem.n;
        for (int i = threadIdx.x; i < rows * cols; i += Body::threads)
            if (i / cols < args.problem.m && i % cols < used &&
                tile.col + i % cols < args.problem.n)
                target[i / cols * args.problem.n + tile.col + i % cols] = sum(0);
    }
}

/* This is the kernel of bodies whose stages lie in shared memory. */
template <typename Body> struct tgi_skinny_kernel {
    typedef typename Body::sum sum;
    typedef typename Body::arguments arguments;
    typedef tgi_skinny_cursor<Body> cursor;

    struct shared_all {
        typename Body::shared_stage stages[Body::stages];
        sum sums[Body::sum_tiles * Body::rows * Body::sum_pitch];
    };

    /* Room to align the stages, where the kernel's shared memory is less aligned. */
    static constexpr int align_bytes = alignof(shared_all) > 128 ? alignof(shared_all) : 0;
    static constexpr int shared_bytes = sizeof(shared_all) + align_bytes;

    /* Forms the block's tiles. B is read without a pause, also while a tile is stored. */
    static __device__ __forceinline__ void form(const arguments &given, char *shared)
    {
        tgi_check_body<Body>();
        tgi_check_sum<Body>();
        static_assert(Body::stages >= 2, "a stage is read while others are filled");
        if (align_bytes > 0)
            shared += -tgi_shared_address(shared) % alignof(shared_all);
        shared_all &all = *reinterpret_cast<shared_all *>(shared);
        const tgi_gemm_args &args = tgi_get_gemm(given);
        const typename cursor::schedule work(args, tgi_find_tile_cols<Body>(args));
        cursor filling, adding;
        filling.unit = work.begin();
        filling.end = work.end();
        filling.k = filling.last = 0;
        filling.enter(args, work);
        adding = filling;
        typename Body::sums sums = {};
        int read = 0, write = 0;
        uint32_t parity = 0; /* parity of the stages that are read */
        Body::setup(given, all.stages);
#pragma unroll 1
        for (int step = 1 - Body::stages; adding.k < adding.last; step++) {
            if (step >= 0) {
                tgi_copy_async_wait<Body::stages - 2>();
                Body::wait(given, all.stages[read], parity);
                /* Without this barrier a warp would read elements that others' copies have yet to
                 * write, refill the stage that others still read, and put sums where those of the
                 * tile before have yet to be stored. */
                __syncthreads();
            }
            if (filling.k < filling.last) {
                Body::load(filling.find_problem(given), filling, all.stages[write]);
                if (filling.advance(args))
                    filling.enter(args, work);
            }
            tgi_copy_async_commit();
            write = write + 1 == Body::stages ? 0 : write + 1;
            if (step < 0)
                continue;
            Body::multiply(adding.find_problem(args), adding, all.stages[read], sums);
            if (++read == Body::stages) {
                read = 0;
                parity ^= 1;
            }
            if (adding.advance(args)) {
                Body::finish(adding.find_problem(args), adding, sums, all.sums);
                /* Without this barrier elements would be stored before the other warps have put
                 * theirs. */
                __syncthreads();
                tgi_skinny_store<Body>(args, adding, all.sums);
                sums = typename Body::sums();
                adding.enter(args, work);
            }
        }
    }
};

#endif
