/* Launches the family dmma. */
#include "cuda/families/gemm.h"
#include "cuda/families/gemm_launch.h"

static void prepare(const tgi_machine *machine, const tgi_problem *p, const tgi_proposal *proposal,
                    void *block)
{
    tgi_tile_prepared *prepared = block;
    (void)machine;
    tgi_tile_prepare(p, proposal, prepared);
    tgi_tile_set_entry_grid(proposal->kernel, prepared);
}

const tgi_cuda_launcher tgi_cuda_launcher_dmma = {tgi_tile_count_prepared_bytes, prepare,
                                                  tgi_tile_launch};
