#include "model/ladder_model.h"

#include <string.h>

#include "core/checked.h"
#include "model/banks.h"
#include "model/ladder_sweep.h"

#define UNIT_BYTES 16 /* the widest access */
#define UNIT_TURNS 4  /* turns of a warp's access to such units */
#define SECTOR_BYTES 32

typedef struct rung_covers {
    tgi_cover a, b, d;
} rung_covers;

/* The accesses of a block to shared memory in one step along k. */
typedef struct shared_step {
    int64_t load_count, store_count, conflict_count;
    /* A GPU's counters count four neighbours as one read, and do not count cp.async. */
    int64_t counter_load_count, counter_turn_count, counter_conflict_count;
} shared_step;

/* Returns 1 for rungs 9 to 12, whose accesses have 16 bytes. */
static int is_by_units(const tgi_kernel *kernel)
{
    return kernel->family == TGI_FAMILY_cuda_vector || kernel->family == TGI_FAMILY_cuda_buffered ||
           kernel->family == TGI_FAMILY_cuda_warp_tile ||
           kernel->family == TGI_FAMILY_cuda_warp_mma;
}

static int count_lanes(const tgi_kernel *kernel)
{
    return kernel->thread_count < TGI_WARP_THREADS ? kernel->thread_count : TGI_WARP_THREADS;
}

/* Returns how a request of D lies in rungs 9 to 13: 2 x 64 elements, or 4 x 32, or, of the sums
 * that a matrix instruction leaves in a warp, 8 x 8 in pairs. */
static tgi_cover cover_d(const tgi_kernel *kernel, int64_t n, int lanes)
{
    const int lane_elems = kernel->math == TGI_MATH_mma ? 2 : 4;
    const int rows = kernel->math == TGI_MATH_mma                  ? 8
                     : kernel->family == TGI_FAMILY_cuda_warp_tile ? 4
                                                                   : 2;
    return (tgi_cover){.line_count = rows,
                       .col_count = lane_elems * lanes / rows,
                       .request_elems = lane_elems * lanes,
                       .lane_elems = n % lane_elems == 0 ? 1 : lane_elems};
}

static rung_covers find_covers(const tgi_kernel *kernel, int64_t n, int64_t k)
{
    const int tile = kernel->tile_rows, depth = kernel->tile_depth, lanes = count_lanes(kernel);
    const int is_naive = kernel->family == TGI_FAMILY_cuda_naive;
    const int elem_bytes = (int)tgi_type_bytes(kernel->type), unit = UNIT_BYTES / elem_bytes;
    rung_covers covers = {{tile, depth, lanes, 1, 0, 0, 0},
                          {depth, tile, lanes, 1, 0, 0, 0},
                          {tile, tile, lanes, 1, is_naive, 0, 0}};
    if (kernel->stage_count == 0) { /* A by the rows of D, B by its columns */
        covers.a = (tgi_cover){tile, tile, lanes, 1, is_naive, 1, 0};
        covers.b = (tgi_cover){tile, tile, lanes, 1, !is_naive, 1, 0};
    } else if (tgi_model_ladder_is_fed_by_tma(kernel)) { /* a request is a box */
        const int box = TGI_LADDER_BOX_BYTES / elem_bytes;
        covers.a = (tgi_cover){tile, box, tile * box, 1, 0, 0, 0};
        covers.b = (tgi_cover){depth, box, depth * box, 1, 0, 0, 0};
        covers.d = cover_d(kernel, n, lanes);
    } else if (is_by_units(kernel)) { /* by 16 bytes if rows start at multiples of 16 */
        covers.a = (tgi_cover){tile, depth, unit * lanes, k % unit == 0 ? 1 : unit, 0, 0, 0};
        covers.b = (tgi_cover){depth, tile, unit * lanes, n % unit == 0 ? 1 : unit, 0, 0, 0};
        covers.d = cover_d(kernel, n, lanes);
    } else if (kernel->thread_cols > 1) { /* rung 8: a thread's elements are that far apart */
        covers.d.line_count = covers.d.col_count = tile / kernel->thread_rows;
    }
    covers.a.sector_elems = covers.b.sector_elems = covers.d.sector_elems =
        SECTOR_BYTES / elem_bytes;
    return covers;
}

