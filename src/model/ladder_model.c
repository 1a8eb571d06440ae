#include "model/ladder_model.h"

#include <math.h>

#include "core/checked.h"
#include "model/figures.h"
#include "model/occupancy.h"

/* A coordinate less than a tile past an edge, and every index inside, must be an int. */
#define ELEMS_MAX (INT32_MAX - 1024)
/* L1 keeps SET_LINES of the lines that lie a multiple of SET_PERIOD_BYTES apart. */
#define SET_PERIOD_BYTES 32768
#define SET_LINES 64
/* The part of a tile that a warp of rung 12 computes (kernels/ladder/l12_warp_mma.cu). */
enum { WARP_ROWS = 32, WARP_COLS = 64 };
#define VECTOR_RUNG 9 /* the first rung whose threads move 16 bytes at once */
#define LINE_BYTES 128
#define TMA_ELEMS 8        /* 16-bit elements of 16 bytes */
#define SWIZZLE_BYTES 1024 /* tiles of TMA, and the barriers behind them, lie at multiples */
#define DRAM_RUN_BYTES 64  /* bytes that DRAM delivers together */

/* Returns the lines that a warp's load or store along tile rows of row_elems elements touches: one
 * for each such row, or more if it is longer than a line. */
static double count_lines(int elem_count, int row_elems, int elem_bytes)
{
    double lines = (double)elem_count / row_elems;
    double least = (double)elem_count * elem_bytes / LINE_BYTES;
    return lines > least ? lines : least;
}

/* Returns the turns in which banks serve lanes whose words lie `stride` banks apart. */
static double count_bank_turns(int lane_count, int bank_count, int stride)
{
    for (; bank_count > 1 && stride % 2 == 0; stride /= 2)
        bank_count /= 2;
    return (lane_count + bank_count - 1) / bank_count;
}

/* Returns the turns of rungs 3 to 7; a request takes `least` or more. If rows of A start at
 * multiples of 16 bytes, nvcc makes one read of four elements along a row, which takes a turn for
 * each half of a warp. */
static double count_turns(const tgi_kernel *kernel, int warp_threads, double stores, double least)
{
    const int tile = kernel->tile_rows, depth = kernel->tile_depth;
    const int lanes_x = tile < warp_threads ? tile : warp_threads;
    const int is_merged = depth % 4 == 0;
    const double a_turns = is_merged ? fmax(warp_threads <= 16 ? 1.0 : 2.0, least) / 4.0 : least;
    if (kernel->family ==
        TGI_FAMILY_cuda_transposed) { /* nvcc merges reads of B too, by quarters of a warp */
        const double column = count_bank_turns(lanes_x, 32, depth);
        const double b_turns = is_merged ? count_bank_turns(8, 8, depth / 4) : fmax(column, least);
        return depth * (a_turns + b_turns) + least + fmax(column, least);
    }
    if (kernel->family == TGI_FAMILY_cuda_padded) {
        const double column = fmax(count_bank_turns(lanes_x, 32, depth + 1), least);
        return depth * (a_turns + column) + least + column;
    }
    return depth * (a_turns * kernel->thread_rows + least) + stores; /* B: one turn an element */
}

/* Returns the cost on a multiprocessor with that many load/store units. A request of one word in
 * each thread keeps them busy for `least` cycles. A request of 16 bytes in each thread takes no
 * longer than its turns. */
