#include "plan/plan.h"

#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "core/structs.h"
#include "plan/candidates.h"

/* Returns 1 if the operand may be D itself: the epilogue reads it, and it has D's layout, so that
 * each element is read before it is written. */
static int may_be_in_place(const tgi_problem *p, int id)
{
    const tgi_layout *layout = tgi_problem_get_layout(p, id);
    return tgi_operands_get(id)->role == TGI_ROLE_EPILOGUE && layout && layout->row == p->d.row &&
           layout->col == p->d.col && layout->batch == p->d.batch;
}

/* Notes the used operands and their address ranges. An empty D uses none, so that no call reads a
 * pointer. */
static void set_spans(tg_plan *plan)
{
    const tgi_problem *p = &plan->problem;
    if (tgi_problem_is_empty(p))
        return;
    plan->used = tgi_epilogue_find_used(&p->epilogue);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_view view = tgi_problem_view_operand(p, id);
        if (plan->used >> id & 1u)
            plan->span[id] = tgi_overlap_find_span(&view);
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        plan->in_place |= (unsigned)may_be_in_place(p, id) << id;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        plan->gap[id] = tgi_overlap_find_gap(&plan->span[TGI_OPERAND_d], &plan->span[id]);
}

/* Lets the backend prepare the launch. Returns 0 if there is no memory. */
static int prepare_launch(tg_plan *plan)
{
    const tgi_backend *backend = plan->context->backend;
    const tgi_proposal *proposal = &plan->proposal;
    if (tgi_problem_is_empty(&plan->problem))
        return 1;
    const int64_t size_bytes = backend->count_prepared_bytes(&plan->problem, proposal);
    plan->prepared = tgi_alloc_object(size_bytes);
    if (!plan->prepared)
        return 0;
    plan->launch =
        backend->prepare(&plan->context->machine, &plan->problem, proposal, plan->prepared);
    plan->kept.state = plan->context->log ? TGI_KEPT_BEGUN : TGI_KEPT_NONE;
    plan->takes_workspace = proposal->workspace_bytes > 0;
    const uintptr_t bits = (unsigned)backend->operand_alignment - 1;
    plan->aligned_bits[0] = proposal->needs_aligned[0] && !plan->problem.is_a_offset ? bits : 0;
    plan->aligned_bits[1] = proposal->needs_aligned[1] && !plan->problem.is_b_offset ? bits : 0;
    return 1;
}

/* Makes a plan of a proposal; NULL if there is no memory. */
static tg_plan *make_plan(tg_context *context, const tgi_problem *problem,
                          const tgi_proposal *proposal, const tg_problem *original)
{
    tg_plan *plan = tgi_alloc_object(sizeof *plan);
    if (!plan)
        return NULL;
    plan->context = context;
    plan->problem = *problem;
    plan->proposal = *proposal;
    plan->original = *original;
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tgi_operands_set_data(&plan->original, id, NULL);
    if (tgi_problem_is_scale_only(problem) || tgi_problem_is_empty(problem)) {
        plan->proposal.workspace_bytes = 0;
        plan->proposal.thread_count = 1;
    }
    set_spans(plan);
    atomic_init(&plan->user_count, 1);
    if (prepare_launch(plan))
        return plan;
    tgi_plan_release(plan);
    return NULL;
}

/* Makes a plan like tgi_plan_make, but reserves no workspace. */
static tg_status choose_plan(tg_context *context, const tgi_problem *problem,
                             const tg_problem *original, const char *name, tg_plan **plan)
{
    tgi_proposal proposal;
    tg_status status =
        tgi_plan_choose(context->backend, &context->machine, problem, name, &proposal);
    if (status)
        return status;
    *plan = make_plan(context, problem, &proposal, original);
    if (!*plan)
        return TG_STATUS_OUT_OF_MEMORY;
    (*plan)->is_kernel_given = name != NULL;
    return TG_STATUS_OK;
}

tg_status tgi_plan_make(tg_context *context, const tgi_problem *problem, const tg_problem *original,
                        const char *name, tg_plan **plan)
{
    tg_status status = choose_plan(context, problem, original, name, plan);
    if (status)
        return status;
    status = tgi_workspace_reserve(&context->workspaces, (*plan)->proposal.workspace_bytes);
    if (status) {
        tgi_plan_release(*plan);
        *plan = NULL;
    }
    return status;
}

