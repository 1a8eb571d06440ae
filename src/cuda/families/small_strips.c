/* Plans the functions of family small for a short k: pieces, strips for a D of 16 bits, and outer
 * products for one of FP32. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"
#include "model/figures.h"

#define WARP 32
/* The D of strips may take this share of L2. Other rows store a larger one in as little time. */
#define STRIP_L2_SHARE 0.7
#define OUTER_BLOCKS 4 /* blocks for outer products that share a multiprocessor */
/* Pieces of FP32 and FP64 have a k up to this one: others read a longer B along k faster. */
#define WIDE_PIECE_K_MAX 3

int tgi_small_is_strip(const tgi_kernel *kernel)
{
    return tgi_type_bytes(kernel->type) == 1;
}

/* Returns 1 if strips can load A and B of the problem. They load FP8 by units of 16 bytes along k,
 * which begin at multiples of 16 bytes. For 16 bits a longer k pays only where such units lie along
 * it in B. */
static int has_strip_lines(const tgi_problem *p)
{
    const int has_units = p->b.row == 1 && tgi_gemm_has_b_vectors(p, 1);
    if (tgi_type_bytes(p->type) == 1)
        return has_units && p->a.col == 1 && tgi_gemm_has_a_vectors(p, 1) && p->k % 16 == 0 &&
               p->k <= TGI_SMALL_STRIP_K_MAX && !p->is_a_offset && !p->is_b_offset;
    return (p->a.col == 1 || p->a.row == 1) && (p->b.col == 1 || p->b.row == 1) &&
           (p->k <= TGI_SMALL_STRIP_K_SHORT ||
            (p->k <= TGI_SMALL_STRIP_K_MAX && has_units && p->k % 8 == 0));
}

/* Returns 1 if D has contiguous rows and no more elements a side than the functions of this file
 * count. */
static int has_rows(const tgi_problem *p)
{
    const int64_t most = INT32_MAX / 2;
    return p->d.col == 1 && p->m <= most && p->n <= most && p->batch_count <= TGI_GRID_HEIGHT_MAX;
}

/* Returns 1 if pieces and strips of narrow types form this D, which is sums alone. */
static int is_narrow_sum(const tgi_problem *p)
{
    if (!tgi_epilogue_is_sum_alone(&p->epilogue))
        return 0;
    return tgi_type_bytes(p->type) == 2 ? p->d_type == p->type : tgi_type_bytes(p->d_type) == 2;
}

/* Sets what pieces and strips have in common. */
static void decide(const tgi_problem *p, double seconds, int resident, int is_transposed,
                   tgi_proposal *proposal)
{
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = resident;
    proposal->workspace_bytes = proposal->shared_bytes = 0;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = 0;
    proposal->decision.tile =
        (tgi_tile_decision){.split_elems = p->k, .split_count = 1, .is_transposed = is_transposed};
}

/* Returns 1 if units of 16 bytes lie along the rows of B and D, as one form of pieces, for types of
 * 16 bits, loads and stores them. */
static int has_units(const tgi_problem *p)
{
    return tgi_type_bytes(p->type) == 2 && !p->is_b_offset && p->n % TGI_SMALL_PIECE_COLS(2) == 0 &&
           tgi_gemm_has_b_vectors(p, 0) && tgi_gemm_has_d_vectors(p);
}

int64_t tgi_small_count_pieces(const tgi_problem *p, int has_units)
{
    const int cols = TGI_SMALL_PIECE_COLS((int)tgi_type_bytes(p->type));
    return tgi_divide_up(p->n + (has_units ? 0 : cols - 1), cols);
}

/* Proposes pieces for a problem whose D has contiguous rows. */
static void try_pieces(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                       tgi_proposal *proposal)
{
    const int by_units = has_units(p);
    const int64_t pieces = tgi_small_count_pieces(p, by_units);
    const int rows = TGI_SMALL_PIECE_ROWS((int)tgi_type_bytes(p->type));
    int across = TGI_SMALL_PIECE_ACROSS((int)tgi_type_bytes(p->type));
    while (across > 1 && across / 2 >= pieces)
        across /= 2;
    const int64_t down = tgi_divide_up(p->m, rows * (TGI_SMALL_PIECE_THREADS / across));
    const int64_t blocks = tgi_divide_up(pieces, across) * down * p->batch_count;
    const tgi_tile_work work = {.block_count = (double)blocks,
                                .block_k = (double)p->k,
                                .access = by_units ? TGI_ACCESS_VECTORS : TGI_ACCESS_ELEMENTS};
    const double seconds = tgi_model_piece_seconds(&machine->gpu, p, &work);
    if (p->k > TGI_SMALL_PIECE_K_MAX || down > TGI_GRID_HEIGHT_MAX ||
        (proposal->is_legal && seconds >= proposal->predicted_s))
        return;
    decide(p, seconds, machine->gpu.threads_per_sm / TGI_SMALL_PIECE_THREADS, is_transposed,
           proposal);
    proposal->needs_aligned[!is_transposed] = by_units;
    proposal->decision.tile.piece_cols = across;
    proposal->decision.tile.has_piece_units = by_units;
    proposal->decision.tile.direct_blocks = blocks;
}

/* Proposes strips for a problem whose D has contiguous rows. They are so long that all blocks run
 * at once. */
