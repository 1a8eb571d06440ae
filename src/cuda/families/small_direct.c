/* Plans the functions of family small without stages: the short one forms single elements of D, the
 * other one runs of rows. Threads that share out k are neighbours, or have neighbouring columns
 * between them; the bits of a batch-invariant problem are the same either way. */

#include <math.h>
#include <stdlib.h>

#include "cuda/families/gemm.h"
#include "cuda/families/small.h"
#include "kernels/small/small_shape.h"

#define WARP 32
#define LINE_BYTES 128.0
#define BLOCK_DEPTH_MAX 64 /* threads along the third dimension of a block */

/* Threads that share out k are neighbours for a B across k too if k has so many values, and lines
 * across k so few bytes that those which a warp reads share some of the cache. */
#define ALONG_K_LEAST 128
#define SHORT_LINE_BYTES 32

/* A tiling tells how threads share out D and k. */
typedef struct direct_tiling {
    int is_short; /* 1: of the short function */
    int is_transposed;
    int is_along; /* 1: threads that share out k are neighbours */
    int lanes;    /* threads of a block that do so */
    int cluster;  /* blocks that do so */
} direct_tiling;

/* Returns 1 if the function without stages forms D transposed. A thread has some rows of a column,
 * and the threads of a warp have neighbouring columns. Those of more rows would be too many. */
static int is_direct_transposed(const tgi_problem *p)
{
    return p->m > p->n && p->m <= INT32_MAX / 2 && (p->n < TGI_SMALL_DIRECT_ROWS || p->d.col != 1);
}

/* Threads that share out k of a batch-invariant problem of 16-bit types and FP64 with 1, 2, 3
 * or 4 columns and k up to each of the limits; 1: rows of the type's order form it. They were
 * chosen for few and for many rows, with lines of A along k and across it
 * (bench/notes/model.md). */
#define LANE_COLS 4
#define LANE_RANGES 3
#define LANE_K_LEAST 96
static const int64_t lane_k_limits[LANE_RANGES] = {300, 1500, 3000};
static const int16_t lane_counts[2][LANE_COLS][LANE_RANGES] = {
    {{16, 32, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}},
    {{16, 64, 128}, {16, 64, 64}, {16, 32, 1}, {16, 32, 1}}};

int tgi_small_find_lanes(const tgi_machine *machine, const tgi_problem *p)
{
    const int64_t n = p->is_swapped ? p->m : p->n, bytes = tgi_type_bytes(p->type);
    int range = 0;
    if (n < 1 || n > LANE_COLS || bytes == 1 || bytes == 4 || p->k < LANE_K_LEAST ||
        p->k > lane_k_limits[LANE_RANGES - 1] ||
        (p->precision != TG_PRECISION_DEFAULT && bytes < 8) ||
        !tgi_kernels_isa_runs(TGI_ISA_sm90a, machine->features))
        return 1;
    while (p->k > lane_k_limits[range])
        range++;
    return lane_counts[bytes == 8][n - 1][range];
}

/* Returns the most runs of rows of the function without stages. Threads have a number without a
 * sign, and blocks, which are more if threads share out k, one with a sign. A batch-invariant
 * problem has as many threads for a run as `lanes` says, and may have no other function. */
static int64_t find_most_runs(const tgi_problem *p, int lanes)
{
    const int64_t cols = p->is_batch_invariant ? TGI_SMALL_DIRECT_THREADS / lanes : 1;
    const int64_t by_threads = UINT32_MAX - TGI_SMALL_DIRECT_THREADS;
    const int64_t by_blocks = INT32_MAX / 2 * cols;
    return by_threads < by_blocks ? by_threads : by_blocks;
}

/* Returns how many blocks of the function without stages share a multiprocessor. */
static int count_direct_resident(const tgi_machine *machine)
{
    const int by_threads = machine->gpu.threads_per_sm / TGI_SMALL_DIRECT_THREADS;
    return by_threads < TGI_SMALL_DIRECT_BLOCKS ? by_threads : TGI_SMALL_DIRECT_BLOCKS;
}

