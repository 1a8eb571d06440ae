/*
 * Plans the families rank and dot, for a D with few rows or few columns. A D with few columns is
 * formed transposed. A grid has at most as many blocks as run at once. They share out the tiles of
 * D, whole or split along k.
 */
#include "cuda/families/skinny.h"

#include <stdio.h>

#include "cuda/families/gemm.h"
#include "kernels/skinny/rank_args.h"
#include "kernels/skinny/skinny_shape.h"

#define STEPS_MIN 4 /* a block with fewer steps costs more to start than it saves */
#define RANK_SPLITS_MAX 16
#define WORKSPACE_UNIT_BYTES 256

static int is_dot(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_dot;
}

/* Returns 1 if the row's lanes are teams. */
static int has_team_lanes(const tgi_kernel *kernel)
{
    return tgi_type_bytes(kernel->type) >= 4 &&
           TGI_SKINNY_IS_TEAM(is_dot(kernel), kernel->tile_rows, kernel->tile_cols,
                              kernel->thread_rows, kernel->thread_cols, kernel->thread_count);
}

static int count_shared_bytes(const tgi_kernel *kernel)
{
    const int elem_bytes = (int)tgi_type_bytes(kernel->type);
    return TGI_SKINNY_SHARED_BYTES(is_dot(kernel), has_team_lanes(kernel), kernel->tile_rows,
                                   kernel->tile_cols, kernel->tile_depth, kernel->stage_count,
                                   kernel->thread_count, elem_bytes);
}

static int count_blocks_per_sm(const tgi_machine *machine, const tgi_kernel *kernel)
{
    const int shared_bytes = count_shared_bytes(kernel);
    const int most = TGI_SKINNY_BLOCKS_PER_SM(is_dot(kernel), kernel->tile_rows, shared_bytes,
                                              (int)tgi_type_bytes(kernel->type));
    return tgi_gemm_count_resident(&machine->gpu, kernel, most, shared_bytes);
}

int tgi_skinny_is_transposed(const tgi_problem *p)
{
    return p->n < p->m;
}

int tgi_skinny_is_narrow_rank(const tgi_kernel *kernel)
{
    return !is_dot(kernel) && tgi_type_bytes(kernel->type) < 4;
}

/* A tiling of D in units along k. Blocks share the units evenly. */
typedef struct skinny_tiling {
    int64_t block_count, unit_elems, split_count;
    int64_t tile_cols;
    int64_t block_steps, block_tiles; /* most steps and tiles of a block */
} skinny_tiling;

static skinny_tiling keep_whole(const tgi_kernel *kernel, const tgi_problem *p, int64_t tile_count,
                                int64_t slot_count)
{
    skinny_tiling tiling = {.unit_elems = p->k, .split_count = 1, .tile_cols = kernel->tile_cols};
    tiling.block_count = tile_count < slot_count ? tile_count : slot_count;
    tiling.block_tiles = tgi_divide_up(tile_count, tiling.block_count);
    tiling.block_steps = tiling.block_tiles * tgi_divide_up(p->k, kernel->tile_depth);
    return tiling;
}

static skinny_tiling split_tiles(const tgi_kernel *kernel, const tgi_problem *p, int64_t tile_count,
                                 int64_t slot_count)
{
    const int64_t tile_steps = tgi_divide_up(p->k, kernel->tile_depth);
    const int64_t step_count = tile_count * tile_steps;
    int64_t most = step_count / STEPS_MIN > 1 ? step_count / STEPS_MIN : 1;
    skinny_tiling tiling = {.unit_elems = kernel->tile_depth, .tile_cols = kernel->tile_cols};
    tiling.block_count = most < slot_count ? most : slot_count;
    tiling.block_steps = tgi_divide_up(step_count, tiling.block_count);
    tiling.block_tiles = tgi_divide_up(tiling.block_steps, tile_steps);
    tiling.split_count = tgi_divide_up(tile_steps - 1, step_count / tiling.block_count) + 1;
    if (tiling.split_count > tile_steps)
        tiling.split_count = tile_steps;
    return tiling;
}

