/*
 * Shares out a problem of the families on wgmma in tiles, clusters of blocks and splits. The
 * tiling with the shortest predicted time is chosen.
 */
#include "cuda/families/wgmma_tiling.h"

#include <math.h>

#include "cuda/families/gemm.h"
#include "cuda/families/slices.h"
#include "kernels/copy/slice_args.h"
#include "kernels/wgmma/wgmma_shape.h"
#include "model/figures.h"
#include "model/wgmma_model.h"

#define GROUP_LINES 8     /* lines of one repeat of the swizzle */
#define GROUP_ROWS_MAX 16 /* most tile rows of a group */
#define FEW_COLS 8        /* most tile columns for groups of one row */
#define SUM_BYTES 4
#define PITCH_MAX ((int64_t)1 << 38) /* elements of 4 bytes; keeps strides below 2^40 bytes */
#define CLUSTER_MAX 8                /* blocks of the largest cluster */
#define FRAGMENT_ROWS 64
#define CROWDED_BYTES 8192 /* lines at multiples of this share parts of L2 */
#define SECTOR_BYTES 32    /* bytes that L2 reads together */

int tgi_wgmma_line_bytes(const tgi_kernel *kernel)
{
    return !tgi_kernels_has_slices(kernel)  ? TGI_WGMMA_STEP_BYTES
           : kernel->math == TGI_MATH_fp16x ? 2 * TGI_CHUNK_BYTES
                                            : 3 * TGI_CHUNK_BYTES;
}

int64_t tgi_wgmma_row_clusters(const tgi_kernel *kernel, const tgi_problem *p, int cluster_rows)
{
    return tgi_divide_up(p->m, (int64_t)kernel->tile_rows * cluster_rows);
}

int64_t tgi_wgmma_col_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_divide_up(p->n, kernel->tile_cols);
}

/* If D has few columns of tiles, a group is one row, so that the tiles of a row are numbered one
 * after another. Several blocks copy the same line of A slowly unless they are neighbours. */
int tgi_wgmma_group_rows(const tgi_kernel *kernel, const tgi_problem *p, int cluster_rows)
{
    const int64_t rows = tgi_wgmma_row_clusters(kernel, p, cluster_rows);
    const int64_t most = GROUP_ROWS_MAX / cluster_rows;
    if (tgi_wgmma_col_tiles(kernel, p) <= FEW_COLS)
        return 1;
    return (int)(rows < most ? rows : most);
}

/* A box across k has as many lines as 128 bytes hold elements. A box along k has the lines that one
 * of the blocks which share a tile's lines copies, and no more than exist. */
int tgi_wgmma_tma_box_lines(const tgi_kernel *kernel, const tgi_problem *p, int is_b, int is_across,
                            int cluster_rows)
{
    const int sharers = is_b ? cluster_rows : 1;
    const int share = (is_b ? kernel->tile_cols : kernel->tile_rows) / sharers;
    const int64_t wanted = tgi_divide_up(is_b ? p->n : p->m, sharers * GROUP_LINES) * GROUP_LINES;
    return is_across ? TGI_WGMMA_STEP_BYTES / (int)tgi_type_bytes(p->type)
                     : (int)(wanted < share ? wanted : share);
}

/* Returns the lines across k of the last step that are multiplied, or 0 if all are. */
static int find_last_lines(const tgi_problem *p)
{
    const int64_t step = TGI_WGMMA_STEP_BYTES / tgi_type_bytes(p->type);
    const int64_t product = TGI_WGMMA_PRODUCT_BYTES / tgi_type_bytes(p->type);
    const int64_t lines = tgi_divide_up(p->k % step, product) * product;
    return tgi_type_bytes(p->type) == 2 && lines < step ? (int)lines : 0;
}

int tgi_wgmma_edge_lines(const tgi_kernel *kernel, const tgi_problem *p, int is_b, int is_across,
                         int cluster_rows)
{
    if (is_across)
        return find_last_lines(p);
    const int sharers = is_b ? cluster_rows : 1;
    const int64_t tile_lines = is_b ? kernel->tile_cols : kernel->tile_rows;
    const int64_t lines = is_b ? p->n : p->m, edge = lines % tile_lines;
    const int64_t wanted = tgi_divide_up(edge, sharers * GROUP_LINES) * GROUP_LINES;
    return lines > tile_lines && wanted < tile_lines / sharers ? (int)wanted : 0;
}

