/*
 * Declares the tile of D that a block works on, and the interface of schedules.
 *
 * A schedule shares the work of a launch among its blocks. It is a struct, made of the kernel's
 * argument, with
 *
 *     begin()                returns this block's first unit of work
 *     end()                  returns the unit before which this block ends
 *     next(unit)             returns this block's unit after `unit`
 *     tile(unit)             returns the unit's tile
 *     problem(given, unit)   returns the problem that the tile belongs to, of the kernel's argument
 *
 * Units are dealt out in one of two ways:
 *
 *     units_in_turn.cuh      Blocks take units in turn, so that blocks that run together have tiles
 *                            side by side and share their operands in L2. This is the rule.
 *     unit_ranges.cuh        A block has a range of consecutive units along k (stream-K), take() in
 *                            place of tile() and next(). Each block has as many units as any other,
 *                            whatever the number of tiles, which counts where the time is that of
 *                            reading B once: families rank and dot.
 *
 * Functions that load and store a tile take the tile and its problem. The tile has its place, and
 * its problem has the limits, strides and addresses. Tiles of one launch may thus belong to several
 * problems, which share what a kernel chooses once: types, storage orders, the shape of clusters,
 * the number of splits. If tgi_is_same_problem() returns 0, a body finds again what it keeps from
 * tile to tile. Family attend has tiles of its own (attend/attend.cuh): queries of several heads
 * with a range of keys, whose limits depend on masks and on offsets in memory.
 *
 * problem() takes the argument, and schedules do not return one that they keep. A reference as a
 * member hides from the compiler that the argument can be read at any time, which changes what it
 * reads ahead.
 */
#ifndef TGI_TILE_CUH
#define TGI_TILE_CUH

#include "kernels/gemm_args.h"

struct tgi_block_tile {
    int64_t batch, row, col; /* the batch entry, and the tile's first element in it */
    int split;               /* the split that is summed; 0 where k is whole */
};

/* A tile of a cluster is within 32 bits and counts k in steps. */
struct tgi_cluster_tile {
    int row, col, batch;
    int split_tile, split; /* the split tile's number, and the split; -1: k is whole */
    int step, step_end;    /* the range of k: step .. step_end - 1 */
};

/* Returns 1 if two units belong to the same problem. A schedule of one problem costs no code. */
template <class Schedule, class Args, typename Unit>
static __device__ __forceinline__ int tgi_is_same_problem(const Schedule &schedule,
                                                          const Args &given, Unit unit, Unit other)
{
    return &schedule.problem(given, unit) == &schedule.problem(given, other);
}

/* Returns the first k of a split. Split is int, or unsigned, which spares the sign. */
template <typename Split>
static __device__ __forceinline__ int64_t tgi_find_first_k(const tgi_gemm_args &args, Split split)
{
    return split * args.split_elems;
}

/* Returns the number of k of the split that begins at first_k. */
static __device__ __forceinline__ int64_t tgi_count_k(const tgi_gemm_args &args, int64_t first_k)
{
    return min(args.split_elems, args.problem.k - first_k);
}

/* Returns the address of A's element (tile.row, k). */
template <typename T>
static __device__ __forceinline__ const T *tgi_find_a(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, int64_t k)
{
    const tgi_layout &layout = args.problem.a;
    return static_cast<const T *>(args.a) + tile.batch * layout.batch + tile.row * layout.row +
           k * layout.col;
}

/* Returns the address of B's element (k, tile.col). */
template <typename T>
static __device__ __forceinline__ const T *tgi_find_b(const tgi_gemm_args &args,
                                                      const tgi_block_tile &tile, int64_t k)
{
    const tgi_layout &layout = args.problem.b;
    return static_cast<const T *>(args.b) + tile.batch * layout.batch + tile.col * layout.col +
           k * layout.row;
}

#endif
