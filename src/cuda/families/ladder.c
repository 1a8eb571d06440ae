/* Plans the ladder's rungs on a GPU. */
#include "cuda/families/gemm.h"
#include "model/ladder_model.h"
#include "model/ladder_problem.h"

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (tgi_model_ladder_is_fed_by_tma(kernel) && (p->is_a_offset || p->is_b_offset))
        tgi_refuse(&proposal->refusal, TG_REFUSAL_LAYOUT,
                   "TMA reads A and B from multiples of %d bytes: move them, or take cuda_warp_mma",
                   TGI_CUDA_OPERAND_ALIGNMENT);
    else if (tgi_model_ladder_takes_problem(p, &proposal->refusal) &&
             tgi_gemm_rounds_sums(p, proposal) &&
             tgi_model_ladder_takes_sizes(kernel, p->m, p->n, p->k, &proposal->refusal)) {
        proposal->is_legal = 1;
        proposal->shared_bytes = tgi_model_ladder_shared_bytes(kernel);
        proposal->predicted_s = tgi_model_ladder_seconds(&machine->gpu, kernel, p->m, p->n, p->k);
    }
}

const tgi_cuda_planner tgi_cuda_planner_ladder = {.propose = propose};
