#include "plan/candidates.h"

#include <string.h>

#include "core/status.h"
#include "core/structs.h"
#include "model/chips.h"
#include "model/plan_counts.h"
#include "plan/proposal.h"
#include "plan/refused_problem.h"

#define BITS_COUNT (TGI_SUM_ORDER_COUNT * TGI_ISA_COUNT)

/* The row that is chosen without an epilogue is kept if it is predicted to take at most so many
 * times as long as the fastest one. Found by trying, on drawn products (bench/notes/model.md). */
#define EPILOGUE_MARGIN 1.05

/* Returns a number below BITS_COUNT. Rows that give the same bits have the same number: those that
 * sum in the same order by the same instruction set. Orders that have the same bits by every
 * instruction set count for the first one with rows for every shape. */
static int find_bits(const tgi_proposal *proposal)
{
    const tgi_isa isa = proposal->sum_order == TGI_SUM_TEAMS   ? TGI_ISA_sm75
                        : proposal->sum_order == TGI_SUM_STEPS ? TGI_ISA_sm80
                                                               : proposal->kernel->isa;
    return (int)isa * TGI_SUM_ORDER_COUNT + (int)proposal->sum_order;
}

/* Returns 1 for a teaching row, which is chosen only if no other row is legal. The last two rungs
 * of the CPU's ladder, direct and packed, are production rows. */
static int is_teaching(const tgi_kernel *kernel)
{
    return tgi_kernels_rung(kernel->family) >= 0 && kernel->family != TGI_FAMILY_cpu_direct &&
           kernel->family != TGI_FAMILY_cpu_packed;
}

/* The choice among legal rows that give the same bits. */
typedef struct choice {
    const tgi_kernel *best; /* the row with the shortest predicted_s; NULL if there is none */
    double predicted_s;
    double serial_s; /* shortest serial_s of these rows */
} choice;

static void consider(choice *choices, const tgi_proposal *proposal)
{
    choice *order = &choices[find_bits(proposal)];
    if (!order->best || proposal->serial_s < order->serial_s)
        order->serial_s = proposal->serial_s;
    if (!order->best || proposal->predicted_s < order->predicted_s) {
        order->best = proposal->kernel;
        order->predicted_s = proposal->predicted_s;
    }
}

static const tgi_kernel *find_row_of_device(const tgi_backend *backend)
{
    const tgi_kernel *found = NULL;
    for (int i = tgi_kernels_count() - 1; i >= 0; i--) {
        if (tgi_plan_has_row(backend, tgi_kernels_get(i)))
            found = tgi_kernels_get(i);
    }
    return found;
}

static int is_of_kind(const tgi_backend *backend, const tgi_kernel *kernel, tg_type type)
{
    return kernel->type == type && tgi_plan_has_row(backend, kernel);
}

/* Returns 1 if this device has rows of this type. Rows of other types and devices then need no
 * proposal. Finding the reason why each is illegal would take longer than the choice. */
static int has_kind(const tgi_backend *backend, tg_type type)
{
    for (int i = 0; i < tgi_kernels_count(); i++) {
        if (is_of_kind(backend, tgi_kernels_get(i), type))
            return 1;
    }
    return 0;
}

/* Returns the best teaching row, or the best of the other rows; NULL if none is legal. Adds the
 * number of rows that were asked to *match_count. `best` is room for a proposal. */
static const tgi_kernel *choose_among(const tgi_backend *backend, const tgi_machine *machine,
                                      const tgi_problem *problem, const char *name, int teaches,
                                      int *match_count, tgi_proposal *best)
{
    choice choices[BITS_COUNT] = {0};
    const int is_kind_alone = !name && has_kind(backend, problem->type);
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (is_teaching(kernel) != teaches ||
            (name ? !tgi_kernels_match(kernel, name)
                  : is_kind_alone && !is_of_kind(backend, kernel, problem->type)))
            continue;
        tgi_plan_propose(backend, machine, problem, kernel, best);
        (*match_count)++;
        if (best->is_legal)
            consider(choices, best);
    }
    const tgi_kernel *chosen = NULL;
    double serial_s = 0.0;
    for (int i = 0; i < BITS_COUNT; i++) {
        /* A batch-invariant problem takes the last instruction set that has a legal row, of which
         * some are legal for any m. A choice by time could depend on m. */
        if (choices[i].best &&
            (!chosen || problem->is_batch_invariant || choices[i].serial_s < serial_s)) {
            chosen = choices[i].best;
            serial_s = choices[i].serial_s;
        }
    }
    return chosen;
}

