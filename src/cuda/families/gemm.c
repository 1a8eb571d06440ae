#include "cuda/families/gemm.h"

#include <math.h>
#include <stdlib.h>

#include "core/checked.h"
#include "kernels/gemm_args.h"
#include "model/figures.h"

#define BLOCK_SHARED_BYTES 1024 /* shared memory that the system reserves for each block */
#define SPLITS_MAX 1024
#define FULL_ROUNDS_MAX 4

/* Limits of the splits of batch-invariant problems, in bytes of k of one line. A split must
 * save a block `saved`. A split has sum_halves / 2 times the bytes of a row of sums, but from
 * `least` to `enough`: if D has many rows, the sums of splits that are short beside n take longer
 * than their products. */
typedef struct split_limits {
    int64_t saved, least, enough;
    int sum_halves;
} split_limits;

static const split_limits mma_limits = {1024, 1536, 5120, 3};
static const split_limits fma_limits = {1024, 1024, 1280, 16};
static const split_limits fp64_limits = {1024, 1024, 2048, 8};

/* FP64 of up to TEAM_COLS columns is summed in teams if k is neither short nor long, so that a D of
 * few elements needs a fourth of the instructions one after another. Relays keep the sums of all
 * teams of TEAM_SPLITS splits, so that these are fewer and longer, as suits a D of many rows. */
#define TEAM_COLS 32
#define TEAM_K_LEAST 96
#define TEAM_K_MOST 2560
#define TEAM_SPLITS 8
static const split_limits team_limits = {1024, 2048, 2048, 8};

/* Clusters of relays form splits of 16-bit types from so many bytes on if D has few columns. */
#define FEW_COLS 32
#define FEW_LEAST 768
#define SUM_TIMES 4 /* bytes of the sums are at most so many times those of A */
/* A cluster on wgmma adds up to CLUSTER_SPLITS splits without a second kernel if D has few rows.
 * More splits pay only if these would have more than CLUSTER_SPLIT_BYTES_MOST bytes of k. */
#define CLUSTER_SPLITS 8
#define CLUSTER_SPLIT_BYTES_MOST 8192
#define INVARIANT_TILE_COLS 64 /* columns of a tile if D has few rows */

/* Returns 1 if the shorter stride of an operand with `line_count` lines runs along k. */
static int is_along_k(const tgi_layout *layout, int64_t k_stride, int64_t line_count)
{
    int64_t across = k_stride == layout->col ? layout->row : layout->col;
    return line_count == 1 || llabs(k_stride) <= llabs(across);
}

/* Returns 1 if lines of contiguous elements, `across` elements apart, allow 16-byte accesses. */
static int has_vectors(const tgi_problem *p, tg_type type, const tgi_layout *layout, int64_t along,
                       int64_t across, int64_t line_count)
{
    const int64_t elems = TGI_GEMM_VECTOR_BYTES / tgi_type_bytes(type);
    return along == 1 && (line_count == 1 || across % elems == 0) &&
           (p->batch_count == 1 || layout->batch % elems == 0);
}

int tgi_gemm_has_a_vectors(const tgi_problem *p, int along_k)
{
    return along_k ? has_vectors(p, p->type, &p->a, p->a.col, p->a.row, p->m)
                   : has_vectors(p, p->type, &p->a, p->a.row, p->a.col, p->k);
}

int tgi_gemm_has_b_vectors(const tgi_problem *p, int along_k)
{
    return along_k ? has_vectors(p, p->type, &p->b, p->b.row, p->b.col, p->n)
                   : has_vectors(p, p->type, &p->b, p->b.col, p->b.row, p->k);
}

int tgi_gemm_has_d_vectors(const tgi_problem *p)
{
    return has_vectors(p, p->d_type, &p->d, p->d.col, p->d.row, p->m);
}

int tgi_gemm_is_a_along_k(const tgi_problem *p)
{
    return is_along_k(&p->a, p->a.col, p->m);
}

int tgi_gemm_is_b_along_k(const tgi_problem *p)
{
    return is_along_k(&p->b, p->b.row, p->n);
}

tgi_access tgi_gemm_find_b_access(const tgi_problem *p)
{
    return tgi_gemm_has_b_vectors(p, tgi_gemm_is_b_along_k(p)) ? TGI_ACCESS_VECTORS
                                                               : TGI_ACCESS_ELEMENTS;
}

tgi_access tgi_gemm_find_access(const tgi_problem *p)
{
    return tgi_gemm_has_a_vectors(p, tgi_gemm_is_a_along_k(p)) ? tgi_gemm_find_b_access(p)
                                                               : TGI_ACCESS_ELEMENTS;
}

int64_t tgi_gemm_count_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return tgi_divide_up(p->m, kernel->tile_rows) * tgi_divide_up(p->n, kernel->tile_cols);
}

int64_t tgi_gemm_split_bytes(const tgi_problem *p, int64_t split_count)
{
    return split_count > 1
               ? tgi_checked_multiply(p->batch_count * p->m * p->n * tgi_type_sum_bytes(p->type),
                                      split_count)
               : 0;
}