static tgi_ladder_step count_step(const tgi_kernel *kernel, int lanes)
{
    const int tile = kernel->tile_rows, depth = kernel->tile_depth;
    const double rows = kernel->thread_rows, cols = kernel->thread_cols;
    /* Elements of each tile that one warp loads in a step. */
    const int warp_threads = kernel->thread_count < 32 ? kernel->thread_count : 32;
    const int elems = tile * depth * warp_threads / kernel->thread_count;
    const int elem_bytes = (int)tgi_type_bytes(kernel->type);
    const int is_by_words = tgi_kernels_rung(kernel->family) < VECTOR_RUNG;
    const double least = is_by_words ? fmax(1.0, (double)warp_threads / lanes) : 1.0;
    const double copies = least * fmax(1.0, (double)elems * elem_bytes / LINE_BYTES);
    const double stores = 2.0 * copies;
    tgi_ladder_step step = {.line_count = fmax(count_lines(elems, depth, elem_bytes), copies) +
                                          fmax(count_lines(elems, tile, elem_bytes), copies),
                            .multiply_count = depth * rows * cols};
    step.copy_turn_count = kernel->stage_count == 2 ? stores : 0.0;
    switch (kernel->family) {
    case TGI_FAMILY_cuda_naive: /* a row of A for each lane; lanes of a row share B */
        step.line_count = fmax(tile < warp_threads ? tile : warp_threads, least) + least;
        break;
    case TGI_FAMILY_cuda_coalesced:
        step.line_count = fmax((double)warp_threads / tile, least) + least;
        break;
    case TGI_FAMILY_cuda_register_tile:
        step.turn_count = least * depth * (rows + cols) + stores;
        break;
    case TGI_FAMILY_cuda_vector: /* a float4 of A takes 2 turns, of B 4 */
        step.turn_count = depth * (0.5 * rows + cols) + stores;
        break;
    case TGI_FAMILY_cuda_buffered: /* copies write to shared memory, not store instructions */
        step.turn_count = depth * (0.5 * rows + cols);
        break;
    case TGI_FAMILY_cuda_warp_tile: /* a float4 takes 2 turns */
        step.turn_count = depth * (0.5 * rows + 0.5 * cols);
        break;
    case TGI_FAMILY_cuda_warp_mma: /* a row of 16 elements of A takes 1/4, so does a column of B */
        step.turn_count = depth / 16.0 * (WARP_ROWS + WARP_COLS) / 4.0;
        break;
    case TGI_FAMILY_cuda_warpgroup_mma: /* no thread reads */
        break;
    default:
        step.turn_count = count_turns(kernel, warp_threads, stores, least);
        break;
    }
    return step;
}

tgi_ladder_step tgi_model_ladder_step(const tgi_kernel *kernel)
{
    return count_step(kernel, 32);
}

int64_t tgi_model_ladder_shared_bytes(const tgi_kernel *kernel)
{
    const int b_row_elems = kernel->tile_cols + (kernel->family == TGI_FAMILY_cuda_padded ? 1 : 0);
    const int barrier_bytes = tgi_model_ladder_is_fed_by_tma(kernel) ? SWIZZLE_BYTES : 0;
    return tgi_type_bytes(kernel->type) * kernel->stage_count * kernel->tile_depth *
               (kernel->tile_rows + b_row_elems) +
           barrier_bytes;
}

int tgi_model_ladder_registers(const tgi_kernel *kernel, int capability)
{
    static const struct {
        tgi_family family;
        int tile;
        int registers[TGI_REPORT_COUNT];
    } rows[] = {
#define TGI_LADDER_REGISTERS(family, tile, sm75, sm80, sm86, sm90)                                 \
    {TGI_FAMILY_cuda_##family, tile, {sm75, sm80, sm86, sm90}},
#include "model/ladder_registers.def"
#undef TGI_LADDER_REGISTERS
    };
    int found = 0;
    /* A tile that is not compiled takes the registers of the largest smaller tile. */
    for (int i = 0; i < (int)(sizeof rows / sizeof rows[0]); i++) {
        if (rows[i].family != kernel->family)
            continue;
        if (rows[found].family != kernel->family || rows[i].tile <= kernel->tile_rows)
            found = i;
    }
    return rows[found].registers[tgi_arch_find(capability)->register_report];
}

/* Returns the blocks of one multiprocessor that run at once. */
static int count_resident(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    const tgi_occupancy occupancy = tgi_model_occupancy(
        gpu, kernel->thread_count, tgi_model_ladder_registers(kernel, gpu->capability),
        tgi_model_ladder_shared_bytes(kernel));
    return occupancy.block_count ? occupancy.block_count : 1;
}

/* Returns the blocks of a multiprocessor that stay at the same k, so that one block's reads serve
 * the others. Blocks of rungs 7 and 9 wait for each load, and a block that is ahead waits longer.
 * These blocks therefore keep pace. */
static int count_in_pace(const tgi_kernel *kernel, int resident_count)
{
    return kernel->family == TGI_FAMILY_cuda_register_column ||
                   kernel->family == TGI_FAMILY_cuda_vector
               ? resident_count
               : 1;
}

/* Returns how often each sector of the operand along x is fetched. */
static double find_refetch(const tgi_gpu *gpu, const tgi_kernel *kernel, int resident_count,
                           int64_t k)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    /* In rung 1 the rows of A that a multiprocessor reads may share a few sets of L1. */
    const int64_t elem_bytes = tgi_type_bytes(kernel->type);
    if (tgi_model_ladder_is_on_side(kernel) && elem_bytes * k % SET_PERIOD_BYTES == 0 &&
        resident_count * kernel->tile_rows > SET_LINES)
        return f->ladder_set_refetch;
    return elem_bytes * kernel->tile_cols < DRAM_RUN_BYTES ? f->ladder_run_refetch : 1.0;
}

