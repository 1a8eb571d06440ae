/* Plans the relays of family small, which form a batch-invariant D of few rows or columns in the
 * order of sums of the rows that form a large one. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

/* Relays read operands in small pieces, so that a larger product takes another row: the blocks of a
 * multiprocessor have at most so many rounds of loads. */
#define ROUNDS_MAX 32.0

static int has_few_rounds(const tgi_machine *machine, const tgi_tile_work *work)
{
    return work->tile_count * work->block_count <= ROUNDS_MAX * machine->gpu.sm_count;
}

int tgi_small_has_relay(const tgi_kernel *kernel)
{
    return tgi_kernels_uses(kernel, TGI_FEATURE_WGMMA) &&
           (kernel->type != TG_TYPE_FP32 || (kernel->tile_rows == 32 && kernel->tile_cols == 32));
}

static int is_mma(const tgi_problem *p)
{
    return tgi_type_bytes(p->type) == 2;
}

int tgi_small_has_pairs(const tgi_problem *p, int is_b)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    return (is_b ? layout->row : layout->col) == 1 && (is_b ? layout->col : layout->row) % 2 == 0 &&
           p->k % 2 == 0 && layout->batch % 2 == 0;
}

/* Returns how relays read the operands. */
tgi_relay_form tgi_small_find_relay_form(const tgi_problem *p)
{
    if (!tgi_gemm_is_b_along_k(p))
        return TGI_RELAY_ACROSS;
    return tgi_gemm_is_a_along_k(p) && !p->is_a_offset && !p->is_b_offset &&
                   tgi_gemm_has_a_vectors(p, 1) && tgi_gemm_has_b_vectors(p, 1)
               ? TGI_RELAY_VECTORS
               : TGI_RELAY_ALONG;
}

/* Proposes relays of 1 << bits lanes of each team, if they are predicted to be faster than what was
 * proposed before. */
static void try_relay(const tgi_machine *machine, const tgi_problem *p, int bits, int teams,
                      int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    const int lanes = teams << bits, elems = TGI_SMALL_RELAY_THREADS / lanes;
    const tgi_relay_form form = tgi_small_find_relay_form(p);
    int cols = elems;
    while (cols > 1 && cols / 2 >= p->n)
        cols /= 2;
    const int64_t down = tgi_divide_up(p->m, elems / cols), across = tgi_divide_up(p->n, cols);
    const int64_t lane_k = TGI_SMALL_RELAY_RUNS * TGI_SMALL_RELAY_RUN;
    const int64_t rounds = tgi_divide_up(split_elems, lane_k * lanes);
    if (down > TGI_GRID_HEIGHT_MAX)
        return;
    const tgi_tile_work work = {
        .block_count = (double)down * (double)across * (double)p->batch_count,
        .tile_count = (double)(splits * rounds),
        .block_k = (double)(splits * tgi_divide_up(split_elems, lane_k * teams)),
        .split_count = (double)lanes,
        .access = form == TGI_RELAY_VECTORS ? TGI_ACCESS_VECTORS
                  : form == TGI_RELAY_ALONG ? TGI_ACCESS_STRIDED
                                            : TGI_ACCESS_ELEMENTS};
    const double seconds = tgi_model_relay_seconds(&machine->gpu, p, &work);
    if (!has_few_rounds(machine, &work))
        return;
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = machine->gpu.threads_per_sm / TGI_SMALL_RELAY_THREADS;
    proposal->workspace_bytes = proposal->shared_bytes = 0;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = form == TGI_RELAY_VECTORS;
    proposal->decision.tile = (tgi_tile_decision){.split_elems = split_elems,
                                                  .split_count = splits,
                                                  .relay_cols = cols,
                                                  .relay_teams = teams,
                                                  .relay_bits = bits,
                                                  .direct_blocks = down * across * p->batch_count};
}

/* Proposes relays of 16-bit types, of 1 << bits warps, likewise. */
static void try_relay_mma(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                          int bits, int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    const int64_t down = tgi_divide_up(p->m, 16), across = tgi_divide_up(p->n, 8);
    const int by_elements = !tgi_small_has_pairs(p, 0) + !tgi_small_has_pairs(p, 1);
    const tgi_tile_work work = {
        .block_count = (double)down * (double)across * (double)p->batch_count,
        .tile_count = (double)(splits * tgi_divide_up(split_elems, TGI_SMALL_RELAY_DEPTH << bits)),
        .block_k = (double)(splits * tgi_divide_up(split_elems, 16)),
        .split_count = (double)(1 << bits),
        .by_elements = by_elements};
    const double seconds = tgi_model_relay_mma_seconds(&machine->gpu, p, &work);
    if (down > TGI_GRID_HEIGHT_MAX || !has_few_rounds(machine, &work) ||
        (proposal->is_legal && seconds >= proposal->predicted_s))
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = machine->gpu.threads_per_sm / (TGI_SMALL_RELAY_WARPS * 32);
    proposal->workspace_bytes = proposal->shared_bytes = 0;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = 0;
    proposal->decision.tile = (tgi_tile_decision){.split_elems = split_elems,
                                                  .split_count = splits,
                                                  .is_transposed = is_transposed,
                                                  .relay_cols = 8,
                                                  .relay_teams = 1,
                                                  .relay_bits = bits,
                                                  .direct_blocks = down * across * p->batch_count};
}

void tgi_small_propose_relays(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal)
{
    const int64_t most = INT32_MAX / 2;
    const int teams = proposal->sum_order == TGI_SUM_TEAMS ? TGI_SMALL_RELAY_TEAMS : 1;
    const int64_t split_elems = tgi_gemm_invariant_split(machine, p);
    tgi_problem transposed = *p;
    tgi_problem_transpose(&transposed);
    if (!p->is_batch_invariant || !tgi_epilogue_is_sum_alone(&p->epilogue) ||
        (!is_mma(p) && p->d_type != p->type) || p->m > most || p->n > most || p->k > most ||
        p->batch_count > TGI_GRID_HEIGHT_MAX)
        return;
    if (!is_mma(p)) {
        for (int bits = 0; teams << bits <= 32; bits++)
            if (bits == 0 || TGI_SMALL_RELAY_RUN * teams << bits < split_elems)
                try_relay(machine, p, bits, teams, split_elems, proposal);
        return;
    }
    for (int bits = 0; 1 << bits <= TGI_SMALL_RELAY_WARPS; bits++)
        if (bits == 0 || TGI_SMALL_RELAY_DEPTH << (bits - 1) < split_elems) {
            try_relay_mma(machine, p, 0, bits, split_elems, proposal);
            try_relay_mma(machine, &transposed, 1, bits, split_elems, proposal);
        }
}
