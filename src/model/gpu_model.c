#include "model/gpu_model.h"

/* Measured on an H200. A second kernel that adds parts: its start, and the rate of reading what
 * caches still hold. */
#define FINISH_S 4.5e-6
#define FINISH_BYTES_PER_S 3.5e12
/* Share of the peak bandwidth that a kernel reaches. */
#define MEMORY_SHARE 0.8
/* Cycles of a block that its own multiply-adds do not hide: first stages in, sums out. */
#define BLOCK_CYCLES 3000.0
#define MULTIPLIERS_PER_SM 128
#define SCHEDULERS_PER_SM 4
#define REGISTERS_PER_SM 65536

static double divide_up(double count, double part)
{
    return (double)(int64_t)((count + part - 1.0) / part);
}

static int count_thread_sums(const tgi_kernel *kernel)
{
    return kernel->thread_rows * kernel->thread_cols;
}

/* As in kernels/simt/simt.cu. */
static int count_registers(const tgi_kernel *kernel)
{
    int sums = count_thread_sums(kernel);
    return sums > 96 ? 256 : sums > 64 ? 168 : 128;
}

static int count_slices(const tgi_kernel *kernel)
{
    return kernel->thread_count * kernel->thread_rows * kernel->thread_cols /
           (kernel->tile_rows * kernel->tile_cols);
}

int64_t tgi_model_simt_shared_bytes(const tgi_kernel *kernel)
{
    int64_t stages = (int64_t)kernel->stage_count * kernel->tile_depth *
                     (kernel->tile_rows + kernel->tile_cols + 8) * 4;
    int64_t sums = (int64_t)count_slices(kernel) * kernel->tile_rows * kernel->tile_cols * 4 /
                   (kernel->thread_rows / 4);
    return stages > sums ? stages : sums;
}

static int64_t count_resident(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    int64_t by_registers = REGISTERS_PER_SM / count_registers(kernel) / kernel->thread_count;
    /* A block takes 1 KB for itself. */
    int64_t by_shared = gpu->shared_bytes_per_sm / (tgi_model_simt_shared_bytes(kernel) + 1024);
    int64_t count = by_registers < by_shared ? by_registers : by_shared;
    return count > 0 ? count : 1;
}

int64_t tgi_model_simt_slots(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    return count_resident(gpu, kernel) * gpu->sm_count;
}

double tgi_model_simt_tiles(const tgi_kernel *kernel, const tgi_problem *p)
{
    return divide_up((double)p->m, kernel->tile_rows) * divide_up((double)p->n, kernel->tile_cols) *
           (double)p->batch_count;
}

/* Shares of the multipliers that one warp of each scheduler keeps busy, which waits for its own
 * instructions, and that `warps` of them do, as many as the registers hold. */
typedef struct warp_share {
    double alone, most, warps;
} warp_share;

/* Slices of k end in sums that are added, and share their barriers. */
static warp_share find_warp_share(const tgi_kernel *kernel)
{
    const int sums = count_thread_sums(kernel), is_sliced = count_slices(kernel) > 1;
    if (sums > 96)
        return (warp_share){0.68, is_sliced ? 0.76 : 0.80, 2.0};
    if (sums > 64)
        return (warp_share){0.60, 0.71, 3.0};
    return is_sliced ? (warp_share){0.54, 0.75, 4.0} : (warp_share){0.72, 0.805, 4.0};
}

static double find_share(const tgi_kernel *kernel, double warps_per_scheduler)
{
    const warp_share share = find_warp_share(kernel);
    if (warps_per_scheduler < 1.0)
        return share.alone * warps_per_scheduler;
    if (warps_per_scheduler >= share.warps)
        return share.most;
    return share.alone +
           (share.most - share.alone) * (warps_per_scheduler - 1.0) / (share.warps - 1.0);
}

/* How much longer a step takes than its multiply-adds, for the sake of its copies. */
static double find_copy_factor(const tgi_kernel *kernel, const tgi_problem *p)
{
    const double rows = kernel->tile_rows, cols = kernel->tile_cols, sums = rows * cols;
    /* Tiles larger than D are copied element by element, some 40 instructions each. */
    if (p->m < kernel->tile_rows || p->n < kernel->tile_cols)
        return 1.0 + 40.0 * (rows + cols) / sums;
    /* A warp's copy along k takes 5 turns of the memory pipe for its 32 elements; a quarter of that
     * is not hidden. */
    double elems = 0.0;
    if (p->a.row != 1)
        elems += rows;
    if (p->b.col != 1)
        elems += cols;
    return 1.0 + 0.25 * elems * 5.0 / 32.0 / (sums / MULTIPLIERS_PER_SM);
}

/* Share of the time of stores that is not hidden behind what other blocks multiply: stores of
 * threads hold up reads of shared memory, those of the copy engine (store_bulk) do not. */
static double find_exposed_stores(const tgi_gpu *gpu, const tgi_kernel *kernel,
                                  const tgi_problem *p, double block_count)
{
    int has_bulk = gpu->capability >= 90 && p->d.col == 1 && p->n % 4 == 0 &&
                   count_thread_sums(kernel) <= 64 && count_slices(kernel) == 1;
    return has_bulk && block_count > 1.0 ? 0.4 : 1.0;
}

/* Cycles in which an SM does `block_count` blocks that start together. */
static double count_cycles(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                           double block_count, int64_t part_elems)
{
    const double depth = divide_up((double)part_elems, kernel->tile_depth) * kernel->tile_depth;
    const double sums = block_count * kernel->tile_rows * kernel->tile_cols;
    const double warps = block_count * kernel->thread_count / 32 / SCHEDULERS_PER_SM;
    const double bytes_per_cycle =
        MEMORY_SHARE * gpu->memory_bytes_per_s / gpu->clock_hz / gpu->sm_count;
    return BLOCK_CYCLES +
           sums * 4.0 / bytes_per_cycle * find_exposed_stores(gpu, kernel, p, block_count) +
           sums * depth / MULTIPLIERS_PER_SM / find_share(kernel, warps) *
               find_copy_factor(kernel, p);
}

double tgi_model_simt_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, const tgi_problem *p,
                              int64_t part_elems, int64_t part_count)
{
    const double resident = (double)count_resident(gpu, kernel);
    const double slots = resident * gpu->sm_count;
    const double blocks = tgi_model_simt_tiles(kernel, p) * (double)part_count;
    const double waves = (double)(int64_t)(blocks / slots);
    const double rest = divide_up(blocks - waves * slots, gpu->sm_count);
    double cycles = waves * count_cycles(gpu, kernel, p, resident, part_elems);
    if (rest > 0.0)
        cycles += count_cycles(gpu, kernel, p, rest, part_elems);
    double seconds = cycles / gpu->clock_hz;

    const double d_bytes = 4.0 * (double)p->m * (double)p->n * (double)p->batch_count;
    double bytes =
        4.0 * ((double)p->m * (double)p->k + (double)p->k * (double)p->n) * (double)p->batch_count +
        d_bytes * (p->beta != 0.0 ? 2.0 : 1.0);
    double memory_s = bytes / (MEMORY_SHARE * gpu->memory_bytes_per_s);
    if (seconds < memory_s)
        seconds = memory_s;
    if (part_count > 1)
        seconds += FINISH_S + 2.0 * d_bytes * (double)part_count / FINISH_BYTES_PER_S;
    return TGI_GPU_LAUNCH_S + seconds;
}
