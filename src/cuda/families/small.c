/* Plans the family small. It has small tiles of D whose k is shared out among the warps of a block,
 * wide tiles for a short k, and functions without stages for a small product (small_direct.c). For
 * a short k there are pieces, strips for a D of 16 bits, and outer products for one of FP32
 * (small_strips.c). Rows of FP8 have strips alone. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

/* From so many columns on, rows with matrix instructions add C or a bias to single products of
 * BF16: the functions without stages would take several times as long on a large D. */
#define TERMS_COLS 64

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    if (tgi_small_is_wide(kernel))
        return TGI_SMALL_WIDE_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                           kernel->stage_count, (int)tgi_type_bytes(kernel->type),
                                           kernel->math == TGI_MATH_fp64);
    if (kernel->math == TGI_MATH_mma)
        return TGI_SMALL_MMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols,
                                          kernel->thread_count);
    return TGI_SMALL_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                  kernel->stage_count, kernel->thread_count,
                                  (int)tgi_type_bytes(kernel->type));
}

/* Returns the share of the sums of wide tiles that are multiplied. A tile of multiply-adds with
 * halves leaves out one that lies outside D. */
static double find_sum_share(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int sums = kernel->thread_rows * kernel->thread_cols;
    if (kernel->math != TGI_MATH_fma ||
        !TGI_SMALL_WIDE_HAS_HALVES(sums, (int)tgi_type_bytes(kernel->type)))
        return 1.0;
    return (double)tgi_round_up(p->m, kernel->tile_rows / 2) *
           (double)tgi_round_up(p->n, kernel->tile_cols / 2) /
           (double)tgi_round_up(p->m, kernel->tile_rows) /
           (double)tgi_round_up(p->n, kernel->tile_cols);
}

/* Returns the slower of the accesses to A and B. */
static tgi_access find_access(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_small_is_wide(kernel) ? TGI_ACCESS_ELEMENTS : tgi_gemm_find_access(p);
}

/* Returns 1 if the kernel can count the k of a split, else refuses the problem. Kernels on
 * matrix instructions count it in 32 bits. */
static int counts_split(tgi_proposal *proposal)
{
    const int64_t split = proposal->decision.tile.split_elems;
    if (proposal->kernel->math != TGI_MATH_mma || tgi_small_is_wide(proposal->kernel) ||
        split <= INT32_MAX)
        return 1;
    proposal->is_legal = 0;
    return tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                      "the kernel counts to %d; a split has %lld values of k", INT32_MAX,
                      (long long)split);
}

/* Returns 1 for the row of each type that has functions without stages. */
static int has_direct(const tgi_kernel *kernel)
{
    return kernel->tile_cols == 16 && kernel->sum_order == TGI_SUM_WHOLE &&
           !tgi_small_is_wide(kernel);
}

/* Returns 1 for the row that has the functions for outer products. */
static int has_outer(const tgi_kernel *kernel)
{
    return tgi_small_is_wide(kernel) && kernel->type == TG_TYPE_FP32 && kernel->tile_cols == 128;
}

/* Proposes the row's kernel, whose stages pass through shared memory. */
static void propose_stages(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t row_blocks = tgi_divide_up(p->m, kernel->tile_rows);
    const int64_t col_blocks = tgi_divide_up(p->n, kernel->tile_cols);
    const int64_t most_splits =
        p->is_batch_invariant ? tgi_divide_up(p->k, tgi_gemm_invariant_split(machine, p)) : 1024;
    /* A D that has too many rows for a grid is multiplied transposed, in tiles with as many rows as
     * columns. */
    const int is_upright = row_blocks < col_blocks || kernel->tile_rows != kernel->tile_cols;
    const int64_t height = is_upright ? row_blocks : col_blocks;
    const int64_t width = is_upright ? col_blocks : row_blocks;
    if (height > TGI_GRID_HEIGHT_MAX || width > INT32_MAX ||
        p->batch_count > INT32_MAX / most_splits) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                   "the grid would be %lld x %lld tiles of %lld products; %d, %d one way and %lld "
                   "are the limits: take larger tiles",
                   (long long)row_blocks, (long long)col_blocks, (long long)p->batch_count,
                   INT32_MAX, TGI_GRID_HEIGHT_MAX, (long long)(INT32_MAX / most_splits));
        return;
    }
    const int sums = kernel->thread_rows * kernel->thread_cols;
    const int by_registers =
        tgi_small_is_wide(kernel)
            ? TGI_SMALL_WIDE_BLOCKS(sums, kernel->thread_count, (int)tgi_type_bytes(kernel->type))
            : machine->gpu.registers_per_sm / (kernel->thread_count * (sums >= 64 ? 256 : 128));
    const int resident =
        tgi_gemm_count_resident(&machine->gpu, kernel, by_registers, count_shared_bytes(kernel));
    const tgi_tile_work work = {.block_count = (double)row_blocks * (double)col_blocks *
                                               (double)p->batch_count,
                                .copy_k = tgi_small_is_wide(kernel) ? kernel->tile_depth : 0.0,
                                .sum_share = find_sum_share(kernel, p),
                                .blocks_per_sm = resident,
                                .by_elements = tgi_small_count_by_elements(machine, kernel, p),
                                .access = find_access(kernel, p)};
    tgi_gemm_split_k(machine, p, &work, tgi_model_small_seconds, proposal);
    if (!counts_split(proposal))
        return;
    proposal->decision.tile.is_transposed = row_blocks > TGI_GRID_HEIGHT_MAX;
    if (has_outer(kernel))
        tgi_small_propose_outer(machine, p, proposal);
}