int tgi_wgmma_is_d_transposed(const tgi_kernel *kernel, const tgi_problem *p)
{
    return p->d.row == 1 && p->m > 1 && !tgi_kernels_has_slices(kernel);
}

/* Returns 1 if a tensor map can describe C or D of this layout, whose lines of whole units are its
 * columns if is_transposed is 1, else its rows. */
static int has_unit_lines(const tgi_problem *p, const tgi_layout *layout, int is_transposed)
{
    const int64_t elem_bytes = tgi_type_bytes(p->d_type);
    const int64_t elems = is_transposed ? p->m : p->n, lines = is_transposed ? p->n : p->m;
    const int64_t pitch = is_transposed ? layout->col : layout->row;
    return (is_transposed ? layout->row : layout->col) == 1 &&
           elems * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0 &&
           (lines == 1 || (pitch >= elems && pitch < PITCH_MAX &&
                           pitch * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0)) &&
           (p->batch_count == 1 || (layout->batch > 0 && layout->batch < PITCH_MAX &&
                                    layout->batch * elem_bytes % TGI_TENSOR_UNIT_BYTES == 0));
}

int tgi_wgmma_is_d_tma_stored(const tgi_kernel *kernel, const tgi_problem *p)
{
    const int is_transposed = tgi_wgmma_is_d_transposed(kernel, p);
    return (tgi_type_bytes(p->d_type) > 1 || !is_transposed) &&
           has_unit_lines(p, &p->d, is_transposed);
}

int tgi_wgmma_is_c_staged(const tgi_kernel *kernel, const tgi_problem *p)
{
    return kernel->family == TGI_FAMILY_cuda_wgmma && tgi_type_bytes(p->type) < 4 &&
           tgi_type_bytes(p->d_type) == 2 && p->epilogue.beta != 0.0 &&
           has_unit_lines(p, &p->c, tgi_wgmma_is_c_transposed(p));
}

int64_t tgi_wgmma_partial_tile_bytes(const tgi_kernel *kernel, const tgi_problem *p,
                                     const tgi_wgmma_decision *decision)
{
    const int64_t tiles = tgi_wgmma_row_clusters(kernel, p, decision->cluster_rows) *
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
    decision.cluster_rows = work.cluster_rows;
    decision.cluster_splits = work.cluster_splits;
    const double seconds = tgi_model_wgmma_seconds(&machine->gpu, kernel, p, &work);
    const int64_t bytes = tgi_wgmma_partial_tile_bytes(kernel, p, &decision);
    const int is_limited = !p->is_batch_invariant || tgi_kernels_has_slices(kernel);
    if ((proposal->is_legal && seconds >= proposal->predicted_s) ||
        (is_limited && bytes > TGI_WORKSPACE_BYTES_MAX))
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = bytes;
    proposal->decision.wgmma = decision;
}

/* Returns how many clusters of `blocks` blocks run at once. A cluster lies within one of the chip's
 * groups of multiprocessors. The groups differ in size, so that some multiprocessors get none. */
static double count_slots(const tgi_machine *machine, int blocks)
{
    const double *used = tgi_figures_find(machine->gpu.capability)->cluster_sms;
    return (double)(machine->gpu.sm_count * (int64_t)used[blocks - 1] / (int64_t)used[0] / blocks);
}

/* Tries to split k of every tile over the `splits` blocks of a column of a cluster, split_steps
 * each. The partial tiles must fit into the stages, and all clusters must run at once. */
