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
 * Functions that load and store a tile take both. The tile has its place, and its problem has the
 * limits, strides and addresses. Tiles of one launch may thus belong to several problems, which
 * share what a kernel chooses once: types, storage orders, the shape of clusters, the number of
 * splits. If tgi_is_same_problem() returns 0, a body finds again what it keeps from tile to
 * tile. unit_ranges.cuh has take() in place of tile() and next().
 *
 * problem() takes the argument, and most schedules do not keep it. A reference as a member hides
 * from the compiler that the argument can be read at any time, which changes what it reads ahead.
 */
#ifndef TGI_TILE_CUH
#define TGI_TILE_CUH

#include "kernels/gemm_args.h"

struct tgi_block_tile {
    int64_t batch, row, col; /* the batch entry, and the tile's first element in it */
    int split;               /* the split that is summed; 0 where k is whole */
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
