/* EXECUTE: the last checks, which need pointers, then DISPATCH to the backend. */
#include <stdio.h>
#include <time.h>

#include "core/status.h"
#include "core/structs.h"
#include "plan/candidates.h"
#include "plan/context.h"
#include "plan/plan.h"
#include "tilegemm_lab.h"

typedef long long ll; /* for printf */

/* Returns the call with the buffers of the operands that are used, under their canonical names. */
static tgi_call make_call(const tg_plan *plan, const tg_buffers *buffers)
{
    const tgi_problem *p = &plan->problem;
    const unsigned used = tgi_epilogue_find_used(&p->epilogue);
    tgi_call call = {.machine = &plan->context->machine,
                     .problem = p,
                     .prepared = plan->prepared,
                     .stream = buffers->stream};
#define TGI_OPERAND(name, title, form, role, rows, cols, type, partner, ...)                       \
    if (used >> TGI_OPERAND_##name & 1u)                                                           \
        call.name = p->is_swapped ? buffers->partner : buffers->name;
#include "core/operands.def"
#undef TGI_OPERAND
    return call;
}

/* Returns the row of the operand that the caller knows the canonical one as. */
static const tgi_operand_row *get_callers_row(const tgi_problem *p, int id)
{
    const tgi_operand_row *row = tgi_operands_get(id);
    return p->is_swapped ? tgi_operands_get(row->partner) : row;
}

/* Returns 1 if the operand is D itself, read by the epilogue before it is written. */
static int is_in_place(const tgi_call *call, int id, const void *data)
{
    const tgi_problem *p = call->problem;
    const tgi_layout *layout = tgi_problem_get_layout(p, id);
    return tgi_operands_get(id)->role == TGI_ROLE_EPILOGUE && layout && data == call->d &&
           layout->row == p->d.row && layout->col == p->d.col && layout->batch == p->d.batch;
}

/* Refuses a NULL for an operand that is used, and an operand that shares memory with D. */
static tg_status check_pointers(const tg_plan *plan, const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const unsigned used = tgi_epilogue_find_used(&p->epilogue);
    const void *const data[TGI_OPERAND_COUNT] = {
#define TGI_OPERAND(name, ...) call->name,
#include "core/operands.def"
#undef TGI_OPERAND
    };
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if ((used >> id & 1u) && !data[id]) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s = NULL, but this plan uses it; pass its memory",
                                   get_callers_row(p, id)->name);
        }
    }
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_row *row = get_callers_row(p, id);
        if (!(used >> id & 1u) || id == TGI_OPERAND_d || is_in_place(call, id, data[id]) ||
            !tgi_overlap_may_share(call->d, &plan->span[TGI_OPERAND_d], data[id], &plan->span[id]))
            continue;
        const int may_be_d = row->form == TGI_FORM_MATRIX && row->role == TGI_ROLE_EPILOGUE;
        return tgi_status_fail(
            TG_STATUS_OVERLAP, "D at %p overlaps %s; pass a D with memory of its own%s%s%s",
            call->d, row->title, may_be_d ? ", or " : "", may_be_d ? row->title : "",
            may_be_d ? " = D with the same strides" : "");
    }
    return TG_STATUS_OK;
}

static tg_status run_with_workspace(const tg_plan *plan, const tg_buffers *buffers, tgi_call *call)
{
    int64_t needed_bytes = plan->workspace_bytes;
    if (needed_bytes == 0)
        return plan->context->backend->launch(call);
    if (buffers->workspace) {
        if (buffers->workspace_bytes < needed_bytes) {
            return tgi_status_fail(TG_STATUS_WORKSPACE_TOO_SMALL,
                                   "workspace_bytes = %lld, the plan needs %lld; pass as many, or "
                                   "workspace = NULL",
                                   (ll)buffers->workspace_bytes, (ll)needed_bytes);
        }
        int alignment = plan->context->backend->workspace_alignment;
        if ((uintptr_t)buffers->workspace % (unsigned)alignment) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "workspace = %p is not aligned to %d bytes; use aligned_alloc, "
                                   "or tg_allocate_memory for a GPU",
                                   buffers->workspace, alignment);
        }
        call->workspace = buffers->workspace;
        return plan->context->backend->launch(call);
    }
    tgi_workspace workspace;
    tg_status status =
        tgi_workspace_take(&plan->context->workspaces, needed_bytes, buffers->stream, &workspace);
    if (status)
        return status;
    call->workspace = workspace.memory;
    status = plan->context->backend->launch(call);
    tgi_workspace_give(&plan->context->workspaces, workspace);
    return status;
}

