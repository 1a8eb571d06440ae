/* EXECUTE makes the last checks, which need pointers, then goes to the backend (DISPATCH). */
#include "core/status.h"
#include "core/structs.h"
#include "plan/call_log.h"
#include "plan/candidates.h"
#include "plan/clock.h"
#include "plan/immediate_call.h"
#include "plan/plan.h"
#include "tilegemm_lab.h"

typedef long long ll; /* for printf */

tg_status tgi_plan_run_with_workspace(const tg_plan *plan, void *workspace, int64_t workspace_bytes,
                                      tgi_call *call)
{
    const int64_t needed_bytes = plan->proposal.workspace_bytes;
    if (needed_bytes == 0)
        return plan->launch(call);
    if (workspace) {
        if (workspace_bytes < needed_bytes) {
            return tgi_status_fail(TG_STATUS_WORKSPACE_TOO_SMALL,
                                   "workspace_bytes = %lld, the plan needs %lld; pass as many, or "
                                   "workspace = NULL",
                                   (ll)workspace_bytes, (ll)needed_bytes);
        }
        const int alignment = plan->context->backend->workspace_alignment;
        if ((uintptr_t)workspace % (unsigned)alignment) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "workspace = %p is not aligned to %d bytes; use aligned_alloc, "
                                   "or tg_allocate_memory for a GPU",
                                   workspace, alignment);
        }
        call->workspace = workspace;
        return plan->launch(call);
    }
    tgi_workspace *block;
    tg_status status =
        tgi_workspace_take(&plan->context->workspaces, needed_bytes, call->stream, &block);
    if (status)
        return status;
    call->workspace = block->memory;
    status = plan->launch(call);
    tgi_workspace_give(&plan->context->workspaces, block);
    return status;
}

/* Returns the caller's operand for a canonical operand: in a transposed problem, A and B change
 * roles. */
static const tgi_operand_row *get_callers_row(const tgi_problem *p, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    return p->is_swapped ? tgi_operands_get(row->partner) : row;
}

/* Fails because a used operand is NULL. */
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

/* Refuses a used operand that is NULL, and an operand that shares memory with D. */
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
        !tgi_plan_is_in_place(plan, call, TGI_OPERAND_##name, call->name))                         \
        return fail_overlap(call, TGI_OPERAND_##name);
#include "core/operands.def"
#undef TGI_OPERAND
    return TG_STATUS_OK;
}

tg_status tgi_plan_check_buffers(const tg_plan *plan, const tg_buffers *buffers)
{
    const tgi_call call = tgi_plan_make_call(plan, &plan->problem, buffers);
    return tgi_problem_is_empty(&plan->problem) ? TG_STATUS_OK : check_pointers(plan, &call);
}

/* Runs the plan's own plan for operands that are less aligned than `plan` was told. */
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
    return tgi_plan_run_with_workspace(other, given.workspace, given.workspace_bytes, call);
}

/* Runs the plan with its own alpha and beta. If no call is kept yet, keeps this one. */
static tg_status run_own(const tg_plan *plan, const tg_buffers *buffers, tgi_call *call)
{
    tgi_kept_call *kept = &((tg_plan *)plan)->kept;
    int state = TGI_KEPT_NONE;
    if (!atomic_compare_exchange_strong_explicit(&kept->state, &state, TGI_KEPT_BEGUN,
                                                 memory_order_acquire, memory_order_relaxed))
        return tgi_plan_run_with_workspace(plan, buffers->workspace, buffers->workspace_bytes,
                                           call);
    call->kind = TGI_CALL_KEPT;
    kept->loss_count = atomic_load_explicit(&plan->context->known.loss_count, memory_order_relaxed);
    kept->call = *call;
    kept->buffers = *buffers;
    kept->call.kind = TGI_CALL_REPEATED;
    const tg_status status =
        tgi_plan_run_with_workspace(plan, buffers->workspace, buffers->workspace_bytes, call);
    atomic_store_explicit(&kept->state, status ? TGI_KEPT_NONE : TGI_KEPT_DONE,
                          memory_order_release);
    return status;
}

/* Runs the plan with alpha and beta of `problem`. Sets *ran to the kernel that was called, which
 * differs from the plan's if operands are unaligned. */
static tg_status run_plan(const tg_plan *plan, const tgi_problem *problem,
                          const tg_buffers *buffers, tgi_bare_launch *bare_launch,
                          const tgi_kernel **ran)
{
    tg_status status;
    *ran = plan->proposal.kernel;
    if (tgi_problem_is_empty(problem))
        return TG_STATUS_OK;
    tgi_call call = tgi_plan_make_call(plan, problem, buffers);
    call.bare_launch = bare_launch;
    if ((status = check_pointers(plan, &call)))
        return status;
    if (tgi_plan_is_unaligned(plan, &call))
        return run_unaligned(plan, problem, buffers, &call, ran);
    return bare_launch || problem != &plan->problem
               ? tgi_plan_run_with_workspace(plan, buffers->workspace, buffers->workspace_bytes,
                                             &call)
               : run_own(plan, buffers, &call);
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

tg_status tgi_plan_execute(const tg_plan *plan, const tgi_problem *problem,
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
    if (tgi_plan_has_kept(plan)) {
        if (tgi_plan_is_repeated(plan, buffers))
            return tgi_plan_launch_again(plan, buffers->workspace, buffers->workspace_bytes,
                                         buffers->stream);
        if (tgi_plan_launch_at_once(plan, buffers, &status))
            return status;
    }
    return tgi_plan_execute(plan, &plan->problem, buffers);
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