double tgi_model_ladder_dram_read_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                        int64_t n, int64_t k)
{
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    const double elem_bytes = (double)tgi_type_bytes(kernel->type);
    const double a_bytes = elem_bytes * (double)m * (double)k;
    const double b_bytes = elem_bytes * (double)k * (double)n;
    const double rows = (double)tgi_divide_up(m, kernel->tile_rows),
                 cols = (double)tgi_divide_up(n, kernel->tile_cols);
    /* Blocks start along x. Blocks that run together span whole bands along x, or a part of one
     * band. */
    const double grid_x = is_on_side ? rows : cols, grid_y = is_on_side ? cols : rows;
    if (grid_x < 1.0 || grid_y < 1.0)
        return 0.0;
    const double along_x_bytes = is_on_side ? a_bytes : b_bytes;
    const double along_y_bytes = is_on_side ? b_bytes : a_bytes;
    const int resident_count = count_resident(gpu, kernel);
    const double resident = (double)gpu->sm_count * resident_count;
    const double in_pace = (double)gpu->sm_count * count_in_pace(kernel, resident_count);
    const double l2_bytes = (double)gpu->l2_bytes;
    int64_t bands = (int64_t)(in_pace / grid_x);
    if (bands < 1)
        bands = 1;
    const double sweeps = (double)tgi_divide_up((int64_t)grid_y, bands);
    const double band_bytes = along_y_bytes / sweeps;
    /* The operand along x stays in L2 from band to band, or each band reads it again. A band's part
     * of the other operand stays while the band's waves run, or each wave reads it again. */
    const double x_count = along_x_bytes + band_bytes <= l2_bytes
                               ? 1.0
                               : sweeps * find_refetch(gpu, kernel, resident_count, k);
    const double y_count =
        resident >= grid_x || band_bytes <= 0.5 * l2_bytes ? 1.0 : grid_x / resident;
    return x_count * along_x_bytes + y_count * along_y_bytes;
}

double tgi_model_ladder_dram_write_bytes(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                         int64_t n)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double d_bytes = (double)tgi_type_bytes(kernel->type) * (double)m * (double)n;
    const double resident = (double)gpu->sm_count * count_resident(gpu, kernel);
    const double block_count =
        (double)tgi_divide_up(m, kernel->tile_rows) * (double)tgi_divide_up(n, kernel->tile_cols);
    const double last_count = block_count - (ceil(block_count / resident) - 1.0) * resident;
    /* At the end L2 still holds bytes of D: a share that it writes late, or the stores of the last
     * wave. */
    const double unwritten_bytes =
        fmax(f->ladder_dirty_share * (double)gpu->l2_bytes,
             f->ladder_last_wave_share * d_bytes * last_count / block_count);
    return fmax(d_bytes - unwritten_bytes, 0.0);
}

/* Returns 1 if no warp waits for copies. Without cp.async a copy is a load and a store, and the
 * thread waits for the load. */
static int copies_in_background(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    return kernel->stage_count >= 2 && tgi_arch_has(gpu->capability, TGI_FEATURE_CP_ASYNC);
}

/* Returns the cycles that a block alone on its multiprocessor takes for all of k. The steps of its
 * warps take own_cycles. */
static double count_chain_cycles(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t k,
                                 double own_cycles, double waves)
{
    const tgi_figures *f = tgi_figures_find(gpu->capability);
    const double steps = (double)tgi_divide_up(k, kernel->tile_depth);
    if (kernel->stage_count == 0)
        return (double)k * fmax(f->ladder_lone_cycles, waves * f->ladder_crowded_cycles);
    const double step_cycles =
        tgi_model_ladder_is_fed_by_tma(kernel) ? f->ladder_group_cycles + own_cycles
        : copies_in_background(gpu, kernel)    ? fmax(f->ladder_step_cycles, own_cycles)
                                               : f->ladder_step_cycles + own_cycles;
    return fmax(waves, 1.0) * steps * step_cycles;
}

double tgi_model_ladder_peak_rate(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    const tgi_arch *arch = tgi_arch_find(gpu->capability);
    /* A chip without such tensor cores cannot run the kernel. */
    return kernel->math == TGI_MATH_fma || arch->bf16_mma == 0 ? arch->fp32_lanes
                                                               : arch->bf16_mma * gpu->mma_share;
}

/* Returns the multiply-adds that a multiprocessor finishes in a cycle. mma.sync does not reach the
 * rate of tensor cores that have wider instructions. */
