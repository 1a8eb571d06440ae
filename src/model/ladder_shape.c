/* Tells the shapes of the rungs: the tiles with which a source can be compiled, and the thread of
 * each element. */
#include "model/ladder_model.h"

/* Returns 1 for rungs 1 to 6, whose T x T threads have one element each. */
static int is_square(const tgi_kernel *kernel)
{
    return kernel->thread_rows * kernel->thread_cols == 1;
}

const char *tgi_model_ladder_tiles(const tgi_kernel *kernel)
{
    return is_square(kernel)                                   ? "1 to 128"
           : kernel->family == TGI_FAMILY_cuda_register_column ? "8, 16, 32 or 64"
           : kernel->family == TGI_FAMILY_cuda_register_tile   ? "64 or 128"
                                                               : "128";
}

int tgi_model_ladder_has_tile(const tgi_kernel *kernel, int tile)
{
    const int sums = kernel->thread_rows * kernel->thread_cols;
    if (is_square(kernel))
        return tile >= 1 && tile <= TGI_LADDER_TILE_MAX;
    /* In rungs 7 and 8 the threads load whole rows of B's tile, an equal number each. */
    if (kernel->family == TGI_FAMILY_cuda_register_column ||
        kernel->family == TGI_FAMILY_cuda_register_tile)
        return tile > 0 && tile <= TGI_LADDER_TILE_MAX && tile % sums == 0 &&
               kernel->tile_depth * sums % tile == 0;
    return tile == 128; /* rungs 9 to 13: each thread as many elements of A as of B */
}

void tgi_model_ladder_set_tile(tgi_kernel *row, int tile)
{
    row->tile_rows = row->tile_cols = tile;
    row->thread_count = tile * tile / (row->thread_rows * row->thread_cols);
    if (is_square(row))
        row->tile_depth = row->stage_count ? tile : 1;
}

/* Returns the thread of rung 11, whose warps have 2 x 2 quads (kernels/ladder/l11_warp_tile.cu). */
static int find_quad_thread(const tgi_kernel *kernel, int row, int col)
{
    const int u = row % 4, v = col % 32 / 4;
    const int lane = v % 2 + u % 2 * 2 + v / 2 % 2 * 4 + u / 2 * 8 + v / 4 * 16;
    return (row / 32 * (kernel->tile_cols / 64) + col / 64) * 32 + lane;
}

/* Returns the thread of rungs 12 and 13. A warp's part has warp_rows x warp_cols elements, and its
 * lanes own pairs of each 8 x 8 of them (kernels/ptx/warp_mma.cuh, warpgroup_mma.cuh). */
static int find_pair_thread(const tgi_kernel *kernel, int warp_rows, int warp_cols, int row,
                            int col)
{
    const int warp = row / warp_rows * (kernel->tile_cols / warp_cols) + col / warp_cols;
    return warp * 32 + row % 8 * 4 + col % 8 / 2;
}

int tgi_model_ladder_owner(const tgi_kernel *kernel, int row, int col)
{
    const int threads_x = kernel->tile_cols / kernel->thread_cols;
    const int threads_y = kernel->tile_rows / kernel->thread_rows;
    switch (kernel->family) {
    case TGI_FAMILY_cuda_naive:
        return col * threads_x + row;
    case TGI_FAMILY_cuda_vector:
    case TGI_FAMILY_cuda_buffered: /* four columns of each half */
        return row % threads_y * threads_x + col % (kernel->tile_cols / 2) / 4;
    case TGI_FAMILY_cuda_warp_tile:
        return find_quad_thread(kernel, row, col);
    case TGI_FAMILY_cuda_warp_mma:
        return find_pair_thread(kernel, 32, 64, row, col);
    case TGI_FAMILY_cuda_warpgroup_mma:
        return find_pair_thread(kernel, 16, kernel->tile_cols, row, col);
    default:
        return row % threads_y * threads_x + col % threads_x;
    }
}

int tgi_model_ladder_is_fed_by_tma(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_warpgroup_mma;
}