/* Returns the elements between neighbouring lines of an operand. */
static int64_t find_pitch(const tgi_problem *p, int is_b)
{
    const int is_along = is_b ? tgi_gemm_is_b_along_k(p) : tgi_gemm_is_a_along_k(p);
    return is_b ? is_along ? p->b.col : p->b.row : is_along ? p->a.row : p->a.col;
}

static double find_pitch_bytes(const tgi_problem *p, int is_b)
{
    return fabs((double)find_pitch(p, is_b)) * (double)tgi_type_bytes(p->type);
}

/* Returns 1 if the operand lies along k, or its lines are short. */
static int suits_neighbours(const tgi_problem *p, int is_b)
{
    return (is_b ? tgi_gemm_is_b_along_k(p) : tgi_gemm_is_a_along_k(p)) ||
           find_pitch_bytes(p, is_b) <= SHORT_LINE_BYTES;
}

/* Returns 1 if the threads of the tiling may share out k of the problem, of which a batch-invariant
 * one has `lanes`. A single one adds in order of k, as rows of the order STEPS do. */
static int may_share(const tgi_problem *p, const direct_tiling *tiling, int lanes)
{
    if (p->is_batch_invariant)
        return tiling->lanes == lanes;
    if (tgi_gemm_is_b_along_k(p))
        return tiling->is_along;
    return tiling->is_along
               ? p->k >= ALONG_K_LEAST && suits_neighbours(p, 0) && suits_neighbours(p, 1)
               : tiling->lanes <= WARP;
}

/* Returns the lines of the cache, beyond the first, that a warp reads of an operand at once. Short
 * lines share them. */
static double count_lines(const tgi_problem *p, const direct_tiling *tiling, int is_b)
{
    const int is_along = is_b ? tgi_gemm_is_b_along_k(p) : tgi_gemm_is_a_along_k(p);
    const int64_t cols = TGI_SMALL_DIRECT_THREADS / tiling->lanes;
    const int64_t own = tiling->is_along ? tiling->lanes : is_b ? cols < p->n ? cols : p->n : 1;
    const int is_whole = tiling->is_short && tgi_gemm_is_b_along_k(p);
    if (is_along == tiling->is_along)
        return 0.0;
    return fmax(1.0, (double)(own < WARP ? own : WARP) *
                         (is_whole ? 1.0 : fmin(1.0, find_pitch_bytes(p, is_b) / LINE_BYTES))) -
           1.0;
}

/* Returns the turns of banks, beyond the first, in which a warp reads `lines` lines of an operand
 * for one k. Lines share banks if their pitch is a multiple of a cache line or of a large part of
 * one. */
static double count_turns(const tgi_problem *p, int is_b, int64_t lines)
{
    int64_t apart = LINE_BYTES; /* the largest power of two that divides the pitch, in bytes */
    const int64_t beyond_bytes = find_pitch(p, is_b) % apart * tgi_type_bytes(p->type);
    while (beyond_bytes % apart != 0)
        apart /= 2;
    return fmax(0.0, (double)(lines * apart) / LINE_BYTES - 1.0);
}

/* Returns the turns of all warps of a block that has `cols` columns: those of FP64 in which they
 * read columns of B along k, and those in which they read rows of A along k, where a warp has
 * several. A thread has as many rows one after another as the tiling says. */
static double count_block_turns(const tgi_problem *p, const direct_tiling *tiling, int64_t cols)
{
    const int64_t most = tiling->lanes < WARP ? WARP / tiling->lanes : 1;
    const int64_t elems = TGI_SMALL_DIRECT_THREADS / tiling->lanes;
    const int64_t across = cols < p->n ? cols : p->n;
    const int64_t down = (elems < WARP ? elems : WARP) / across;
    const double warps = TGI_SMALL_DIRECT_THREADS / WARP;
    if (tiling->is_along)
        return p->type == TG_TYPE_FP64 && tgi_gemm_is_b_along_k(p)
                   ? warps * count_turns(p, 1, cols < most ? cols : most)
                   : 0.0;
    return tgi_gemm_is_a_along_k(p) ? warps * count_turns(p, 0, down < p->m ? down : p->m) *
                                          (tiling->is_short ? 1.0 : TGI_SMALL_DIRECT_ROWS)
                                    : 0.0;
}

