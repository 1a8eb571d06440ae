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

/* Buffers as the canonical problem names them. */
static tgi_call make_call(const tg_plan *plan, const tg_buffers *buffers)
{
    const int is_swapped = plan->problem.is_swapped;
    tgi_call call = {.machine = &plan->context->machine,
                     .problem = &plan->problem,
                     .prepared = plan->prepared,
                     .a = is_swapped ? buffers->b : buffers->a,
                     .b = is_swapped ? buffers->a : buffers->b,
                     .c = buffers->c,
                     .d = buffers->d,
                     .bias = buffers->bias,
                     .a_scale = is_swapped ? buffers->b_scale : buffers->a_scale,
                     .b_scale = is_swapped ? buffers->a_scale : buffers->b_scale,
                     .d_scale = buffers->d_scale,
                     .stream = buffers->stream};
    const tgi_problem *p = &plan->problem;
    if (p->a_scale == TG_SCALE_NONE)
        call.a_scale = NULL;
    if (p->b_scale == TG_SCALE_NONE)
        call.b_scale = NULL;
    if (p->d_scale == TG_SCALE_NONE)
        call.d_scale = NULL;
    if (p->beta == 0.0)
        call.c = NULL;
    return call;
}

static tg_status check_pointers(const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    int reads_inputs = !tgi_problem_is_scale_only(p);
    const char *missing = !call->d                                 ? "d"
                          : reads_inputs && !call->a               ? p->is_swapped ? "b" : "a"
                          : reads_inputs && !call->b               ? p->is_swapped ? "a" : "b"
                          : p->beta != 0.0 && !call->c             ? "c"
                          : p->bias != TG_BIAS_NONE && !call->bias ? "bias"
                          : p->a_scale && !call->a_scale ? p->is_swapped ? "b_scale" : "a_scale"
                          : p->b_scale && !call->b_scale ? p->is_swapped ? "a_scale" : "b_scale"
                          : p->d_scale && !call->d_scale ? "d_scale"
                                                         : NULL;
    if (!missing)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s = NULL, but this plan uses it; pass its memory", missing);
}

static tg_status check_overlap(const tg_plan *plan, const tgi_call *call)
{
    const tgi_problem *p = call->problem;
    const tgi_span *d = &plan->d_span;
    const char *name = NULL;
    const int reads_inputs = !tgi_problem_is_scale_only(p);
    int is_in_place = call->c == call->d && p->c.row == p->d.row && p->c.col == p->d.col &&
                      p->c.batch == p->d.batch;
    if (reads_inputs && tgi_overlap_may_share(call->d, d, call->a, &plan->a_span)) {
        name = p->is_swapped ? "B" : "A";
    } else if (reads_inputs && tgi_overlap_may_share(call->d, d, call->b, &plan->b_span)) {
        name = p->is_swapped ? "A" : "B";
    } else if (call->c && !is_in_place &&
               tgi_overlap_may_share(call->d, d, call->c, &plan->c_span)) {
        name = "C";
    } else if (p->bias != TG_BIAS_NONE &&
               tgi_overlap_may_share(call->d, d, call->bias, &plan->bias_span)) {
        name = "bias";
    } else if (call->a_scale &&
               tgi_overlap_may_share(call->d, d, call->a_scale, &plan->a_scale_span)) {
        name = p->is_swapped ? "b_scale" : "a_scale";
    } else if (call->b_scale &&
               tgi_overlap_may_share(call->d, d, call->b_scale, &plan->b_scale_span)) {
        name = p->is_swapped ? "a_scale" : "b_scale";
    } else if (call->d_scale &&
               tgi_overlap_may_share(call->d, d, call->d_scale, &plan->d_scale_span)) {
        name = "d_scale";
    }
    if (!name)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_OVERLAP,
                           "D at %p overlaps %s; pass a D with memory of its own%s", call->d, name,
                           name[0] == 'C' ? ", or C = D with the same strides" : "");
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
    if ((status = check_pointers(&call)) || (status = check_overlap(plan, &call)))
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
