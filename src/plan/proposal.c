#include "plan/proposal.h"

#include <string.h>

int tgi_plan_has_row(const tgi_backend *backend, const tgi_kernel *kernel)
{
    return strcmp(kernel->device, backend->row_device) == 0 &&
           (!backend->has_row || backend->has_row(kernel));
}

void tgi_plan_propose(const tgi_backend *backend, const tgi_machine *machine,
                      const tgi_problem *problem, const tgi_kernel *kernel, tgi_proposal *proposal)
{
    tgi_refusal *refusal = &proposal->refusal;
    memset(proposal, 0, sizeof *proposal);
    proposal->kernel = kernel;
    if (!tgi_plan_has_row(backend, kernel)) {
        tgi_refuse(refusal, TG_REFUSAL_OTHER_DEVICE, "runs on %s, the plan is for %s",
                   kernel->device, backend->device);
    } else if (kernel->type != problem->type) {
        tgi_refuse(refusal, TG_REFUSAL_OTHER_TYPE, "multiplies %s, the inputs are %s",
                   tg_get_type_name(kernel->type), tg_get_type_name(problem->type));
    } else if (!tgi_type_is_in(problem->b_type, kernel->b_types)) {
        tgi_refuse(refusal, TG_REFUSAL_OTHER_TYPE, "takes no B of %s beside an A of %s",
                   tg_get_type_name(problem->b_type), tg_get_type_name(problem->type));
    } else if (!tgi_kernels_isa_runs(kernel->isa, machine->features)) {
        tgi_refuse(refusal, TG_REFUSAL_OTHER_ARCHITECTURE, "needs %s, the plan is for %s",
                   tgi_kernels_isa_name(kernel->isa), tgi_kernels_isa_name(machine->isa));
    } else {
        backend->propose(machine, problem, proposal);
        if (problem->is_batch_invariant && proposal->sum_order > TGI_SUM_ALONG &&
            !tgi_problem_is_empty(problem) && !tgi_problem_is_scale_only(problem) &&
            proposal->is_legal) {
            proposal->is_legal = 0;
            tgi_refuse(
                refusal, TG_REFUSAL_BATCH_INVARIANT,
                "the order of its sums depends on more than n and k; batch_invariant excludes it");
        }
    }
    /* A backend that accepts one orientation of D may have refused the other one first. */
    if (proposal->is_legal)
        *refusal = (tgi_refusal){.kind = TG_REFUSAL_NONE};
}
