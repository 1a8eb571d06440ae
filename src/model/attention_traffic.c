/*
 * The counts of the rungs of attention. Rows of Q, K, V and D start at sectors, since heads are
 * multiples of 8 elements (FP32) or 16 (16 bits); only rows of scores may start anywhere.
 */
#include <string.h>

#include "core/checked.h"
#include "model/attention_rungs.h"
#include "model/banks.h"

#define SECTOR_BYTES 32
#define SECTOR_ELEMS 8 /* FP32 */
#define LINE_BYTES 128
#define UNIT_ELEMS 8  /* 16-bit elements of 16 bytes */
#define UNIT_TURNS 4  /* turns of a warp's access to such units */
#define MMA_ROWS 8    /* rows of D that a warp stores together */
#define MMA_FLOPS 128 /* operations of a lane in mma.m16n8k16 */

/* The steps along the keys of all blocks, and the rows of K that they load. */
typedef struct key_steps {
    int64_t step_count, row_count, request_count; /* requests: of groups of rows */
    int64_t started_count;                        /* blocks with at least one step */
} key_steps;

static int64_t clamp(int64_t value, int64_t most)
{
    return value < 0 ? 0 : value < most ? value : most;
}

/* Counts the steps of one head. A block ends with the last key that one of its queries sees. */
static key_steps count_steps(const tgi_attention_rung *rung, const tgi_attention_sizes *s,
                             int rows_per_request)
{
    const int64_t queries = rung->query_count; /* a step has as many keys */
    key_steps all = {0, 0, 0, 0};
    for (int64_t first = 0; first < s->m; first += queries) {
        const int64_t end = first + queries < s->m ? first + queries : s->m;
        const int64_t steps = tgi_divide_up(clamp(end + s->shift, s->n), queries);
        const int64_t rows = clamp(steps * queries, s->n);
        all.step_count += steps;
        all.row_count += rows;
        all.request_count += tgi_divide_up(rows, rows_per_request);
        all.started_count += steps > 0;
    }
    return all;
}

/* Returns the query-key pairs of one head that the mask leaves visible. */
static int64_t count_seen(const tgi_attention_sizes *s)
{
    /* Queries below `first` see no key, queries from `full` on see all keys. */
    const int64_t first = clamp(-s->shift, s->m), full = clamp(s->n - s->shift, s->m);
    const int64_t part = full > first ? full - first : 0;
    return part * (first + s->shift) + part * (part + 1) / 2 + (s->m - full) * s->n;
}

/* Returns the sectors that the warps of all rows touch when they write their scores once. */
static int64_t count_score_sectors(const tgi_attention_sizes *s)
{
    const int64_t row_count = s->head_count * s->m;
    int64_t sectors = 0;
    for (int64_t row = 0; row < SECTOR_ELEMS && row < row_count; row++) {
        const int64_t alike = (row_count - row + SECTOR_ELEMS - 1) / SECTOR_ELEMS;
        const int64_t phase = row * (s->n % SECTOR_ELEMS) % SECTOR_ELEMS;
        const int64_t whole = s->n / TGI_WARP_THREADS, rest = s->n % TGI_WARP_THREADS;
        sectors += alike * whole * ((phase + TGI_WARP_THREADS - 1) / SECTOR_ELEMS + 1);
        sectors += rest ? alike * ((phase + rest - 1) / SECTOR_ELEMS + 1) : 0;
    }
    return sectors;
}

/* A warp has a row of scores. Each lane reads its own row of K, and all lanes read one element of Q
 * or one weight. Only the first lane converts scores to weights. */
