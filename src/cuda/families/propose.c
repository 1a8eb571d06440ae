/* Dispatches planning to the family of the row, if its epilogue has the problem's operands. */
#include <stdio.h>

#include "cuda/families/gemm.h"
#include "cuda/families/row_bands.h"
#include "cuda/families/slice_panels.h"
#include "cuda/families/small.h"
#include "model/tile_model.h"

static const tgi_cuda_planner *const planners[TGI_FAMILY_COUNT] = {
#define TGI_CUDA_FAMILY(family, code, executor)                                                    \
    [TGI_FAMILY_cuda_##family] = &tgi_cuda_planner_##code,
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY
};

static const tgi_executor executors[TGI_FAMILY_COUNT] = {
#define TGI_CUDA_FAMILY(family, code, executor) [TGI_FAMILY_cuda_##family] = (executor),
#include "cuda/families/families.def"
#undef TGI_CUDA_FAMILY
};

/* A batch-invariant problem is summed in one order of kernels.def for every m, which n and k choose
 * here where rows of several orders take it. Within the order m is free to choose the row.
 *
 * On chips without relays family small runs batch-invariant problems of FP64 and of 16-bit types
 * with at most so many columns. Even a D of many rows then takes no more than a few times as long
 * as its memory traffic. FP32 needs no limit, because its row of family small sums as teams. */
#define INVARIANT_FP64_COLS 16
#define INVARIANT_NARROW_COLS 32
#define ALIGNED_ELEMS 8 /* elements of a unit that family wgmma reads without a copy */

/* Slices run batch-invariant problems of FP32 whose B has at least so many columns and elements,
 * where they are as fast as multiply-adds in the mean over m. */
#define SLICE_COLS_MIN 256
#define SLICE_ELEMS_MIN ((int64_t)1 << 17)

/* FP32 of a k up to STEPS_K is summed in steps, where wide tiles of family small form a large D. */
#define STEPS_K 80

static int64_t find_caller_cols(const tgi_problem *p)
{
    return p->is_swapped ? p->m : p->n;
}

/* Returns 1 if the chip has relays of family small, with which FP32 and FP64 have a fast row of the
 * orders STEPS and TEAMS for every m. */
static int has_relays(const tgi_machine *machine)
{
    return tgi_kernels_isa_runs(TGI_ISA_sm90a, machine->features);
}

/* Returns 1 for a batch-invariant problem of FP32 that multiply-adds sum in steps. */
static int is_in_steps(const tgi_machine *machine, const tgi_problem *p)
{
    return p->is_batch_invariant && p->type == TG_TYPE_FP32 && p->k <= STEPS_K &&
           has_relays(machine);
}

/* Returns the order in which the row is to sum the problem. */
static tgi_sum_order find_order(const tgi_machine *machine, const tgi_kernel *kernel,
                                const tgi_problem *p)
{
    if (!p->is_batch_invariant)
        return TGI_SUM_WHOLE; /* the fastest row is the choice, whatever its order */
    if (kernel->math == TGI_MATH_fma && kernel->type == TG_TYPE_FP32 && has_relays(machine))
        return is_in_steps(machine, p) ? TGI_SUM_STEPS : TGI_SUM_TEAMS;
    if (kernel->type == TG_TYPE_FP64 && has_relays(machine))
        return tgi_gemm_is_in_fp64_teams(machine, p) ? TGI_SUM_TEAMS : TGI_SUM_STEPS;
    return kernel->sum_order == TGI_SUM_WHOLE && has_relays(machine) ? TGI_SUM_STEPS
                                                                     : kernel->sum_order;
}

/* Returns 1 if the row's kernel, or functions of it, sum the problem in the order of the
 * proposal. */
static int has_its_order(const tgi_machine *machine, const tgi_problem *p,
                         const tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int has_kernel = kernel->sum_order == proposal->sum_order &&
                           !(has_relays(machine) && tgi_small_is_in_pieces(p));
    return !p->is_batch_invariant || has_kernel ||
           (has_relays(machine) && tgi_small_serves(kernel, p, proposal->sum_order));
}

/* Returns 1 if family small, and no other, runs the problem for every m: the problem is batch
 * invariant, and n and k decide. On chips with relays functions without stages then share out k. */
static int leaves_to_small(const tgi_machine *machine, const tgi_problem *p)
{
    const int is_narrow = tgi_type_bytes(p->type) == 2;
    const int64_t n = find_caller_cols(p);
    const int64_t most = is_narrow ? INVARIANT_NARROW_COLS : INVARIANT_FP64_COLS;
    const tgi_isa isa = is_narrow ? TGI_ISA_sm80 : TGI_ISA_sm75;
    const int is_aligned = is_narrow && n % ALIGNED_ELEMS == 0 && p->k % ALIGNED_ELEMS == 0;
    if (!p->is_batch_invariant || has_relays(machine))
        return p->is_batch_invariant && tgi_small_find_lanes(machine, p) > 1;
    return n <= most && !is_aligned && (is_narrow || p->type == TG_TYPE_FP64) &&
           p->precision == TG_PRECISION_DEFAULT && tgi_kernels_isa_runs(isa, machine->features);
}

/* Returns 1 if `kernel` multiplies slices, but the batch-invariant problem is left to multiply-adds
 * for every m. For rows on wgmma, n, k and the limit of the workspace decide this; for rows on
 * mma.sync, the chip and the precision. Rows on mma.sync do not split k of such problems, so that a
 * D of few rows would take several times as long. */
static int leaves_to_multiply_adds(const tgi_machine *machine, const tgi_kernel *kernel,
                                   const tgi_problem *p)
{
    const int64_t n = find_caller_cols(p);
    const int is_default = p->precision == TG_PRECISION_DEFAULT;
    if (!p->is_batch_invariant || !tgi_kernels_has_slices(kernel))
        return 0;
    if (!tgi_kernels_uses(kernel, TGI_FEATURE_WGMMA))
        return is_default || !tgi_model_prefers_slices(&machine->gpu, kernel, p->precision);
    return is_default && (is_in_steps(machine, p) || n < SLICE_COLS_MIN ||
                          p->k < SLICE_ELEMS_MIN / n || !tgi_panels_fit(machine, p));
}

/* Returns 1 if the row is the one of its type that runs the problems of leaves_to_small. */
static int is_small_invariant(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_small && kernel->tile_rows == 16 &&
           kernel->tile_cols == 16 && kernel->sum_order == TGI_SUM_WHOLE;
}

void tgi_cuda_propose(const tgi_machine *machine, const tgi_problem *problem,
                      tgi_proposal *proposal)
{
    const tgi_family family = proposal->kernel->family;
    const tgi_cuda_planner *planner = planners[family];
    proposal->thread_count = 1;
    const int is_small = leaves_to_small(machine, problem);
    const int takes_small = is_small && is_small_invariant(proposal->kernel);
    proposal->sum_order =
        takes_small ? TGI_SUM_ALONG : find_order(machine, proposal->kernel, problem);
    const int has_order = takes_small || has_its_order(machine, problem, proposal);
    /* A D without products is stored by elements (kernels/scale.cu); families see sizes from 1. */
    const int is_epilogue_alone =
        tgi_problem_is_empty(problem) || tgi_problem_is_scale_only(problem);
    const tgi_executor executor = is_epilogue_alone ? TGI_BY_ELEMENTS : executors[family];
    if (!is_epilogue_alone && !planner)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_NO_CODE, "its family has no launch code");
    else if (!tgi_refusal_check_epilogue(&proposal->refusal, &problem->epilogue, executor))
        proposal->is_legal = 0;
    else if (is_epilogue_alone)
        proposal->is_legal = 1;
    else if (is_small && !takes_small)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                   "tiles of 16 x 16 of family small take a batch-invariant problem of this n and "
                   "k, whatever m is");
    else if (leaves_to_multiply_adds(machine, proposal->kernel, problem))
        tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                   "multiply-adds take a batch-invariant problem of this n and k, or of this "
                   "precision on this chip, whatever m is");
    else if (!has_order)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                   "its sums have another order than a batch-invariant problem of this n and k");
    else
        tgi_bands_propose(machine, problem, planner, proposal);
    proposal->serial_s = proposal->predicted_s;
}

void tgi_cuda_describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_cuda_planner *planner = planners[proposal->kernel->family];
    tgi_proposal last = *proposal;
    if (planner->has_last_round && proposal->band_rows) {
        last.decision = proposal->last_decision;
        tiling->whole_rows = proposal->band_rows;
    }
    if (planner->describe_tiling)
        planner->describe_tiling(&last, tiling);
}

const tgi_backend tgi_backend_chip = {
    .device = "cuda",
    .row_device = "cuda",
    .operand_alignment = TGI_CUDA_OPERAND_ALIGNMENT,
    .propose = tgi_cuda_propose,
    .describe_tiling = tgi_cuda_describe_tiling,
};
