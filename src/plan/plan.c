#include "plan/plan.h"

#include <stdio.h>
#include <string.h>

#include "core/alloc.h"
#include "core/status.h"
#include "model/plan_counts.h"
#include "plan/context.h"
#include "tilegemm_lab.h"

/* Asks the backend what it makes of one row. */
static void propose(const tg_context *context, const tgi_problem *problem, const tgi_kernel *kernel,
                    tgi_proposal *proposal)
{
    const tgi_machine *machine = &context->machine;
    memset(proposal, 0, sizeof *proposal);
    proposal->kernel = kernel;
    if (!tgi_backend_has_row(context->backend, kernel)) {
        snprintf(proposal->reason, sizeof proposal->reason, "runs on %s, the context on %s",
                 kernel->device, context->backend->device);
    } else if (kernel->type != problem->type) {
        snprintf(proposal->reason, sizeof proposal->reason, "multiplies %s, the inputs are %s",
                 tg_get_type_name(kernel->type), tg_get_type_name(problem->type));
    } else if (kernel->isa > machine->isa) {
        snprintf(proposal->reason, sizeof proposal->reason, "needs %s, the context has %s",
                 tgi_kernels_isa_name(kernel->isa), tgi_kernels_isa_name(machine->isa));
    } else {
        context->backend->propose(machine, problem, proposal);
        if (problem->is_batch_invariant && proposal->sum_order != TGI_SUM_ALONG_K &&
            !tgi_problem_is_empty(problem) && !tgi_problem_is_scale_only(problem) &&
            proposal->is_legal) {
            proposal->is_legal = 0;
            snprintf(proposal->reason, sizeof proposal->reason,
                     "the order of its sums depends on more than k; batch_invariant excludes it");
        }
    }
}

/* Rows that sum in the same order with the same instructions give the same bits. */
#define BITS_COUNT (TGI_SUM_ORDER_COUNT * TGI_ISA_COUNT)

/* The best legal row of those that give the same bits; NULL kernel where there is none. */
typedef struct choice {
    tgi_proposal best; /* by predicted_s */
    double serial_s;   /* shortest of all */
} choice;

static void consider(choice *choices, const tgi_proposal *proposal)
{
    choice *order = &choices[proposal->sum_order * TGI_ISA_COUNT + (int)proposal->kernel->isa];
    if (!order->best.kernel || proposal->serial_s < order->serial_s) {
        order->serial_s = proposal->serial_s;
    }
    if (!order->best.kernel || proposal->predicted_s < order->best.predicted_s) {
        order->best = *proposal;
    }
}

static const tgi_kernel *find_row_of_device(const tg_context *context)
{
    const tgi_kernel *found = NULL;
    for (int i = tgi_kernels_count() - 1; i >= 0; i--) {
        if (tgi_backend_has_row(context->backend, tgi_kernels_get(i)))
            found = tgi_kernels_get(i);
    }
    return found;
}

/* The legal row with the shortest prediction among those that `name` (NULL: any) matches: first the
 * bits, as if there were one thread, then the row. */
static tg_status choose(const tg_context *context, const tgi_problem *problem, const char *name,
                        tgi_proposal *best)
{
    choice choices[BITS_COUNT] = {0};
    char reason[sizeof best->reason] = "";
    int match_count = 0, reason_rank = 0;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        tgi_proposal proposal;
        if (name && !tgi_kernels_match(kernel, name))
            continue;
        propose(context, problem, kernel, &proposal);
        match_count++;
        /* The reason of a row of this device that has the right type tells most. */
        const int rank =
            2 * tgi_backend_has_row(context->backend, kernel) + (kernel->type == problem->type);
        if (proposal.is_legal) {
            consider(choices, &proposal);
        } else if (rank >= reason_rank) {
            reason_rank = rank;
            memcpy(reason, proposal.reason, sizeof reason);
        }
    }
    memset(best, 0, sizeof *best);
    double serial_s = 0.0;
    for (int i = 0; i < BITS_COUNT; i++) {
        /* Only the last instruction set of those that have rows for every shape is the same for
         * every shape. */
        if (choices[i].best.kernel &&
            (!best->kernel || problem->is_batch_invariant || choices[i].serial_s < serial_s)) {
            *best = choices[i].best;
            serial_s = choices[i].serial_s;
        }
    }
    if (!best->kernel && !name && tgi_problem_is_scale_only(problem))
        best->kernel = find_row_of_device(context); /* no kernel runs: a row lends its name */
    if (best->kernel)
        return TG_STATUS_OK;
    if (match_count == 0) {
        return tgi_status_fail(
            TG_STATUS_UNKNOWN_NAME,
            "kernel = \"%.80s\" is in no row of the kernel table; `tilegemm kernels` "
            "lists the names",
            name ? name : "");
    }
    return tgi_status_fail(
        TG_STATUS_UNSUPPORTED,
        "kernel = \"%.80s\" cannot run this problem: %s; pass another kernel or none",
        name ? name : "(any)", reason);
}

