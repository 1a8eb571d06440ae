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
 *     along_k, rows, cols    1 for dot; the tile
 *     depth, threads
 *     sum_parts              tiles of sums in shared memory that add up to the block's
 *     warp_lines             lines of a stage that a warp copies, one warp after another
 *
 * and, where its stages lie in shared memory,
 *
 *     stages                 how many there are
 *     shared_stage, sums     a stage; a lane's sums, zero where a tile begins
 *     load, align            starts the copies of a stage; makes of what this warp's lanes have
 *                            copied what all warps read after the next barrier
 *     add, gather            adds the products of a stage; puts the sums into shared memory
 */
#ifndef TGI_SKINNY_CUH
#define TGI_SKINNY_CUH

#include "kernels/tile_io.cuh"

/* How the grid shares out the work. A tile of D takes tile_units units of k_part_elems of k, and
 * each block a range of consecutive units, of one tile after another. A tile that several blocks
 * share has a part of k from each. */
struct tgi_skinny_schedule {
    int64_t col_blocks, tile_units, unit_count;

    __device__ __forceinline__ tgi_skinny_schedule(const tgi_gemm_args &args, int cols)
    {
        col_blocks = (args.problem.n + cols - 1) / cols;
        tile_units = (args.problem.k + args.k_part_elems - 1) / args.k_part_elems;
        unit_count = col_blocks * args.problem.batch_count * tile_units;
    }

    __device__ __forceinline__ int64_t first_unit(int64_t block) const
    {
        return block * unit_count / gridDim.x;
    }

    /* The block that has the unit. */
    __device__ __forceinline__ int64_t owner(int64_t unit) const
    {
        return ((unit + 1) * gridDim.x - 1) / unit_count;
    }
};

/* Where a block is in its work: a tile, and steps of the body's depth along k within it. */
template <typename Body> struct tgi_skinny_cursor {
    typedef typename Body::elem elem;

    int64_t unit, end; /* the tile's first unit that is this block's; the block's end */
    tgi_tile_place place;
    int64_t k, last;   /* next step's first k, and the end of this block's in the tile */
    const elem *a, *b; /* at k: of row 0, and of the warp's first line */

    __device__ __forceinline__ void enter(const tgi_gemm_args &args,
                                          const tgi_skinny_schedule &work)
    {
        if (unit >= end)
            return;
        const tgi_problem &p = args.problem;
        const int64_t tile = unit / work.tile_units, tile_unit = tile * work.tile_units;
        place.row = 0;
        place.col = tile % work.col_blocks * Body::cols;
        place.batch = tile / work.col_blocks;
        place.k_part = args.k_part_count == 1 ? 0 : blockIdx.x - work.owner(tile_unit);
        k = (unit - tile_unit) * args.k_part_elems;
        unit = min(end, tile_unit + work.tile_units);
        last = min(p.k, (unit - tile_unit) * args.k_part_elems);
        const int first_line = threadIdx.x / 32 * Body::warp_lines;
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
    tgi_store_tile<sum, rows, cols, cols, Body::sum_parts, Body::threads>(args, place, sums);
    if (args.k_part_count == 1 || at.last < args.problem.k)
        return;
    while (++place.k_part < args.k_part_count) {
        sum *target =
            static_cast<sum *>(args.workspace) +
            (place.batch * args.k_part_count + place.k_part) * args.problem.m * args.problem.n;
        for (int i = threadIdx.x; i < rows * cols; i += Body::threads)
            if (i / cols < args.problem.m && place.col + i % cols < args.problem.n)
                target[i / cols * args.problem.n + place.col + i % cols] = sum(0);
    }
}

/* The product, by a body whose stages lie in shared memory. */
template <typename Body> struct tgi_skinny {
    typedef typename Body::sum sum;
    typedef tgi_skinny_cursor<Body> cursor;

    struct shared_all {
        typename Body::shared_stage stages[Body::stages];
        sum sums[Body::sum_parts * Body::rows * Body::cols];
    };

    /* B is read without a pause, also while the sums of a tile are stored. */
    static __device__ __forceinline__ void multiply(const tgi_gemm_args &args, void *shared)
    {
        static_assert(Body::stages >= 2, "a stage is read while others are filled");
        shared_all &all = *static_cast<shared_all *>(shared);
        const tgi_skinny_schedule work(args, Body::cols);
        cursor filling, adding;
        filling.unit = work.first_unit(blockIdx.x);
        filling.end = work.first_unit(blockIdx.x + 1);
        filling.k = filling.last = 0;
        filling.enter(args, work);
        adding = filling;
        typename Body::sums sums = {};
        int read = 0, write = 0;
#pragma unroll 1
        for (int step = 1 - Body::stages; adding.k < adding.last; step++) {
            if (step >= 0) {
                tgi_copy_async_wait<Body::stages - 2>();
                Body::align(args, adding, all.stages[read]);
                /* Without it a warp would read A, or lines of its own that other lanes copied,
                 * before they are there, refill the stage that others still read, and put sums
                 * where those of the tile before have not been stored. */
                __syncthreads();
            }
            if (filling.k < filling.last) {
                Body::load(args, filling, all.stages[write]);
                if (filling.advance(args))
                    filling.enter(args, work);
            }
            tgi_copy_async_commit();
            write = write + 1 == Body::stages ? 0 : write + 1;
            if (step < 0)
                continue;
            Body::add(args, all.stages[read], sums);
            read = read + 1 == Body::stages ? 0 : read + 1;
            if (adding.advance(args)) {
                Body::gather(sums, all.sums);
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
