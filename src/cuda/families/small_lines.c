/* Plans the relays of family small that copy the lines of a long k of 16-bit types to shared
 * memory. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

#define LANES 32
#define ROW_BITS 4 /* an instruction forms 16 x 8 of D */
#define COL_BITS 3
#define BARRIER_BYTES 16
/* Warps of a block, which copy lines: more would take longer to start. */
#define COPY_WARPS_LEAST 4
#define COPY_WARPS_MOST 8
#define STAGE_ELEMS 64 /* lines are whole stages of k */
#define UNIT_ELEMS 8
#define ELEM_BYTES 2
/* Elements that are copied one by one count as so many times their units. */
#define ELEMENT_UNITS 16.0

/* A tiling of D or D^T. A block forms 1 << row_bits by 1 << col_bits of it. A cluster's blocks have
 * some splits each. */
typedef struct lines_tiling {
    int is_transposed, row_bits, col_bits, warps, cluster;
} lines_tiling;

/* Returns 1 if the lines of the operand are units of 16 bytes along k. */
static int has_line_units(const tgi_problem *p, int is_b)
{
    return (is_b ? p->b.row : p->a.col) == 1 && !(is_b ? p->is_b_offset : p->is_a_offset) &&
           (is_b ? tgi_gemm_has_b_vectors(p, 1) : tgi_gemm_has_a_vectors(p, 1));
}

/* Adds what it takes to copy an operand's lines of `elems` values of k: turns of the lanes of a
 * block by units, or further rounds of loads of elements, of which the other operand's run beside
 * them. */
static void add_lines(const tgi_problem *p, int is_b, int bits, int64_t elems, tgi_tile_work *work)
{
    const int64_t left = is_b ? p->n : p->m;
    const int64_t lines = left < (int64_t)1 << bits ? left : (int64_t)1 << bits;
    const int64_t padded = tgi_round_up(elems, STAGE_ELEMS), units = padded / UNIT_ELEMS;
    const int64_t warps = (int64_t)work->warps;
    if (has_line_units(p, is_b)) {
        work->tile_count +=
            (double)(tgi_divide_up(lines, warps) * tgi_divide_up(units, (int64_t)LANES));
        work->copy_k += (double)(lines * units);
        return;
    }
    const double rounds =
        (double)tgi_divide_up(padded << bits, LANES * warps << TGI_SMALL_RELAY_ONCE_BITS) - 1.0;
    work->by_elements = rounds > work->by_elements ? rounds : work->by_elements;
    work->copy_k += ELEMENT_UNITS * (double)(lines * units);
}

static void try_tiling(const tgi_machine *machine, const tgi_problem *p, const lines_tiling *tiling,
                       int64_t split_elems, tgi_proposal *proposal)
{
    const int warps = tiling->warps;
    const int64_t rows = (int64_t)1 << tiling->row_bits, cols = (int64_t)1 << tiling->col_bits;
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    const int64_t block_splits = tgi_divide_up(splits, tiling->cluster);
    const int64_t down = tgi_divide_up(p->m, rows), across = tgi_divide_up(p->n, cols);
    const int64_t elems = block_splits * split_elems;
    const int64_t block_k = elems < p->k ? elems : p->k;
    const int64_t shared_bytes = BARRIER_BYTES +
                                 (splits << (ROW_BITS + COL_BITS)) * tgi_type_sum_bytes(p->type) +
                                 (rows + cols) * TGI_SMALL_RELAY_PITCH(elems, ELEM_BYTES);
    tgi_tile_work work = {.block_count = (double)down * (double)across * (double)p->batch_count *
                                         tiling->cluster,
                          .cluster_blocks = tiling->cluster,
                          .warps = warps,
                          .block_k = (double)tgi_divide_up(block_splits, warps) *
                                     (double)(split_elems < p->k ? split_elems : p->k),
                          .split_count = (double)splits};
    add_lines(p, 0, tiling->row_bits, block_k, &work);
    add_lines(p, 1, tiling->col_bits, block_k, &work);
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
                                                  .relay_cols = 1 << tiling->col_bits,
                                                  .relay_bits = tiling->row_bits,
                                                  .relay_warps = warps,
                                                  .is_relay_copied = 1,
                                                  .relay_cluster = tiling->cluster,
                                                  .direct_blocks = (int64_t)work.block_count};
}

/* Tries the tilings that differ in warps of a block, and in the blocks that share out splits. */
static void try_line_blocks(const tgi_machine *machine, const tgi_problem *p, lines_tiling tiling,
                            int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    for (tiling.cluster = 1; tiling.cluster <= TGI_SMALL_RELAY_CLUSTER; tiling.cluster *= 2)
        for (tiling.warps = COPY_WARPS_LEAST; tiling.warps <= COPY_WARPS_MOST; tiling.warps *= 2)
            /* Each block of a cluster has splits. */
            if ((tiling.cluster - 1) * tgi_divide_up(splits, tiling.cluster) < splits)
                try_tiling(machine, p, &tiling, split_elems, proposal);
}

void tgi_small_propose_lines(const tgi_machine *machine, const tgi_problem *given,
                             tgi_proposal *proposal)
{
    const int64_t split_elems = tgi_gemm_invariant_split(machine, given);
    if (!tgi_small_is_near(given))
        return;
    for (int i = 0; i < 2; i++) {
        tgi_problem p = *given;
        lines_tiling tiling = {.is_transposed = i};
        if (i)
            tgi_problem_transpose(&p);
        /* Half of a tile's lines or more exist. */
        for (tiling.row_bits = 0; tiling.row_bits <= ROW_BITS; tiling.row_bits++)
            for (tiling.col_bits = 0; tiling.col_bits <= COL_BITS; tiling.col_bits++)
                if (1 << tiling.row_bits < 2 * p.m && 1 << tiling.col_bits < 2 * p.n)
                    try_line_blocks(machine, &p, tiling, split_elems, proposal);
    }
}
