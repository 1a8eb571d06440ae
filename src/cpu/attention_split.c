/* Takes the blocks of keys of an attention on the CPU from products to sums. */
#include <math.h>
#include <string.h>

#include "cpu/attention_tasks.h"

#define LOG2_E 1.4426950408889634

/* Computes D = A B, for `rows` rows of D by tiles. The rows of B and D have a query block's
 * length. */
static void multiply(const tgi_attention_run *run, int64_t rows, int64_t k, tgi_attention_rows a,
                     tgi_a_order order, const char *b, char *d, int64_t used)
{
    const tgi_tile_set *tiles = run->tiles;
    const int64_t cols = tiles->cols, whole = rows / tiles->rows, rest = rows % tiles->rows;
    const int64_t tile_stride = order == TGI_A_ALONG_K ? tiles->rows * a.stride : tiles->rows;
    tgi_tile tile = {.k = k,
                     .tile_count = whole,
                     .a_tile_stride = tile_stride,
                     .d_tile_stride = tiles->rows * cols,
                     .a_stride = a.stride,
                     .b_row = cols,
                     .d_row = cols,
                     .cols = (int)used,
                     .is_plain = 1};
    if (whole > 0)
        tiles->functions[tiles->rows - 1][order](&tile, a.data, b, d, d, d, 1.0, 0.0);
    if (rest == 0)
        return;
    tile.tile_count = 1;
    d += whole * tiles->rows * cols * tiles->accum_bytes;
    tiles->functions[rest - 1][order](
        &tile, (const char *)a.data + whole * tile_stride * tiles->accum_bytes, b, d, d, d, 1.0,
        0.0);
}

/* Forms the sums of weights times V key by key, in the order of the tiles, for the keys that each
 * query sees: a hidden key may hold Inf or NaN, which a weight of zero would not remove. */
static void sum_seen(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                     tgi_attention_rows values, char *sums, int64_t used)
{
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t cols = run->tiles->cols;
    for (int64_t c = 0; c < used; c++) {
        const int64_t low = (int64_t)tgi_attention_read(scratch->low, c, is_fp64);
        const int64_t high = (int64_t)tgi_attention_read(scratch->high, c, is_fp64);
        for (int64_t e = 0; e < run->attention->v_head_size; e++) {
            double sum = 0.0;
            for (int64_t j = low; j < high; j++) {
                const double weight = tgi_attention_read(scratch->scores, j * cols + c, is_fp64);
                const double value =
                    tgi_attention_read(values.data, j * values.stride + e, is_fp64);
                if (!is_fp64)
                    sum = run->tiles->has_fma
                              ? (double)fmaf((float)weight, (float)value, (float)sum)
                              : (double)((float)(weight * value) + (float)sum);
                else
                    sum = run->tiles->has_fma ? fma(weight, value, sum) : weight * value + sum;
            }
            tgi_attention_write(sums, e * cols + c, is_fp64, sum);
        }
    }
}

/* Returns 1 if a query of the query block does not see all `count` keys from `first` on. */
static int is_at_edge(const tgi_attention_range *range, int64_t first, int64_t count)
{
    return range->all_low > first || range->all_high < first + count;
}

/* Sets the keys of the block that each column sees, and the places of the queries. */
static void find_edges(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                       int64_t query_block, int64_t first, int64_t count)
{
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t cols = run->tiles->cols;
    for (int64_t c = 0; c < cols; c++) {
        const int64_t at = query_block * cols + c;
        int64_t low = ((int64_t *)scratch->lows)[at] - first;
        int64_t high = ((int64_t *)scratch->highs)[at] - first;
        low = low < 0 ? 0 : low > count ? count : low;
        high = high < low ? low : high > count ? count : high;
        tgi_attention_write(scratch->low, c, is_fp64, (double)low);
        tgi_attention_write(scratch->high, c, is_fp64, (double)high);
        tgi_attention_write(scratch->place, c, is_fp64,
                            (double)(((int64_t *)scratch->places)[at] - first));
    }
}

/* Returns 1 if the block's V holds no Inf or NaN. */
static int check_finite(const tgi_attention_run *run, tgi_attention_keys *keys)
{
    if (keys->is_finite < 0)
        keys->is_finite = run->isa->is_finite(keys->values.data, keys->values.stride, keys->length,
                                              run->attention->v_head_size);
    return keys->is_finite;
}

