/*
 * Ends split-K of family wgmma: adds the splits of partial tiles in order, applies the epilogue and
 * stores D. A warpgroup has 64 rows. Sums of slices are stored as the kernel that computes whole
 * tiles does, 32 columns a block. All others are parts of 16 columns, which threads store as they
 * hold them: that takes less time than to stage so few sums for a TMA box.
 */
#include "kernels/instances.cuh"
#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/wgmma/partial_tiles.cuh"
#include "kernels/wgmma/slice_repair.cuh"

/* Returns the place in D of part number `index` of a split tile. */
template <int Cols>
static __device__ __forceinline__ tgi_cluster_tile find_part(const tgi_wgmma_args &args,
                                                             int split_tile, int index)
{
    const tgi_cluster_work &work = args.work;
    const int col_count = work.tile_cols / Cols;
    tgi_cluster_tile tile =
        tgi_find_cluster_tile(work, work.whole_count + split_tile / work.cluster_rows,
                              split_tile % work.cluster_rows, work.tile_rows, work.tile_cols);
    tile.row += index / col_count * args.d_rows;
    tile.col += index % col_count * Cols;
    return tile;
}

/* Adds the splits of this block's part of 64 rows and Cols columns. */
template <int Cols> struct added_part {
    int split_tile, index;
    int64_t first, stride; /* the first partial tile, and the distance of those that are added */

    __device__ __forceinline__ explicit added_part(const tgi_wgmma_args &args)
    {
        const int per_tile = args.work.tile_rows / args.d_rows * (args.work.tile_cols / Cols);
        split_tile = blockIdx.x / per_tile;
        index = blockIdx.x % per_tile;
        stride = per_tile;
        first = static_cast<int64_t>(split_tile) * args.gemm.split_count * per_tile + index;
    }

    /* Returns the part's place in D. */
    __device__ __forceinline__ tgi_cluster_tile find_tile(const tgi_wgmma_args &args) const
    {
        return find_part<Cols>(args, tgi_make_opaque(split_tile), tgi_make_opaque(index));
    }

    /* Requests biases and scales, and prefetches C, before partial tiles are waited for. */
    __device__ __forceinline__ void request(const tgi_wgmma_args &args,
                                            tgi_fragment_vectors &vectors) const
    {
        const tgi_cluster_tile tile = find_tile(args);
        vectors = tgi_fragment_vectors(args.gemm, tile);
        tgi_fetch_c(args.gemm, tile, Cols);
    }
};

/* Adds a part of 32 columns of sums of slices. A repair looks at 64, of which the others are not
 * stored. */
static __device__ __forceinline__ void add_slices(const tgi_wgmma_args &args, char *shared)
{
    constexpr int cols = 32;
    const added_part<cols> part(args);
    tgi_fragment_vectors vectors;
    if (!args.gemm.is_sum_alone)
        part.request(args, vectors);
    float sum[cols / 2] = {};
    tgi_add_partial_tiles(args, part.first, part.stride, args.gemm.split_count, sum);
    const tgi_cluster_tile tile = part.find_tile(args);
    const uint32_t staged = (tgi_shared_address(shared) + 1023) & ~1023u;
    const tgi_store_order alone = {0, 0, 0};
    tgi_slice_repair repair(args);
    repair.find_rows(tile, cols);
    tgi_finish_fragment(args, tile, vectors, sum, alone, staged, 1, repair);
    if (threadIdx.x == 0)
        tgi_tma_store_wait<0>();
}

/* Stores two neighbouring columns of a row as numbers of 16 bits, together if D allows it. */
static __device__ __forceinline__ void store_pair(const tgi_store_target &target, int row, int col,
                                                  uint32_t pair)
{
    uint16_t *at = static_cast<uint16_t *>(target.data) + row * target.row + col * target.col;
    if (row >= target.rows || col >= target.cols)
        return;
    if (target.col == 1 && col + 1 < target.cols && reinterpret_cast<uintptr_t>(at) % 4 == 0) {
        *reinterpret_cast<uint32_t *>(at) = pair;
        return;
    }
    at[0] = static_cast<uint16_t>(pair);
    if (col + 1 < target.cols)
        at[target.col] = static_cast<uint16_t>(pair >> 16);
}

/* Stores the eight sums of a thread (fragment_staging.cuh). */
static __device__ __forceinline__ void
store_sums(const tgi_wgmma_args &args, const tgi_store_target &target, const float (&sum)[8])
{
    const int lane = threadIdx.x % 32, row = threadIdx.x / 32 * 16 + lane / 4;
    const int is_16bit = tgi_count_bytes(target.type) == 2;
    uint32_t pair[4];
    tgi_pack_sums(sum, 0, tgi_find_form(args.gemm, args.d), pair);
#pragma unroll
    for (int i = 0; i < 4; i++) {
        const int at_row = row + i % 2 * 8, col = i / 2 * 8 + lane % 4 * 2;
        if (is_16bit) {
            store_pair(target, at_row, col, pair[i]);
            continue;
        }
#pragma unroll
        for (int j = 0; j < 2; j++)
            if (at_row < target.rows && col + j < target.cols)
                tgi_write_element(target.data, at_row * target.row + (col + j) * target.col,
                                  target.type, sum[2 * i + j]);
    }
}

/* Adds and stores a part of 16 columns. Pass 0 does so with no splits and no rows, and reads
 * nothing, before the kernel before has ended, so that the code and the arguments have been read
 * from memory when the partial tiles are there. */
static __device__ __forceinline__ void add_part(const tgi_wgmma_args &args, int pass)
{
    const added_part<16> part(args);
    const int has_terms = pass && !args.gemm.is_sum_alone;
    tgi_fragment_vectors vectors;
    if (has_terms)
        part.request(args, vectors);
    float sum[8] = {};
    tgi_add_partial_tiles(args, part.first, part.stride, pass ? args.gemm.split_count : 0, sum);
    const tgi_cluster_tile tile = part.find_tile(args);
    if (has_terms)
        tgi_apply_epilogue(args.gemm, tile, vectors, sum);
    tgi_store_target target = tgi_find_target(args.gemm, tile.row, tile.col, tile.batch, 16);
    target.rows = pass ? min(target.rows, args.d_rows) : 0;
    store_sums(args, target, sum);
}

#if defined(TGI_HAS_sm90a)
extern "C" __global__ void __launch_bounds__(128)
    tgi_wgmma_add_slices(const __grid_constant__ tgi_wgmma_args args)
{
    extern __shared__ __align__(128) char shared[];
    tgi_start_next();
    tgi_wait_for_stream();
    add_slices(args, shared);
}

extern "C" __global__ void __launch_bounds__(128)
    tgi_wgmma_add_parts(const __grid_constant__ tgi_wgmma_args args)
{
    tgi_start_next();
    /* Blocks that start late find the code read. Opaque, or the compiler would give pass 0 code of
     * its own. */
    int pass = tgi_make_opaque(blockIdx.x < 1024 ? 0 : 1);
#pragma unroll 1
    do {
        if (pass)
            tgi_wait_for_stream();
        add_part(args, pass);
    } while (pass++ == 0);
}
#endif