/* Splits tiles as all rows of a batch-invariant problem do, after split_elems: a block has one
 * split. */
static skinny_tiling split_invariant(const tgi_kernel *kernel, const tgi_problem *p,
                                     int64_t split_elems, int64_t tile_count, int64_t slot_count)
{
    skinny_tiling tiling = keep_whole(kernel, p, tile_count, slot_count);
    if (split_elems >= p->k)
        return tiling;
    tiling.unit_elems = split_elems;
    tiling.split_count = tgi_divide_up(p->k, split_elems);
    tiling.block_count = tile_count * tiling.split_count;
    tiling.block_tiles = tgi_divide_up(tiling.block_count, slot_count);
    tiling.block_steps = tiling.block_tiles * tgi_divide_up(split_elems, kernel->tile_depth);
    return tiling;
}

/* Splits each tile of a narrow rank kernel into split_count equal splits. Tiles are as narrow as
 * gives all blocks the same number of columns, so that they read the same lines of B side by
 * side. */
static skinny_tiling split_evenly(const tgi_kernel *kernel, const tgi_problem *p,
                                  int64_t split_count, int64_t slot_count)
{
    const int64_t unit = TGI_RANK_UNIT_BYTES / tgi_type_bytes(p->type);
    const int64_t tile_steps = tgi_divide_up(p->k, kernel->tile_depth);
    const int64_t split_steps = tgi_divide_up(tile_steps, split_count);
    skinny_tiling tiling = {.split_count = tgi_divide_up(tile_steps, split_steps)};
    tiling.unit_elems = tiling.split_count > 1 ? split_steps * kernel->tile_depth : p->k;
    const int64_t entries = p->batch_count * tiling.split_count;
    const int64_t least = tgi_divide_up(p->n, kernel->tile_cols); /* tiles of an entry */
    const int64_t rounds = tgi_divide_up(least * entries, slot_count);
    const int64_t most = rounds * slot_count / entries;
    tiling.tile_cols = tgi_divide_up(tgi_divide_up(p->n, most > least ? most : least), unit) * unit;
    tiling.block_count = tgi_divide_up(p->n, tiling.tile_cols) * entries;
    if (tiling.split_count == 1 && tiling.block_count > slot_count)
        tiling.block_count = slot_count;
    tiling.block_steps = rounds * split_steps;
    tiling.block_tiles = rounds;
    return tiling;
}

void tgi_skinny_describe_a(const tgi_problem *p, tgi_operand *a)
{
    tgi_operand_describe(p, 0, 0, p->is_a_offset, a);
}

/* Returns how dot reads A. The prediction depends on strides alone, as does that of the access to
 * B. */
static tgi_access find_narrow_a_access(const tgi_problem *p)
{
    tgi_operand a;
    tgi_operand_describe(p, 0, 0, 0, &a);
    return !a.is_repacked  ? TGI_ACCESS_VECTORS
           : p->a.col == 1 ? TGI_ACCESS_SHIFTED
                           : TGI_ACCESS_ELEMENTS;
}

/* Sets the access to B. Narrow types are read by vectors from any line of contiguous elements.
 * Wider types read unaligned lines of contiguous elements one by one, and other layouts by a sector
 * for each element. */
static void set_access(const tgi_kernel *kernel, const tgi_problem *p, tgi_tile_work *work)
{
    const int along_k = p->n == 1 || p->b.row == 1, is_along = along_k == is_dot(kernel);
    const int has_lines = (is_dot(kernel) ? p->b.row : p->b.col) == 1;
    if (tgi_type_bytes(p->type) >= 4) {
        work->access = is_along && tgi_gemm_find_access(p) == TGI_ACCESS_VECTORS
                           ? TGI_ACCESS_VECTORS
                       : has_lines ? TGI_ACCESS_ELEMENTS
                                   : TGI_ACCESS_STRIDED;
        return;
    }
    work->access = is_along && tgi_gemm_find_b_access(p) == TGI_ACCESS_VECTORS ? TGI_ACCESS_VECTORS
                   : has_lines                                                 ? TGI_ACCESS_SHIFTED
                               : TGI_ACCESS_ELEMENTS;
    const tgi_access a_access = find_narrow_a_access(p);
    if (is_dot(kernel) && a_access > work->access)
        work->access = a_access;
}

