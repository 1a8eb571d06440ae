/*
 * Ends split-K of family wgmma. A warpgroup adds the splits of one partial tile and stores it as
 * the kernel that computes whole tiles does. There is a function for each number of columns of a
 * partial tile. A tile's own partial tiles may be added as narrower ones, by more blocks.
 */
#include "kernels/instances.cuh"
#include "kernels/epilogue/fragment_store.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/schedule/units_in_turn.cuh"
#include "kernels/wgmma/partial_tiles.cuh"
#include "kernels/wgmma/slice_repair.cuh"

/* The argument of the stores of fragment_store.cuh. */
struct partial_output {
    const tgi_gemm_args &gemm;
    const tgi_tensor_map &d_map;
    tgi_fragment_output d;
    int32_t d_rows;
};

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

template <int Cols>
static __device__ __forceinline__ void add_partial_tile(const tgi_wgmma_args &args, char *shared)
{
    const int per_tile = args.work.tile_rows / args.d_rows * (args.work.tile_cols / Cols);
    const int split_tile = blockIdx.x / per_tile, index = blockIdx.x % per_tile;
    const int64_t first =
        static_cast<int64_t>(split_tile) * args.gemm.split_count * per_tile + index;
    tgi_fragment_vectors vectors;
    /* Biases and scales are requested, and C is prefetched, before partial tiles are waited for. */
    if (!args.gemm.is_sum_alone) {
        const tgi_cluster_tile tile = find_part<Cols>(args, split_tile, index);
        vectors = tgi_fragment_vectors(args.gemm, tile);
        tgi_fetch_c(args.gemm, tile, Cols);
    }
    float sum[TGI_PARTIAL_SUMS(Cols)] = {};
    tgi_add_partial_tiles(args, first, per_tile, sum);
    /* The place is found meanwhile, anew, as it would delay partial tiles that have no epilogue. */
    const tgi_cluster_tile tile =
        find_part<Cols>(args, tgi_make_opaque(split_tile), tgi_make_opaque(index));
    const uint32_t staged = (tgi_shared_address(shared) + 1023) & ~1023u;
    const tgi_store_order alone = {0, 0, 0};
    if (Cols == 64 && args.slice_count > 0) {
        tgi_slice_repair repair(args);
        if (args.b_slices.ranges)
            repair.find_rows(tile);
        tgi_finish_fragment(args, tile, vectors, sum, alone, staged, 1, repair);
    } else {
        partial_output output = {args.gemm, args.d_map, args.d, args.d_rows};
        /* A TMA box of D is as wide as the tile's own partial tiles. */
        if (Cols < TGI_FRAGMENT_COLS(args.work.tile_cols))
            output.d.is_tma_stored = 0;
        tgi_finish_fragment(output, tile, vectors, sum, alone, staged, 1, tgi_no_repair(args));
    }
    if (threadIdx.x == 0)
        tgi_tma_store_wait<0>();
}

#define TGI_WGMMA_ADD(cols)                                                                        \
    extern "C" __global__ void __launch_bounds__(128)                                              \
        tgi_wgmma_add_##cols(const __grid_constant__ tgi_wgmma_args args)                          \
    {                                                                                              \
        extern __shared__ __align__(128) char shared[];                                            \
        tgi_start_next();                                                                          \
        tgi_wait_for_stream();                                                                     \
        add_partial_tile<cols>(args, shared);                                                      \
    }

#if defined(TGI_HAS_sm90a)
TGI_WGMMA_ADD(64)
TGI_WGMMA_ADD(32)
TGI_WGMMA_ADD(16)
#endif