/* Returns the work of blocks that have `cols` columns. */
static tgi_tile_work describe(const tgi_machine *machine, const tgi_problem *p,
                              const direct_tiling *tiling, int64_t cols, double blocks)
{
    const int64_t all_lanes = (int64_t)tiling->lanes * tiling->cluster;
    return (tgi_tile_work){.block_count = blocks,
                           .block_k = (double)tgi_divide_up(p->k, all_lanes),
                           .split_count = tiling->lanes,
                           .cluster_blocks = tiling->cluster,
                           .a_lines = 1.0 + count_lines(p, tiling, 0) + count_lines(p, tiling, 1),
                           .bank_turns = count_block_turns(p, tiling, cols),
                           .copy_k = TGI_SMALL_DIRECT_LOADS,
                           .access = tiling->is_along ? TGI_ACCESS_VECTORS : TGI_ACCESS_STRIDED,
                           .blocks_per_sm = count_direct_resident(machine)};
}

/* Proposes the function of runs of rows, if it is predicted to be faster than what was proposed
 * before. */
static void try_direct(const tgi_machine *machine, const tgi_problem *p,
                       const direct_tiling *tiling, tgi_proposal *proposal)
{
    const int64_t units = tgi_divide_up(p->m, TGI_SMALL_DIRECT_ROWS) * p->n;
    const int64_t cols = TGI_SMALL_DIRECT_THREADS / tiling->lanes;
    const double blocks =
        (double)tgi_divide_up(units, cols) * (double)p->batch_count * tiling->cluster;
    tgi_tile_work work = describe(machine, p, tiling, cols, blocks);
    work.tile_count = (double)tgi_divide_up(TGI_SMALL_DIRECT_ROWS, tiling->lanes);
    /* Clusters that do not all run at once wait for each other. */
    if (tiling->cluster > 1 &&
        blocks > (double)tgi_gemm_count_cluster_sms(&machine->gpu, tiling->cluster))
        return;
    const double seconds = tgi_model_direct_seconds(&machine->gpu, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = 0;
    proposal->shared_bytes =
        TGI_SMALL_DIRECT_ROWS * TGI_SMALL_DIRECT_THREADS * tgi_type_sum_bytes(p->type);
    proposal->decision.tile = (tgi_tile_decision){.split_elems = p->k,
                                                  .split_count = 1,
                                                  .is_transposed = tiling->is_transposed,
                                                  .is_direct_along = tiling->is_along,
                                                  .direct_lanes = tiling->lanes,
                                                  .direct_cluster = tiling->cluster,
                                                  .direct_blocks = (int64_t)blocks};
}

static void propose_runs(const tgi_machine *machine, const tgi_problem *given,
                         tgi_proposal *proposal)
{
    tgi_problem p = *given;
    direct_tiling tiling = {.is_transposed = is_direct_transposed(&p)};
    if (tiling.is_transposed)
        tgi_problem_transpose(&p);
    const int64_t down = tgi_divide_up(p.m, TGI_SMALL_DIRECT_ROWS);
    const int lanes = tgi_small_find_lanes(machine, given);
    if (count_direct_resident(machine) == 0 || p.k > INT32_MAX / 2 ||
        down > find_most_runs(&p, lanes) / p.n)
        return;
    for (tiling.is_along = 0; tiling.is_along < 2; tiling.is_along++)
        for (tiling.lanes = 1; tiling.lanes <= TGI_SMALL_DIRECT_THREADS; tiling.lanes *= 2) {
            if (!may_share(&p, &tiling, lanes))
                continue;
            tiling.cluster = 1;
            if (tiling.lanes < 2 * p.k || tiling.lanes <= TGI_SMALL_DIRECT_ROWS)
                try_direct(machine, &p, &tiling, proposal);
            for (tiling.cluster = 2; tiling.cluster <= TGI_SMALL_DIRECT_CLUSTER;
                 tiling.cluster *= 2)
                if (tiling.lanes >= 8 && !p.is_batch_invariant &&
                    tiling.lanes * tiling.cluster < p.k)
                    try_direct(machine, &p, &tiling, proposal);
        }
}

/* Returns the columns of D of a block of the short function that has `elems` elements of D: the
 * fewest that hold a row of D, within the limits of a block. */
static int find_short_cols(const tgi_problem *p, int elems)
{
    int cols = elems;
    while (cols > 1 && cols / 2 >= p->n && elems / (cols / 2) <= BLOCK_DEPTH_MAX)
        cols /= 2;
    return cols;
}

/* Proposes the short function, if it is predicted to be faster than what was proposed before. */
static void try_short(const tgi_machine *machine, const tgi_problem *p, const direct_tiling *tiling,
                      tgi_proposal *proposal)
{
    const int elems = TGI_SMALL_DIRECT_THREADS / tiling->lanes, cols = find_short_cols(p, elems);
    const int64_t down = tgi_divide_up(p->m, elems / cols);
    const double blocks = (double)tgi_divide_up(p->n, cols) * (double)down * (double)p->batch_count;
    const tgi_tile_work work = describe(machine, p, tiling, cols, blocks);
    const double seconds = tgi_model_short_seconds(&machine->gpu, p, &work);
    if (down > TGI_GRID_HEIGHT_MAX || seconds >= proposal->predicted_s)
        return;
    proposal->predicted_s = seconds;
    proposal->resident_blocks = work.blocks_per_sm;
    proposal->workspace_bytes = 0;
    proposal->shared_bytes = TGI_SMALL_DIRECT_THREADS * tgi_type_sum_bytes(p->type);
    proposal->decision.tile = (tgi_tile_decision){.split_elems = p->k,
                                                  .split_count = 1,
                                                  .is_transposed = tiling->is_transposed,
                                                  .is_direct_along = tiling->is_along,
                                                  .short_cols = cols,
                                                  .direct_lanes = tiling->lanes,
                                                  .direct_blocks = (int64_t)blocks};
}

/* Threads that are neighbours along x store to neighbouring places. */
static void propose_short(const tgi_machine *machine, const tgi_problem *given,
                          tgi_proposal *proposal)
{
    tgi_problem p = *given;
    direct_tiling tiling = {.is_short = 1, .is_transposed = p.d.col != 1, .cluster = 1};
    const int64_t most = INT32_MAX / 2;
    const int lanes = tgi_small_find_lanes(machine, given);
    if (tiling.is_transposed)
        tgi_problem_transpose(&p);
    if (!proposal->is_legal || p.m > most || p.n > most || p.k > most ||
        p.batch_count > TGI_GRID_HEIGHT_MAX || !tgi_gemm_has_terms(&p, p.type != TG_TYPE_FP64))
        return;
    for (tiling.is_along = 0; tiling.is_along < 2; tiling.is_along++)
        for (tiling.lanes = 1;
             tiling.lanes < 2 * p.k &&
             tiling.lanes <= (tiling.is_along ? TGI_SMALL_DIRECT_THREADS : BLOCK_DEPTH_MAX);
             tiling.lanes *= 2)
            if (may_share(&p, &tiling, lanes))
                try_short(machine, &p, &tiling, proposal);
}

void tgi_small_propose_direct(const tgi_machine *machine, const tgi_problem *p,
                              tgi_proposal *proposal)
{
    propose_runs(machine, p, proposal);
    propose_short(machine, p, proposal);
}