int64_t tgi_skinny_find_a_place(const tgi_problem *p, int64_t split_count)
{
    return tgi_round_up(tgi_gemm_split_bytes(p, split_count), WORKSPACE_UNIT_BYTES);
}

tgi_layout tgi_skinny_find_repacked_layout(const tgi_operand *a)
{
    return (tgi_layout){.row = a->pitch_bytes / a->elem_bytes,
                        .col = 1,
                        .batch = a->batch_count == 1 ? 0 : a->batch_bytes / a->elem_bytes};
}

/* Returns the blocks that share a multiprocessor. Where k is shared out at will, there are enough
 * blocks for all places. */
static int count_sharing_blocks(const tgi_machine *machine, const tgi_kernel *kernel,
                                const tgi_problem *p, const skinny_tiling *tiling)
{
    const int most = count_blocks_per_sm(machine, kernel);
    const int64_t each = tgi_divide_up(tiling->block_count, machine->gpu.sm_count);
    return p->is_batch_invariant && each < most ? (int)each : most;
}

static double predict(const tgi_machine *machine, const tgi_kernel *kernel, const tgi_problem *p,
                      const skinny_tiling *tiling)
{
    tgi_tile_work work = {.block_count = (double)tiling->block_count,
                          .block_k = (double)tiling->block_steps * kernel->tile_depth,
                          .split_count = (double)tiling->split_count,
                          .tile_count = (double)tiling->block_tiles,
                          .tile_cols = (double)tiling->tile_cols,
                          .blocks_per_sm = count_sharing_blocks(machine, kernel, p, tiling)};
    set_access(kernel, p, &work);
    return tgi_model_skinny_seconds(&machine->gpu, kernel, p, &work);
}

/* Returns 1 if the kernel computes the problem, else fills in the refusal and returns 0. */
static int takes(const tgi_machine *machine, const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (!tgi_gemm_fits(machine, count_shared_bytes(kernel), proposal))
        return 0;
    if (!tgi_gemm_rounds_sums(p, proposal))
        return 0;
    /* Rows whose lanes all share out k read less shared memory. */
    if (has_team_lanes(kernel) && !p->is_batch_invariant)
        return tgi_refuse(&proposal->refusal, TG_REFUSAL_BATCH_INVARIANT,
                          "teams of lanes serve batch-invariant problems");
    if (p->m > kernel->tile_rows) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_SHAPE,
                   "D's shorter side is %lld; this kernel takes at most %d", (long long)p->m,
                   kernel->tile_rows);
        return 0;
    }
    return 1;
}

/* Proposes the tiling if it is predicted to be faster than what was proposed before. a_bytes is the
 * size of a repacked A, or 0 if A is read where it lies. */
static void try_tiling(const tgi_machine *machine, const tgi_problem *p, int64_t a_bytes,
                       const skinny_tiling *tiling, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const double seconds = predict(machine, kernel, p, tiling) +
                           tgi_model_repack_seconds(&machine->gpu, (double)a_bytes, (double)p->m);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    const int64_t split_bytes = tgi_gemm_split_bytes(p, tiling->split_count);
    if (split_bytes > TGI_WORKSPACE_BYTES_MAX) {
        if (!proposal->is_legal)
            tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                       "partial sums would take %lld bytes of workspace; the limit is %lld",
                       (long long)split_bytes, (long long)TGI_WORKSPACE_BYTES_MAX);
        return;
    }
    proposal->is_legal = 1;
    proposal->resident_blocks = count_blocks_per_sm(machine, kernel);
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = tgi_skinny_find_a_place(p, tiling->split_count) + a_bytes;
    proposal->decision.skinny = (tgi_skinny_decision){.tile_cols = tiling->tile_cols,
                                                      .unit_elems = tiling->unit_elems,
                                                      .split_count = tiling->split_count,
                                                      .block_count = tiling->block_count,
                                                      .is_a_repacked = a_bytes > 0};
}

