#include "model/ladder_model.h"

#include <string.h>

#define SECTOR_ELEMS 8 /* of 32 bytes */
#define WARP_THREADS 32

/* What a warp covers of a row-major matrix without gaps in one access: row_count x col_count
 * elements. lane_elems = 4: each lane has 4 neighbours and asks for them one by one, so that access
 * j takes the columns j, j + 4, ... */
typedef struct cover {
    int row_count, col_count, lane_elems;
} cover;

typedef struct sweep {
    int64_t request_count, sector_count;
} sweep;

typedef struct rung_covers {
    cover a, b, d;
} rung_covers;

/* What a warp asks of shared memory in one step along k. */
typedef struct shared_step {
    int load_count, store_count, conflict_count;
    /* As a GPU's counters see it: one read of four neighbours, no copies in the background. */
    int counter_load_count, counter_conflict_count;
} shared_step;

static int64_t divide_up(int64_t count, int64_t part)
{
    return (count + part - 1) / part;
}

static int least(int a, int b)
{
    return a < b ? a : b;
}

/* Sectors of row_count runs, the first `phase` elements behind the start of a sector, each ld on
 * from the one before, `reach` elements from the first to the last of each. */
static int64_t count_sectors(int64_t row_count, int64_t ld, int64_t phase, int64_t reach)
{
    int64_t count = 0, last_before = -1;
    for (int64_t row = 0; row < row_count; row++) {
        int64_t first = (phase + row * ld) / SECTOR_ELEMS;
        int64_t last = (phase + row * ld + reach) / SECTOR_ELEMS;
        count += last - first + (first != last_before); /* rows may meet in a sector */
        last_before = last;
    }
    return count;
}

/* The same for all rows in groups of `group`, each group a request: where its first row starts in a
 * sector repeats after 8 groups. */
static int64_t sum_row_groups(int64_t row_count, int64_t ld, int group, int64_t phase,
                              int64_t reach)
{
    const int64_t whole_count = row_count / group, shift = group * (ld % SECTOR_ELEMS);
    int64_t sum = 0;
    for (int64_t i = 0; i < SECTOR_ELEMS && i < whole_count; i++) {
        int64_t alike_count = divide_up(whole_count - i, SECTOR_ELEMS);
        sum += alike_count * count_sectors(group, ld, (phase + i * shift) % SECTOR_ELEMS, reach);
    }
    phase = (phase + whole_count % SECTOR_ELEMS * shift) % SECTOR_ELEMS;
    return sum + count_sectors(row_count % group, ld, phase, reach);
}

/* All requests that cover a matrix of row_count x col_count once. Where a group of columns starts
 * in a sector repeats after 8 groups as well. */
static sweep sweep_matrix(int64_t row_count, int64_t col_count, cover part)
{
    const int64_t whole_count = col_count / part.col_count, rest = col_count % part.col_count;
    const int64_t row_groups = divide_up(row_count, part.row_count);
    sweep total = {0, 0};
    for (int j = 0; j < part.lane_elems; j++) {
        int64_t reach = (part.col_count - 1 - j) / part.lane_elems * part.lane_elems;
        for (int64_t i = 0; i < SECTOR_ELEMS && i < whole_count; i++) {
            int64_t alike_count = divide_up(whole_count - i, SECTOR_ELEMS);
            int64_t phase = (i * part.col_count + j) % SECTOR_ELEMS;
            total.sector_count +=
                alike_count * sum_row_groups(row_count, col_count, part.row_count, phase, reach);
        }
        total.request_count += row_groups * whole_count;
        if (rest > j) {
            int64_t phase = (whole_count % SECTOR_ELEMS * part.col_count + j) % SECTOR_ELEMS;
            reach = (rest - 1 - j) / part.lane_elems * part.lane_elems;
            total.sector_count +=
                sum_row_groups(row_count, col_count, part.row_count, phase, reach);
            total.request_count += row_groups;
        }
    }
    return total;
}

static rung_covers find_covers(const tgi_kernel *kernel, int64_t n, int64_t k)
{
    const int tile = kernel->tile_rows;
    /* A warp of a T x T block spans min(T, 32) threads along x and 32 / T along y. */
    const int along_x = least(tile, WARP_THREADS);
    const int along_y = tile < WARP_THREADS ? least(tile, WARP_THREADS / tile) : 1;
    /* 16 bytes at once where rows start at multiples of 16 bytes. */
    const int a_elems = k % 4 == 0 ? 1 : 4, b_elems = n % 4 == 0 ? 1 : 4;
    switch (kernel->family) {
    case TGI_FAMILY_cuda_naive:
        return (rung_covers){{along_x, 1, 1}, {1, along_y, 1}, {along_x, along_y, 1}};
    case TGI_FAMILY_cuda_coalesced:
        return (rung_covers){{along_y, 1, 1}, {1, along_x, 1}, {along_y, along_x, 1}};
    case TGI_FAMILY_cuda_register_column:
        return (rung_covers){{4, 8, 1}, {1, 32, 1}, {1, 32, 1}};
    case TGI_FAMILY_cuda_register_tile:
        return (rung_covers){{4, 8, 1}, {1, 32, 1}, {2, 16, 1}};
    case TGI_FAMILY_cuda_vector:
    case TGI_FAMILY_cuda_buffered:
        return (rung_covers){{16, 8, a_elems}, {1, 128, b_elems}, {2, 64, b_elems}};
    case TGI_FAMILY_cuda_warp_tile:
        return (rung_covers){{16, 8, a_elems}, {1, 128, b_elems}, {4, 32, b_elems}};
    default: /* tiled, edges, transposed, padded */
        return (rung_covers){{along_y, along_x, 1}, {along_y, along_x, 1}, {along_y, along_x, 1}};
    }
}

