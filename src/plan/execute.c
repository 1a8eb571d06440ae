/* EXECUTE: the last checks, which need pointers, then DISPATCH to the backend. */
#include "core/status.h"
#include "core/structs.h"
#include "plan/call_log.h"
#include "plan/candidates.h"
#include "plan/clock.h"
#include "plan/host_multiply.h"
#include "plan/plan.h"
#include "tilegemm_lab.h"

typedef long long ll; /* for printf */

/* Returns the call with the buffers of the operands that are used, under their canonical names.
 * Most products have an epilogue without operands, whose members are then passed over at once. */
static inline tgi_call make_call(const tg_plan *plan, const tgi_problem *p,
                                 const tg_buffers *buffers)
{
    const unsigned used = plan->used;
    tgi_call call = {.machine = &plan->context->machine,
                     .problem = p,
                     .prepared = plan->prepared,
                     .stream = buffers->stream};
#define SET_POINTER(name, partner)                                                                 \
    if (used >> TGI_OPERAND_##name & 1u)                                                           \
        call.name = p->is_swapped ? buffers->partner : buffers->name;
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    TGI_OF_PRODUCT_##role(SET_POINTER(name, partner))
#include "core/operands.def"
#undef TGI_OPERAND
    if (used & TGI_OPERANDS_EPILOGUE) {
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    TGI_OF_EPILOGUE_##role(SET_POINTER(name, partner))
#include "core/operands.def"
#undef TGI_OPERAND
    }
#undef SET_POINTER
    return call;
}

/* Returns 1 if the operand is D itself, read by the epilogue before it is written. */
static inline int is_in_place(const tg_plan *plan, const tgi_call *call, int id, const void *data)
{
    return (plan->in_place >> id & 1u) && data == call->d;
}

/* Returns 1 if every used operand is given, and is D itself or lies beyond its addresses. */
static inline __attribute__((always_inline)) int is_apart(const tg_plan *plan, const tgi_call *call)
{
    const unsigned used = plan->used;
#define LEAVE_UNLESS_APART(name)                                                                   \
    if (used >> TGI_OPERAND_##name & 1u) {                                                         \
        if (!call->name)                                                                           \
            return 0;                                                                              \
        if (TGI_OPERAND_##name != TGI_OPERAND_d &&                                                 \
            tgi_overlap_is_near(call->d, call->name, plan->gap[TGI_OPERAND_##name]) &&             \
            !is_in_place(plan, call, TGI_OPERAND_##name, call->name))                              \
            return 0;                                                                              \
    }
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_PRODUCT_##role(LEAVE_UNLESS_APART(name))
#include "core/operands.def"
#undef TGI_OPERAND
    if (used & TGI_OPERANDS_EPILOGUE) {
#define TGI_OPERAND(name, title, form, role, ...) TGI_OF_EPILOGUE_##role(LEAVE_UNLESS_APART(name))
#include "core/operands.def"
#undef TGI_OPERAND
    }
#undef LEAVE_UNLESS_APART
    return 1;
}

/* Returns 1 if the kernel needs an operand as aligned as it was told, and the operand is not. */
static inline int is_unaligned(const tg_plan *plan, const tgi_call *call)
{
    return (((uintptr_t)call->a & plan->aligned_bits[0]) |
            ((uintptr_t)call->b & plan->aligned_bits[1])) != 0;
}

static __attribute__((noinline)) tg_status
run_with_workspace(const tg_plan *plan, const tg_buffers *buffers, tgi_call *call)
{
    const int64_t needed_bytes = plan->proposal.workspace_bytes;
    if (needed_bytes == 0)
        return plan->launch(call);
    if (buffers->workspace) {
        if (buffers->workspace_bytes < needed_bytes) {
            return tgi_status_fail(TG_STATUS_WORKSPACE_TOO_SMALL,
                                   "workspace_bytes = %lld, the plan needs %lld; pass as many, or "
                                   "workspace = NULL",
                                   (ll)buffers->workspace_bytes, (ll)needed_bytes);
        }
        const int alignment = plan->context->backend->workspace_alignment;
        if ((uintptr_t)buffers->workspace % (unsigned)alignment) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "workspace = %p is not aligned to %d bytes; use aligned_alloc, "
                                   "or tg_allocate_memory for a GPU",
                                   buffers->workspace, alignment);
        }
        call->workspace = buffers->workspace;
        return plan->launch(call);
    }
    tgi_workspace *workspace;
    tg_status status =
        tgi_workspace_take(&plan->context->workspaces, needed_bytes, buffers->stream, &workspace);
    if (status)
        return status;
    call->workspace = workspace->memory;
    status = plan->launch(call);
    tgi_workspace_give(&plan->context->workspaces, workspace);
    return status;
}

/* Launches a call that nothing stands in the way of, and sets *status. Returns 0 if the call is not
 * one of these. A tiny product takes as long as the instructions that lead to it, so this comes
 * first, and asks nothing that the plan can tell. */
static inline __attribute__((always_inline)) int launch_at_once(const tg_plan *plan,
                                                                const tgi_problem *problem,
                                                                const tg_buffers *buffers,
                                                                tg_status *status)
{
    if (!plan->is_immediate)
        return 0;
    tgi_call call = make_call(plan, problem, buffers);
    if (!is_apart(plan, &call) || is_unaligned(plan, &call))
        return 0;
    *status =
        plan->takes_workspace ? run_with_workspace(plan, buffers, &call) : plan->launch(&call);
    return 1;
}

/* Returns the row of the operand that the caller knows the canonical one as. */
static const tgi_operand_row *get_callers_row(const tgi_problem *p, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    return p->is_swapped ? tgi_operands_get(row->partner) : row;
}

/* Fails because the operand, which is used, is NULL. */
static tg_status fail_missing(const tgi_problem *p, int id)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s = NULL, but this plan uses it; pass its memory",
                           get_callers_row(p, id)->name);
}

/* Fails because the operand shares memory with D. */
static tg_status fail_overlap(const tgi_call *call, int id)
{
    const tgi_operand_row *row = get_callers_row(call->problem, id);
    const int may_be_d = row->form == TGI_FORM_MATRIX && row->role == TGI_ROLE_EPILOGUE;
    return tgi_status_fail(TG_STATUS_OVERLAP,
                           "D at %p overlaps %s; pass a D with memory of its own%s%s%s", call->d,
                           row->title, may_be_d ? ", or " : "", may_be_d ? row->title : "",
                           may_be_d ? " = D with the same strides" : "");
}

/* Refuses a NULL for an operand that is used, and an operand that shares memory with D. */
static __attribute__((noinline)) tg_status check_pointers(const tg_plan *plan, const tgi_call *call)
{
    const unsigned used = plan->used;
#define TGI_OPERAND(name, ...)                                                                     \
    if ((used >> TGI_OPERAND_##name & 1u) && !call->name)                                          \
        return fail_missing(call->problem, TGI_OPERAND_##name);
#include "core/operands.def"
#undef TGI_OPERAND
#define TGI_OPERAND(name, ...)                                                                     \
    if ((used >> TGI_OPERAND_##name & 1u) && TGI_OPERAND_##name != TGI_OPERAND_d &&                \
        tgi_overlap_may_share(call->d, &plan->span[TGI_OPERAND_d], call->name,                     \
                              &plan->span[TGI_OPERAND_##name]) &&                                  \
        !is_in_place(plan, call, TGI_OPERAND_##name, call->name))                                  \
        return fail_overlap(call, TGI_OPERAND_##name);
#include "core/operands.def"
#undef TGI_OPERAND
    return TG_STATUS_OK;
}

tg_status tgi_plan_check_buffers(const tg_plan *plan, const tg_buffers *buffers)
{
    const tgi_call call = make_call(plan, &plan->problem, buffers);
    return tgi_problem_is_empty(&plan->problem) ? TG_STATUS_OK : check_pointers(plan, &call);
}

/* Runs the plan that `plan` owns for operands that are less aligned than it was told. */
static tg_status run_unaligned(const tg_plan *plan, const tgi_problem *problem,
                               const tg_buffers *buffers, tgi_call *call, const tgi_kernel **ran)
{
    const tg_plan *other;
    tg_buffers given = *buffers;
    tgi_problem noted = *problem;
    tgi_plan_note_offsets(plan->context->backend, &noted, call->a, call->b);
    tg_status status = tgi_plan_find_unaligned(plan, noted.is_a_offset, noted.is_b_offset, &other);
    if (status)
        return status;
    if (given.workspace_bytes < other->proposal.workspace_bytes)
        given.workspace = NULL; /* it may be too small for this plan */
    *ran = other->proposal.kernel;
    call->problem = &noted;
    call->prepared = other->prepared;
    return run_with_workspace(other, &given, call);
}

/* Runs the plan with alpha and beta of `problem`. *ran is the kernel that was called; it is another
 * than the plan's where the operands are unaligned. */
static tg_status run_plan(const tg_plan *plan, const tgi_problem *problem,
                          const tg_buffers *buffers, tgi_bare_launch *bare_launch,
                          const tgi_kernel **ran)
{
    tg_status status;
    *ran = plan->proposal.kernel;
    if (tgi_problem_is_empty(problem))
        return TG_STATUS_OK;
    tgi_call call = make_call(plan, problem, buffers);
    call.bare_launch = bare_launch;
    if ((status = check_pointers(plan, &call)))
        return status;
    if (is_unaligned(plan, &call))
        return run_unaligned(plan, problem, buffers, &call, ran);
    return run_with_workspace(plan, buffers, &call);
}

static void log_call(const tg_plan *plan, const tgi_problem *p, const tgi_kernel *ran,
                     double elapsed_s, tg_status status)
{
    char text[640] = "?"; /* shown if there is no memory to write it */
    tg_problem original = plan->original;
    if (p != &plan->problem) {
#define TGI_FACTOR(name, value) original.name = p->epilogue.name;
#include "core/operands.def"
#undef TGI_FACTOR
    }
    tg_format_problem(&original, text, sizeof text);
    double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
    const tgi_logged_call call = {
        "problem", text,  plan->context->device, ran->name, plan->proposal.thread_count, flops,
        elapsed_s, status};
    tgi_call_log_write(plan->context->log, &call);
}

/* Runs the plan, and logs the call if the context asks for it. */
static __attribute__((noinline)) tg_status execute(const tg_plan *plan, const tgi_problem *problem,
                                                   const tg_buffers *buffers)
{
    const tgi_kernel *ran;
    if (!plan->context->log)
        return run_plan(plan, problem, buffers, NULL, &ran);
    const double start_s = tgi_clock_read_s();
    tg_status status = run_plan(plan, problem, buffers, NULL, &ran);
    log_call(plan, problem, ran, tgi_clock_read_s() - start_s, status);
    return status;
}

tg_status tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    if (!plan || !buffers) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "buffers" : "plan");
    }
    tg_status status;
    tg_buffers converted;
    buffers = tgi_struct_read(&tgi_struct_buffers, buffers, &converted);
    if (!buffers)
        return TG_STATUS_INVALID_ARGUMENT;
    return launch_at_once(plan, &plan->problem, buffers, &status)
               ? status
               : execute(plan, &plan->problem, buffers);
}

tg_status tg_time_bare_launch(const tg_plan *plan, const tg_buffers *buffers, int64_t count,
                              double *elapsed_s)
{
    const tgi_kernel *ran;
    tg_buffers converted;
    tgi_bare_launch bare_launch = {.launch_count = count};
    if (!plan || !buffers || !elapsed_s || count < 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "count = %lld, or plan, buffers or elapsed_s is NULL; pass 1 or "
                               "more and addresses",
                               (ll)count);
    }
    *elapsed_s = 0.0;
    buffers = tgi_struct_read(&tgi_struct_buffers, buffers, &converted);
    if (!buffers)
        return TG_STATUS_INVALID_ARGUMENT;
    if (!plan->context->backend->synchronize) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "the plan's device is %s, where nothing is launched; pass a plan of "
                               "a GPU",
                               plan->context->device);
    }
    tg_status status = run_plan(plan, &plan->problem, buffers, &bare_launch, &ran);
    *elapsed_s = bare_launch.elapsed_s;
    return status;
}

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

/* Runs the plan with the problem's own alpha and beta. */
static __attribute__((noinline)) tg_status execute_of(const tg_plan *plan,
                                                      const tg_problem *problem, void *stream)
{
    tgi_problem copy;
    const tg_buffers buffers = take_buffers(problem, stream);
    return execute(plan, tgi_plan_set_factors(plan, problem, &copy), &buffers);
}

/* Plans the problem, adds the plan to the cache and executes it. */
static __attribute__((noinline)) tg_status multiply_first(tg_context *context,
                                                          const tg_problem *problem, void *stream)
{
    tg_plan *plan;
    tg_status status = tg_create_plan(context, problem, NULL, &plan);
    if (status)
        return status;
    const tg_buffers buffers = take_buffers(problem, stream);
    status = execute(plan, &plan->problem, &buffers);
    tgi_plan_release(plan);
    return status;
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
    if (context->backend->find_memory && !tgi_host_is_on_device(context, problem)) {
        int is_host;
        if ((status = tgi_host_find_operands(context, problem, &is_host)))
            return status;
        if (is_host)
            return tgi_host_multiply(context, problem, 0, stream, NULL);
    }
    tgi_plan_slot *slot =
        tgi_plan_cache_pin(&context->plans, problem, (unsigned)context->backend->operand_alignment);
    if (!slot)
        return multiply_first(context, problem, stream);
    const tg_plan *plan = slot->plan;
    const tg_buffers buffers = take_buffers(problem, stream);
    if ((plan->key.has_free_factors && !tgi_plan_key_has_factors(&plan->key, problem)) ||
        !launch_at_once(plan, &plan->problem, &buffers, &status))
        status = execute_of(plan, problem, stream);
    tgi_plan_cache_unpin(slot);
    return status;
}
