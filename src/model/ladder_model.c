#include "model/ladder_model.h"

#include <stdio.h>

#include "model/occupancy.h"

#define GRID_HEIGHT_MAX 65535
/* A coordinate past an edge, by less than a tile, and an index inside must both be an int. */
#define ELEMS_MAX (INT32_MAX - 1024)
/* A thread's products follow each other along k: each waits for what it reads, from shared memory,
 * with its share of the tiles' loads and barriers, or from global memory. */
#define SHARED_CYCLES 70.0
#define GLOBAL_CYCLES 140.0

static double divide_up(int64_t count, int64_t part)
{
    return (double)((count + part - 1) / part);
}

/* A warp's load or store along tile rows of row_elems elements touches a line for each such row. */
static double count_lines(int elem_count, int row_elems)
{
    double lines = (double)elem_count / row_elems;
    double least = (double)elem_count / 32;
    return lines > least ? lines : least;
}

tgi_ladder_step tgi_model_ladder_step(const tgi_kernel *kernel)
{
    const int tile = kernel->tile_rows, depth = kernel->tile_depth;
    const double rows = kernel->thread_rows, cols = kernel->thread_cols;
    /* Elements of each tile that one warp loads in a step. */
    const int warp_threads = kernel->thread_count < 32 ? kernel->thread_count : 32;
    const int elems = tile * depth * warp_threads / kernel->thread_count;
    tgi_ladder_step step = {.line_count = count_lines(elems, depth) + count_lines(elems, tile),
                            .multiply_count = depth * rows * cols};
    switch (kernel->family) {
    case TGI_FAMILY_cuda_naive: /* each lane its row of A; those in a row share B's element */
        step.line_count = tile + 1.0;
        break;
    case TGI_FAMILY_cuda_coalesced:
        step.line_count = 32.0 / tile + 1.0;
        break;
    case TGI_FAMILY_cuda_transposed: /* B by float4 too: 32 turns for 4 steps, and for a write */
        step.turn_count = depth * (0.5 + 8.0) + 1.0 + 32.0;
        break;
    case TGI_FAMILY_cuda_tiled: /* A along k by float4, 2 turns for 4 steps; B in one each */
    case TGI_FAMILY_cuda_edges:
    case TGI_FAMILY_cuda_padded:
    case TGI_FAMILY_cuda_register_column:
        step.turn_count = depth * (0.5 * rows + 1.0) + 2.0 * elems / 32.0;
        break;
    case TGI_FAMILY_cuda_register_tile:
        step.turn_count = depth * (rows + cols) + 2.0 * elems / 32.0;
        break;
    case TGI_FAMILY_cuda_vector: /* a float4 of A 2 turns, of B 4 */
        step.turn_count = depth * (0.5 * rows + cols) + 2.0 * elems / 32.0;
        break;
    case TGI_FAMILY_cuda_buffered: /* copied, not written by an instruction */
        step.turn_count = depth * (0.5 * rows + cols);
        break;
    default: /* warp_tile: 2 turns each */
        step.turn_count = depth * (0.5 * rows + 0.5 * cols);
        break;
    }
    return step;
}

int64_t tgi_model_ladder_shared_bytes(const tgi_kernel *kernel)
{
    const int b_row_elems = kernel->tile_cols + (kernel->family == TGI_FAMILY_cuda_padded ? 1 : 0);
    return (int64_t)sizeof(float) * kernel->stage_count * kernel->tile_depth *
           (kernel->tile_rows + b_row_elems);
}

int tgi_model_ladder_registers(const tgi_kernel *kernel, int capability)
{
    static const struct {
        tgi_family family;
        int tile;
        int sm75, sm80, sm86, sm90;
    } rows[] = {
#define TGI_LADDER_REGISTERS(family, tile, sm75, sm80, sm86, sm90)                                 \
    {TGI_FAMILY_cuda_##family, tile, sm75, sm80, sm86, sm90},
#include "model/ladder_registers.def"
#undef TGI_LADDER_REGISTERS
    };
    int found = 0;
    /* A tile that is not compiled is given the figure of the largest smaller one. */
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        if (rows[i].family != kernel->family)
            continue;
        if (rows[found].family != kernel->family || rows[i].tile <= kernel->tile_rows)
            found = i;
    }
    return capability < 80   ? rows[found].sm75
           : capability < 86 ? rows[found].sm80
           : capability < 90 ? rows[found].sm86
                             : rows[found].sm90;
}

