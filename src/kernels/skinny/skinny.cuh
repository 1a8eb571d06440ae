/*
 * Families `dot` and `rank`: D has few rows, so that time is that of reading B once. A block
 * streams B in stages of lines, so many that the memory system is never idle; A's slice of each
 * stage comes along.
 *
 * dot:  a line runs along k, one for each of the tile's columns.
 * rank: a line runs along n, one for each of the stage's k.
 *
 * How a stage lies and what is done with it is the body's affair: fma.cuh, by multiply-adds of FP32
 * or FP64; dot_mma.cuh and rank_mma.cuh, by matrix instructions on narrower types. A body has
 *
 *     elem, sum              types of B's elements and of sums
 *     arguments              of the kernel: tgi_gemm_args, or what has them
 *     along_k, rows, cols    1 for dot; the tile
 *     has_fewer_cols         1: tiles have tile_cols of the arguments, no more than cols
 *     depth, threads
 *     sum_parts              tiles of sums in shared memory that add up to the block's
 *     sum_first, sum_pitch   sums before the tile's first; from row to row
 *     warp_line_step         lines from a warp's first of a stage to the next warp's
 *
 * and, where its stages lie in shared memory,
 *
 *     stages                 how many there are
 *     shared_stage, sums     a stage; a lane's sums, zero where a tile begins
 *     prepare, wait          before all; for what load leaves to others than this thread's copies
 *     load, add              starts the copies of a stage; adds its products
 *     gather                 puts a tile's sums into shared memory
 */
#ifndef TGI_SKINNY_CUH
#define TGI_SKINNY_CUH

#include "kernels/skinny/rank_args.h"
#include "kernels/tile_io.cuh"

static __device__ __forceinline__ const tgi_gemm_args &tgi_get_gemm(const tgi_gemm_args &args)
{
    return args;
}

static __device__ __forceinline__ const tgi_gemm_args &tgi_get_gemm(const tgi_rank_args &args)
{
    return args.gemm;
}

/* How the grid shares out the work. A tile of D takes tile_units units of k_part_elems of k, and
 * each block a range of consecutive units, of one tile after another. A tile that several blocks
 * share has a part of k from each. Is_dealt = 1: whole tiles are dealt out in turn, so that all
 * blocks read the same lines of B at a time, each the columns behind the other's: memory is slower
 * where they are far apart. */
template <int Is_dealt> struct tgi_skinny_schedule {
    int64_t col_blocks, tile_units, unit_count;
    int is_dealt;

    __device__ __forceinline__ tgi_skinny_schedule(const tgi_gemm_args &args, int cols)
    {
        is_dealt = Is_dealt && args.k_part_count == 1;
        col_blocks = (args.problem.n + cols - 1) / cols;
        tile_units = (args.problem.k + args.k_part_elems - 1) / args.k_part_elems;
        unit_count = col_blocks * args.problem.batch_count * tile_units;
    }

    __device__ __forceinline__ int64_t first_unit(int64_t block) const
    {
        return block * unit_count / gridDim.x;
    }

    /* This block's first unit; where it ends; its next, behind one whose tile ends at tile_end. */
    __device__ __forceinline__ int64_t begin(void) const
    {
        return is_dealt ? blockIdx.x : first_unit(blockIdx.x);
    }

    __device__ __forceinline__ int64_t end(void) const
    {
        return is_dealt ? unit_count : first_unit(blockIdx.x + 1);
    }

    __device__ __forceinline__ int64_t next(int64_t unit, int64_t tile_end) const
    {
        return is_dealt ? unit + gridDim.x : min(end(), tile_end);
    }

    /* The block that has the unit. */
    __device__ __forceinline__ int64_t owner(int64_t unit) const
    {
        return ((unit + 1) * gridDim.x - 1) / unit_count;
    }
};

template <typename Body>
static __device__ __forceinline__ int tgi_find_tile_cols(const tgi_gemm_args &args)
{
    return Body::has_fewer_cols ? args.tile_cols : Body::cols;
}

/* Where a block is in its work: a tile, and steps of the body's depth along k within it. */
template <typename Body> struct tgi_skinny_cursor {
    typedef typename Body::elem elem;
    typedef tgi_skinny_schedule<Body::has_fewer_cols> schedule;

    int64_t unit, end; /* the tile's first unit that is this block's; the block's end */
    tgi_tile_place place;
    int64_t k, last;   /* next step's first k, and the end of this block's in the tile */
    const elem *a, *b; /* at k: of row 0, and of the warp's first line */

    __device__ __forceinline__ void enter(const tgi_gemm_args &args, const schedule &work)
    {
        if (unit >= end)
            return;
        const tgi_problem &p = args.problem;
        const int64_t tile = unit / work.tile_units, tile_unit = tile * work.tile_units;
        place.row = 0;
        place.col = tile % work.col_blocks * tgi_find_tile_cols<Body>(args);
        place.batch = tile / work.col_blocks;
        place.k_part = args.k_part_count == 1 ? 0 : blockIdx.x - work.owner(tile_unit);
        k = (unit - tile_unit) * args.k_part_elems;
        unit = work.next(unit, tile_unit + work.tile_units);
        last = min(p.k, (unit - tile_unit) * args.k_part_elems);
        const int first_line = threadIdx.x / 32 * Body::warp_line_step;
        a = static_cast<const elem *>(args.a) + place.batch * p.a.batch + k * p.a.col;
        b = static_cast<const elem *>(args.b) + place.batch * p.b.batch + k * p.b.row +
            place.col * p.b.col + first_line * (Body::along_k ? p.b.col : p.b.row);
    }

    /* Goes on by a step; 1 where that was the last in the tile. */
    __device__ __forceinline__ int advance(const tgi_gemm_args &args)
    {
        k += Body::depth;
        a += Body::depth * args.problem.a.col;
        b += Body::depth * args.problem.b.row;
        return k >= last;
    }
};

