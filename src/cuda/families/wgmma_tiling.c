/*
 * Shares out a problem of the families on wgmma in tiles, clusters of blocks and splits. The
 * tiling with the shortest predicted time is chosen.
 */
#include "cuda/families/wgmma_tiling.h"

#include <math.h>

#include "cuda/families/gemm.h"
#include "cuda/families/slices.h"
#include "cuda/families/wgmma_terms.h"
#include "cuda/families/wgmma_tiles.h"
#include "kernels/copy/slice_args.h"
#include "kernels/wgmma/wgmma_shape.h"
#include "model/figures.h"
#include "model/wgmma_model.h"

#define SUM_BYTES 4
#define CLUSTER_MAX 8 /* blocks of the largest cluster */
#define FRAGMENT_ROWS 64
#define CROWDED_BYTES 8192 /* lines at multiples of this share parts of L2 */
#define SECTOR_BYTES 32    /* bytes that L2 reads together */
#define GROUP_LINES 8      /* lines of one repeat of the swizzle */

int tgi_wgmma_line_bytes(const tgi_kernel *kernel)
{
    return !tgi_kernels_has_slices(kernel)  ? TGI_WGMMA_STEP_BYTES
           : kernel->math == TGI_MATH_fp16x ? 2 * TGI_CHUNK_BYTES
                                            : 3 * TGI_CHUNK_BYTES;
}

int tgi_wgmma_is_next_early(const tgi_machine *machine, const tgi_kernel *kernel,
                            const tgi_problem *p, const tgi_operand operand[2], int cluster_rows)
{
    const tgi_figures *f = tgi_figures_find(machine->gpu.capability);
    const double share = tgi_model_tile_bytes(p) / (double)machine->gpu.l2_bytes;
    const double rows = (double)tgi_wgmma_row_clusters(p, kernel->tile_rows, 1);
    const double cols = (double)tgi_wgmma_col_tiles(kernel, p);
    const int has_pass =
        tgi_kernels_has_slices(kernel) || operand[0].is_repacked || operand[1].is_repacked;
    return has_pass || share < f->wgmma_late_l2_share || fmin(rows, cols) > f->wgmma_late_readers ||
           (tgi_wgmma_is_fitted(kernel) && cluster_rows > 1);
}

int64_t tgi_wgmma_partial_tile_bytes(const tgi_kernel *kernel, const tgi_problem *p,
                                     const tgi_wgmma_decision *decision)
{
    const int64_t tiles = tgi_wgmma_row_clusters(p, decision->tile_rows, decision->cluster_rows) *
                          decision->cluster_rows * tgi_wgmma_col_tiles(kernel, p) * p->batch_count;
    const int64_t tile_bytes = (int64_t)kernel->tile_rows * kernel->tile_cols * SUM_BYTES;
    return decision->split_count > 1 ? tgi_checked_multiply(tiles - decision->whole_tiles,
                                                            tile_bytes * decision->split_count)
                                     : 0;
}

/* Takes this tiling if its predicted time is the shortest so far. */
static void try_tiling(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                       tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    tgi_wgmma_decision decision = proposal->decision.wgmma;
    decision.split_elems = (int64_t)work.split_steps * kernel->tile_depth;
    decision.split_count = work.cluster_splits > 1 ? 1 : (int64_t)work.split_count;
    decision.whole_tiles = (int64_t)work.whole_count * work.cluster_rows;
    decision.tile_rows = work.tile_rows;
    decision.cluster_rows = work.cluster_rows;
    decision.cluster_splits = work.cluster_splits;
    decision.sm_blocks = work.sm_blocks;
    if (tgi_wgmma_is_fitted(kernel)) {
        tgi_wgmma_fit_stages(kernel, p, &work, &decision);
        work.stage_count = decision.stage_count;
    }
    const double seconds = tgi_model_wgmma_seconds(&machine->gpu, kernel, p, &work);
    const int64_t bytes = tgi_wgmma_partial_tile_bytes(kernel, p, &decision);
    const int is_limited = !p->is_batch_invariant || tgi_kernels_has_slices(kernel);
    if ((proposal->is_legal && seconds >= proposal->predicted_s) ||
        (is_limited && bytes > TGI_WORKSPACE_BYTES_MAX))
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = bytes;
    proposal->resident_blocks = work.sm_blocks;
    proposal->decision.wgmma = decision;
}

/* Returns how many clusters of `blocks` blocks run at once. */
static double count_slots(const tgi_machine *machine, int blocks)
{
    return (double)(tgi_gemm_count_cluster_sms(&machine->gpu, blocks) / blocks);
}