tg_status tgi_plan_check(tg_context *context, const tg_problem *problem, int *is_empty)
{
    tgi_problem canonical;
    tg_plan *plan;
    tg_status status = tgi_plan_canonicalize(context->backend, problem, &canonical);
    if (status || (status = choose_plan(context, &canonical, problem, NULL, &plan)))
        return status;
    const tg_buffers buffers = tgi_struct_take_buffers(problem);
    *is_empty = tgi_problem_is_empty(&canonical);
    status = tgi_plan_check_buffers(plan, &buffers);
    tgi_plan_release(plan);
    return status;
}

/* Returns a plan from the cache for a new user: the cached plan if it has the problem's alpha and
 * beta, otherwise a copy with them. Returns NULL if there is no plan, or no memory for the copy. */
static tg_plan *find_plan(tg_context *context, const tg_problem *given)
{
    tgi_plan_slot *slot =
        tgi_plan_cache_pin(&context->plans, given, (unsigned)context->backend->operand_alignment);
    if (!slot)
        return NULL;
    tg_plan *plan = slot->plan;
    tgi_problem problem;
    if (tgi_plan_set_factors(plan, given, &problem) == &plan->problem)
        tgi_plan_retain(plan);
    else
        plan = make_plan(context, &problem, &plan->proposal, given);
    tgi_plan_cache_unpin(slot);
    return plan;
}

/* Takes a plan from the cache, or makes one and adds it. */
static tg_status create_cached(tg_context *context, const tg_problem *problem, tg_plan **plan)
{
    const unsigned alignment = (unsigned)context->backend->operand_alignment;
    tgi_problem canonical;
    if ((*plan = find_plan(context, problem)))
        return TG_STATUS_OK;
    tg_status status = tgi_plan_canonicalize(context->backend, problem, &canonical);
    if (status || (status = tgi_plan_make(context, &canonical, problem, NULL, plan)))
        return status;
    tgi_plan_key_make(problem, alignment, &(*plan)->key);
    tgi_plan_cache_add(&context->plans, *plan, alignment);
    return TG_STATUS_OK;
}

tg_status tg_create_plan(tg_context *context, const tg_problem *problem,
                         const tg_plan_options *options, tg_plan **plan)
{
    tg_status status;
    tgi_problem canonical;
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
    if (!name)
        return create_cached(context, problem, plan);
    if ((status = tgi_plan_canonicalize(context->backend, problem, &canonical)))
        return status;
    return tgi_plan_make(context, &canonical, problem, name, plan);
}

tg_status tgi_plan_find_unaligned(const tg_plan *plan, int is_a_offset, int is_b_offset,
                                  const tg_plan **other)
{
    tg_plan *_Atomic *place = &((tg_plan *)plan)->unaligned[is_a_offset + 2 * is_b_offset];
    tg_plan *found = atomic_load_explicit(place, memory_order_acquire), *made;
    if (!found) {
        tgi_problem problem = plan->problem;
        problem.is_a_offset = is_a_offset;
        problem.is_b_offset = is_b_offset;
        tg_status status =
            tgi_plan_make(plan->context, &problem, &plan->original,
                          plan->is_kernel_given ? plan->proposal.kernel->name : NULL, &made);
        if (status)
            return status;
        if (atomic_compare_exchange_strong_explicit(place, &found, made, memory_order_acq_rel,
                                                    memory_order_acquire))
            found = made;
        else
            tgi_plan_release(made); /* another thread was first */
    }
    *other = found;
    return TG_STATUS_OK;
}

void tg_destroy_plan(tg_plan *plan)
{
    tgi_plan_release(plan);
}

tg_status tg_get_plan_info(const tg_plan *plan, tg_plan_info *info, size_t struct_bytes)
{
    if (!plan || !info) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "info" : "plan");
    }
    const tg_plan_info made = {.struct_bytes = sizeof made,
                               .kernel = plan->proposal.kernel->name,
                               .workspace_bytes = plan->proposal.workspace_bytes,
                               .thread_count = plan->proposal.thread_count,
                               .predicted_s = plan->proposal.predicted_s};
    return tgi_struct_write(&tgi_struct_plan_info, &made, info, struct_bytes);
}