/* Stores the first `used` columns of a whole tile where D is the sum, as BF16 or FP16: a warp to a
 * row. The epilogue's code is long, and waits element by element. */
template <typename Body>
static __device__ __forceinline__ void tgi_skinny_store_16(const tgi_gemm_args &args,
                                                           const tgi_tile_place &place, int used,
                                                           const float *sums)
{
    const tgi_problem &p = args.problem;
    const int cols = tgi_clamp_count(p.n - place.col, used);
    for (int row = threadIdx.x / 32; row < p.m; row += Body::threads / 32) {
        uint16_t *d = static_cast<uint16_t *>(args.d) + place.batch * p.d.batch + row * p.d.row +
                      place.col * p.d.col;
#pragma unroll 4
        for (int col = threadIdx.x % 32; col < cols; col += 32) {
            float sum = 0.0f;
#pragma unroll
            for (int part = 0; part < Body::sum_parts; part++)
                sum += sums[(part * Body::rows + row) * Body::sum_pitch + col];
            d[col * p.d.col] =
                p.d_type == TG_TYPE_BF16 ? tgi_encode_bf16(sum) : tgi_encode_fp16(sum);
        }
    }
}

/* Stores the sums of a tile. Parts of k that the tile does not have are zero, so that all tiles
 * have k_part_count of them. */
template <typename Body>
static __device__ __forceinline__ void tgi_skinny_store(const tgi_gemm_args &args,
                                                        const tgi_skinny_cursor<Body> &at,
                                                        const typename Body::sum *sums)
{
    typedef typename Body::sum sum;
    const int rows = Body::rows, cols = Body::cols;
    tgi_tile_place place = at.place;
    const int used = tgi_find_tile_cols<Body>(args);
    if constexpr (sizeof(typename Body::elem) < 4)
        if (args.is_sum_alone && args.k_part_count == 1 &&
            (args.problem.d_type == TG_TYPE_BF16 || args.problem.d_type == TG_TYPE_FP16)) {
            tgi_skinny_store_16<Body>(args, place, used, sums + Body::sum_first);
            return;
        }
    tgi_store_tile<sum, rows, cols, Body::sum_pitch, Body::sum_parts, Body::threads>(
        args, place, sums + Body::sum_first, used);
    if (args.k_part_count == 1 || at.last < args.problem.k)
        return;
    while (++place.k_part < args.k_part_count) {
        sum *target =
            static_cast<sum *>(args.workspace) +
            (place.batch * args.k_part_count + place.k_part) * args.problem.m * args.problem.n;
        for (int i = threadIdx.x; i < rows * cols; i += Body::threads)
            if (i / cols < args.problem.m && i % cols < used &&
                place.col + i % cols < args.problem.n)
                target[i / cols * args.problem.n + place.col + i % cols] = sum(0);
    }
}

/* The product, by a body whose stages lie in shared memory. */
template <typename Body> struct tgi_skinny {
    typedef typename Body::sum sum;
    typedef typename Body::arguments arguments;
    typedef tgi_skinny_cursor<Body> cursor;

    struct shared_all {
        typename Body::shared_stage stages[Body::stages];
        sum sums[Body::sum_parts * Body::rows * Body::sum_pitch];
    };

    /* With room to align them, where the kernel's shared memory is less aligned. */
    static constexpr int align_bytes = alignof(shared_all) > 128 ? alignof(shared_all) : 0;
    static constexpr int shared_bytes = sizeof(shared_all) + align_bytes;

    /* B is read without a pause, also while the sums of a tile are stored. */
    static __device__ __forceinline__ void multiply(const arguments &given, char *shared)
    {
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
        uint32_t parity = 0; /* of the turn in which stages are read */
        Body::prepare(given, all.stages);
#pragma unroll 1
        for (int step = 1 - Body::stages; adding.k < adding.last; step++) {
            if (step >= 0) {
                tgi_copy_async_wait<Body::stages - 2>();
                Body::wait(given, all.stages[read], parity);
                /* Without it a warp would read what others copied before it is there, refill the
                 * stage that others still read, and put sums where those of the tile before have
                 * not been stored. */
                __syncthreads();
            }
            if (filling.k < filling.last) {
                Body::load(given, filling, all.stages[write]);
                if (filling.advance(args))
                    filling.enter(args, work);
            }
            tgi_copy_async_commit();
            write = write + 1 == Body::stages ? 0 : write + 1;
            if (step < 0)
                continue;
            Body::add(args, all.stages[read], sums);
            if (++read == Body::stages) {
                read = 0;
                parity ^= 1;
            }
            if (adding.advance(args)) {
                Body::gather(args, adding, sums, all.sums);
                /* Without it elements would be stored before the other warps have put theirs. */
                __syncthreads();
                tgi_skinny_store<Body>(args, adding, all.sums);
                sums = typename Body::sums();
                adding.enter(args, work);
            }
        }
    }
};

#endif
