/* Lists the rungs that are compiled for the simulator: the symbols of ladder.cu and
 * small_tiles.cu. */
#include <stddef.h>

#include "core/checked.h"
#include "kernels/instances.cuh"
#include "model/ladder_model.h"
#include "sim/sim.h"

#define TGI_IMAGE_ladder TGI_CHOSEN
#define TGI_IMAGE_lesson TGI_CHOSEN
#define TGI_HAS_sm75 TGI_CHOSEN
#define TGI_HAS_sm80 TGI_CHOSEN

#define TGI_INSTANCE(name, ...) extern tgi_sim_function name;
#include "core/kernels.def"
#include "sim/small_tiles.def"
#undef TGI_CUDA_ROW

/* An entry takes the whole row; its name, which is its symbol, takes six columns of it. */
#define TGI_SYMBOL(image, family, isa, type, b_types, sum, math, order, rows, cols, depth, ...)    \
    TGI_CUDA_NAME(family, isa, type, math, rows, cols, depth)
#define TGI_ENTRY(is_row, ...)                                                                     \
    {.row = TGI_CUDA_ROW_INIT(__VA_ARGS__),                                                        \
     .is_in_table = is_row,                                                                        \
     .function = TGI_SYMBOL(__VA_ARGS__)},

static const tgi_sim_kernel kernels[] = {
#define TGI_CUDA_ROW(image, family, isa, ...)                                                      \
    TGI_ROW(image, isa, TGI_ENTRY(1, image, family, isa, __VA_ARGS__))
#include "core/kernels.def"
#undef TGI_CUDA_ROW
#define TGI_CUDA_ROW(image, family, isa, ...)                                                      \
    TGI_ROW(image, isa, TGI_ENTRY(0, image, family, isa, __VA_ARGS__))
#include "sim/small_tiles.def"
};

const tgi_sim_kernel *tgi_sim_get_kernel(int index)
{
    const int count = (int)(sizeof kernels / sizeof kernels[0]);
    return index < count ? &kernels[index] : tgi_sim_get_production(index - count);
}

void tgi_sim_set_grid(const tgi_kernel *row, int64_t m, int64_t n, tgi_sim_launch *launch)
{
    const int is_on_side = tgi_model_ladder_is_on_side(row);
    const unsigned rows = (unsigned)tgi_divide_up(m, row->tile_rows),
                   cols = (unsigned)tgi_divide_up(n, row->tile_cols);
    launch->grid[0] = is_on_side ? rows : cols;
    launch->grid[1] = is_on_side ? cols : rows;
    launch->type = row->type;
    launch->has_aligned_rows = row->tile_depth % 4 == 0;
    launch->block[0] = (unsigned)(row->tile_cols / row->thread_cols);
    launch->block[1] = (unsigned)(row->tile_rows / row->thread_rows);
}