/* Tries the splits of the problem. Those of a batch-invariant one have split_elems of k. */
static void propose_splits(const tgi_machine *machine, const tgi_problem *p, int64_t split_elems,
                           int64_t a_bytes, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int64_t tile_count = tgi_divide_up(p->n, kernel->tile_cols) * p->batch_count;
    const int64_t slot_count =
        (int64_t)machine->gpu.sm_count * count_blocks_per_sm(machine, kernel);
    if (p->is_batch_invariant) {
        const skinny_tiling tiling =
            split_invariant(kernel, p, split_elems, tile_count, slot_count);
        try_tiling(machine, p, a_bytes, &tiling, proposal);
        return;
    }
    if (!tgi_skinny_is_narrow_rank(kernel)) {
        const skinny_tiling whole = keep_whole(kernel, p, tile_count, slot_count);
        const skinny_tiling tiling = split_tiles(kernel, p, tile_count, slot_count);
        try_tiling(machine, p, a_bytes, &whole, proposal);
        try_tiling(machine, p, a_bytes, &tiling, proposal);
        return;
    }
    const int64_t most = tgi_divide_up(p->k, STEPS_MIN * kernel->tile_depth);
    for (int64_t splits = 1; splits <= most && splits <= RANK_SPLITS_MAX; splits++) {
        const skinny_tiling tiling = split_evenly(kernel, p, splits, slot_count);
        if (tiling.split_count == splits && (splits == 1 || tiling.block_count <= slot_count))
            try_tiling(machine, p, a_bytes, &tiling, proposal);
    }
}

static void propose(const tgi_machine *machine, const tgi_problem *given, tgi_proposal *proposal)
{
    const int64_t split_elems = tgi_gemm_invariant_split(machine, given);
    tgi_problem p = *given;
    if (tgi_skinny_is_transposed(&p))
        tgi_problem_transpose(&p);
    if (!takes(machine, &p, proposal))
        return;
    tgi_operand a;
    tgi_skinny_describe_a(&p, &a);
    const int64_t a_bytes = tgi_operand_workspace_bytes(&a);
    proposal->needs_aligned[tgi_skinny_is_transposed(given)] =
        tgi_skinny_is_narrow_rank(proposal->kernel) && a_bytes == 0;
    if (!tgi_skinny_is_narrow_rank(proposal->kernel) || a_bytes == 0)
        propose_splits(machine, &p, split_elems, 0, proposal);
    if (tgi_type_bytes(p.type) >= 4 || a_bytes == 0)
        return;
    if (a_bytes > TGI_WORKSPACE_BYTES_MAX) {
        tgi_refuse(&proposal->refusal, TG_REFUSAL_WORKSPACE,
                   "A would be copied to %lld bytes of workspace; the limit is %lld",
                   (long long)a_bytes, (long long)TGI_WORKSPACE_BYTES_MAX);
        return;
    }
    p.a = tgi_skinny_find_repacked_layout(&a);
    p.is_a_offset = 0;
    propose_splits(machine, &p, split_elems, a_bytes, proposal);
}

static void describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    const tgi_skinny_decision *decision = &proposal->decision.skinny;
    tiling->split_count = decision->split_count;
    tiling->tile_cols = decision->tile_cols;
    tiling->block_count = decision->block_count;
}

const tgi_cuda_planner tgi_cuda_planner_skinny = {.propose = propose,
                                                  .describe_tiling = describe_tiling};
