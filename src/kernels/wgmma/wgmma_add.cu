/*
 * Adds the parts of tiles whose k is cut: a warpgroup takes one piece of a tile and finishes it as
 * the kernel that computes whole tiles does. One function for each number of columns of a piece.
 */
#include "kernels/instances.cuh"
#include "kernels/ptx/launch.cuh"
#include "kernels/wgmma/pieces.cuh"
#include "kernels/wgmma/place.cuh"

template <int Cols>
static __device__ __forceinline__ void add_pieces(const tgi_wgmma_args &args, char *shared)
{
    const int col_count = args.tile_cols / Cols, row_count = args.tile_rows / 64;
    const int pieces_per_tile = row_count * col_count;
    const int cut = blockIdx.x / pieces_per_tile, piece = blockIdx.x % pieces_per_tile;
    const int64_t first =
        static_cast<int64_t>(cut) * args.gemm.k_part_count * pieces_per_tile + piece;
    float sum[TGI_PIECE_SUMS(Cols)] = {};
    tgi_add_pieces(args, first, pieces_per_tile, sum);
    tgi_wgmma_tile tile = tgi_find_place(args, args.whole_count + cut / args.cluster_rows,
                                         cut % args.cluster_rows, args.tile_rows, args.tile_cols);
    tile.row += piece / col_count * 64;
    tile.col += piece % col_count * Cols;
    const uint32_t part = (tgi_shared_address(shared) + 1023) & ~1023u;
    const tgi_wgmma_turn alone = {0, 0, 0};
    tgi_range a_range = {};
    if (Cols == 64 && args.slice_count > 0) {
        if (args.b_slices.ranges)
            a_range = tgi_find_row_range(args, tile);
        tgi_finish_part<1, 0>(args, tile, sum, alone, part, 1, a_range);
    } else {
        tgi_finish_part<0, 1>(args, tile, sum, alone, part, 1, a_range);
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
        add_pieces<cols>(args, shared);                                                            \
    }

#if defined(TGI_HAS_sm90a)
TGI_WGMMA_ADD(64)
TGI_WGMMA_ADD(32)
TGI_WGMMA_ADD(16)
#endif
