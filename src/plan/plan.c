#include "plan/plan.h"

#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/candidates.h"
#include "plan/proposal.h"
#include "plan/context.h"
#include "tilegemm_lab.h"

static void set_spans(tg_plan *plan)
{
    const tgi_problem *p = &plan->problem;
    const unsigned used = tgi_epilogue_find_used(&p->epilogue);
    for (int id = 0; id < TGI_OPERAND_COUNT && !tgi_problem_is_empty(p); id++) {
        const tgi_operand_view view = tgi_problem_view_operand(p, id);
        if (used >> id & 1u)
            plan->span[id] = tgi_overlap_find_span(&view);
    }
}

/* Lets the backend prepare the launch; 0 where there is no memory. */
static int prepare_launch(tg_plan *plan, const tgi_proposal *proposal)
{
    const tgi_backend *backend = plan->context->backend;
    if (tgi_problem_is_empty(&plan->problem))
        return 1;
    const int64_t size_bytes = backend->count_prepared_bytes(&plan->problem, proposal);
    plan->prepared = tgi_alloc_block(size_bytes);
    if (!plan->prepared)
        return 0;
    memset(plan->prepared, 0, (size_t)size_bytes);
    backend->prepare(&plan->context->machine, &plan->problem, proposal, plan->prepared);
    return 1;
}

static tg_plan *make_plan(tg_context *context, const tgi_problem *problem,
                          const tgi_proposal *proposal, const tg_problem *original)
{
    tg_plan *plan = tgi_alloc_object(sizeof *plan);
    if (!plan)
        return NULL;
    plan->context = context;
    plan->problem = *problem;
    plan->kernel = proposal->kernel;
    plan->thread_count = proposal->thread_count;
    plan->workspace_bytes = proposal->workspace_bytes;
    memcpy(plan->needs_aligned, proposal->needs_aligned, sizeof plan->needs_aligned);
    plan->predicted_s = proposal->predicted_s;
    plan->original = *original;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tgi_operands_set_data(&plan->original, id, NULL);
    if (tgi_problem_is_scale_only(problem) || tgi_problem_is_empty(problem)) {
        plan->workspace_bytes = 0;
        plan->thread_count = 1;
    }
    if (!prepare_launch(plan, proposal)) {
        tgi_alloc_free(plan);
        return NULL;
    }
    set_spans(plan);
    atomic_init(&plan->user_count, 1);
    return plan;
}

tg_status tg_create_plan(tg_context *context, const tg_problem *problem,
                         const tg_plan_options *options, tg_plan **plan)
{
    tg_status status;
    tgi_problem canonical;
    tgi_proposal proposal;
    tg_problem converted;
    tg_plan_options converted_options;
    const char *name = NULL;
    if (!plan || !problem) {
        if (plan)
            *plan = NULL;
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "problem" : "plan");
    }
    *plan = NULL;
    problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
    if (!problem)
        return TG_STATUS_INVALID_ARGUMENT;
    if (options) {
        options = tgi_struct_read(&tgi_struct_plan_options, options, &converted_options);
        if (!options)
            return TG_STATUS_INVALID_ARGUMENT;
        name = options->kernel;
    }
    context = tgi_context_resolve(context, &status);
    if (!context)
        return status;
    if ((status = tgi_plan_canonicalize(context->backend, problem, &canonical)))
        return status;
    if (!name && (*plan = tgi_plan_cache_find(&context->plans, &canonical)))
        return TG_STATUS_OK;
    if ((status =
             tgi_plan_choose(context->backend, &context->machine, &canonical, name, &proposal)))
        return status;
    tg_plan *made = make_plan(context, &canonical, &proposal, problem);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    if ((status = tgi_workspace_reserve(&context->workspaces, made->workspace_bytes))) {
        tg_destroy_plan(made);
        return status;
    }
    made->is_kernel_given = name != NULL;
    *plan = made;
    if (!name)
        tgi_plan_cache_add(&context->plans, *plan);
    return TG_STATUS_OK;
}

void tg_destroy_plan(tg_plan *plan)
{
    if (plan && atomic_fetch_sub_explicit(&plan->user_count, 1, memory_order_acq_rel) == 1) {
        tgi_alloc_free(plan->prepared);
        tgi_alloc_free(plan);
    }
}

tg_status tg_get_plan_info(const tg_plan *plan, tg_plan_info *info, size_t struct_bytes)
{
    if (!plan || !info) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "info" : "plan");
    }
    const tg_plan_info made = {.struct_bytes = sizeof made,
                               .kernel = plan->kernel->name,
                               .workspace_bytes = plan->workspace_bytes,
                               .thread_count = plan->thread_count,
                               .predicted_s = plan->predicted_s};
    return tgi_struct_write(&tgi_struct_plan_info, &made, info, struct_bytes);
}

tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                             tg_candidate *candidates, int capacity, int *count)
{
    tg_status status;
    context = tgi_context_resolve(context, &status);
    return context ? tgi_plan_list(context->backend, &context->machine, problem, candidates,
                                   capacity, count)
                   : status;
}

int tg_get_kernel_count(void)
{
    return tgi_kernels_count();
}

tg_status tg_get_kernel_info(const tg_context *context, int index, tg_kernel_info *info)
{
    tg_status status;
    if (!info || index < 0 || index >= tgi_kernels_count()) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "index = %d, info = %p; pass 0..%d and an address", index,
                               (void *)info, tgi_kernels_count() - 1);
    }
    context = tgi_context_resolve((tg_context *)context, &status);
    if (!context)
        return status;
    const tgi_kernel *kernel = tgi_kernels_get(index);
    info->name = kernel->name;
    info->device = kernel->device;
    info->family = kernel->family_name;
    info->isa = tgi_kernels_isa_name(kernel->isa);
    info->type = kernel->type;
    info->tile_rows = kernel->tile_rows;
    info->tile_cols = kernel->tile_cols;
    info->ladder_rung = tgi_kernels_rung(kernel->family);
    info->idea = tgi_kernels_idea(kernel->family);
    info->is_available = tgi_plan_has_row(context->backend, kernel) &&
                         tgi_kernels_isa_runs(kernel->isa, context->machine.features);
    return TG_STATUS_OK;
}