/* Of `count` elements one behind the other. */
static tgi_span find_line_span(int64_t count, int64_t element_bytes)
{
    const tgi_layout line = {1, 1, 1};
    return tgi_overlap_find_span(&line, count, 1, 1, element_bytes);
}

static void set_spans(tg_plan *plan)
{
    const tgi_problem *p = &plan->problem;
    int64_t in_bytes = tgi_type_bytes(p->type), out_bytes = tgi_type_bytes(p->d_type);
    int64_t scale_bytes = (int64_t)sizeof(float);
    if (tgi_problem_is_empty(p))
        return;
    plan->d_span = tgi_overlap_find_span(&p->d, p->m, p->n, p->batch_count, out_bytes);
    plan->c_span = tgi_overlap_find_span(&p->c, p->m, p->n, p->batch_count, out_bytes);
    plan->bias_span = find_line_span(p->bias == TG_BIAS_ROW ? p->m : p->n, out_bytes);
    plan->d_scale_span = find_line_span(1, scale_bytes);
    plan->a_scale_span = find_line_span(p->a_scale == TG_SCALE_VECTOR ? p->m : 1, scale_bytes);
    plan->b_scale_span = find_line_span(p->b_scale == TG_SCALE_VECTOR ? p->n : 1, scale_bytes);
    if (tgi_problem_is_scale_only(p))
        return;
    plan->a_span = tgi_overlap_find_span(&p->a, p->m, p->k, p->batch_count, in_bytes);
    plan->b_span = tgi_overlap_find_span(&p->b, p->k, p->n, p->batch_count, in_bytes);
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
    plan->blocking = proposal->blocking;
    plan->workspace_bytes = proposal->workspace_bytes;
    plan->needs_alignment = proposal->needs_alignment;
    plan->predicted_s = proposal->predicted_s;
    plan->original = *original;
    plan->original.a.data = plan->original.b.data = NULL;
    plan->original.c.data = plan->original.d.data = NULL;
    plan->original.bias_data = NULL;
    plan->original.a_scale_data = plan->original.b_scale_data = plan->original.d_scale_data = NULL;
    if (tgi_problem_is_scale_only(problem) || tgi_problem_is_empty(problem)) {
        plan->workspace_bytes = 0;
        plan->blocking.thread_count = 1;
    }
    set_spans(plan);
    atomic_init(&plan->user_count, 1);
    return plan;
}

void tgi_plan_note_offsets(const tgi_backend *backend, tgi_problem *problem, const void *a,
                           const void *b)
{
    const uintptr_t alignment =
        backend->operand_alignment ? (unsigned)backend->operand_alignment : 1;
    problem->is_a_offset = (uintptr_t)a % alignment != 0;
    problem->is_b_offset = (uintptr_t)b % alignment != 0;
}

/* VALIDATE, and what pointers tell already. */
static tg_status canonicalize(const tg_context *context, const tg_problem *problem,
                              tgi_problem *canonical)
{
    tg_status status = tgi_problem_validate(problem, canonical);
    if (status)
        return status;
    const int is_swapped = canonical->is_swapped;
    tgi_plan_note_offsets(context->backend, canonical,
                          is_swapped ? problem->b.data : problem->a.data,
                          is_swapped ? problem->a.data : problem->b.data);
    return TG_STATUS_OK;
}