static void try_strips(const tgi_machine *machine, const tgi_problem *p, int is_transposed,
                       tgi_proposal *proposal)
{
    const double d_bytes =
        (double)p->m * (double)p->n * (double)p->batch_count * (double)tgi_type_bytes(p->d_type);
    if (!has_strip_lines(p) || d_bytes > STRIP_L2_SHARE * (double)machine->gpu.l2_bytes)
        return;
    const int warps = TGI_SMALL_STRIP_THREADS / WARP;
    const int64_t needed = tgi_divide_up(p->m, TGI_SMALL_STRIP_ROWS);
    const int rows = needed > 2 ? warps : (int)needed;
    const int64_t pieces = tgi_divide_up(p->n, TGI_SMALL_STRIP_COLS);
    const int64_t down = tgi_divide_up(needed, rows);
    const int64_t all = down * p->batch_count * tgi_divide_up(pieces, warps / rows);
    const int is_long = p->k > TGI_SMALL_STRIP_K_SHORT || tgi_small_is_strip(proposal->kernel);
    const int resident = TGI_SMALL_STRIP_BLOCKS(is_long ? TGI_SMALL_STRIP_K_MAX : p->k);
    const int64_t wanted = tgi_divide_up(all, (int64_t)machine->gpu.sm_count * resident);
    const int64_t each = wanted < pieces ? wanted : pieces;
    const int64_t strips = tgi_divide_up(pieces, each);
    const int64_t across = tgi_divide_up(strips, warps / rows);
    /* B across k comes by units too. In batches, where few warps share a B, it takes longer. */
    const int is_along = p->b.row == 1;
    const int has_units = tgi_gemm_has_b_vectors(p, is_along) &&
                          (is_along ? p->k % 4 == 0 : p->n % 8 == 0 && p->batch_count == 1);
    const int is_moved = !tgi_gemm_has_d_vectors(p);
    /* A strip forms a piece more if it moves D. */
    const int64_t formed = needed * (pieces + strips * is_moved);
    const tgi_tile_work work = {.block_count = (double)(across * down * p->batch_count),
                                .tile_count = (double)formed / (double)(across * down),
                                .is_long = is_long,
                                .is_moved = is_moved,
                                .access = has_units ? TGI_ACCESS_VECTORS : TGI_ACCESS_ELEMENTS};
    const double seconds = tgi_model_strip_seconds(&machine->gpu, p, &work);
    if (down > TGI_GRID_HEIGHT_MAX || (proposal->is_legal && seconds >= proposal->predicted_s))
        return;
    decide(p, seconds, resident, is_transposed, proposal);
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = tgi_small_is_strip(proposal->kernel);
    proposal->decision.tile.strip_cols = (int)each * TGI_SMALL_STRIP_COLS;
    proposal->decision.tile.strip_rows = rows;
    proposal->decision.tile.direct_blocks = across * down * p->batch_count;
}

void tgi_small_propose_strips(const tgi_machine *machine, const tgi_problem *given,
                              tgi_proposal *proposal)
{
    tgi_problem p = *given;
    const int is_transposed = p.d.col != 1;
    if (is_transposed)
        tgi_problem_transpose(&p);
    const int is_free = !p.is_batch_invariant;
    if (!has_rows(&p))
        return;
    if (tgi_type_bytes(p.type) > 2) {
        const int is_fit = is_free ? proposal->is_legal : tgi_small_takes_one_lane(machine, given);
        const int has_terms = p.type == TG_TYPE_FP64 && tgi_gemm_has_terms(&p, 0);
        if (is_fit && p.k <= WIDE_PIECE_K_MAX &&
            (has_terms || tgi_epilogue_is_sum_alone(&p.epilogue)))
            try_pieces(machine, &p, is_transposed, proposal);
        return;
    }
    if (!is_narrow_sum(&p))
        return;
    if (is_free ? proposal->is_legal : tgi_small_is_product(&p))
        try_pieces(machine, &p, is_transposed, proposal);
    if (is_free || !tgi_small_is_in_pieces(&p))
        try_strips(machine, &p, is_transposed, proposal);
}

/* Returns the lanes of a warp along a row of D that has `units` units of outer products: the fewest
 * that hold it, or all. */
static int find_outer_lanes(int64_t units)
{
    int lanes = WARP;
    while (lanes > 1 && lanes / 2 >= units)
        lanes /= 2;
    return lanes;
}

void tgi_small_propose_outer(const tgi_machine *machine, const tgi_problem *given,
                             tgi_proposal *proposal)
{
    tgi_problem p = *given;
    const int is_transposed = p.d.col != 1;
    if (is_transposed)
        tgi_problem_transpose(&p);
    if (!proposal->is_legal || !has_rows(&p) || p.k > TGI_SMALL_OUTER_K_MAX ||
        !tgi_epilogue_is_sum_alone(&p.epilogue))
        return;
    const int64_t units = tgi_divide_up(p.n, TGI_SMALL_OUTER_COLS);
    const int across = find_outer_lanes(units);
    const int64_t wide = tgi_divide_up(units, across) * p.batch_count;
    const int64_t down = tgi_divide_up(p.m, TGI_SMALL_OUTER_ROWS);
    const double seconds = tgi_model_outer_seconds(&machine->gpu, &p, (double)(wide * down));
    if (down > TGI_GRID_HEIGHT_MAX || seconds >= proposal->predicted_s)
        return;
    decide(&p, seconds, OUTER_BLOCKS, is_transposed, proposal);
    proposal->decision.tile.outer_across = across;
    proposal->decision.tile.direct_blocks = wide * down;
}

void tgi_small_propose_strip_row(const tgi_machine *machine, const tgi_problem *p,
                                 tgi_proposal *proposal)
{
    if (tgi_arch_has(machine->gpu.capability, TGI_FEATURE_TMA))
        tgi_small_propose_strips(machine, p, proposal);
    if (!proposal->is_legal)
        tgi_refuse(
            &proposal->refusal, TG_REFUSAL_SHAPE,
            "its strips form sums alone of 16 bits, from sm_90 on, for k up to %d in aligned "
            "units of 16 bytes, with a D that fits in L2",
            TGI_SMALL_STRIP_K_MAX);
}
