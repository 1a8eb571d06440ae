/* Plans the relays of family small, which form a batch-invariant D of few rows or columns in the
 * order of sums of the rows that form a large one. */

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

/* Relays read operands in small pieces, so that a larger product takes another row: the blocks of a
 * multiprocessor have at most so many rounds of loads, and run at once. */
#define ROUNDS_MAX 32.0
#define SHARED_BYTES_MOST (47 << 10) /* beside barriers, without opting in to more */
#define TERMS_K_LEAST 8
#define WARP 32
#define WARPS_MOST (TGI_SMALL_RELAY_THREADS / WARP)
#define WARPS 4        /* warps of a block in FP32 */
#define TILE_ELEMS 128 /* elements of D of a block on matrix instructions, 16 x 8 */

/* A tiling tells how blocks of relays share out D and k. */
typedef struct relay_tiling {
    int is_short, is_transposed;
    int bits;    /* 1 << bits lanes, or warps, pass a sum on */
    int groups;  /* groups of warps of a block, which form splits */
    int cluster; /* blocks that share out splits */
    int teams;   /* teams of a split in FP64, each of which a group forms as it does a split */
} relay_tiling;

static int has_few_rounds(const tgi_machine *machine, const tgi_tile_work *work)
{
    const double warps = work->block_count * work->warps / WARPS;
    return work->tile_count * warps <= ROUNDS_MAX * machine->gpu.sm_count &&
           work->block_count <= (double)machine->gpu.blocks_per_sm * machine->gpu.sm_count;
}

int tgi_small_has_relay(const tgi_kernel *kernel)
{
    return tgi_kernels_uses(kernel, TGI_FEATURE_WGMMA) &&
           (kernel->type != TG_TYPE_FP32 ||
            (kernel->math == TGI_MATH_fma && kernel->tile_rows == 32 && kernel->tile_cols == 32));
}

static int is_mma(const tgi_problem *p)
{
    return p->type != TG_TYPE_FP32;
}

int tgi_small_has_pairs(const tgi_problem *p, int is_b)
{
    const tgi_layout *layout = is_b ? &p->b : &p->a;
    return (is_b ? layout->row : layout->col) == 1 && (is_b ? layout->col : layout->row) % 2 == 0 &&
           p->k % 2 == 0 && layout->batch % 2 == 0;
}

/* Returns how many sums of splits a block keeps. */
static int64_t count_places(int64_t splits)
{
    return splits < TGI_SMALL_RELAY_PLACES ? splits : TGI_SMALL_RELAY_PLACES;
}

/* Returns the values of k of `splits` splits, or of their teams, that a group has one after
 * another, each rounded up to `unit`, in units. */
static double count_units(const relay_tiling *tiling, int64_t splits, int64_t split_elems,
                          int64_t unit)
{
    return (
        double)(tgi_divide_up(splits * tiling->teams, (int64_t)tiling->groups * tiling->cluster) *
                tgi_divide_up(split_elems, unit * tiling->teams));
}

/* Proposes the tiling, whose work and decision are complete, if it is predicted to be faster than
 * what was proposed before. */
static void offer(const tgi_machine *machine, const tgi_problem *p, const relay_tiling *tiling,
                  const tgi_tile_work *work, double seconds, const tgi_tile_decision *decision,
                  tgi_proposal *proposal)
{
    const int64_t places = count_places(decision->split_count);
    const int64_t handing = tiling->bits > 0 ? (int64_t)work->warps : 0;
    const int64_t sums = tiling->is_short ? 0 : places * tiling->teams + handing;
    const int64_t shared_bytes = sums * tgi_type_sum_bytes(p->type) * TILE_ELEMS;
    /* Clusters that do not all run at once wait for each other. */
    if (tiling->cluster > 1 &&
        work->block_count > (double)tgi_gemm_count_cluster_sms(&machine->gpu, tiling->cluster))
        return;
    if (shared_bytes > SHARED_BYTES_MOST || !has_few_rounds(machine, work) ||
        (proposal->is_legal && seconds >= proposal->predicted_s))
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = machine->gpu.threads_per_sm / (WARP * (int)work->warps);
    proposal->workspace_bytes = 0;
    proposal->shared_bytes = shared_bytes;
    proposal->needs_aligned[0] = proposal->needs_aligned[1] = 0;
    proposal->decision.tile = *decision;
    proposal->decision.tile.is_transposed = tiling->is_transposed;
    proposal->decision.tile.relay_bits = tiling->bits;
    proposal->decision.tile.relay_teams = tiling->teams;
    proposal->decision.tile.relay_groups = tiling->groups;
    proposal->decision.tile.relay_cluster = tiling->cluster;
    proposal->decision.tile.is_relay_short = tiling->is_short;
}