/* Converts the scores of a block to weights, and sets the block's own state, `sums`. */
static void weigh_and_sum(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                          tgi_attention_keys *keys, const tgi_attention_block *block,
                          const tgi_attention_state *sums)
{
    run->isa->weigh(block, sums);
    if (block->low && !check_finite(run, keys))
        sum_seen(run, scratch, keys->values, sums->rows, sums->cols);
    else
        multiply(run, sums->size, block->keys, keys->values, TGI_A_ALONG_ROWS, block->scores,
                 sums->rows, sums->cols);
}

/* Adds the first `count` keys of a block to a query block. */
static void add_block(const tgi_attention_run *run, const tgi_attention_item *item,
                      const tgi_attention_scratch *scratch, int64_t query_block,
                      tgi_attention_keys *keys, int64_t count)
{
    const int64_t first = keys->first;
    const tg_attention *a = run->attention;
    const int64_t cols = run->tiles->cols, bytes = run->tiles->accum_bytes;
    const tgi_attention_state sums = {scratch->sums, a->v_head_size, cols,
                                      tgi_attention_count_cols(run, item, query_block)};
    tgi_attention_state state = sums;
    state.rows = scratch->splits + query_block * run->state_bytes;
    const char *queries = scratch->queries + query_block * a->head_size * cols * bytes;
    const int is_edge = is_at_edge(&scratch->ranges[query_block], first, count);
    if (is_edge || a->has_slopes)
        find_edges(run, scratch, query_block, first, count);
    if (run->slices)
        tgi_attention_multiply_keys(run, scratch, keys, query_block, count, sums.cols);
    else
        multiply(run, count, a->head_size, keys->keys, TGI_A_ALONG_K, queries, scratch->scores,
                 sums.cols);
    if (a->has_bias)
        tgi_attention_load_bias(run, item, scratch, query_block, first, count);
    const tgi_attention_block block = {
        .keys = count,
        .scores = scratch->scores,
        .scale = a->scale * LOG2_E,
        .cap = a->soft_cap * LOG2_E,
        .cap_inverse = a->soft_cap > 0.0 ? 1.0 / (a->soft_cap * LOG2_E) : 0.0,
        .bias = a->has_bias ? scratch->bias : NULL,
        .slopes = a->has_slopes ? scratch->slopes + query_block * cols * bytes : NULL,
        .places = scratch->place,
        .low = is_edge ? scratch->low : NULL,
        .high = is_edge ? scratch->high : NULL};
    if (run->slices)
        tgi_attention_sum_values(run, scratch, keys, &block, &sums);
    else
        weigh_and_sum(run, scratch, keys, &block, &sums);
    run->isa->merge(&state, sums.rows);
}

void tgi_attention_clear(const tgi_attention_run *run, char *state)
{
    const int64_t cols = run->tiles->cols, sums = (run->attention->v_head_size + 1) * cols;
    memset(state, 0, (size_t)(sums * run->tiles->accum_bytes));
    for (int64_t c = 0; c < cols; c++)
        tgi_attention_write(state, sums + c, tgi_attention_is_fp64(run), -INFINITY);
}

/* Adds a block of keys to all query blocks that see some of them. */
static void add_block_to_all(const tgi_attention_run *run, const tgi_attention_item *item,
                             const tgi_attention_scratch *scratch, tgi_attention_keys *keys)
{
    const tg_attention *a = run->attention;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_attention_range *range = &scratch->ranges[query_block];
        if (range->high <= keys->first || range->low >= keys->first + keys->length)
            continue;
        if (!keys->keys.data) {
            keys->keys = tgi_attention_load_rows(run, item, &a->k, a->head_size, keys->first,
                                                 keys->length, scratch->keys);
            keys->values = tgi_attention_load_rows(run, item, &a->v, a->v_head_size, keys->first,
                                                   keys->length, scratch->values);
            if (run->slices)
                tgi_attention_slice_keys(run, scratch, keys);
        }
        const int64_t seen = range->high - keys->first;
        add_block(run, item, scratch, query_block, keys, seen < keys->length ? seen : keys->length);
    }
}

void tgi_attention_add_split(const tgi_attention_run *run, const tgi_attention_item *item,
                             int64_t split, const tgi_attention_scratch *scratch)
{
    const int64_t start = split * run->split_keys;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++)
        tgi_attention_clear(run, scratch->splits + query_block * run->state_bytes);
    for (int64_t first = start; first < start + run->split_keys && first < item->keys;
         first += run->block_keys) {
        const int64_t left = item->keys - first;
        tgi_attention_keys keys = {.first = first,
                                   .length = left < run->block_keys ? left : run->block_keys,
                                   .is_finite = -1};
        add_block_to_all(run, item, scratch, &keys);
    }
}
