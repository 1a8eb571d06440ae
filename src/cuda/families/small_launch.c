/* Launches the family small. */
#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"

static void prepare(const tgi_machine *machine, const tgi_problem *given,
                    const tgi_proposal *proposal, void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_tile_prepared *prepared = block;
    unsigned *grid = prepared->multiply.grid;
    tgi_problem p = *given;
    (void)machine;
    if (proposal->decision.tile.is_transposed)
        tgi_problem_transpose(&p);
    tgi_tile_prepare(&p, proposal, prepared);
    const int64_t entries = p.batch_count * prepared->args.k_part_count;
    grid[0] = (unsigned)tgi_divide_up(p.n, kernel->tile_cols);
    grid[1] = (unsigned)tgi_divide_up(p.m, kernel->tile_rows);
    grid[2] = (unsigned)(entries < TGI_GRID_HEIGHT_MAX ? entries : TGI_GRID_HEIGHT_MAX);
}

const tgi_cuda_launcher tgi_cuda_launcher_small = {tgi_tile_count_prepared_bytes, prepare,
                                                   tgi_tile_launch};
