/* Plans the family small. It has small tiles of D whose k is shared out among the warps of a block,
 * wide tiles for a short k, and functions without stages. For a small product there are two: the
 * short one forms single elements of D, the other one runs of rows. For a short k there are pieces,
 * strips for a D of 16 bits, and outer products for one of FP32 (small_strips.c). Rows of FP8 have
 * strips alone. */

#include <math.h>
#include <stdlib.h>

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

#define WARP 32
#define LINE_BYTES 128.0
#define BLOCK_DEPTH_MAX 64 /* threads along the third dimension of a block */
/* From so many columns on, rows with matrix instructions add C or a bias to single products of
 * BF16: the functions without stages would take several times as long on a large D. */
#define TERMS_COLS 64

static int64_t count_shared_bytes(const tgi_kernel *kernel)
{
    if (tgi_small_is_wide(kernel))
        return TGI_SMALL_WIDE_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                           kernel->stage_count, (int)tgi_type_bytes(kernel->type));
    if (kernel->math == TGI_MATH_mma)
        return TGI_SMALL_MMA_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols,
                                          kernel->thread_count);
    return TGI_SMALL_SHARED_BYTES(kernel->tile_rows, kernel->tile_cols, kernel->tile_depth,
                                  kernel->stage_count, kernel->thread_count,
                                  (int)tgi_type_bytes(kernel->type));
}

/* Returns the share of the sums of wide tiles that are multiplied. A tile with halves leaves out
 * one that lies outside D. */