int tgi_small_is_product(const tgi_problem *p)
{
    return tgi_type_bytes(p->type) == 2 && p->k == 1 && p->precision == TG_PRECISION_DEFAULT;
}

int tgi_small_is_in_pieces(const tgi_problem *p)
{
    const int64_t n = p->is_swapped ? p->m : p->n;
    return tgi_small_is_product(p) && p->type == TG_TYPE_BF16 &&
           (n < TERMS_COLS || tgi_epilogue_is_sum_alone(&p->epilogue));
}

int tgi_small_takes_one_lane(const tgi_machine *machine, const tgi_problem *p)
{
    return tgi_small_is_in_pieces(p) || (tgi_small_is_product(p) && p->type == TG_TYPE_FP16) ||
           (tgi_type_bytes(p->type) >= 4 && tgi_gemm_invariant_split(machine, p) == p->k);
}

int tgi_small_serves(const tgi_kernel *kernel, const tgi_problem *p, tgi_sum_order order)
{
    if (kernel->family != TGI_FAMILY_cuda_small)
        return 0;
    if (has_direct(kernel))
        return order == TGI_SUM_STEPS &&
               (tgi_type_bytes(p->type) >= 4 || p->k <= TGI_SMALL_STRIP_K_SHORT);
    return tgi_small_has_relay(kernel) && !tgi_small_is_in_pieces(p) &&
           (order == TGI_SUM_STEPS || order == TGI_SUM_TEAMS);
}

/* Proposes the functions without stages and relays. Those of a batch-invariant problem have the
 * problem's order of sums, which the row's stages may not have. */
static void propose_functions(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int is_free = !p->is_batch_invariant;
    if (has_direct(kernel) && tgi_arch_has(machine->gpu.capability, TGI_FEATURE_TMA) &&
        (is_free || tgi_small_serves(kernel, p, proposal->sum_order))) {
        if (is_free || tgi_small_takes_one_lane(machine, p))
            tgi_small_propose_direct(machine, p, proposal);
        if (proposal->is_legal || !is_free)
            tgi_small_propose_strips(machine, p, proposal);
    }
    if (tgi_small_has_relay(kernel))
        tgi_small_propose_relays(machine, p, proposal);
}

static void propose(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (tgi_small_is_strip(kernel)) {
        if (tgi_gemm_rounds_sums(p, proposal))
            tgi_small_propose_strip_row(machine, p, proposal);
        return;
    }
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal) ||
        !tgi_gemm_rounds_sums(p, proposal))
        return;
    if (p->is_batch_invariant && tgi_small_find_lanes(machine, p) > 1) {
        tgi_small_propose_direct(machine, p, proposal);
    } else {
        if (!p->is_batch_invariant || kernel->sum_order == proposal->sum_order ||
            proposal->sum_order == TGI_SUM_ALONG)
            propose_stages(machine, p, proposal);
        propose_functions(machine, p, proposal);
    }
    if (!proposal->is_legal && proposal->refusal.kind == TG_REFUSAL_NONE)
        tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                   "its functions of this order of sums take no such problem");
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_tile_decision *decision = &proposal->decision.tile;
    tgi_gemm_describe_tiling(proposal, tiling);
    if (decision->direct_blocks) {
        tiling->block_count = decision->direct_blocks;
        tiling->thread_count =
            decision->direct_lanes ? TGI_SMALL_DIRECT_THREADS : TGI_SMALL_STRIP_THREADS;
    }
}

const tgi_cuda_planner tgi_cuda_planner_small = {.propose = propose,
                                                 .describe_tiling = describe_tiling};