static void try_cluster_split(const tgi_machine *machine, const tgi_problem *p, tgi_wgmma_work work,
                              int splits, double split_steps, tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const int fragment_cols = TGI_FRAGMENT_COLS(kernel->tile_cols);
    const int fragments = kernel->tile_rows / 64 * kernel->tile_cols / fragment_cols;
    /* The layout with B across k has the fewest stages. */
    const int stages = TGI_WGMMA_STAGES(kernel->stage_count, kernel->tile_cols, 1);
    const int64_t room =
        (int64_t)(kernel->tile_rows + kernel->tile_cols) * tgi_wgmma_line_bytes(kernel) * stages;
    const int64_t bytes =
        tgi_divide_up(fragments, splits) * splits * FRAGMENT_ROWS * fragment_cols * SUM_BYTES;
    if (splits < 2 || splits * work.cluster_rows > CLUSTER_MAX || bytes > room)
        return;
    work.split_steps = split_steps;
    work.cluster_splits = splits;
    work.slot_count = count_slots(machine, splits * work.cluster_rows);
    if (work.whole_count <= work.slot_count)
        try_tiling(machine, p, work, proposal);
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

/* Returns 1 if most lines of a TMA box begin within a sector, so that each touches one more. */
static int is_splitting(const tgi_operand *operand)
{
    return operand->pitch_bytes % SECTOR_BYTES != 0;
}

/* Returns 1 if few parts of L2 hold the boxes of a step: both operands lie along k, and lines of
 * one begin at multiples of CROWDED_BYTES. */
static int are_crowded(const tgi_operand operand[2])
{
    return !operand[0].is_across && !operand[1].is_across &&
           (operand[0].pitch_bytes % CROWDED_BYTES == 0 ||
            operand[1].pitch_bytes % CROWDED_BYTES == 0);
}

void tgi_wgmma_choose_tiling(const tgi_machine *machine, const tgi_problem *p,
                             const tgi_operand operand[2], int64_t split_elems,
                             tgi_proposal *proposal)
{
    const tgi_kernel *kernel = proposal->kernel;
    const double steps = (double)tgi_divide_up(p->k, kernel->tile_depth);
    /* The largest cluster comes first: if times are equal, it reads less of B. */
    for (int cluster_rows = kernel->thread_rows; cluster_rows >= 1; cluster_rows--) {
        const double slots = count_slots(machine, cluster_rows);
        if (slots < 1.0 || (int64_t)(cluster_rows - 1) * kernel->tile_rows >= p->m)
            continue; /* no cluster would run, or its last tile would have no rows */
        const tgi_wgmma_work work = {
            .a_tma_box_lines =
                tgi_wgmma_tma_box_lines(kernel, p, 0, operand[0].is_across, cluster_rows),
            .b_tma_box_lines =
                tgi_wgmma_tma_box_lines(kernel, p, 1, operand[1].is_across, cluster_rows),
            .a_straddles = is_straddling(&operand[0]),
            .b_straddles = is_straddling(&operand[1]),
            .a_splits = is_splitting(&operand[0]),
            .b_splits = is_splitting(&operand[1]),
            .are_crowded = are_crowded(operand),
            .is_a_unaligned = operand[0].is_unaligned,
            .b_tile_lines = TGI_WGMMA_LINES(kernel->tile_cols, operand[1].is_across),
            .stage_count =
                TGI_WGMMA_STAGES(kernel->stage_count, kernel->tile_cols, operand[1].is_across),
            .is_d_tma_stored = tgi_wgmma_is_d_tma_stored(kernel, p),
            .is_c_staged = tgi_wgmma_is_c_staged(kernel, p),
            .d_box_cols = TGI_FRAGMENT_COLS(kernel->tile_cols),
            .cluster_rows = cluster_rows,
            .group_rows = tgi_wgmma_group_rows(kernel, p, cluster_rows),
            .cluster_splits = 1,
            .slot_count = slots,
            .whole_count = (double)tgi_wgmma_row_clusters(kernel, p, cluster_rows) *
                           (double)tgi_wgmma_col_tiles(kernel, p) * (double)p->batch_count,
            .step_count = steps,
            .split_count = 1.0,
            .split_steps = steps};
        if (p->is_batch_invariant && !tgi_kernels_has_slices(kernel)) {
            take_invariant_splits(machine, p, work, split_elems, proposal);
            continue;
        }
        try_tiling(machine, p, work, proposal);
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