static void count_naive(const tgi_attention_sizes *s, tg_traffic *t)
{
    const int64_t rows = s->head_count * s->m, pairs = rows * s->n, size = s->head_size;
    const int64_t key_parts = tgi_divide_up(s->n, TGI_WARP_THREADS);
    const int64_t parts = tgi_divide_up(size, TGI_WARP_THREADS);
    t->global_read_elems = pairs * (2 * size + 2 + 2 * size);
    t->global_load_requests = rows * 2 * (key_parts * size + s->n + parts * s->n);
    t->global_load_sectors =
        rows * (key_parts * size + s->n * size + 2 * s->n + s->n * (parts + size / SECTOR_ELEMS));
    t->global_write_elems = 2 * pairs + rows * size;
    t->global_store_requests = rows * (key_parts + s->n + parts);
    t->global_store_sectors = count_score_sectors(s) + pairs + rows * size / SECTOR_ELEMS;
    t->barriers = 2 * t->block_count;
    t->issued_flops = pairs * (2 * size + 1 + 1 + 3 * size);
    t->block_read_elems = (int64_t)t->tile_rows * s->n * (4 * size + 2);
}

/* A warp has a query, and a row of each tile that is loaded. */
static void count_tiled(const tgi_attention_rung *rung, const tgi_attention_sizes *s, tg_traffic *t)
{
    const int64_t head = rung->head_size, size = s->head_size, queries = rung->query_count;
    const int64_t parts =
        tgi_divide_up(size, TGI_WARP_THREADS); /* parts of a row that have elements */
    const int64_t tile_parts = head / TGI_WARP_THREADS;
    const key_steps keys = count_steps(rung, s, 1);
    const int64_t steps = s->head_count * keys.step_count;
    const int64_t rows = s->head_count * (s->m + 2 * keys.row_count);
    const int64_t sum_flops = 2 * head; /* operations of a score, or of all sums of D */
    t->global_read_elems = rows * size;
    t->global_load_requests = rows * parts;
    t->global_load_sectors = rows * size / SECTOR_ELEMS;
    t->global_write_elems = s->head_count * s->m * size;
    t->global_store_requests = s->head_count * s->m * parts;
    t->global_store_sectors = s->head_count * s->m * size / SECTOR_ELEMS;
    t->shared_load_requests = steps * queries * (2 * head + queries * (2 + tile_parts));
    t->shared_store_requests =
        queries * (t->block_count * tile_parts + steps * (2 * tile_parts + 2));
    t->counter_shared_loads = t->shared_load_requests;
    t->counter_shared_turns = t->shared_load_requests + t->shared_store_requests;
    t->barriers = 4 * steps;
    /* Scale, two differences, the factor of the total and of the sums; each key's weight. */
    t->issued_flops = steps * t->threads_per_block * (2 * sum_flops + 4 + tile_parts + queries);
    t->block_read_elems = (queries + 2 * s->n) * size;
}

/* A warp has 16 queries in two halves of 8 rows. */
static void count_mma(const tgi_attention_rung *rung, const tgi_attention_sizes *s, tg_traffic *t)
{
    const int64_t head = rung->head_size, size = s->head_size, queries = rung->query_count;
    const int64_t warps = t->threads_per_block / TGI_WARP_THREADS;
    const int64_t units = head / UNIT_ELEMS; /* units of a row of a tile */
    const int rows_per_request = (int)(TGI_WARP_THREADS / units);
    const key_steps keys = count_steps(rung, s, rows_per_request);
    const int64_t steps = s->head_count * keys.step_count, heads = s->head_count;
    const int64_t rows = heads * (s->m + 2 * keys.row_count);
    const int64_t sector_elems = SECTOR_BYTES / 2;
    t->global_read_elems = rows * size;
    t->global_load_requests =
        heads * (tgi_divide_up(s->m, rows_per_request) + 2 * keys.request_count);
    t->global_load_sectors = rows * size / sector_elems;
    t->global_write_elems = heads * s->m * size;
    t->global_store_requests = heads * tgi_divide_up(s->m, MMA_ROWS) * (size / UNIT_ELEMS);
    t->global_store_sectors = heads * s->m * (size / UNIT_ELEMS);
    t->shared_load_requests = warps * (head / 16) * (heads * keys.started_count + 8 * steps);
    t->shared_store_requests = queries * units / TGI_WARP_THREADS * (t->block_count + 2 * steps);
    t->counter_shared_loads = t->shared_load_requests;
    t->counter_shared_turns = UNIT_TURNS * t->shared_load_requests;
    t->barriers = 2 * steps;
    /* In a step a warp forms 8 matrices of scores by head / 16 instructions each, and adds to
     * head / 8 matrices of D by 4 instructions each. A lane scales 32 scores. For each of two rows
     * it forms 16 weights, adds them and rescales its earlier sums. At the end two shuffles add the
     * sums of weights. */
    const int64_t step_flops = MMA_FLOPS * head + 32 + 2 * (2 + 2 * 16 + head / 4);
    t->issued_flops =
        t->threads_per_block * (steps * step_flops + t->block_count * 2 * (2 + head / 4));
    t->block_read_elems = (queries + 2 * s->n) * size;
}