/* Returns 1 for a problem that keeps the row of its product alone. On a GPU predictions of
 * epilogues of FP32 and FP64 differ more from row to row than epilogues do. A batch-invariant
 * problem's row must not depend on times. */
static int keeps_row(const tgi_machine *machine, const tgi_problem *problem)
{
    return machine->gpu.sm_count > 0 && tgi_type_bytes(problem->type) >= 4 &&
           !problem->is_batch_invariant && !tgi_problem_is_scale_only(problem) &&
           !tgi_epilogue_is_sum_alone(&problem->epilogue);
}

/* Returns the row to take where `chosen` is predicted to be the fastest: the one that is chosen
 * without an epilogue, unless `chosen` is predicted to be clearly faster. */
static const tgi_kernel *keep_without_epilogue(const tgi_backend *backend,
                                               const tgi_machine *machine,
                                               const tgi_problem *problem, const tgi_kernel *chosen,
                                               tgi_proposal *best)
{
    tgi_problem plain = *problem;
    int match_count = 0;
    tgi_plan_propose(backend, machine, problem, chosen, best);
    const double most_s = EPILOGUE_MARGIN * best->predicted_s;
    plain.epilogue = (tgi_epilogue){.alpha = 1.0};
    const tgi_kernel *kept =
        choose_among(backend, machine, &plain, NULL, is_teaching(chosen), &match_count, best);
    if (!kept)
        return chosen;
    tgi_plan_propose(backend, machine, problem, kept, best);
    return best->is_legal && best->predicted_s <= most_s ? kept : chosen;
}

tg_status tgi_plan_choose(const tgi_backend *backend, const tgi_machine *machine,
                          const tgi_problem *problem, const char *name, tgi_proposal *best)
{
    int match_count = 0;
    const tgi_kernel *chosen = choose_among(backend, machine, problem, name, 0, &match_count, best);
    if (!chosen)
        chosen = choose_among(backend, machine, problem, name, 1, &match_count, best);
    /* The chosen row proposes once more, because a second proposal beside *best could be too large
     * for a small stack. */
    if (chosen && !name && keeps_row(machine, problem))
        chosen = keep_without_epilogue(backend, machine, problem, chosen, best);
    if (chosen) {
        tgi_plan_propose(backend, machine, problem, chosen, best);
        return TG_STATUS_OK;
    }
    memset(best, 0, sizeof *best);
    if (!name && tgi_problem_is_scale_only(problem))
        best->kernel = find_row_of_device(backend); /* no kernel runs: a row lends its name */
    if (best->kernel)
        return TG_STATUS_OK;
    if (match_count == 0) {
        return tgi_status_fail(
            TG_STATUS_UNKNOWN_NAME,
            "kernel = \"%.80s\" is in no row of the kernel table; `tilegemm kernels` "
            "lists the names",
            name ? name : "");
    }
    return tgi_plan_report_refusals(backend, machine, problem, name);
}

void tgi_plan_note_offsets(const tgi_backend *backend, tgi_problem *problem, const void *a,
                           const void *b)
{
    const uintptr_t alignment = (unsigned)backend->operand_alignment;
    problem->is_a_offset = (uintptr_t)a % alignment != 0;
    problem->is_b_offset = (uintptr_t)b % alignment != 0;
}

tg_status tgi_plan_canonicalize(const tgi_backend *backend, const tg_problem *problem,
                                tgi_problem *canonical)
{
    tg_status status = tgi_problem_validate(problem, canonical);
    if (status)
        return status;
    const int is_swapped = canonical->is_swapped;
    tgi_plan_note_offsets(backend, canonical, is_swapped ? problem->b.data : problem->a.data,
                          is_swapped ? problem->a.data : problem->b.data);
    return TG_STATUS_OK;
}