/* Returns the most splits that may pay. Splits beyond those that fill the multiprocessors gain
 * nothing, even if D has few rows. */
static int64_t count_splits_most(const tgi_machine *machine, const tgi_problem *p, int64_t n,
                                 int is_mma)
{
    const int64_t k_bytes = p->k * tgi_type_bytes(p->type);
    const int64_t slots = machine->gpu.sm_count / tgi_divide_up(n, INVARIANT_TILE_COLS);
    const int has_clusters = is_mma && k_bytes <= CLUSTER_SPLITS * CLUSTER_SPLIT_BYTES_MOST &&
                             tgi_arch_has(machine->gpu.capability, TGI_FEATURE_WGMMA);
    return has_clusters && slots > CLUSTER_SPLITS ? CLUSTER_SPLITS : slots;
}

int tgi_gemm_is_in_fp64_teams(const tgi_machine *machine, const tgi_problem *p)
{
    return p->is_batch_invariant && p->type == TG_TYPE_FP64 &&
           (p->is_swapped ? p->m : p->n) <= TEAM_COLS && p->k >= TEAM_K_LEAST &&
           p->k <= TEAM_K_MOST && tgi_kernels_isa_runs(TGI_ISA_sm90a, machine->features);
}

int64_t tgi_gemm_invariant_split(const tgi_machine *machine, const tgi_problem *p)
{
    const int64_t n = p->is_swapped ? p->m : p->n, elem_bytes = tgi_type_bytes(p->type);
    const int has_teams = tgi_gemm_is_in_fp64_teams(machine, p);
    /* The deepest stage. One of teams has twice the k. */
    const int64_t unit = elem_bytes == 8 ? 32 << has_teams : 128 / elem_bytes;
    /* Slices of FP32 have splits of their own. */
    const int is_fma = p->type == TG_TYPE_FP32 && p->precision != TG_PRECISION_TF32;
    const split_limits limits = has_teams         ? team_limits
                                : elem_bytes == 8 ? fp64_limits
                                : is_fma          ? fma_limits
                                                  : mma_limits;
    const int is_few = elem_bytes == 2 && n <= FEW_COLS &&
                       tgi_arch_has(machine->gpu.capability, TGI_FEATURE_WGMMA);
    const int64_t limit = is_few ? FEW_LEAST : limits.least;
    const int64_t most =
        has_teams ? TEAM_SPLITS : count_splits_most(machine, p, n, elem_bytes < 8 && !is_fma);
    const int64_t sum_bytes = n * tgi_type_sum_bytes(p->type);
    int64_t bytes = limits.sum_halves * sum_bytes / 2;
    bytes = bytes < limits.enough ? bytes : limits.enough;
    bytes = bytes > sum_bytes / SUM_TIMES ? bytes : sum_bytes / SUM_TIMES;
    bytes = bytes > limit ? bytes : limit;
    const int64_t least = tgi_divide_up(bytes, elem_bytes);
    if (most < 2 || (p->k - least) * elem_bytes < limits.saved)
        return p->k;
    const int64_t count = p->k / least < most ? p->k / least : most;
    const int64_t split = tgi_round_up(tgi_divide_up(p->k, count > 1 ? count : 1), unit);
    return split < p->k ? split : p->k;
}

/* Rows on wgmma add the splits of 16-bit types one after another, and other rows of the same order
 * do so too. */
unsigned tgi_gemm_count_add_rows(const tgi_problem *p, int64_t split_count)
{
    if (p->is_batch_invariant && tgi_type_bytes(p->type) == 2)
        return 1;
    return split_count <= 8 ? 4 : TGI_ADD_ROWS_MAX;
}

/* Tries splits of split_steps stages, as tgi_gemm_try_splits does. */
static int try_steps(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                     tgi_gemm_predict *predict, int64_t split_steps, tgi_proposal *proposal)
{
    const int64_t depth = proposal->kernel->tile_depth;
    const int64_t split_count = tgi_divide_up(tgi_divide_up(p->k, depth), split_steps);
    tgi_tile_work work = *whole;
    work.block_count *= (double)split_count;
    work.block_k = split_count > 1 ? (double)(split_steps * depth) : (double)p->k;
    work.split_count = (double)split_count;
    if (!p->is_batch_invariant && tgi_gemm_split_bytes(p, split_count) > TGI_WORKSPACE_BYTES_MAX)
        return 0;
    double seconds = predict(&machine->gpu, proposal->kernel, p, &work);
    if (proposal->is_legal && seconds >= proposal->predicted_s)
        return 1;
    proposal->is_legal = 1;
    proposal->predicted_s = seconds;
    proposal->workspace_bytes = tgi_gemm_split_bytes(p, split_count);
    proposal->decision.tile = (tgi_tile_decision){
        .split_elems = split_count > 1 ? split_steps * depth : p->k, .split_count = split_count};
    return 1;
}