/* Returns 1 if tiles may cover fewer rows of D than the kernel multiplies: TMA then brings fewer
 * lines of A, and stores fewer rows. Transposed FP32 is stored by two boxes of 32 rows. */
static int may_have_fewer_rows(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_wgmma_is_fitted(kernel) && !p->is_batch_invariant &&
           !(tgi_type_bytes(p->d_type) == 4 && tgi_wgmma_is_d_transposed(kernel, p));
}

/* Returns the tiling with tiles of tile_rows rows. */
static tgi_wgmma_work set_rows(const tgi_kernel *kernel, const tgi_problem *p, tgi_wgmma_work work,
                               int tile_rows)
{
    const tgi_wgmma_lines lines = {p->m, tile_rows, 1, 1, work.is_a_across};
    work.tile_rows = tile_rows;
    work.a_tma_box_lines = tgi_wgmma_tma_box_lines(p, &lines);
    work.group_rows = tgi_wgmma_group_rows(kernel, p, tile_rows, work.cluster_rows);
    work.whole_count = (double)tgi_wgmma_row_clusters(p, tile_rows, work.cluster_rows) *
                       (double)tgi_wgmma_col_tiles(kernel, p) * (double)p->batch_count;
    return work;
}

/* Returns the fewest rows of a tile with which the clusters of tiles take no more rounds, a
 * multiple of `unit`. */
static int find_even_rows(const tgi_kernel *kernel, const tgi_problem *p,
                          const tgi_wgmma_work *work, int unit)
{
    const double in_row = (double)tgi_wgmma_col_tiles(kernel, p) * (double)p->batch_count;
    const double rounds = ceil(work->whole_count / work->slot_count);
    const double rows = floor(rounds * work->slot_count / in_row) * work->cluster_rows;
    const int64_t even = rows >= 1.0 ? tgi_divide_up(p->m, (int64_t)rows * unit) : INT32_MAX;
    return even * unit < kernel->tile_rows ? (int)even * unit : kernel->tile_rows;
}

/* Tries this tiling with tiles of all rows that the kernel has, and of as many as share out D
 * evenly. */
static void try_rows(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                     tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    try_tiling(machine, p, work, proposal);
    if (!may_have_fewer_rows(kernel, p))
        return;
    /* Lines of A across k are slow unless they have whole sectors. */
    const int unit =
        (work.is_a_across ? SECTOR_BYTES / (int)tgi_type_bytes(p->type) : GROUP_LINES) *
        (kernel->tile_rows / FRAGMENT_ROWS);
    const int rows = find_even_rows(kernel, p, &work, unit);
    if (rows < kernel->tile_rows)
        try_tiling(machine, p, set_rows(kernel, p, work, rows), proposal);
}

/* Tries two blocks on each multiprocessor, of which one multiplies while the other stores. They pay
 * for the small products of a batch; a single product has larger tiles to take. */
static void try_two(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                    tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    if (!tgi_wgmma_is_fitted(kernel) || !TGI_FEW_CAN_BE_TWO(kernel) || p->is_batch_invariant ||
        p->batch_count == 1 || work.whole_count <= work.slot_count)
        return;
    work.sm_blocks = 2;
    work.slot_count *= 2.0;
    try_rows(machine, p, work, proposal);
}

/* Tries to split k of every tile over the `splits` blocks of a column of a cluster, split_steps
 * each. The partial tiles must fit into the stages, and all clusters must run at once. */
static void try_cluster_split(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                              int splits, double split_steps, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    /* The layout with B across k has the fewest stages. */
    const int stages = TGI_WGMMA_STAGES(kernel->stage_count, kernel->tile_cols, 1);
    const int64_t room = tgi_wgmma_is_fitted(kernel)
                             ? TGI_WGMMA_SHARED_MAX - TGI_FEW_FIXED_BYTES(kernel->tile_rows)
                             : (int64_t)(kernel->tile_rows + kernel->tile_cols) *
                                   tgi_wgmma_line_bytes(kernel) * stages;
    if (splits < 2 || splits * work.cluster_rows > CLUSTER_MAX ||
        tgi_wgmma_sent_bytes(kernel, splits) > room)
        return;
    work.split_steps = split_steps;
    work.cluster_splits = splits;
    work.d_box_cols = tgi_wgmma_sent_cols(kernel);
    work.slot_count = count_slots(machine, splits * work.cluster_rows);
    if (work.whole_count <= work.slot_count)
        try_rows(machine, p, work, proposal);
}

