/* The kernels that were compiled for the simulator: symbols of ladder.cu and small_tiles.cu. */
#include <stddef.h>

#include "kernels/instances.cuh"
#include "model/ladder_model.h"
#include "sim/sim.h"

#define TGI_IMAGE_ladder TGI_CHOSEN
#define TGI_IMAGE_lesson TGI_CHOSEN
#define TGI_HAS_sm75 TGI_CHOSEN

#define TGI_CUDA_KERNEL(image, family, isa, type, rows, cols, depth, per_rows, per_cols, stages,   \
                        threads)                                                                   \
    TGI_ROW(image, isa,                                                                            \
            extern tgi_sim_function TGI_CUDA_NAME(family, isa, type, rows, cols, depth);)
#include "core/kernels.def"
#include "sim/small_tiles.def"
#undef TGI_CUDA_KERNEL

#define TGI_ENTRY(row_family, row_isa, row_type, rows, cols, depth, per_rows, per_cols, stages,    \
                  threads, is_row)                                                                 \
    {.row = {.name =                                                                               \
                 TGI_QUOTE_VALUE(TGI_CUDA_NAME(row_family, row_isa, row_type, rows, cols, depth)), \
             .device = "cuda",                                                                     \
             .family_name = #row_family,                                                           \
             .family = TGI_FAMILY_cuda_##row_family,                                               \
             .isa = TGI_ISA_##row_isa,                                                             \
             .type = TG_TYPE_##row_type,                                                           \
             .tile_rows = rows,                                                                    \
             .tile_cols = cols,                                                                    \
             .tile_depth = depth,                                                                  \
             .thread_rows = per_rows,                                                              \
             .thread_cols = per_cols,                                                              \
             .stage_count = stages,                                                                \
             .thread_count = threads},                                                             \
     .is_in_table = is_row,                                                                        \
     .function = TGI_CUDA_NAME(row_family, row_isa, row_type, rows, cols, depth)},

static const tgi_sim_kernel kernels[] = {
#define TGI_CUDA_KERNEL(image, ...) TGI_ROW(image, sm75, TGI_ENTRY(__VA_ARGS__, 1))
#include "core/kernels.def"
#undef TGI_CUDA_KERNEL
#define TGI_CUDA_KERNEL(image, ...) TGI_ROW(image, sm75, TGI_ENTRY(__VA_ARGS__, 0))
#include "sim/small_tiles.def"
};

const tgi_sim_kernel *tgi_sim_get_kernel(int index)
{
    return index < (int)(sizeof kernels / sizeof kernels[0]) ? &kernels[index] : NULL;
}

static unsigned divide_up(int64_t count, int part)
{
    return (unsigned)((count + part - 1) / part);
}

void tgi_sim_set_grid(const tgi_kernel *row, int64_t m, int64_t n, tgi_sim_launch *launch)
{
    const int is_on_side = tgi_model_ladder_is_on_side(row);
    const unsigned rows = divide_up(m, row->tile_rows), cols = divide_up(n, row->tile_cols);
    launch->grid[0] = is_on_side ? rows : cols;
    launch->grid[1] = is_on_side ? cols : rows;
    launch->has_aligned_rows = row->tile_depth % 4 == 0;
    launch->block[0] = (unsigned)(row->tile_cols / row->thread_cols);
    launch->block[1] = (unsigned)(row->tile_rows / row->thread_rows);
}
