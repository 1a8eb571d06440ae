#include "cuda/families/row_bands.h"

#include <string.h>

#include "core/checked.h"
#include "cuda/families/slice_panels.h"

#define BAND_UNIT 256                     /* rows; each band begins as aligned as D */
#define BAND_ROWS_MOST ((int64_t)1 << 30) /* rows that every kernel counts */

int tgi_bands_are_cols(const tgi_problem *problem)
{
    return problem->is_batch_invariant && problem->is_swapped;
}

int64_t tgi_bands_count_rows(const tgi_problem *problem)
{
    return tgi_bands_are_cols(problem) ? problem->n : problem->m;
}

tgi_problem tgi_bands_make_band(const tgi_problem *problem, int64_t row_count)
{
    tgi_problem band = *problem;
    if (tgi_bands_are_cols(problem))
        band.n = row_count;
    else
        band.m = row_count;
    return band;
}

static void propose_rows(const tgi_machine *machine, const tgi_problem *problem,
                         const tgi_cuda_planner *planner, int64_t row_count, tgi_proposal *proposal)
{
    const tgi_problem band = tgi_bands_make_band(problem, row_count);
    const tgi_kernel *kernel = proposal->kernel;
    const tgi_sum_order sum_order = proposal->sum_order;
    memset(proposal, 0, sizeof *proposal);
    proposal->kernel = kernel;
    proposal->sum_order = sum_order;
    proposal->thread_count = 1;
    planner->propose(machine, &band, proposal);
}

static int is_split(const tgi_cuda_planner *planner, const tgi_proposal *proposal)
{
    tgi_plan_tiling tiling = {.split_count = 1};
    if (planner->describe_tiling)
        planner->describe_tiling(proposal, &tiling);
    return tiling.split_count > 1;
}

/* Proposes that one launch forms the rows of D whose tiles fill whole rounds of `slots` blocks, and
 * a second one the others, if that is faster. */
static void split_last_round(const tgi_machine *machine, const tgi_problem *p,
                             const tgi_cuda_planner *planner, int64_t slots, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t across = tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t tiles = tgi_divide_up(p->m, kernel->tile_rows) * across;
    const int64_t rows = tiles / slots * slots / across * kernel->tile_rows;
    tgi_proposal first = *proposal, last = *proposal;
    if (rows >= p->m || p->m - rows >= rows)
        return;
    propose_rows(machine, p, planner, rows, &first);
    propose_rows(machine, p, planner, p->m - rows, &last);
    const double seconds = first.predicted_s + last.predicted_s;
    if (!first.is_legal || !last.is_legal || seconds >= proposal->predicted_s)
        return;
    *proposal = first;
    proposal->predicted_s = seconds;
    proposal->band_rows = rows;
    proposal->last_decision = last.decision;
    if (last.workspace_bytes > proposal->workspace_bytes)
        proposal->workspace_bytes = last.workspace_bytes;
    for (int i = 0; i < 2; i++)
        proposal->needs_aligned[i] |= last.needs_aligned[i];
}

void tgi_bands_propose(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_cuda_planner *planner, tgi_proposal *proposal)
{
    const int64_t limit = tgi_panels_find_limit(machine), all = tgi_bands_count_rows(problem);
    planner->propose(machine, problem, proposal);
    if (planner->has_last_round && proposal->is_legal && problem->batch_count == 1 &&
        !problem->is_batch_invariant)
        for (int64_t blocks = 1, most = proposal->resident_blocks; blocks <= most; blocks++)
            split_last_round(machine, problem, planner, machine->gpu.sm_count * blocks, proposal);
    const int has_slices = tgi_kernels_has_slices(proposal->kernel); /* slices have panels */
    const int is_too_long = problem->is_batch_invariant && !has_slices && all > BAND_ROWS_MOST &&
                            proposal->refusal.kind == TG_REFUSAL_TOO_LARGE;
    if (is_too_long)
        propose_rows(machine, problem, planner, BAND_ROWS_MOST, proposal);
    if (!problem->is_batch_invariant || !proposal->is_legal || all <= BAND_UNIT || has_slices ||
        (!is_too_long && (proposal->workspace_bytes <= limit || !is_split(planner, proposal))))
        return;
    /* Units; `low` of them fit. */
    int64_t low = 1;
    int64_t high = is_too_long ? BAND_ROWS_MOST / BAND_UNIT : tgi_divide_up(all, BAND_UNIT) - 1;
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        propose_rows(machine, problem, planner, middle * BAND_UNIT, proposal);
        if (proposal->is_legal && proposal->workspace_bytes <= limit)
            low = middle;
        else
            high = middle - 1;
    }
    propose_rows(machine, problem, planner, low * BAND_UNIT, proposal);
    if (!proposal->is_legal)
        return;
    proposal->band_rows = low * BAND_UNIT;
    proposal->last_decision = proposal->decision;
    proposal->predicted_s *= (double)tgi_divide_up(all, proposal->band_rows);
}