double tgi_model_ladder_dram_read_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                        int64_t n, int64_t k)
{
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    const double a_bytes = 4.0 * (double)m * (double)k, b_bytes = 4.0 * (double)k * (double)n;
    const double rows = divide_up(m, kernel->tile_rows), cols = divide_up(n, kernel->tile_cols);
    /* Blocks start along x. Those that run together span whole bands along x, or a part of one. */
    const double grid_x = is_on_side ? rows : cols, grid_y = is_on_side ? cols : rows;
    if (grid_x < 1.0 || grid_y < 1.0)
        return 0.0;
    const double along_x_bytes = is_on_side ? a_bytes : b_bytes;
    const double along_y_bytes = is_on_side ? b_bytes : a_bytes;
    const tgi_occupancy occupancy = tgi_model_occupancy(
        gpu, kernel->thread_count, tgi_model_ladder_registers(kernel, gpu->capability),
        tgi_model_ladder_shared_bytes(kernel));
    const double resident =
        (double)gpu->sm_count * (occupancy.block_count ? occupancy.block_count : 1);
    const double l2_bytes = (double)gpu->l2_bytes;
    int64_t bands = (int64_t)(resident / grid_x);
    if (bands < 1)
        bands = 1;
    const double sweeps = divide_up((int64_t)grid_y, bands);
    const double band_bytes = along_y_bytes / sweeps;
    /* The operand along x stays from band to band, or is read in each; a band's part of the other
     * stays while its waves pass, or is read in each. */
    const double x_count = along_x_bytes + band_bytes <= l2_bytes ? 1.0 : sweeps;
    const double y_count =
        resident >= grid_x || band_bytes <= 0.5 * l2_bytes ? 1.0 : grid_x / resident;
    return x_count * along_x_bytes + y_count * along_y_bytes;
}

tgi_ladder_time tgi_model_ladder_time(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                      int64_t n, int64_t k)
{
    const tgi_ladder_step step = tgi_model_ladder_step(kernel);
    /* Warps of multiply-adds in a cycle: 64 lanes a multiprocessor on sm_75 and sm_80, then 128. */
    const double multiplies_per_cycle = gpu->capability <= 80 ? 2.0 : 4.0;
    const double block_count = divide_up(m, kernel->tile_rows) * divide_up(n, kernel->tile_cols);
    const double warp_count = divide_up(kernel->thread_count, 32);
    /* The busiest multiprocessor's blocks. A warp's loads, turns and products follow each other,
     * and other warps fill what each leaves free only in part: the three add up. */
    const double blocks = divide_up((int64_t)block_count, gpu->sm_count);
    const double step_s = blocks * warp_count * divide_up(k, kernel->tile_depth) / gpu->clock_hz;
    const double chain_cycles =
        (double)k * (kernel->stage_count == 0 ? GLOBAL_CYCLES : SHARED_CYCLES);
    const double read_s =
        tgi_model_ladder_dram_read_bytes(gpu, kernel, m, n, k) / gpu->memory_bytes_per_s;
    /* D is stored when its products are done. */
    const double store_s = 4.0 * (double)m * (double)n / gpu->memory_bytes_per_s;
    tgi_ladder_time time = {.launch_s = TGI_GPU_LAUNCH_S,
                            .l1_s = step_s * step.line_count,
                            .shared_s = step_s * step.turn_count,
                            .multiply_s = step_s * step.multiply_count / multiplies_per_cycle,
                            .chain_s = chain_cycles / gpu->clock_hz,
                            .dram_s = read_s + store_s};
    double longest_s = time.l1_s + time.shared_s + time.multiply_s;
    longest_s = longest_s > time.chain_s ? longest_s : time.chain_s;
    longest_s = longest_s > read_s ? longest_s : read_s;
    time.total_s = time.launch_s + longest_s + store_s;
    return time;
}

double tgi_model_ladder_seconds(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m, int64_t n,
                                int64_t k)
{
    return tgi_model_ladder_time(gpu, kernel, m, n, k).total_s;
}

int tgi_model_ladder_is_on_side(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_naive;
}

int tgi_model_ladder_takes(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k, char *reason,
                           size_t reason_bytes)
{
    const int tile = kernel->tile_rows;
    const double grid_y =
        tgi_model_ladder_is_on_side(kernel) ? divide_up(n, tile) : divide_up(m, tile);
    const double elems_max = (double)ELEMS_MAX;
    if (kernel->family == TGI_FAMILY_cuda_tiled && (m % tile || n % tile || k % tile)) {
        snprintf(reason, reason_bytes,
                 "this rung checks no bounds: tile %d must divide %lld x %lld x %lld; take "
                 "cuda_edges",
                 tile, (long long)m, (long long)n, (long long)k);
    } else if ((double)m * (double)k > elems_max || (double)k * (double)n > elems_max ||
               (double)m * (double)n > elems_max) {
        snprintf(reason, reason_bytes,
                 "the ladder's kernels index by int: A, B and D must have at most %d elements each",
                 ELEMS_MAX);
    } else if (grid_y > GRID_HEIGHT_MAX) {
        snprintf(reason, reason_bytes,
                 "the grid would be %.0f blocks high; %d is the limit: take a larger tile", grid_y,
                 GRID_HEIGHT_MAX);
    } else {
        return 1;
    }
    return 0;
}