/* An access of each thread to the word y * y_words + x * x_words of shared memory, made `count`
 * times a step at places that are a number of words apart. */
typedef struct shared_access {
    int y_words, x_words, count;
    int is_write;
    int is_merged; /* 1: four reads of neighbouring words are one */
} shared_access;

static void add_access(const tgi_kernel *kernel, const shared_access *access, shared_step *step)
{
    const int threads_x = kernel->tile_cols / kernel->thread_cols;
    for (int first = 0; first < kernel->thread_count; first += TGI_WARP_THREADS) {
        uintptr_t addresses[TGI_WARP_THREADS] = {0};
        uint32_t mask = 0;
        for (int lane = 0; lane < TGI_WARP_THREADS && first + lane < kernel->thread_count; lane++) {
            const int y = (first + lane) / threads_x, x = (first + lane) % threads_x;
            addresses[lane] = 4 * (uintptr_t)(y * access->y_words + x * access->x_words);
            mask |= UINT32_C(1) << lane;
        }
        const tgi_turns turns = tgi_model_count_turns(addresses, mask, 4);
        const tgi_turns counted =
            access->is_merged ? tgi_model_count_turns(addresses, mask, 16) : turns;
        const int counted_count = access->is_merged ? access->count / 4 : access->count;
        step->load_count += access->is_write ? 0 : access->count;
        step->store_count += access->is_write ? access->count : 0;
        step->conflict_count += (int64_t)access->count * turns.conflict_count;
        step->counter_load_count += access->is_write ? 0 : counted_count;
        step->counter_turn_count += (int64_t)counted_count * counted.count;
        step->counter_conflict_count += (int64_t)counted_count * counted.conflict_count;
    }
}

/* Returns the accesses of rungs 3 to 8, which move element by element. */
static shared_step add_accesses(const tgi_kernel *kernel)
{
    const int depth = kernel->tile_depth, threads_x = kernel->tile_cols / kernel->thread_cols;
    const int is_b_transposed =
        kernel->family == TGI_FAMILY_cuda_transposed || kernel->family == TGI_FAMILY_cuda_padded;
    const int b_words =
        depth + (kernel->family == TGI_FAMILY_cuda_padded); /* words of a transposed row */
    /* nvcc merges where rows start at multiples of 16 bytes; in rung 8 not at all. */
    const int is_merged = depth % 4 == 0 && kernel->family != TGI_FAMILY_cuda_register_tile;
    /* Elements of one tile that a thread loads. */
    const int elems = kernel->tile_rows * depth / kernel->thread_count;
    const shared_access accesses[] = {
        {depth, 0, depth * kernel->thread_rows, 0, is_merged},
        {0, is_b_transposed ? b_words : 1, depth * kernel->thread_cols, 0,
         is_merged && kernel->family == TGI_FAMILY_cuda_transposed},
        {threads_x, 1, elems, 1, 0},
        {is_b_transposed ? 1 : threads_x, is_b_transposed ? b_words : 1, elems, 1, 0},
    };
    shared_step step = {0, 0, 0, 0, 0, 0};
    for (int i = 0; i < 4; i++)
        add_access(kernel, &accesses[i], &step);
    return step;
}

/* Returns the accesses of rung 12. An ldmatrix reads four 8 x 8 matrices, as a read of 16 bytes
 * does. Elements that are copied one by one go through registers, from which a thread writes 16
 * bytes. */