static void count_plan(const tgi_backend *backend, const tgi_machine *machine,
                       const tgi_problem *problem, const tgi_proposal *proposal,
                       tg_candidate *candidate)
{
    tgi_plan_tiling tiling = {.split_count = 1,
                              .cluster_rows = 1,
                              .cluster_splits = 1,
                              .resident_count = proposal->resident_blocks};
    tgi_plan_counts counts = {.block_count = 0};
    if (proposal->is_legal && !tgi_problem_is_empty(problem) &&
        !tgi_problem_is_scale_only(problem)) {
        if (backend->describe_tiling)
            backend->describe_tiling(proposal, &tiling);
        counts = tgi_model_count_plan(&machine->gpu, proposal->kernel, problem, &tiling);
    }
    candidate->block_count = counts.block_count;
    candidate->split_count = counts.split_count;
    candidate->threads_per_block = counts.threads_per_block;
    candidate->shared_bytes = proposal->is_legal ? proposal->shared_bytes : 0;
    candidate->global_read_bytes = counts.global_read_bytes;
    candidate->global_write_bytes = counts.global_write_bytes;
    candidate->issued_flops = counts.issued_flops;
    candidate->occupancy = counts.occupancy;
}

/* Explains why a legal row was not chosen. is_row_kept is 1 if the problem keeps the row of its
 * product alone. */
static void tell_loss(const tgi_proposal *proposal, const tgi_proposal *best, int is_row_kept,
                      tgi_refusal *refusal)
{
    if (best->predicted_s <= 0.0)
        tgi_refuse(refusal, TG_REFUSAL_NO_PRODUCT, "no product is formed: no kernel runs");
    else if (is_teaching(proposal->kernel) && !is_teaching(best->kernel))
        tgi_refuse(refusal, TG_REFUSAL_TEACHING,
                   "teaches: a plan takes it by name, or if no other row is legal");
    else if (is_row_kept && proposal->predicted_s < best->predicted_s)
        tgi_refuse(
            refusal, TG_REFUSAL_SLOWER,
            "predicted to take %.2f times as long as %s, which is chosen without an epilogue",
            proposal->predicted_s / best->predicted_s, best->kernel->name);
    else
        tgi_refuse(refusal, TG_REFUSAL_SLOWER, "predicted to take %.2f times as long as %s",
                   proposal->predicted_s / best->predicted_s, best->kernel->name);
}

tg_status tgi_plan_list(const tgi_backend *backend, const tgi_machine *machine,
                        const tg_problem *problem, tg_candidate *candidates, int capacity,
                        int *count)
{
    tg_status status;
    tg_problem converted;
    tgi_problem canonical;
    tgi_proposal best, proposal;
    if (!problem || !count || (!candidates && capacity > 0)) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "problem, count and, with a capacity, candidates must not be NULL");
    }
    *count = 0;
    problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
    if (!problem)
        return TG_STATUS_INVALID_ARGUMENT;
    if ((status = tgi_plan_canonicalize(backend, problem, &canonical)))
        return status;
    status = tgi_plan_choose(backend, machine, &canonical, NULL, &best);
    if (status == TG_STATUS_UNSUPPORTED) /* no row is legal; each has its reason */
        best = (tgi_proposal){.kernel = NULL};
    else if (status)
        return status;
    *count = tgi_kernels_count();
    for (int i = 0; i < *count && i < capacity; i++) {
        tg_candidate *candidate = &candidates[i];
        tgi_plan_propose(backend, machine, &canonical, tgi_kernels_get(i), &proposal);
        candidate->kernel = proposal.kernel->name;
        candidate->is_legal = proposal.is_legal;
        candidate->is_chosen = proposal.kernel == best.kernel;
        candidate->predicted_s = proposal.is_legal ? proposal.predicted_s : 0.0;
        if (proposal.is_legal && !candidate->is_chosen)
            tell_loss(&proposal, &best, keeps_row(machine, &canonical), &proposal.refusal);
        candidate->refusal = proposal.refusal.kind;
        memcpy(candidate->reason, proposal.refusal.text, sizeof candidate->reason);
        count_plan(backend, machine, &canonical, &proposal, candidate);
    }
    return TG_STATUS_OK;
}

tg_status tg_list_chip_candidates(const tg_chip *chip, const tg_problem *problem,
                                  tg_candidate *candidates, int capacity, int *count)
{
    tg_status status = tgi_chips_check(chip);
    if (status)
        return status;
    const tgi_machine machine = tgi_chips_make_machine(chip);
    return tgi_plan_list(&tgi_backend_chip, &machine, problem, candidates, capacity, count);
}