/* Tries a tiling by multiply-adds. */
static void try_relay(const tgi_machine *machine, const tgi_problem *p, const relay_tiling *tiling,
                      tgi_proposal *proposal)
{
    const int elems = WARP * WARPS >> tiling->bits;
    int cols = elems;
    while (cols > 1 && cols / 2 >= p->n)
        cols /= 2;
    const int64_t down = tgi_divide_up(p->m, elems / cols), across = tgi_divide_up(p->n, cols);
    if (down > TGI_GRID_HEIGHT_MAX)
        return;
    const tgi_tile_work work = {
        .block_count = (double)down * (double)across * (double)p->batch_count,
        .cluster_blocks = 1.0,
        .warps = WARPS,
        .tile_count = (double)tgi_divide_up(p->k, TGI_SMALL_RELAY_SHORT_RUN << tiling->bits),
        .block_k = (double)tgi_divide_up(p->k, TGI_SMALL_RELAY_SHORT_RUN)};
    const tgi_tile_decision decision = {.split_elems = p->k,
                                        .split_count = 1,
                                        .relay_cols = cols,
                                        .direct_blocks = (int64_t)work.block_count};
    offer(machine, p, tiling, &work, tgi_model_relay_seconds(&machine->gpu, p, &work), &decision,
          proposal);
}

/* Tries a tiling by matrix instructions. */
static void try_relay_mma(const tgi_machine *machine, const tgi_problem *given,
                          const relay_tiling *tiling, int64_t split_elems, tgi_proposal *proposal)
{
    tgi_problem p = *given;
    if (tiling->is_transposed)
        tgi_problem_transpose(&p);
    const int elem_bytes = (int)tgi_type_bytes(p.type);
    const int64_t splits = tgi_divide_up(p.k, split_elems);
    const int is_plain = tgi_epilogue_is_sum_alone(&p.epilogue);
    const int is_alone = is_plain && (elem_bytes < 8 || p.k <= TGI_SMALL_RELAY_SHORT_K);
    const int cols = tiling->is_short && is_alone ? TGI_SMALL_RELAY_SHORT_THREADS / 4 : 8;
    const int64_t down = tgi_divide_up(p.m, 16), across = tgi_divide_up(p.n, cols);
    const int64_t step = elem_bytes == 8 ? 8 : 16;
    const int64_t depth = TGI_SMALL_RELAY_PIECE(elem_bytes);
    if (down > TGI_GRID_HEIGHT_MAX)
        return;
    const tgi_tile_work work = {
        .block_count = (double)down * (double)across * (double)p.batch_count * tiling->cluster,
        .cluster_blocks = tiling->cluster,
        .warps = tiling->is_short ? TGI_SMALL_RELAY_SHORT_THREADS / WARP
                                  : tiling->groups << tiling->bits,
        .places = (double)tiling->groups,
        .tile_count = count_units(tiling, splits, split_elems, depth << tiling->bits),
        .block_k = count_units(tiling, splits, split_elems, step),
        .split_count = tiling->bits > 0 ? count_units(tiling, splits, split_elems, depth) : 0.0,
        .is_long = !tiling->is_short,
        .by_elements = !tgi_small_has_pairs(&p, 0) + !tgi_small_has_pairs(&p, 1)};
    const tgi_tile_decision decision = {.split_elems = split_elems,
                                        .split_count = splits,
                                        .relay_cols = cols,
                                        .direct_blocks = (int64_t)work.block_count};
    offer(machine, &p, tiling, &work, tgi_model_relay_mma_seconds(&machine->gpu, &p, &work),
          &decision, proposal);
}