static shared_step find_shared_step(const tgi_kernel *kernel, const rung_covers *covers)
{
    const int tile = kernel->tile_rows, depth = kernel->tile_depth;
    const int rows = kernel->thread_rows, cols = kernel->thread_cols;
    /* Elements of one tile that a thread brings in, one an access. */
    const int elems = tile * depth / kernel->thread_count;
    /* 4 steps of A and 4 columns of B in a float4. */
    const int vector_loads = depth / 4 * rows + depth * (cols / 4);
    const int merged_loads = (depth < 4 ? depth : depth / 4) * rows; /* of A, by nvcc */
    switch (kernel->family) {
    case TGI_FAMILY_cuda_naive:
    case TGI_FAMILY_cuda_coalesced:
        return (shared_step){0, 0, 0, 0, 0};
    case TGI_FAMILY_cuda_transposed: /* 32 words of one bank in each access to B's tile */
        /* B's are merged too: 32 turns where a float4 needs 4. */
        return (shared_step){2 * depth, 2, (WARP_THREADS - 1) * (depth + 1), 2 * merged_loads,
                             depth / 4 * (WARP_THREADS - 4) + WARP_THREADS - 1};
    case TGI_FAMILY_cuda_register_column:
        return (shared_step){depth * (rows + cols), 2 * elems, 0, merged_loads + depth * cols, 0};
    case TGI_FAMILY_cuda_register_tile:
        return (shared_step){depth * (rows + cols), 2 * elems, 0, depth * (rows + cols), 0};
    case TGI_FAMILY_cuda_vector:
        return (shared_step){vector_loads, 2, 0, vector_loads, 0};
    case TGI_FAMILY_cuda_buffered:
    case TGI_FAMILY_cuda_warp_tile: /* copied one by one, lanes lie 4 words apart: 4 turns */
        return (shared_step){vector_loads, covers->a.lane_elems + covers->b.lane_elems,
                             (covers->a.lane_elems == 4 ? 4 * 3 : 0) +
                                 (covers->b.lane_elems == 4 ? 4 * 3 : 0),
                             vector_loads, 0};
    default: /* tiled, edges, padded */
        return (shared_step){2 * depth, 2, 0, merged_loads + depth, 0};
    }
}

static void count_global(const tgi_kernel *kernel, int64_t m, int64_t n, int64_t k,
                         const rung_covers *covers, tg_traffic *traffic)
{
    const int is_direct = kernel->stage_count == 0;
    /* How often A and B are walked: once for each column (row) of blocks; where threads read for
     * themselves, for each column (row) of warps, and each thread is alone in asking. */
    const int64_t a_count = divide_up(n, is_direct ? covers->d.col_count : kernel->tile_cols);
    const int64_t b_count = divide_up(m, is_direct ? covers->d.row_count : kernel->tile_rows);
    const sweep a = sweep_matrix(m, k, covers->a), b = sweep_matrix(k, n, covers->b);
    const sweep d = sweep_matrix(m, n, covers->d);
    traffic->global_read_elems = is_direct ? 2 * m * n * k : m * k * a_count + k * n * b_count;
    traffic->global_write_elems = m * n;
    traffic->global_load_requests = a_count * a.request_count + b_count * b.request_count;
    traffic->global_load_sectors = a_count * a.sector_count + b_count * b.sector_count;
    traffic->global_store_requests = d.request_count;
    traffic->global_store_sectors = d.sector_count;
    traffic->block_read_elems = is_direct ? 2 * (int64_t)kernel->tile_rows * kernel->tile_cols * k
                                          : ((int64_t)kernel->tile_rows + kernel->tile_cols) * k;
}

static void count_grid(const tgi_kernel *kernel, int64_t m, int64_t n, tg_traffic *traffic)
{
    const int64_t rows = divide_up(m, kernel->tile_rows), cols = divide_up(n, kernel->tile_cols);
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
    const int64_t steps = divide_up(k, kernel->tile_depth);
    memset(traffic, 0, sizeof *traffic);
    count_grid(kernel, m, n, traffic);
    count_global(kernel, m, n, k, &covers, traffic);
    traffic->global_read_bytes = 4 * traffic->global_read_elems;
    traffic->global_write_bytes = 4 * traffic->global_write_elems;

    const int64_t block_steps = traffic->block_count * steps;
    const int64_t warp_steps = block_steps * divide_up(kernel->thread_count, WARP_THREADS);
    traffic->shared_load_requests = warp_steps * shared.load_count;
    traffic->shared_store_requests = warp_steps * shared.store_count;
    traffic->bank_conflicts = warp_steps * shared.conflict_count;
    traffic->counter_shared_loads = warp_steps * shared.counter_load_count;
    traffic->counter_shared_turns = warp_steps * (int64_t)tgi_model_ladder_step(kernel).turn_count;
    traffic->counter_bank_conflicts = warp_steps * shared.counter_conflict_count;
    traffic->barriers = is_direct ? 0 : block_steps * (kernel->stage_count == 1 ? 2 : 1);

    traffic->useful_flops = traffic->naive_read_elems = 2 * m * n * k;
    traffic->issued_flops =
        is_direct ? traffic->useful_flops
                  : 2 * block_steps * kernel->tile_rows * kernel->tile_cols * kernel->tile_depth;
    traffic->flop_per_byte = (double)traffic->useful_flops / (double)traffic->global_read_bytes;
    traffic->reads_saved_elems = traffic->naive_read_elems - traffic->global_read_elems;
    traffic->reuse = (double)traffic->naive_read_elems / (double)traffic->global_read_elems;
}
