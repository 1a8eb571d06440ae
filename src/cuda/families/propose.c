/* What the families make of a problem. Nothing here needs a driver or a GPU. */

#include "cuda/cuda.h"

static tgi_cuda_propose_row *const proposals[TGI_FAMILY_COUNT] = {
#define TGI_CUDA_FAMILY(family, code) [TGI_FAMILY_cuda_##family] = tgi_cuda_propose_##code,
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY
};

void tgi_cuda_propose(const tgi_machine *machine, const tgi_problem *problem,
                      tgi_proposal *proposal)
{
    proposal->blocking.thread_count = 1;
    /* Without batch invariance the fastest row is the choice, whatever its order. */
    proposal->sum_order = problem->is_batch_invariant ? proposal->kernel->sum_order : TGI_SUM_WHOLE;
    tgi_cuda_propose_row *propose = proposals[proposal->kernel->family];
    if (tgi_problem_is_empty(problem) || tgi_problem_is_scale_only(problem))
        proposal->is_legal = 1; /* no product is formed: families see sizes from 1 */
    else if (propose)
        propose(machine, problem, proposal);
    else
        tgi_refuse(&proposal->refusal, TG_REFUSAL_NO_CODE, "its family has no launch code");
    proposal->serial_s = proposal->predicted_s;
}

const tgi_backend tgi_backend_chip = {
    .device = "cuda",
    .row_device = "cuda",
    .operand_alignment = TGI_CUDA_OPERAND_ALIGNMENT,
    .propose = tgi_cuda_propose,
};