static shared_step find_matrix_step(const tgi_kernel *kernel, const rung_covers *covers,
                                    int64_t warps, int64_t turns)
{
    const int64_t loads = warps * (int64_t)tgi_model_ladder_step(kernel).turn_count / UNIT_TURNS;
    const int64_t copies = (int64_t)kernel->tile_rows * kernel->tile_depth /
                           covers->a.request_elems; /* requests of A, and of B */
    const int64_t written =
        copies * ((covers->a.lane_elems > 1) + (covers->b.lane_elems > 1)) * UNIT_TURNS;
    return (shared_step){loads, 2 * copies, 0, loads, turns + written, 0};
}

static shared_step find_shared_step(const tgi_kernel *kernel, const rung_covers *covers)
{
    const int64_t warps = tgi_divide_up(kernel->thread_count, TGI_WARP_THREADS);
    const int depth = kernel->tile_depth, rows = kernel->thread_rows, cols = kernel->thread_cols;
    if (kernel->stage_count == 0 || tgi_model_ladder_is_fed_by_tma(kernel))
        return (shared_step){0, 0, 0, 0, 0, 0};
    if (!is_by_units(kernel))
        return add_accesses(kernel);
    /* A float4 holds 4 values of k of A or 4 columns of B. */
    const int64_t loads = warps * (depth / 4 * rows + depth * (cols / 4));
    const int64_t turns = warps * (int64_t)tgi_model_ladder_step(kernel).turn_count;
    if (kernel->family == TGI_FAMILY_cuda_warp_mma)
        return find_matrix_step(kernel, covers, warps, turns);
    if (kernel->family == TGI_FAMILY_cuda_vector)
        return (shared_step){loads, warps * 2, 0, loads, turns, 0};
    /* Elements that are copied one by one lie 4 words apart, which takes 4 turns. */
    const int slow_count =
        (covers->a.lane_elems == 4 ? 4 : 0) + (covers->b.lane_elems == 4 ? 4 : 0);
    return (shared_step){loads,
                         warps * (covers->a.lane_elems + covers->b.lane_elems),
                         warps * slow_count * 3,
                         loads,
                         turns,
                         0};
}

/* Counts rungs 1 and 2, in which each thread reads its own operands. The blocks of each column of
 * blocks read a column of A, and the last block has fewer threads. The same holds for a row of
 * B. */
static tgi_sweep sweep_direct(const tgi_line_grid *span, const tgi_cover *cover, int64_t used_count)
{
    const int64_t whole_count = used_count / cover->col_count;
    const int rest = (int)(used_count % cover->col_count);
    tgi_sweep sweep = tgi_model_sweep(span, cover, cover->col_count);
    sweep.request_count *= whole_count;
    sweep.sector_count *= whole_count;
    if (rest > 0) {
        const tgi_sweep last = tgi_model_sweep(span, cover, rest);
        sweep.request_count += last.request_count;
        sweep.sector_count += last.sector_count;
    }
    return sweep;
}

/* Counts A (B), which all blocks of a column (row) of blocks load once. */
static tgi_sweep sweep_tiles(const tgi_line_grid *span, const tgi_cover *cover, int64_t block_count)
{
    tgi_sweep sweep = tgi_model_sweep(span, cover, 0);
    sweep.request_count *= block_count;
    sweep.sector_count *= block_count;
    return sweep;
}

