/* Plans the family dmma_tma: FP64 tiles by matrix instructions, operands brought by TMA. */
#include "cuda/families/dmma_tma.h"

#include <math.h>

#include "cuda/families/gemm.h"
#include "kernels/dmma/dmma_tma_args.h"

/* Parts and lines of L2. */
#define SECTOR_BYTES 32
#define LINE_BYTES 128

/* The most elements along a side. The kernel adds a tile to it in 32 bits. */
#define COUNT_MAX (INT32_MAX - 1023)

void tgi_dmma_tma_describe(const tgi_problem *p, tgi_operand operand[2])
{
    tgi_operand_describe(p, 0, 1, p->is_a_offset, &operand[0]);
    tgi_operand_describe(p, 1, 1, p->is_b_offset, &operand[1]);
}

/* Refuses problems whose sizes the kernel cannot count. */
static int takes_sizes(const tgi_kernel *kernel, const tgi_problem *p, tgi_proposal *proposal)
{
    const int64_t sizes[] = {p->m, p->n, p->k, tgi_gemm_count_tiles(kernel, p)};
    for (int i = 0; i < 4; i++)
        if (sizes[i] > COUNT_MAX)
            return tgi_refuse(&proposal->refusal, TG_REFUSAL_TOO_LARGE,
                              "TMA counts to %d; a size or the number of tiles is %lld", COUNT_MAX,
                              (long long)sizes[i]);
    return 1;
}

/* Adds how many blocks copy lines of an operand at once that TMA copies slowly: they begin between
 * sectors of L2, or several share a line of it. */
static void count_readers(const tgi_operand *operand, double readers, tgi_tile_work *work)
{
    if (operand->pitch_bytes % SECTOR_BYTES != 0)
        work->split_readers += readers;
    else if (operand->pitch_bytes < LINE_BYTES)
        work->sharing_readers += readers * LINE_BYTES / (double)operand->pitch_bytes;
}

/* Returns the copies by which threads bring a value of k to a tile: an element each, or two. Tiles
 * that spread theirs over the products copy single elements, which their own figure includes. */
static double count_copies(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int a_units = tgi_gemm_has_a_vectors(p, tgi_gemm_is_a_along_k(p));
    const int b_units = tgi_gemm_has_b_vectors(p, tgi_gemm_is_b_along_k(p));
    return kernel->tile_rows / (a_units ? 2.0 : 1.0) + kernel->tile_cols / (b_units ? 2.0 : 1.0);
}

/* Proposes tiles of D, or of D^T if is_transposed is 1, of which `p` is the product, if that is
 * faster than what was proposed before. */
static void try_tiles(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                      tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_proposal next = *proposal;
    tgi_operand operand[2];
    tgi_dmma_tma_describe(p, operand);
    /* TMA counts entries in 32 bits. */
    const int is_copied =
        operand[0].is_repacked || operand[1].is_repacked || p->batch_count > COUNT_MAX;
    next.is_legal = 0;
    const int by_registers =
        TGI_DMMA_TMA_BLOCKS_PER_SM(kernel->thread_rows, kernel->thread_cols, kernel->thread_count);
    const double tiles = (double)tgi_gemm_count_tiles(kernel, p) * (double)p->batch_count;
    tgi_tile_work work = {.block_count = tiles,
                          .is_moved = is_transposed,
                          .blocks_per_sm = tgi_gemm_count_resident(&machine->gpu, kernel,
                                                                   by_registers, next.shared_bytes),
                          .access = TGI_ACCESS_VECTORS};
    const double slots = (double)machine->gpu.sm_count * work.blocks_per_sm;
    if (is_copied) {
        work.k_copies = count_copies(kernel, p);
    } else {
        count_readers(&operand[0], fmin(slots, ceil((double)p->n / kernel->tile_cols)), &work);
        count_readers(&operand[1], fmin(slots, ceil((double)p->m / kernel->tile_rows)), &work);
    }
    tgi_gemm_split_k(machine, p, &work, tgi_model_dmma_seconds, &next);
    if (!next.is_legal || (proposal->is_legal && next.predicted_s >= proposal->predicted_s))
        return;
    next.needs_aligned[0] = next.needs_aligned[1] = !is_copied;
    next.decision.tile.is_copied = is_copied;
    next.decision.tile.is_transposed = is_transposed;
    *proposal = next;
}

/* Fewer columns than a tile has leave less of it empty as rows of D^T, if a tile has fewer rows. */
static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int teams = kernel->thread_count * kernel->thread_rows * kernel->thread_cols /
                      (kernel->tile_rows * kernel->tile_cols);
    const int64_t shared_bytes = TGI_DMMA_TMA_SHARED_BYTES(
        kernel->tile_rows, kernel->tile_cols, kernel->tile_depth, kernel->stage_count, teams);
    tgi_problem p = *given;
    if (!tgi_gemm_fits(machine, shared_bytes, proposal) || !takes_sizes(kernel, given, proposal))
        return;
    try_tiles(machine, given, 0, proposal);
    tgi_problem_transpose(&p);
    if (!p.is_batch_invariant &&
        tgi_gemm_count_tiles(kernel, &p) < tgi_gemm_count_tiles(kernel, given))
        try_tiles(machine, &p, 1, proposal);
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    tgi_gemm_describe_tiling(proposal, tiling);
    tiling->is_transposed = proposal->decision.tile.is_transposed;
}

const tgi_cuda_planner tgi_cuda_planner_dmma_tma = {
    .propose = propose, .describe_tiling = describe_tiling, .has_last_round = 1};
