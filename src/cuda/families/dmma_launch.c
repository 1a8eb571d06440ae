/* Launches the family dmma. */
#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_tile_prepared *prepared = block;
    unsigned *grid = prepared->multiply.grid;
    (void)machine;
    tgi_tile_prepare(p, proposal, prepared);
    grid[0] =
        (unsigned)(tgi_divide_up(p->m, kernel->tile_rows) * tgi_divide_up(p->n, kernel->tile_cols));
    grid[1] = (unsigned)prepared->args.split_count;
    grid[2] =
        (unsigned)(p->batch_count < TGI_GRID_HEIGHT_MAX ? p->batch_count : TGI_GRID_HEIGHT_MAX);
}

const tgi_cuda_launcher tgi_cuda_launcher_dmma = {tgi_tile_count_prepared_bytes, prepare,
                                                  tgi_tile_launch};