void tgi_model_attention_count(const tgi_attention_rung *rung, const tgi_attention_sizes *s,
                               tg_traffic *t)
{
    const int64_t elem_bytes = tgi_type_bytes(rung->type), queries = rung->query_count;
    memset(t, 0, sizeof *t);
    t->grid_x = tgi_divide_up(s->m, queries);
    t->grid_y = s->head_count;
    t->block_count = t->grid_x * t->grid_y;
    t->threads_per_block = rung->threads_x * rung->threads_y;
    t->tile_rows = rung->query_count;
    t->tile_cols = rung->head_size;
    t->tile_depth = rung->family == TGI_ATTENTION_naive ? 1 : rung->query_count;
    t->edge_row_count = (int)(s->m % queries);
    t->edge_block_count = t->edge_row_count ? s->head_count : 0;
    if (rung->family == TGI_ATTENTION_naive)
        count_naive(s, t);
    else if (rung->family == TGI_ATTENTION_tiled)
        count_tiled(rung, s, t);
    else
        count_mma(rung, s, t);
    t->global_read_bytes = elem_bytes * t->global_read_elems;
    t->global_write_bytes = elem_bytes * t->global_write_elems;
    t->useful_flops = 4 * s->head_size * s->head_count * count_seen(s);
    t->naive_read_elems = s->head_count * s->m * s->n * (4 * s->head_size + 2);
    t->reads_saved_elems = t->naive_read_elems - t->global_read_elems;
    t->flop_per_byte = (double)t->useful_flops / (double)t->global_read_bytes;
    t->reuse = (double)t->naive_read_elems / (double)t->global_read_elems;
}

tgi_attention_work tgi_model_attention_work(const tgi_attention_rung *rung,
                                            const tgi_attention_sizes *s)
{
    const double rows = (double)s->head_count * (double)s->m, n = (double)s->n;
    const double size = (double)s->head_size;
    const double row_lines =
        4.0 * size / LINE_BYTES; /* lines of a row, which a warp reads in parts */
    if (rung->family == TGI_ATTENTION_naive) {
        /* A read of K by 32 lanes touches a line of each row, an element of Q or a weight one. */
        const double key_lines = row_lines < 1.0 ? row_lines : 1.0;
        const double parts = (double)tgi_divide_up(s->head_size, TGI_WARP_THREADS);
        return (tgi_attention_work){
            rows * n * (size * (key_lines + 1.0 / TGI_WARP_THREADS) + 3.0 + 2.0 * parts), rows * n,
            1.0}; /* blocks form the scores of all keys */
    }
    const key_steps keys = count_steps(rung, s, 1);
    const double steps = (double)s->head_count * (double)keys.step_count;
    const double weights = steps * rung->query_count * rung->query_count;
    const double last_steps =
        (double)tgi_divide_up(clamp(s->m + s->shift, s->n), rung->query_count);
    const double mean_steps =
        (double)keys.step_count / (double)tgi_divide_up(s->m, rung->query_count);
    const double longest_ratio = mean_steps > 0.0 ? last_steps / mean_steps : 1.0;
    if (rung->family == TGI_ATTENTION_mma) /* copies keep no thread waiting */
        return (tgi_attention_work){rows * size / UNIT_ELEMS,
                                    weights + steps * 2.0 * rung->threads_x * rung->threads_y,
                                    longest_ratio};
    return (tgi_attention_work){(double)s->head_count *
                                    (2.0 * (double)s->m + 2.0 * (double)keys.row_count) *
                                    (double)tgi_divide_up(s->head_size, TGI_WARP_THREADS),
                                2.0 * weights, longest_ratio};
}