static tg_status run_plan(const tg_plan *plan, const tg_buffers *buffers, const tgi_kernel **ran);

/* Operands that are less aligned than the plan's kernel asks for: by a plan made for them, of the
 * same kernel where the caller gave it. */
static tg_status run_offset(const tg_plan *plan, const tg_buffers *buffers, const tgi_kernel **ran)
{
    const tg_plan_options options = {.struct_bytes = sizeof options,
                                     .kernel = plan->is_kernel_given ? plan->kernel->name : NULL};
    tg_problem problem = plan->original;
    tg_buffers given = *buffers;
    tg_plan *other;
    problem.a.data = (void *)(uintptr_t)buffers->a;
    problem.b.data = (void *)(uintptr_t)buffers->b;
    tg_status status = tg_create_plan(plan->context, &problem, &options, &other);
    if (status)
        return status;
    if (given.workspace_bytes < other->workspace_bytes)
        given.workspace = NULL; /* what the caller's plan asked for does not do */
    status = run_plan(other, &given, ran);
    tg_destroy_plan(other);
    return status;
}

static double read_clock_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

static void log_call(const tg_plan *plan, const tgi_kernel *ran, double elapsed_s, tg_status status)
{
    char problem[640] = "?"; /* where there is no memory to write it */
    const tgi_problem *p = &plan->problem;
    tg_format_problem(&plan->original, problem, sizeof problem);
    double flops = 2.0 * (double)p->m * (double)p->n * (double)p->k * (double)p->batch_count;
    fprintf(plan->context->log,
            "tilegemm problem=%s device=%s kernel=%s threads=%d time_us=%.2f gflop_per_s=%.2f "
            "status=%s\n",
            problem, plan->context->device, ran->name, plan->thread_count, elapsed_s * 1e6,
            flops / elapsed_s * 1e-9, tg_get_status_name(status));
}

/* *ran: the kernel that was called; it is another than the plan's after run_offset. */
static tg_status run_plan(const tg_plan *plan, const tg_buffers *buffers, const tgi_kernel **ran)
{
    tg_status status;
    *ran = plan->kernel;
    if (tgi_problem_is_empty(&plan->problem))
        return TG_STATUS_OK;
    tgi_call call = make_call(plan, buffers);
    if ((status = check_pointers(plan, &call)))
        return status;
    if (plan->needs_aligned[0] || plan->needs_aligned[1]) {
        tgi_problem noted = plan->problem;
        tgi_plan_note_offsets(plan->context->backend, &noted, call.a, call.b);
        if ((plan->needs_aligned[0] && noted.is_a_offset > plan->problem.is_a_offset) ||
            (plan->needs_aligned[1] && noted.is_b_offset > plan->problem.is_b_offset))
            return run_offset(plan, buffers, ran);
    }
    return run_with_workspace(plan, buffers, &call);
}

tg_status tg_execute_plan(const tg_plan *plan, const tg_buffers *buffers)
{
    if (!plan || !buffers) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "buffers" : "plan");
    }
    tg_buffers converted;
    buffers = tgi_struct_read(&tgi_struct_buffers, buffers, &converted);
    if (!buffers)
        return TG_STATUS_INVALID_ARGUMENT;
    const tgi_kernel *ran;
    if (!plan->context->log)
        return run_plan(plan, buffers, &ran);
    double start_s = read_clock_s();
    tg_status status = run_plan(plan, buffers, &ran);
    log_call(plan, ran, read_clock_s() - start_s, status);
    return status;
}

tg_status tg_multiply(tg_context *context, const tg_problem *problem)
{
    return tg_multiply_on_stream(context, problem, NULL);
}

tg_status tg_multiply_on_stream(tg_context *context, const tg_problem *problem, void *stream)
{
    tg_plan *plan;
    tg_problem converted;
    if (problem) {
        problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
        if (!problem)
            return TG_STATUS_INVALID_ARGUMENT;
    }
    tg_status status = tg_create_plan(context, problem, NULL, &plan);
    if (status)
        return status;
    tg_buffers buffers = tgi_struct_take_buffers(problem);
    buffers.stream = stream;
    status = tg_execute_plan(plan, &buffers);
    tg_destroy_plan(plan);
    return status;
}
