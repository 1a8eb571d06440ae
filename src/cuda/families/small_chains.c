/* Plans the relays of family small that add chains of FP32 from lines in shared memory. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

#define LANES 32
#define TILE_BITS_MOST 6 /* elements of D of a block */
#define LINE_BITS_MOST 5
#define CHAIN_WARPS_LEAST 4
#define CHAIN_WARPS_MOST (TGI_SMALL_RELAY_THREADS / LANES)
#define SM_WARPS 32 /* warps of a multiprocessor that have registers */
#define SECTOR_BYTES 32
#define ELEM_BYTES 4

/* A block forms 1 << row_bits by 1 << col_bits of D. Those of a cluster share out splits. */
typedef struct chains_tiling {
    int row_bits, col_bits, warps, cluster, teams;
} chains_tiling;

/* Adds what it takes to copy the lines of an operand of `elems` values of k: sectors, and rounds of
 * loads, of which the other operand's run beside them. */
static void add_copies(const tgi_problem *p, int is_b, int bits, int64_t elems, tgi_tile_work *work)
{
    const int64_t line_bytes = ELEM_BYTES << bits;
    const int64_t sectors = line_bytes > SECTOR_BYTES ? line_bytes : SECTOR_BYTES;
    const int is_along = (is_b ? p->b.row : p->a.col) == 1;
    const int64_t bytes = elems * (is_along ? line_bytes : sectors);
    const double rounds = (double)tgi_divide_up(elems << bits, (LANES * (int64_t)work->warps)
                                                                   << TGI_SMALL_RELAY_ONCE_BITS);
    work->copy_k += (double)tgi_divide_up(bytes, SECTOR_BYTES);
    work->tile_count = rounds > work->tile_count ? rounds : work->tile_count;
}

static void try_chains(const tgi_machine *machine, const tgi_problem *p,
                       const chains_tiling *tiling, int64_t split_elems, tgi_proposal *proposal)
{
    const int tile_bits = tiling->row_bits + tiling->col_bits;
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    const int64_t block_splits = tgi_divide_up(splits, tiling->cluster);
    const int64_t down = tgi_divide_up(p->m, (int64_t)1 << tiling->row_bits);
    const int64_t across = tgi_divide_up(p->n, (int64_t)1 << tiling->col_bits);
    const int64_t elems = block_splits * split_elems < p->k ? block_splits * split_elems : p->k;
    const int64_t lines = (1 << tiling->row_bits) + (1 << tiling->col_bits);
    const int64_t shared_bytes =
        lines * TGI_SMALL_RELAY_PITCH(elems, ELEM_BYTES) + (splits << tile_bits) * ELEM_BYTES;
    const int64_t chains = block_splits * tiling->teams << tile_bits;
    const double chain_k = (double)(split_elems < p->k ? split_elems : p->k) / tiling->teams;
    tgi_tile_work work = {
        .block_count = (double)down * (double)across * (double)p->batch_count * tiling->cluster,
        .cluster_blocks = tiling->cluster,
        .warps = tiling->warps,
        .split_count = (double)splits,
        .copy_bytes = (double)(lines * elems * ELEM_BYTES),
        .places = (double)chains * chain_k,
        .block_k = (double)tgi_divide_up(chains, (int64_t)tiling->warps * LANES) * chain_k};
    const int resident = tgi_gemm_count_resident(&machine->gpu, proposal->kernel,
                                                 SM_WARPS / tiling->warps, shared_bytes);
    const int64_t sms = tgi_gemm_count_cluster_sms(&machine->gpu, tiling->cluster);
    /* A larger D takes other rows: blocks that do not all run at once wait for each other. */
    if (work.block_count > (double)(tiling->cluster > 1 ? sms : sms * resident) ||
        down > TGI_GRID_HEIGHT_MAX || shared_bytes > machine->gpu.shared_bytes_per_block)
        return;
    add_copies(p, 0, tiling->row_bits, elems, &work);
    add_copies(p, 1, tiling->col_bits, elems, &work);
    const double seconds = tgi_model_relay_chains_seconds(&machine->gpu, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = resident;
    proposal->workspace_bytes = 0;
    proposal->shared_bytes = shared_bytes;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = 0;
    proposal->decision.tile = (tgi_tile_decision){.split_elems = split_elems,
                                                  .split_count = splits,
                                                  .relay_cols = 1 << tiling->col_bits,
                                                  .relay_bits = tiling->row_bits,
                                                  .relay_teams = tiling->teams,
                                                  .relay_warps = tiling->warps,
                                                  .is_relay_copied = 1,
                                                  .relay_cluster = tiling->cluster,
                                                  .direct_blocks = (int64_t)work.block_count};
}

/* Tries the tilings that differ in warps of a block, and in the blocks that share out splits. */
static void try_blocks(const tgi_machine *machine, const tgi_problem *p, chains_tiling tiling,
                       int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    for (tiling.cluster = 1; tiling.cluster <= TGI_SMALL_RELAY_CLUSTER; tiling.cluster *= 2)
        for (tiling.warps = CHAIN_WARPS_LEAST; tiling.warps <= CHAIN_WARPS_MOST; tiling.warps *= 2)
            if (tiling.cluster == 1 || tiling.cluster / 2 < splits)
                try_chains(machine, p, &tiling, split_elems, proposal);
}

int tgi_small_is_near(const tgi_problem *p)
{
    const int64_t most = INT32_MAX / tgi_type_bytes(p->type);
    return p->a.col <= most && p->a.col >= -most && p->b.row <= most && p->b.row >= -most;
}

void tgi_small_propose_chains(const tgi_machine *machine, const tgi_problem *p, int teams,
                              tgi_proposal *proposal)
{
    const int64_t split_elems = tgi_gemm_invariant_split(machine, p);
    chains_tiling tiling = {.teams = teams};
    if (!tgi_small_is_near(p))
        return;
    for (int bits = 0; bits <= TILE_BITS_MOST; bits++)
        for (tiling.row_bits = 0; tiling.row_bits <= bits; tiling.row_bits++) {
            tiling.col_bits = bits - tiling.row_bits;
            /* Half of a tile's lines or more exist. */
            if (tiling.row_bits <= LINE_BITS_MOST && tiling.col_bits <= LINE_BITS_MOST &&
                1 << tiling.row_bits < 2 * p->m && 1 << tiling.col_bits < 2 * p->n)
                try_blocks(machine, p, tiling, split_elems, proposal);
        }
}