static void try_cluster_splits(const tgi_machine *machine, const tgi_problem *p,
                               tgi_wgmma_work work, tgi_proposal *proposal)
{
    for (int splits = 2; splits * work.cluster_rows <= CLUSTER_MAX; splits++) {
        const double split_steps = ceil(work.step_count / splits);
        if (ceil(work.step_count / split_steps) == splits)
            try_cluster_split(machine, p, work, splits, split_steps, proposal);
    }
}

/* Tries to split the tiles that would leave multiprocessors idle in the last rounds. Their splits
 * fill whole rounds. */
static void try_workspace_splits(const tgi_machine *machine, const tgi_problem *p,
                                 tgi_wgmma_work work, tgi_proposal *proposal)
{
    const double slots = work.slot_count, units = work.whole_count, steps = work.step_count;
    const double rounds = floor(units / slots);
    for (double whole = rounds; whole >= 0.0 && whole >= rounds - 1.0; whole -= 1.0) {
        work.whole_count = whole * slots;
        work.split_tile_count = units - work.whole_count;
        for (double round = 1.0; work.split_tile_count > 0.0 && round <= TGI_WGMMA_SPLIT_ROUNDS;
             round += 1.0) {
            const double wanted = floor(round * slots / work.split_tile_count);
            if (wanted < 2.0 || wanted > fmin(steps, TGI_WGMMA_SPLITS_MAX))
                continue;
            work.split_steps = ceil(steps / wanted);
            work.split_count = ceil(steps / work.split_steps);
            try_tiling(machine, p, work, proposal);
        }
    }
}

/* Tries to split k of slices after each run: their sums are added in the order in which a whole
 * tile adds its runs, and D has the same bits. Tiles of whole rounds may stay whole. */
static void try_run_splits(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                           tgi_proposal *proposal)
{
    const double slots = work.slot_count, units = work.whole_count;
    const double rounds = floor(units / slots), splits = ceil(work.step_count / TGI_RUN_CHUNKS);
    if (splits < 2.0 || splits > TGI_WGMMA_SPLITS_MAX)
        return;
    work.split_steps = TGI_RUN_CHUNKS;
    work.split_count = splits;
    for (double whole = rounds; whole >= 0.0 && whole >= rounds - 1.0; whole -= 1.0) {
        work.whole_count = whole * slots;
        work.split_tile_count = units - work.whole_count;
        if (work.split_tile_count > 0.0 &&
            work.split_tile_count * splits <= TGI_WGMMA_RUN_ROUNDS * slots)
            try_tiling(machine, p, work, proposal);
    }
}

/* Takes the splits of a batch-invariant problem: all tiles are split alike. A cluster adds
 * them in the same order as the kernel that adds partial tiles. */
static void take_invariant_splits(const tgi_machine *machine, const tgi_problem *p,
                                  tgi_wgmma_work work, int64_t split_elems, tgi_proposal *proposal)
{
    if (split_elems >= p->k) {
        try_tiling(machine, p, work, proposal);
        return;
    }
    const double split_steps = (double)tgi_divide_up(split_elems, proposal->kernel->tile_depth);
    const double splits = ceil(work.step_count / split_steps);
    work.is_bias_staged = tgi_wgmma_is_bias_staged(proposal->kernel, p, 1);
    if (splits <= CLUSTER_MAX)
        try_cluster_split(machine, p, work, (int)splits, split_steps, proposal);
    work.split_tile_count = work.whole_count;
    work.whole_count = 0.0;
    work.split_steps = split_steps;
    work.split_count = splits;
    try_tiling(machine, p, work, proposal);
}

/* Returns 1 if each line of a TMA box touches two lines of L2. The lines are as long as lines of
 * L2, and are aligned to them only if their pitch is a multiple of that length. */
static int is_straddling(const tgi_operand *operand)
{
    return operand->is_across && operand->pitch_bytes % TGI_WGMMA_STEP_BYTES != 0;
}

/* Returns 1 if B's lines lie across k and tiles begin within a line of L2. Tiles of fewer columns
 * than a line holds copy it whole. */
static int is_begun_within(const tgi_kernel *kernel, const tgi_operand *b)
{
    const int64_t bytes = kernel->tile_cols * tgi_type_bytes(kernel->type);
    return b->is_across && bytes > TGI_WGMMA_STEP_BYTES && bytes % TGI_WGMMA_STEP_BYTES != 0;
}