static void count_global(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                         const rung_covers *covers, tg_traffic *traffic)
{
    const int is_direct = kernel->stage_count == 0;
    const int64_t a_count = tgi_divide_up(n, kernel->tile_cols);
    const int64_t b_count = tgi_divide_up(m, kernel->tile_rows);
    const tgi_line_grid a_span = {m, k, k, 1}, b_span = {k, n, n, 1}, d_span = {m, n, n, 1};
    const tgi_line_grid b_lines = {n, 1, k, n}; /* the columns of D are the lines */
    const tgi_sweep a = is_direct ? sweep_direct(&a_span, &covers->a, n)
                                  : sweep_tiles(&a_span, &covers->a, a_count);
    const tgi_sweep b = is_direct ? sweep_direct(&b_lines, &covers->b, m)
                                  : sweep_tiles(&b_span, &covers->b, b_count);
    const tgi_sweep d = tgi_model_sweep(&d_span, &covers->d, 0);
    traffic->global_read_elems = is_direct ? 2 * m * n * k : m * k * a_count + k * n * b_count;
    traffic->global_write_elems = m * n;
    traffic->global_load_requests = a.request_count + b.request_count;
    traffic->global_load_sectors = a.sector_count + b.sector_count;
    traffic->global_store_requests = d.request_count;
    traffic->global_store_sectors = d.sector_count;
    traffic->block_read_elems = is_direct ? 2 * (int64_t)kernel->tile_rows * kernel->tile_cols * k
                                          : ((int64_t)kernel->tile_rows + kernel->tile_cols) * k;
}

static void count_grid(const tgi_kernel *kernel, int64_t m, int64_t n, tg_traffic *traffic)
{
    const int64_t rows = tgi_divide_up(m, kernel->tile_rows),
                  cols = tgi_divide_up(n, kernel->tile_cols);
    const int is_on_side = tgi_model_ladder_is_on_side(kernel);
    traffic->grid_x = is_on_side ? rows : cols;
    traffic->grid_y = is_on_side ? cols : rows;
    traffic->block_count = rows * cols;
    traffic->threads_per_block = kernel->thread_count;
    traffic->tile_rows = kernel->tile_rows;
    traffic->tile_cols = kernel->tile_cols;
    traffic->tile_depth = kernel->tile_depth;
    traffic->edge_row_count = (int)(m % kernel->tile_rows);
    traffic->edge_col_count = (int)(n % kernel->tile_cols);
    traffic->edge_block_count = rows * cols - (m / kernel->tile_rows) * (n / kernel->tile_cols);
}

void tgi_model_ladder_count(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                            tg_traffic *traffic)
{
    const int is_direct = kernel->stage_count == 0;
    const rung_covers covers = find_covers(kernel, n, k);
    const shared_step shared = find_shared_step(kernel, &covers);
    const int64_t steps = tgi_divide_up(k, kernel->tile_depth);
    memset(traffic, 0, sizeof *traffic);
    count_grid(kernel, m, n, traffic);
    count_global(kernel, m, n, k, &covers, traffic);
    traffic->global_read_bytes = tgi_type_bytes(kernel->type) * traffic->global_read_elems;
    traffic->global_write_bytes = tgi_type_bytes(kernel->type) * traffic->global_write_elems;

    const int64_t block_steps = traffic->block_count * steps;
    traffic->shared_load_requests = block_steps * shared.load_count;
    traffic->shared_store_requests = block_steps * shared.store_count;
    traffic->bank_conflicts = block_steps * shared.conflict_count;
    traffic->counter_shared_loads = block_steps * shared.counter_load_count;
    traffic->counter_shared_turns = block_steps * shared.counter_turn_count;
    traffic->counter_bank_conflicts = block_steps * shared.counter_conflict_count;
    traffic->barriers = is_direct ? 0 : block_steps * (kernel->stage_count == 1 ? 2 : 1);
    if (tgi_model_ladder_is_fed_by_tma(kernel))
        traffic->barriers += traffic->block_count; /* after the first copies have begun */

    traffic->useful_flops = traffic->naive_read_elems = 2 * m * n * k;
    traffic->issued_flops =
        is_direct ? traffic->useful_flops
                  : 2 * block_steps * kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    traffic->flop_per_byte = (double)traffic->useful_flops / (double)traffic->global_read_bytes;
    traffic->reads_saved_elems = traffic->naive_read_elems - traffic->global_read_elems;
    traffic->reuse = (double)traffic->naive_read_elems / (double)traffic->global_read_elems;
}
