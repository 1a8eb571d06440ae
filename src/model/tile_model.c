/* The formulas of tile_model.h. */
#include "model/tile_model.h"

#include <math.h>

#define PARTS_S 3.5e-6    /* a second kernel, that adds the parts */
#define SMALL_S 0.6e-6    /* of small: adding the warps' sums */
#define DMMA_S 1.5e-6     /* of dmma: first stages and last stores */
#define STAGE_S 0.04e-6   /* of dmma: barrier, first reads and last products of a stage, */
#define STEP_S 0.005e-6   /* and what its products of one k wait for */
#define PART_S 0.01e-6    /* each part, of which 64 are read at a time */
#define LATENCY_S 0.85e-6 /* from the request for a stage to its use, under load */
#define SKINNY_SHARE 0.92 /* of the bus's rate that one long stream reaches, */
#define TILES_SHARE 0.82  /* and many short ones */
#define CACHE_RATIO 1.3   /* rate of the L2 cache over that of memory */
#define ELEMENT_COST 1.7  /* time of a stage by single elements over that by 16 bytes */

/* Multiply-adds of FP32 or FP64 a cycle of one multiprocessor, without matrix instructions. */
static double find_rate(const tgi_gpu *gpu, tg_type type)
{
    int has_half_rate = gpu->capability == 80 || gpu->capability == 90;
    if (type == TG_TYPE_FP64)
        return gpu->capability == 80 ? 32.0 : has_half_rate ? 64.0 : 2.0;
    return gpu->capability == 75 || gpu->capability == 80 ? 64.0 : 128.0;
}

double tgi_model_tile_bytes(const tgi_problem *p)
{
    double elems = (double)p->m * (double)p->k + (double)p->k * (double)p->n +
                   (p->beta != 0.0 ? 2.0 : 1.0) * (double)p->m * (double)p->n;
    return elems * (double)p->batch_count * (double)tgi_type_bytes(p->type);
}

/* Launch, and writing, reading and adding parts of D that stay in L2. */
static double find_fixed_seconds(const tgi_gpu *gpu, const tgi_problem *p,
                                 const tgi_tile_work *work)
{
    if (work->part_count <= 1.0)
        return TGI_GPU_LAUNCH_S;
    double elems = work->part_count * (double)p->m * (double)p->n * (double)p->batch_count;
    return TGI_GPU_LAUNCH_S + PARTS_S + PART_S * work->part_count +
           2.0 * elems * (double)tgi_type_bytes(p->type) / (CACHE_RATIO * gpu->memory_bytes_per_s);
}

/* Blocks of `round_count` rounds each: a round takes latency_s, or compute_s of the multiprocessor
 * for each block that shares it. */
static double find_block_seconds(const tgi_gpu *gpu, const tgi_tile_work *work, double round_count,
                                 double latency_s, double compute_s)
{
    double per_sm = ceil(work->block_count / gpu->sm_count);
    double resident = per_sm < work->blocks_per_sm ? per_sm : work->blocks_per_sm;
    double round_s = fmax(latency_s, resident * compute_s);
    /* Blocks start as others end, so that a last wave that is not full costs its share. */
    double waves = per_sm <= resident ? 1.0 : per_sm / resident;
    return waves * round_count * round_s;
}

double tgi_model_small_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                               const tgi_tile_work *work)
{
    /* Reads of shared memory bound it: larger lane tiles reuse more. */
    int sums = kernel->thread_rows * kernel->thread_cols;
    double share = sums >= 64 ? 0.45 : sums >= 32 ? 0.33 : 0.25;
    double macs = (double)kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    double compute_s = macs / (find_rate(gpu, p->type) * share * gpu->clock_hz);
    double latency_s = 0.2e-6 + compute_s;
    if (!work->has_vectors)
        latency_s *= ELEMENT_COST;
    double rounds = ceil(work->block_k / kernel->tile_depth);
    double seconds = find_block_seconds(gpu, work, rounds, latency_s, compute_s);
    double memory_s = tgi_model_tile_bytes(p) / (TILES_SHARE * gpu->memory_bytes_per_s);
    return find_fixed_seconds(gpu, p, work) + SMALL_S + fmax(seconds, memory_s);
}

double tgi_model_dmma_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                              const tgi_tile_work *work)
{
    /* Matrix instructions have twice the rate of the others. */
    int sums = kernel->thread_rows * kernel->thread_cols;
    double share = sums >= 64 ? 0.91 : sums >= 32 ? 0.88 : sums >= 16 ? 0.51 : 0.58;
    double macs = (double)kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    double compute_s = macs / (2.0 * find_rate(gpu, p->type) * share * gpu->clock_hz);
    /* One block alone does not hide the wait for its stages, whatever the share. */
    double latency_s = STAGE_S + STEP_S * kernel->tile_depth + compute_s * share;
    if (!work->has_vectors)
        latency_s *= ELEMENT_COST;
    double rounds = ceil(work->block_k / kernel->tile_depth);
    double seconds = find_block_seconds(gpu, work, rounds, latency_s, compute_s);
    double memory_s = tgi_model_tile_bytes(p) / (TILES_SHARE * gpu->memory_bytes_per_s);
    return find_fixed_seconds(gpu, p, work) + DMMA_S + fmax(seconds, memory_s);
}

double tgi_model_skinny_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                                const tgi_tile_work *work)
{
    /* The block that has most: its products, with less waiting the more bytes are under way and
     * the fewer of them are A's, ... */
    double stage_bytes = (double)kernel->tile_cols * kernel->tile_depth *
                         (double)tgi_type_bytes(p->type) * (kernel->stage_count - 1);
    double under_way = stage_bytes * work->blocks_per_sm;
    double share = 0.58 * under_way / (under_way + 6144.0) /
                   (1.0 + 0.5 * kernel->tile_rows / kernel->tile_cols);
    double macs = (double)kernel->tile_rows * kernel->tile_cols * work->block_k;
    double compute_s =
        macs * work->blocks_per_sm / (share * find_rate(gpu, p->type) * gpu->clock_hz);
    /* ... its stages one after another, and what memory gives to all blocks together. */
    double step_s = LATENCY_S / (kernel->stage_count - 1);
    double memory_s = tgi_model_tile_bytes(p) / (SKINNY_SHARE * gpu->memory_bytes_per_s);
    if (!work->has_vectors) {
        step_s *= ELEMENT_COST;
        memory_s *= ELEMENT_COST;
    }
    double steps_s = ceil(work->block_k / kernel->tile_depth) * step_s;
    return find_fixed_seconds(gpu, p, work) + LATENCY_S + fmax(fmax(compute_s, steps_s), memory_s);
}