tg_status tg_create_plan(tg_context *context, const tg_problem *problem,
                         const tg_plan_options *options, tg_plan **plan)
{
    tg_status status;
    tgi_problem canonical;
    tgi_proposal proposal;
    const char *name = options ? options->kernel : NULL;
    if (!plan || !problem) {
        if (plan)
            *plan = NULL;
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "problem" : "plan");
    }
    *plan = NULL;
    context = tgi_context_resolve(context, &status);
    if (!context)
        return status;
    if ((status = canonicalize(context, problem, &canonical)))
        return status;
    if (!name && (*plan = tgi_plan_cache_find(&context->plans, &canonical)))
        return TG_STATUS_OK;
    if ((status = choose(context, &canonical, name, &proposal)))
        return status;
    tg_plan *made = make_plan(context, &canonical, &proposal, problem);
    if (!made)
        return TG_STATUS_OUT_OF_MEMORY;
    if ((status = tgi_workspace_reserve(&context->workspaces, made->workspace_bytes))) {
        tg_destroy_plan(made);
        return status;
    }
    *plan = made;
    if (!name)
        tgi_plan_cache_add(&context->plans, *plan);
    return TG_STATUS_OK;
}

void tg_destroy_plan(tg_plan *plan)
{
    if (plan && atomic_fetch_sub_explicit(&plan->user_count, 1, memory_order_acq_rel) == 1) {
        tgi_alloc_free(plan);
    }
}

tg_status tg_get_plan_info(const tg_plan *plan, tg_plan_info *info)
{
    if (!plan || !info) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               plan ? "info" : "plan");
    }
    info->kernel = plan->kernel->name;
    info->workspace_bytes = plan->workspace_bytes;
    info->thread_count = plan->blocking.thread_count;
    info->predicted_s = plan->predicted_s;
    return TG_STATUS_OK;
}

static void count_plan(const tg_context *context, const tgi_problem *problem,
                       const tgi_proposal *proposal, tg_candidate *candidate)
{
    const tgi_blocking *blocking = &proposal->blocking;
    const tgi_plan_cut cut = {.k_part_count = blocking->k_parts ? blocking->k_parts : 1,
                              .block_count = blocking->col_parts,
                              .resident_count = proposal->resident_blocks};
    tgi_plan_counts counts = {.block_count = 0};
    if (proposal->is_legal)
        counts = tgi_model_count_plan(&context->machine.gpu, proposal->kernel, problem, &cut);
    candidate->block_count = counts.block_count;
    candidate->k_part_count = counts.k_part_count;
    candidate->threads_per_block = counts.threads_per_block;
    candidate->global_read_bytes = counts.global_read_bytes;
    candidate->global_write_bytes = counts.global_write_bytes;
    candidate->issued_flops = counts.issued_flops;
    candidate->occupancy = counts.occupancy;
}

tg_status tg_list_candidates(tg_context *context, const tg_problem *problem,
                             tg_candidate *candidates, int capacity, int *count)
{
    tg_status status;
    tgi_problem canonical;
    tgi_proposal best, proposal;
    if (!problem || !count || (!candidates && capacity > 0)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "problem, count and, with a capacity, candidates must not be NULL");
    }
    *count = 0;
    context = tgi_context_resolve(context, &status);
    if (!context)
        return status;
    if ((status = canonicalize(context, problem, &canonical)))
        return status;
    status = choose(context, &canonical, NULL, &best);
    if (status == TG_STATUS_UNSUPPORTED) /* none is legal: each says why */
        best = (tgi_proposal){.kernel = NULL};
    else if (status)
        return status;
    *count = tgi_kernels_count();
    for (int i = 0; i < *count && i < capacity; i++) {
        tg_candidate *candidate = &candidates[i];
        propose(context, &canonical, tgi_kernels_get(i), &proposal);
        candidate->kernel = proposal.kernel->name;
        candidate->is_legal = proposal.is_legal;
        candidate->is_chosen = proposal.kernel == best.kernel;
        candidate->predicted_s = proposal.is_legal ? proposal.predicted_s : 0.0;
        memcpy(candidate->reason, proposal.reason, sizeof candidate->reason);
        count_plan(context, &canonical, &proposal, candidate);
        int has_work = best.predicted_s > 0.0; /* else no product is formed, and all are equal */
        if (proposal.is_legal && !candidate->is_chosen && !has_work) {
            snprintf(candidate->reason, sizeof candidate->reason,
                     "no product is formed: no kernel runs");
        } else if (proposal.is_legal && !candidate->is_chosen) {
            snprintf(candidate->reason, sizeof candidate->reason,
                     "predicted to take %.2f times as long as %s",
                     proposal.predicted_s / best.predicted_s, best.kernel->name);
        }
    }
    return TG_STATUS_OK;
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
    info->is_available =
        tgi_backend_has_row(context->backend, kernel) && kernel->isa <= context->machine.isa;
    return TG_STATUS_OK;
}
