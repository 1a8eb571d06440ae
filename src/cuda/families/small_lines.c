/* Plans the relays of family small that copy the lines of a long k of 16-bit types to shared
 * memory. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

#define LANES 32
#define TILE_ROWS 16
#define TILE_COLS 8
#define BARRIER_BYTES 16
/* Warps of a block, which copy lines: more would take longer to start. */
#define COPY_WARPS_LEAST 4
#define COPY_WARPS_MOST 8
#define STAGE_ELEMS 64 /* lines are whole stages of k, in units of 16 bytes */
#define UNIT_ELEMS 8
/* Lines across k share cache lines with others: their moves count as so many. */
#define ACROSS_TURNS 3.0

/* A tiling of D or D^T, of whose splits a cluster's blocks have some each. */
typedef struct lines_tiling {
    int is_transposed, warps, cluster;
} lines_tiling;

int tgi_small_is_line_along(const tgi_problem *p, int is_b)
{
    return is_b ? p->b.row == 1 : p->a.col == 1;
}

/* Returns 1 if the lines of the operand are contiguous. */
static int has_lines(const tgi_problem *p, int is_b)
{
    const int64_t across = is_b ? p->b.col : p->a.row, count = is_b ? p->n : p->m;
    return tgi_small_is_line_along(p, is_b) || across == 1 || count == 1;
}

/* Returns 1 if lines of the operand begin between units of 16 bytes. */
static int has_moved_lines(const tgi_problem *p, int is_b)
{
    const int is_along = tgi_small_is_line_along(p, is_b);
    return (is_b ? p->is_b_offset : p->is_a_offset) ||
           !(is_b ? tgi_gemm_has_b_vectors(p, is_along) : tgi_gemm_has_a_vectors(p, is_along));
}

/* Adds what it takes to copy an operand's lines of `elems` values of k, and to move those that
 * begin between units: turns of the lanes of a block. */
static void add_lines(const tgi_problem *p, int is_b, int64_t elems, tgi_tile_work *work)
{
    const int64_t side = is_b ? TILE_COLS : TILE_ROWS, left = is_b ? p->n : p->m;
    const int64_t padded = tgi_round_up(elems, STAGE_ELEMS);
    const int is_along = tgi_small_is_line_along(p, is_b), is_moved = has_moved_lines(p, is_b);
    const int64_t lines = !is_along ? padded : left < side ? left : side;
    const int64_t units = (is_along ? padded : side) / UNIT_ELEMS + is_moved;
    int64_t lanes = is_along ? LANES : 1;
    while (lanes < LANES && lanes < units)
        lanes *= 2;
    const double turns = (double)(tgi_divide_up(lines * lanes, (int64_t)work->warps * LANES) *
                                  tgi_divide_up(units, lanes));
    work->tile_count += turns;
    work->by_elements += is_moved * (is_along ? 1.0 : ACROSS_TURNS) * turns;
    work->copy_k += (double)(lines * units);
}

static void try_tiling(const tgi_machine *machine, const tgi_problem *p, const lines_tiling *tiling,
                       int64_t split_elems, tgi_proposal *proposal)
{
    const int warps = tiling->warps;
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    const int64_t block_splits = tgi_divide_up(splits, tiling->cluster);
    const int64_t down = tgi_divide_up(p->m, TILE_ROWS), across = tgi_divide_up(p->n, TILE_COLS);
    const int64_t elems = block_splits * split_elems;
    const int64_t block_k = elems < p->k ? elems : p->k;
    const int64_t shared_bytes =
        BARRIER_BYTES + splits * TILE_ROWS * TILE_COLS * tgi_type_sum_bytes(p->type) +
        TGI_SMALL_RELAY_LINE_BYTES(TILE_ROWS, elems, !tgi_small_is_line_along(p, 0)) +
        TGI_SMALL_RELAY_LINE_BYTES(TILE_COLS, elems, !tgi_small_is_line_along(p, 1));
    tgi_tile_work work = {.block_count = (double)down * (double)across * (double)p->batch_count *
                                         tiling->cluster,
                          .cluster_blocks = tiling->cluster,
                          .warps = warps,
                          .block_k = (double)tgi_divide_up(block_splits, warps) *
                                     (double)(split_elems < p->k ? split_elems : p->k),
                          .split_count = (double)splits};
    add_lines(p, 0, block_k, &work);
    add_lines(p, 1, block_k, &work);
    /* A larger D takes other rows: blocks that do not all run at once wait for each other. */
    if (work.block_count > (double)tgi_gemm_count_cluster_sms(&machine->gpu, tiling->cluster) ||
        down > TGI_GRID_HEIGHT_MAX || shared_bytes > machine->gpu.shared_bytes_per_block)
        return;
    const double seconds = tgi_model_relay_lines_seconds(&machine->gpu, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks =
        tgi_gemm_count_resident(&machine->gpu, proposal->kernel,
                                machine->gpu.threads_per_sm / (LANES * warps), shared_bytes);
    proposal->workspace_bytes = 0;
    proposal->shared_bytes = shared_bytes;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = 0;
    proposal->decision.tile = (tgi_tile_decision){.split_elems = split_elems,
                                                  .split_count = splits,
                                                  .is_transposed = tiling->is_transposed,
                                                  .relay_cols = TILE_COLS,
                                                  .relay_groups = warps,
                                                  .is_relay_copied = 1,
                                                  .relay_cluster = tiling->cluster,
                                                  .direct_blocks = (int64_t)work.block_count};
}

void tgi_small_propose_lines(const tgi_machine *machine, const tgi_problem *given,
                             tgi_proposal *proposal)
{
    const int64_t split_elems = tgi_gemm_invariant_split(machine, given);
    const int64_t splits = tgi_divide_up(given->k, split_elems);
    if (!has_lines(given, 0) || !has_lines(given, 1))
        return;
    for (int i = 0; i < 2; i++) {
        tgi_problem p = *given;
        lines_tiling tiling = {.is_transposed = i};
        if (i)
            tgi_problem_transpose(&p);
        for (tiling.cluster = 1; tiling.cluster <= TGI_SMALL_RELAY_CLUSTER; tiling.cluster *= 2)
            for (tiling.warps = COPY_WARPS_LEAST; tiling.warps <= COPY_WARPS_MOST;
                 tiling.warps *= 2)
                /* Each block of a cluster has splits. */
                if ((tiling.cluster - 1) * tgi_divide_up(splits, tiling.cluster) < splits)
                    try_tiling(machine, &p, &tiling, split_elems, proposal);
    }
}
