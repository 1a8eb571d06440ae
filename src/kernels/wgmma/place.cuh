/* Which tile a block works on. */
#ifndef TGI_WGMMA_PLACE_CUH
#define TGI_WGMMA_PLACE_CUH

#include "kernels/wgmma/args.h"

/* Where a block works; row and column of its first element of D. */
typedef struct tgi_wgmma_tile {
    int row, col, batch;
    int cut, part;      /* of the tiles whose k is cut which, and which part; -1: k is whole */
    int step, step_end; /* of k */
} tgi_wgmma_tile;

/* Place of tile `rank` of cluster `index` of D, over all batch entries. Clusters are numbered down
 * groups of rows, so that those under way together share operands in L2. */
static __device__ __forceinline__ tgi_wgmma_tile tgi_find_place(const tgi_wgmma_args &args,
                                                                int index, int rank, int rows,
                                                                int cols, int cluster_rows,
                                                                int cluster_cols)
{
    const int row_count = args.row_tile_count / cluster_rows;
    const int col_count = args.col_tile_count / cluster_cols;
    const int tiles = row_count * col_count, height = args.gemm.tile_rows_per_group;
    const int in_plane = index % tiles;
    const int group = in_plane / (height * col_count), in_group = in_plane % (height * col_count);
    const int group_height = min(height, row_count - group * height);
    tgi_wgmma_tile tile;
    tile.row =
        ((group * height + in_group % group_height) * cluster_rows + rank % cluster_rows) * rows;
    tile.col = (in_group / group_height * cluster_cols + rank / cluster_rows) * cols;
    tile.batch = index / tiles;
    tile.cut = tile.part = -1;
    tile.step = 0;
    tile.step_end = args.step_count;
    return tile;
}

#endif