/* Returns 1 if most lines of a TMA box begin within a sector, so that each touches one more. */
static int is_splitting(const tgi_operand *operand)
{
    return operand->pitch_bytes % SECTOR_BYTES != 0;
}

/* Returns how many lines share a line of L2, or 0 if they are at least as long. */
static double count_shared_lines(const tgi_operand *operand)
{
    return operand->pitch_bytes < TGI_WGMMA_STEP_BYTES
               ? TGI_WGMMA_STEP_BYTES / (double)operand->pitch_bytes
               : 0.0;
}

/* Returns 1 if few parts of L2 hold the boxes of a step: both operands lie along k, and lines of
 * one begin at multiples of CROWDED_BYTES. */
static int are_crowded(const tgi_operand operand[2])
{
    return !operand[0].is_across && !operand[1].is_across &&
           (operand[0].pitch_bytes % CROWDED_BYTES == 0 ||
            operand[1].pitch_bytes % CROWDED_BYTES == 0);
}

/* Describes tiles of all rows that the kernel has, of whole k. */
static tgi_wgmma_work describe_whole(const tgi_kernel *kernel, const tgi_problem *p,
                                     const tgi_operand operand[2], int cluster_rows, double slots)
{
    const double steps = (double)tgi_divide_up(p->k, kernel->tile_depth);
    const tgi_wgmma_lines b_lines = {p->n, kernel->tile_cols, cluster_rows, kernel->thread_rows,
                                     operand[1].is_across};
    const tgi_wgmma_work work = {
        .b_tma_box_lines = tgi_wgmma_tma_box_lines(p, &b_lines),
        .a_straddles = is_straddling(&operand[0]),
        .b_straddles = is_straddling(&operand[1]) || is_begun_within(kernel, &operand[1]),
        .a_splits = is_splitting(&operand[0]),
        .b_splits = is_splitting(&operand[1]),
        .a_shared_lines = count_shared_lines(&operand[0]),
        .b_shared_lines = count_shared_lines(&operand[1]),
        .are_crowded = are_crowded(operand),
        .is_a_unaligned = operand[0].is_unaligned,
        .is_a_across = operand[0].is_across,
        .is_b_across = operand[1].is_across,
        .b_tile_lines = TGI_WGMMA_LINES(kernel->tile_cols, operand[1].is_across),
        .stage_count =
            TGI_WGMMA_STAGES(kernel->stage_count, kernel->tile_cols, operand[1].is_across),
        .is_d_tma_stored = tgi_wgmma_is_d_tma_stored(kernel, p),
        .is_c_staged = tgi_wgmma_find_c_source(kernel, p) == TGI_C_STAGED,
        .is_c_summed = tgi_wgmma_is_c_summed(kernel, p),
        .is_bias_staged = tgi_wgmma_is_bias_staged(kernel, p, 0),
        .d_box_cols = TGI_FRAGMENT_COLS(kernel->tile_cols),
        .cluster_rows = cluster_rows,
        .sm_blocks = 1,
        .cluster_splits = 1,
        .slot_count = slots,
        .step_count = steps,
        .split_count = 1.0,
        .split_steps = steps};
    return set_rows(kernel, p, work, kernel->tile_rows);
}

void tgi_wgmma_choose_tiling(const tgi_machine *machine, const tgi_problem *p,
                             const tgi_operand operand[2], int64_t split_elems,
                             tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    /* The largest cluster comes first: if times are equal, it reads less of B. */
    for (int cluster_rows = kernel->thread_rows; cluster_rows >= 1; cluster_rows /= 2) {
        const double slots = count_slots(machine, cluster_rows);
        if (slots < 1.0 || (int64_t)(cluster_rows - 1) * kernel->tile_rows >= p->m)
            continue; /* no cluster would run, or its last tile would have no rows */
        const tgi_wgmma_work work = describe_whole(kernel, p, operand, cluster_rows, slots);
        if (p->is_batch_invariant && !tgi_kernels_has_slices(kernel)) {
            take_invariant_splits(machine, p, work, split_elems, proposal);
            continue;
        }
        try_rows(machine, p, work, proposal);
        if (cluster_rows == 1)
            try_two(machine, p, work, proposal);
        if (p->is_batch_invariant && kernel->math == TGI_MATH_bf16x)
            try_run_splits(machine, p, work, proposal);
        if (p->is_batch_invariant)
            continue;
        try_workspace_splits(machine, p, work, proposal);
        /* The block that adds does not know the ranges of rows that others split in registers. */
        if (!tgi_slices_is_a_in_registers(kernel))
            try_cluster_splits(machine, p, work, proposal);
    }
}
