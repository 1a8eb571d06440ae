/* MULTIPLY: finds the plan of a problem, or makes it, and executes it. */
#include "core/status.h"
#include "core/structs.h"
#include "plan/host_multiply.h"
#include "plan/immediate_call.h"
#include "plan/plan.h"

tg_status tg_multiply(tg_context *context, const tg_problem *problem)
{
    return tg_multiply_on_stream(context, problem, NULL);
}

/* Returns the buffers of a call of tg_multiply_on_stream. */
static inline tg_buffers take_buffers(const tg_problem *problem, void *stream)
{
    tg_buffers buffers = tgi_struct_take_buffers(problem);
    buffers.stream = stream;
    return buffers;
}

/* Returns 1 if the plan has the problem's alpha and beta. */
static inline int has_factors(const tg_plan *plan, const tg_problem *problem)
{
    return !plan->key.has_free_factors || tgi_plan_key_has_factors(&plan->key, problem);
}

/* Returns 1 if the product repeats the kept call of its plan. */
static inline int is_repeated(const tg_plan *plan, const tg_problem *problem)
{
    const tg_buffers buffers = tgi_struct_take_buffers(problem);
    return tgi_plan_has_kept(plan) && tgi_plan_is_repeated(plan, &buffers) &&
           has_factors(plan, problem);
}

/* Returns 1 if the context has forgotten no address since the plan kept its call. */
static inline int has_lost_none(const tg_plan *plan)
{
    return plan->kept.loss_count ==
           atomic_load_explicit(&plan->context->known.loss_count, memory_order_relaxed);
}

/* Returns 1 if the device can reach all operands, or if its memory is ordinary memory. are_known is
 * 1 if earlier calls have shown this for all operands but D. */
static inline int reaches_operands(tg_context *context, const tg_problem *problem, int are_known)
{
    return !context->backend->find_memory || tgi_host_is_on_device(context, problem, are_known);
}

/* Multiplies operands in ordinary memory, and sets *status. Returns 0 if the device can reach all
 * of them. */
static __attribute__((noinline)) int
multiply_on_host(tg_context *context, const tg_problem *problem, void *stream, tg_status *status)
{
    int is_host = 0;
    *status = tgi_host_find_operands(context, problem, &is_host);
    if (!*status && is_host)
        *status = tgi_host_multiply(context, problem, 0, stream, NULL);
    return *status || is_host;
}

/* Plans the problem, adds the plan to the cache and executes it. */
static __attribute__((noinline)) tg_status multiply_first(tg_context *context,
                                                          const tg_problem *problem, void *stream)
{
    tg_plan *plan;
    tg_status status;
    if (!reaches_operands(context, problem, 0) &&
        multiply_on_host(context, problem, stream, &status))
        return status;
    status = tg_create_plan(context, problem, NULL, &plan);
    if (status)
        return status;
    const tg_buffers buffers = take_buffers(problem, stream);
    status = tgi_plan_execute(plan, &plan->problem, &buffers);
    tgi_plan_release(plan);
    return status;
}

/* Runs the plan with the problem's alpha and beta. */
static inline tg_status multiply_planned(tg_context *context, const tg_plan *plan,
                                         const tg_problem *problem, void *stream)
{
    tg_status status;
    tgi_problem copy;
    if (!reaches_operands(context, problem, 0) &&
        multiply_on_host(context, problem, stream, &status))
        return status;
    const tg_buffers buffers = take_buffers(problem, stream);
    if (!has_factors(plan, problem))
        return tgi_plan_execute(plan, tgi_plan_copy_problem(plan, problem, &copy), &buffers);
    return tgi_plan_has_kept(plan) && tgi_plan_launch_at_once(plan, &buffers, &status)
               ? status
               : tgi_plan_execute(plan, &plan->problem, &buffers);
}

tg_status tg_multiply_on_stream(tg_context *context, const tg_problem *problem, void *stream)
{
    tg_status status;
    tg_problem converted;
    if (!problem)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "problem = NULL; pass its address");
    problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
    if (!problem)
        return TG_STATUS_INVALID_ARGUMENT;
    context = tgi_context_resolve(context, &status);
    if (!context)
        return status;
    tgi_plan_slot *slot =
        tgi_plan_cache_pin(&context->plans, problem, (unsigned)context->backend->operand_alignment);
    if (!slot)
        return multiply_first(context, problem, stream);
    if (is_repeated(slot->plan, problem) &&
        reaches_operands(context, problem, has_lost_none(slot->plan)))
        status = tgi_plan_launch_again(slot->plan, NULL, 0, stream);
    else
        status = multiply_planned(context, slot->plan, problem, stream);
    tgi_plan_cache_unpin(slot);
    return status;
}