int tgi_gemm_try_splits(const tgi_machine *machine, const tgi_problem *p,
                        const tgi_tile_work *whole, tgi_gemm_predict *predict, int64_t wanted,
                        tgi_proposal *proposal)
{
    const int64_t steps = tgi_divide_up(p->k, proposal->kernel->tile_depth);
    return try_steps(machine, p, whole, predict, tgi_divide_up(steps, wanted), proposal);
}

void tgi_gemm_take_invariant_splits(const tgi_machine *machine, const tgi_problem *p,
                                    const tgi_tile_work *whole, tgi_gemm_predict *predict,
                                    tgi_proposal *proposal)
{
    const int64_t split_elems = tgi_gemm_invariant_split(machine, p);
    try_steps(machine, p, whole, predict, tgi_divide_up(split_elems, proposal->kernel->tile_depth),
              proposal);
}

void tgi_gemm_split_k(const tgi_machine *machine, const tgi_problem *p, const tgi_tile_work *whole,
                      tgi_gemm_predict *predict, tgi_proposal *proposal)
{
    const int64_t steps = tgi_divide_up(p->k, proposal->kernel->tile_depth);
    const int64_t most = steps < SPLITS_MAX ? steps : SPLITS_MAX;
    proposal->resident_blocks = whole->blocks_per_sm;
    if (p->is_batch_invariant) {
        tgi_gemm_take_invariant_splits(machine, p, whole, predict, proposal);
        return;
    }
    for (int64_t wanted = 1; wanted <= most; wanted *= 2)
        if (!tgi_gemm_try_splits(machine, p, whole, predict, wanted, proposal))
            break;
    /* Blocks in whole rounds of the multiprocessors leave none idle in the last round. */
    const double slot_count = (double)machine->gpu.sm_count * whole->blocks_per_sm;
    for (int rounds = 1; rounds <= FULL_ROUNDS_MAX; rounds++) {
        const double wanted = floor(rounds * slot_count / whole->block_count);
        if (wanted > 1.0 && wanted <= (double)most)
            tgi_gemm_try_splits(machine, p, whole, predict, (int64_t)wanted, proposal);
    }
}

void tgi_gemm_describe_tiling(const tgi_proposal *proposal, tgi_plan_tiling *tiling)
{
    tiling->split_count = proposal->decision.tile.split_count;
}

int tgi_gemm_fits(const tgi_machine *machine, int64_t shared_bytes, tgi_proposal *proposal)
{
    const int thread_count = proposal->kernel->thread_count;
    proposal->shared_bytes = shared_bytes;
    if (thread_count > machine->gpu.threads_per_sm)
        return tgi_refuse(&proposal->refusal, TG_REFUSAL_RESIDENT_THREADS,
                          "a block has %d threads; a multiprocessor of this GPU has %d",
                          thread_count, machine->gpu.threads_per_sm);
    if (shared_bytes <= machine->gpu.shared_bytes_per_block)
        return 1;
    tgi_refuse(&proposal->refusal, TG_REFUSAL_SHARED_MEMORY,
               "a block needs %lld bytes of shared memory; this GPU has %lld",
               (long long)shared_bytes, (long long)machine->gpu.shared_bytes_per_block);
    return 0;
}

int tgi_gemm_has_terms(const tgi_problem *p, int has_all)
{
    const unsigned terms = 1u << TGI_OPERAND_c | 1u << TGI_OPERAND_bias;
    return (tgi_epilogue_find_used(&p->epilogue) & TGI_OPERANDS_EPILOGUE & ~terms) == 0 &&
           (has_all || p->epilogue.activation <= TG_ACTIVATION_RELU);
}

int tgi_gemm_rounds_sums(const tgi_problem *p, tgi_proposal *proposal)
{
    const tgi_math math = proposal->kernel->math;
    if (p->precision != TG_PRECISION_IEEE_FP32 || (math != TGI_MATH_mma && math != TGI_MATH_fp64))
        return 1;
    return tgi_refuse(&proposal->refusal, TG_REFUSAL_PRECISION,
                      "matrix instructions do not round every sum as ieee_fp32 asks");
}

int tgi_gemm_count_resident(const tgi_gpu *gpu, const tgi_kernel *kernel, int by_registers,
                            int64_t shared_bytes)
{
    const int64_t limits[] = {gpu->shared_bytes_per_sm / (shared_bytes + BLOCK_SHARED_BYTES),
                              gpu->threads_per_sm / kernel->thread_count, gpu->blocks_per_sm};
    int64_t count = by_registers;
    for (int i = 0; i < 3; i++)
        count = limits[i] < count ? limits[i] : count;
    return count > 1 ? (int)count : 1;
}

int64_t tgi_gemm_count_cluster_sms(const tgi_gpu *gpu, int cluster_blocks)
{
    const double *used = tgi_figures_find(gpu->capability)->cluster_sms;
    return gpu->sm_count * (int64_t)used[cluster_blocks - 1] / (int64_t)used[0];
}