static double find_multiply_rate(const tgi_gpu *gpu, const tgi_kernel *kernel)
{
    const double peak = tgi_model_ladder_peak_rate(gpu, kernel);
    return kernel->family == TGI_FAMILY_cuda_warp_mma
               ? fmin(peak, tgi_figures_find(gpu->capability)->mma_macs_per_cycle)
               : peak;
}

tgi_ladder_time tgi_model_ladder_time(const tgi_gpu *gpu, const tgi_kernel *kernel, int64_t m,
                                      int64_t n, int64_t k)
{
    const tgi_ladder_step step = count_step(kernel, tgi_arch_find(gpu->capability)->request_lanes);
    /* Multiply-adds of whole warps in a cycle. */
    const double multiplies_per_cycle = find_multiply_rate(gpu, kernel) / 32.0;
    const double block_count =
        (double)tgi_divide_up(m, kernel->tile_rows) * (double)tgi_divide_up(n, kernel->tile_cols);
    const double warp_count = (double)tgi_divide_up(kernel->thread_count, 32);
    /* `blocks` are the blocks of the busiest multiprocessor. A warp's loads, turns and products
     * follow each other, and other warps fill the gaps only in part. The three times therefore add
     * up. */
    const double blocks = (double)tgi_divide_up((int64_t)block_count, gpu->sm_count);
    const double step_s =
        blocks * warp_count * (double)tgi_divide_up(k, kernel->tile_depth) / gpu->clock_hz;
    const int is_in_background = copies_in_background(gpu, kernel);
    const double line_count = is_in_background ? 0.0 : step.line_count;
    const double turn_count = step.turn_count + (is_in_background ? 0.0 : step.copy_turn_count);
    const double multiply_cycles = step.multiply_count / multiplies_per_cycle;
    const double own_cycles = warp_count * (line_count + turn_count + multiply_cycles);
    const double waves = block_count / ((double)gpu->sm_count * count_resident(gpu, kernel));
    const double read_s =
        tgi_model_ladder_dram_read_bytes(gpu, kernel, m, n, k) / gpu->memory_bytes_per_s;
    /* D is stored after its products. */
    const double store_s =
        (double)tgi_type_bytes(kernel->type) * (double)m * (double)n / gpu->memory_bytes_per_s;
    tgi_ladder_time time = {.launch_s = tgi_figures_find(gpu->capability)->ladder_launch_s,
                            .l1_s = step_s * line_count,
                            .shared_s = step_s * turn_count,
                            .multiply_s = step_s * multiply_cycles,
                            .chain_s = count_chain_cycles(gpu, kernel, k, own_cycles, waves) /
                                       gpu->clock_hz,
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

int tgi_model_ladder_takes_sizes(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                                 tgi_refusal *refusal)
{
    const int tile = kernel->tile_rows;
    const double grid_y = tgi_model_ladder_is_on_side(kernel) ? (double)tgi_divide_up(n, tile)
                                                              : (double)tgi_divide_up(m, tile);
    const double elems_max = (double)ELEMS_MAX;
    if (kernel->family == TGI_FAMILY_cuda_tiled && (m % tile || n % tile || k % tile)) {
        return tgi_refuse(
            refusal, TG_REFUSAL_SHAPE,
            "this rung checks no bounds: tile %d must divide %lld x %lld x %lld; take "
            "cuda_edges",
            tile, (long long)m, (long long)n, (long long)k);
    }
    if (tgi_model_ladder_is_fed_by_tma(kernel) && (k % TMA_ELEMS || n % TMA_ELEMS)) {
        return tgi_refuse(refusal, TG_REFUSAL_SHAPE,
                          "TMA reads rows at multiples of 16 bytes: k = %lld and n = %lld must be "
                          "multiples of %d; take cuda_warp_mma",
                          (long long)k, (long long)n, TMA_ELEMS);
    }
    if ((double)m * (double)k > elems_max || (double)k * (double)n > elems_max ||
        (double)m * (double)n > elems_max) {
        return tgi_refuse(
            refusal, TG_REFUSAL_TOO_LARGE,
            "the ladder's kernels index by int: A, B and D must have at most %d elements each",
            ELEMS_MAX);
    }
    if (grid_y > TGI_GRID_HEIGHT_MAX) {
        return tgi_refuse(refusal, TG_REFUSAL_TOO_LARGE,
                          "the grid would be %.0f blocks high; %d is the limit: take a larger tile",
                          grid_y, TGI_GRID_HEIGHT_MAX);
    }
    return 1;
}