static double find_sum_share(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int sums = kernel->thread_rows * kernel->thread_cols;
    if (!TGI_SMALL_WIDE_HAS_HALVES(sums, (int)tgi_type_bytes(kernel->type)))
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

/* Returns 1 if the function without stages forms D transposed. A thread has some rows of a column,
 * and the threads of a warp have neighbouring columns. */
static int is_direct_transposed(const tgi_problem *p)
{
    return p->m > p->n && (p->n < TGI_SMALL_DIRECT_ROWS || p->d.col != 1);
}

/* Returns how many blocks of the function without stages share a multiprocessor. */
static int count_direct_resident(const tgi_machine *machine)
{
    const int by_threads = machine->gpu.threads_per_sm / TGI_SMALL_DIRECT_THREADS;
    return by_threads < TGI_SMALL_DIRECT_BLOCKS ? by_threads : TGI_SMALL_DIRECT_BLOCKS;
}

/* Returns the most threads that share out k. A single one adds in order of k, as rows of the order
 * STEPS do. */
static int count_lanes_max(const tgi_problem *p)
{
    return p->is_batch_invariant      ? 1
           : tgi_gemm_is_b_along_k(p) ? TGI_SMALL_DIRECT_THREADS
                                      : TGI_SMALL_DIRECT_THREADS / 8;
}

/* Returns the lines of A that a warp reads at once. Threads that share out k are neighbours if B
 * lies along k, and each of them has a line of its own if those of A run across k. */
static double count_a_lines(const tgi_problem *p, int lanes)
{
    const int is_apart = tgi_gemm_is_b_along_k(p) && !tgi_gemm_is_a_along_k(p);
    return !is_apart ? 1.0 : lanes < WARP ? lanes : WARP;
}

/* Returns the turns of banks, beyond the first, in which warps of a block read FP64 of B for one k.
 * If columns lie along k, and their pitch is a multiple of a cache line or of a large part of
 * one, those that a warp reads at once share banks. The block has `cols` columns. */
static double count_b_turns(const tgi_problem *p, int lanes, int64_t cols)
{
    const int64_t pitch_bytes = llabs(p->b.col) * tgi_type_bytes(p->type);
    const int64_t most = lanes < WARP ? WARP / lanes : 1, own = cols < most ? cols : most;
    int64_t apart = LINE_BYTES; /* the largest power of two that divides the pitch */
    if (p->type != TG_TYPE_FP64 || !tgi_gemm_is_b_along_k(p))
        return 0.0;
    while (pitch_bytes % apart != 0)
        apart /= 2;
    return (TGI_SMALL_DIRECT_THREADS / WARP) * fmax(0.0, (double)(own * apart) / LINE_BYTES - 1.0);
}

/* Proposes the function without stages with `lanes` threads of each of `cluster` blocks that share
 * out k, if it is predicted to be faster than what was proposed before. */
static void try_direct(const tgi_machine *machine, const tgi_problem *p, int64_t units, int lanes,
                       int cluster, tgi_proposal *proposal)
{
    const int64_t cols = TGI_SMALL_DIRECT_THREADS / lanes;
    /* Short lines of A share the lines of a cache. */
    const double pitch_bytes = fabs((double)p->a.col) * (double)tgi_type_bytes(p->type);
    const tgi_tile_work work = {
        .block_count = (double)tgi_divide_up(units, cols) * (double)p->batch_count * cluster,
        .block_k = (double)tgi_divide_up(p->k, (int64_t)lanes * cluster),
        .split_count = lanes,
        .cluster_blocks = cluster,
        .tile_count = (double)tgi_divide_up(TGI_SMALL_DIRECT_ROWS, lanes),
        .a_lines = fmax(1.0, count_a_lines(p, lanes) * fmin(1.0, pitch_bytes / LINE_BYTES)),
        .b_turns = count_b_turns(p, lanes, cols),
        .copy_k = TGI_SMALL_DIRECT_LOADS,
        .access = tgi_gemm_is_b_along_k(p) ? TGI_ACCESS_VECTORS : TGI_ACCESS_STRIDED,
        .blocks_per_sm = count_direct_resident(machine)};
    /* Clusters that do not all run at once wait for each other. */
    if (cluster > 1 &&
        work.block_count > (double)tgi_gemm_count_cluster_sms(&machine->gpu, cluster))
        return;
    const double seconds = tgi_model_direct_seconds(&machine->gpu, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = 0;
    proposal->shared_bytes =
        TGI_SMALL_DIRECT_ROWS * TGI_SMALL_DIRECT_THREADS * tgi_type_sum_bytes(p->type);
    proposal->decision.tile = (tgi_tile_decision){.split_elems = p->k,
                                                  .split_count = 1,
                                                  .direct_lanes = lanes,
                                                  .direct_cluster = cluster,
                                                  .direct_blocks = (int64_t)work.block_count};
}

static void propose_direct(const tgi_machine *machine, const tgi_problem *given,
                           tgi_proposal *proposal)
{
    tgi_problem p = *given;
    const int is_transposed = is_direct_transposed(&p);
    if (is_transposed)
        tgi_problem_transpose(&p);
    const int64_t down = tgi_divide_up(p.m, TGI_SMALL_DIRECT_ROWS), most = INT32_MAX / 2;
    const int lanes_max = count_lanes_max(&p);
    /* Threads have a number without a sign. Those that share out k make more blocks, which have
     * one. */
    const int64_t most_units = lanes_max == 1 ? UINT32_MAX - TGI_SMALL_DIRECT_THREADS : most;
    if (count_direct_resident(machine) == 0 || p.k > most || down > most_units / p.n)
        return;
    for (int lanes = 1; lanes <= lanes_max; lanes *= 2)
        if (lanes < 2 * p.k || lanes <= TGI_SMALL_DIRECT_ROWS)
            try_direct(machine, &p, down * p.n, lanes, 1, proposal);
    for (int cluster = 2; cluster <= TGI_SMALL_DIRECT_CLUSTER && !p.is_batch_invariant;
         cluster *= 2)
        for (int lanes = 8; lanes <= lanes_max && lanes * cluster < p.k; lanes *= 2)
            try_direct(machine, &p, down * p.n, lanes, cluster, proposal);
    if (proposal->decision.tile.direct_lanes)
        proposal->decision.tile.is_transposed = is_transposed;
}

/* Returns the columns of D of a block of the short function that has `elems` elements of D: the
 * fewest that hold a row of D, within the limits of a block. */
static int find_short_cols(const tgi_problem *p, int elems)
{
    int cols = elems;
    while (cols > 1 && cols / 2 >= p->n && elems / (cols / 2) <= BLOCK_DEPTH_MAX)
        cols /= 2;
    return cols;
}

/* Proposes the short function with `lanes` threads that share out k, if it is predicted to be
 * faster than what was proposed before. */
static void try_short(const tgi_machine *machine, const tgi_problem *p, int lanes,
                      int is_transposed, tgi_proposal *proposal)
{
    const int elems = TGI_SMALL_DIRECT_THREADS / lanes, cols = find_short_cols(p, elems);
    const int64_t down = tgi_divide_up(p->m, elems / cols);
    const tgi_tile_work work = {
        .block_count = (double)tgi_divide_up(p->n, cols) * (double)down * (double)p->batch_count,
        .block_k = (double)tgi_divide_up(p->k, lanes),
        .split_count = lanes,
        .a_lines = count_a_lines(p, lanes),
        .b_turns = count_b_turns(p, lanes, cols),
        .copy_k = TGI_SMALL_DIRECT_LOADS,
        .access = tgi_gemm_is_b_along_k(p) ? TGI_ACCESS_VECTORS : TGI_ACCESS_STRIDED,
        .blocks_per_sm = count_direct_resident(machine)};
    const double seconds = tgi_model_short_seconds(&machine->gpu, p, &work);
    if (down > TGI_GRID_HEIGHT_MAX || seconds >= proposal->predicted_s)
        return;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = 0;
    proposal->shared_bytes = TGI_SMALL_DIRECT_THREADS * tgi_type_sum_bytes(p->type);
    proposal->decision.tile = (tgi_tile_decision){.split_elems = p->k,
                                                  .split_count = 1,
                                                  .is_transposed = is_transposed,
                                                  .short_cols = cols,
                                                  .direct_lanes = lanes,
                                                  .direct_blocks = (int64_t)work.block_count};
}

/* Threads that are neighbours along x store to neighbouring places. */
static void propose_short(const tgi_machine *machine, const tgi_problem *given,
                          tgi_proposal *proposal)
{
    tgi_problem p = *given;
    const int is_transposed = p.d.col != 1;
    const int64_t most = INT32_MAX / 2;
    if (is_transposed)
        tgi_problem_transpose(&p);
    const int lanes_max = count_lanes_max(&p);
    const unsigned terms = 1u << TGI_OPERAND_c | 1u << TGI_OPERAND_bias;
    if (tgi_epilogue_find_used(&p.epilogue) & TGI_OPERANDS_EPILOGUE & ~terms)
        return;
    if (!proposal->is_legal || p.m > most || p.n > most || p.k > most ||
        p.batch_count > TGI_GRID_HEIGHT_MAX ||
        (p.type == TG_TYPE_FP64 && !tgi_epilogue_is_sum_alone(&p.epilogue)))
        return;
    for (int lanes = 1; lanes <= lanes_max && lanes < 2 * p.k; lanes *= 2)
        try_short(machine, &p, lanes, is_transposed, proposal);
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
        if (is_free || tgi_small_takes_one_lane(machine, p)) {
            propose_direct(machine, p, proposal);
            propose_short(machine, p, proposal);
        }
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
    if (!p->is_batch_invariant || kernel->sum_order == proposal->sum_order ||
        proposal->sum_order == TGI_SUM_ALONG)
        propose_stages(machine, p, proposal);
    propose_functions(machine, p, proposal);
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