/* Tries the tilings that differ in groups of a block. */
static void try_groups(const tgi_machine *machine, const tgi_problem *p, relay_tiling tiling,
                       int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t parts = tgi_divide_up(p->k, split_elems) * tiling.teams;
    for (tiling.groups = 1; tiling.groups * tiling.cluster <= TGI_SMALL_RELAY_PLACES * tiling.teams;
         tiling.groups *= 2) {
        if (tiling.groups > 1 && tiling.groups * tiling.cluster / 2 >= parts)
            break;
        if (tiling.groups << tiling.bits <= WARPS_MOST) {
            tiling.is_transposed = 0;
            try_relay_mma(machine, p, &tiling, split_elems, proposal);
            tiling.is_transposed = 1;
            try_relay_mma(machine, p, &tiling, split_elems, proposal);
        }
    }
}

/* Tries the tilings that differ in groups, and in the blocks that share them. */
static void try_clusters(const tgi_machine *machine, const tgi_problem *p, relay_tiling tiling,
                         int64_t split_elems, tgi_proposal *proposal)
{
    const int64_t parts = tgi_divide_up(p->k, split_elems) * tiling.teams;
    for (tiling.cluster = 1; tiling.cluster <= TGI_SMALL_RELAY_CLUSTER; tiling.cluster *= 2)
        if (tiling.cluster == 1 || tiling.cluster / 2 < parts)
            try_groups(machine, p, tiling, split_elems, proposal);
}

void tgi_small_propose_relays(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal)
{
    const int64_t most = INT32_MAX / 2;
    const int elem_bytes = (int)tgi_type_bytes(p->type);
    const int teams = proposal->sum_order == TGI_SUM_TEAMS ? TGI_SMALL_RELAY_TEAMS : 1;
    const int is_plain = tgi_epilogue_is_sum_alone(&p->epilogue), is_narrow = elem_bytes == 2;
    const int64_t piece = TGI_SMALL_RELAY_PIECE(elem_bytes);
    const int64_t short_k = !is_narrow ? TGI_SMALL_RELAY_TERMS_K
                            : is_plain ? piece
                                       : TGI_SMALL_RELAY_SHORT_K;
    const int64_t split_elems = tgi_gemm_invariant_split(machine, p);
    const int64_t splits = tgi_divide_up(p->k, split_elems);
    if (!p->is_batch_invariant || p->m > most || p->n > most || p->k > most ||
        p->batch_count > TGI_GRID_HEIGHT_MAX || (is_narrow && splits > TGI_SMALL_RELAY_PLACES) ||
        !tgi_gemm_has_terms(p, 1))
        return;
    relay_tiling tiling = {.is_short = 1, .cluster = 1, .groups = 1, .teams = 1};
    if (!is_mma(p)) {
        /* With terms the short function takes the shortest k: each of its threads loads all. */
        const int is_fit = is_plain || p->k > TERMS_K_LEAST;
        for (; is_fit && teams == 1 && splits == 1 && 1 << tiling.bits <= WARP &&
               TGI_SMALL_RELAY_SHORT_RUN << tiling.bits < 2 * p->k;
             tiling.bits++)
            try_relay(machine, p, &tiling, proposal);
        tgi_small_propose_chains(machine, p, teams, proposal);
        return;
    }
    if (teams == 1 && p->k <= short_k)
        try_clusters(machine, p, tiling, split_elems, proposal);
    if (is_narrow)
        tgi_small_propose_lines(machine, p, proposal);
    tiling.is_short = 0;
    tiling.teams = teams;
    for (tiling.bits = 0; 1 << tiling.bits <= WARPS_MOST / 2; tiling.bits++)
        if (tiling.bits == 0 || (piece * teams) << (tiling.bits - 1) < split_elems)
            try_clusters(machine, p, tiling, split_elems, proposal);
}
