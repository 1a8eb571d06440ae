#include "cuda/families/row_bands.h"

#include <string.h>

#include "core/checked.h"
#include "cuda/families/slice_panels.h"

#define BAND_UNIT 256 /* rows; each band begins as aligned as D */

int64_t tgi_bands_count_rows(const tgi_problem *problem)
{
    return problem->is_swapped ? problem->n : problem->m;
}

tgi_problem tgi_bands_make_band(const tgi_problem *problem, int64_t row_count)
{
    tgi_problem band = *problem;
    if (band.is_swapped)
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

void tgi_bands_propose(const tgi_machine *machine, const tgi_problem *problem,
                       const tgi_cuda_planner *planner, tgi_proposal *proposal)
{
    const int64_t limit = tgi_panels_find_limit(machine), all = tgi_bands_count_rows(problem);
    planner->propose(machine, problem, proposal);
    if (!problem->is_batch_invariant || !proposal->is_legal || proposal->workspace_bytes <= limit ||
        all <= BAND_UNIT || tgi_kernels_has_slices(proposal->kernel) ||
        !is_split(planner, proposal))
        return;
    int64_t low = 1, high = tgi_divide_up(all, BAND_UNIT) - 1; /* units; `low` of them fit */
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
    proposal->predicted_s *= (double)tgi_divide_up(all, proposal->band_rows);
}
