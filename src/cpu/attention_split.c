/* Takes the blocks of keys of an attention on the CPU from products to sums. */
#include <math.h>
#include <string.h>

#include "cpu/attention_tasks.h"

#define LOG2_E 1.4426950408889634

/* Rows of tensors that the tiles of a product prefetch. */
typedef struct ahead {
    int count;
    tgi_prefetch rows[TGI_PREFETCH_COUNT];
} ahead;

/* Adds `count` rows of a tensor, `size` elements each. */
static void add_rows(ahead *ahead, const tg_heads *heads, int64_t bytes, const void *start,
                     int64_t size, int64_t count)
{
    if (count > 0 && heads->element_stride == 1)
        tgi_cpu_start_prefetch(&ahead->rows[ahead->count++], start, size * bytes,
                               heads->row_stride * bytes, count);
}

/* Computes D = A B, for `rows` rows of D by tiles. The rows of B and D have a query block's
 * length. */
static void multiply(const tgi_attention_run *run, int64_t rows, int64_t k, tgi_attention_rows a,
                     tgi_a_order order, const char *b, char *d, int64_t used, ahead *ahead)
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
                     .is_plain = 1,
                     .prefetch = tgi_cpu_pace_prefetches(ahead->rows, ahead->count,
                                                         tgi_divide_up(rows, tiles->rows) * k /
                                                             TGI_TILE_UNROLL)};
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
                          const tgi_attention_state *sums, ahead *ahead)
{
    run->isa->weigh(block, sums);
    if (block->low && !check_finite(run, keys))
        sum_seen(run, scratch, keys->values, sums->rows, sums->cols);
    else
        multiply(run, sums->size, block->keys, keys->values, TGI_A_ALONG_ROWS, block->scores,
                 sums->rows, sums->cols, ahead);
}

/* Finds what the products with V prefetch: the item's rows of D in the first block, the next item's
 * rows of Q in the second, and, where K comes from memory, the next block of it. */
static void find_ahead(const tgi_attention_run *run, const tgi_attention_item *item,
                       const tgi_attention_keys *keys, ahead *ahead)
{
    const tg_attention *a = run->attention;
    const int64_t bytes = tgi_type_bytes(a->type), first = keys->first;
    const int64_t left = item->keys - first - keys->length;
    ahead->count = 0;
    if (run->query_block_count > 1 || item->count <= run->tiles->vector_elems)
        return;
    if (first == 0) {
        int64_t entry, row;
        const int64_t head = tgi_attention_find_row(run, item, 0, &entry, &row);
        add_rows(ahead, &a->d, bytes, tgi_attention_at(&a->d, bytes, entry, head, row, 0),
                 a->v_head_size, tgi_attention_count_run(item));
    } else if (first == run->block_keys) {
        add_rows(ahead, &a->q, bytes, item->next_queries, a->head_size, item->next_count);
    }
    if (item->is_first && tgi_attention_is_in_place(run, &a->k))
        add_rows(ahead, &a->k, bytes,
                 tgi_attention_find_rows(run, item, &a->k, first + keys->length).data, a->head_size,
                 left < run->block_keys ? left : run->block_keys);
}

/* Adds the first `count` keys of a block to the state of a query block. The first block that a
 * query block sees is its state. */
static void add_block(const tgi_attention_run *run, const tgi_attention_item *item,
                      const tgi_attention_scratch *scratch, char *state_rows, int64_t query_block,
                      tgi_attention_keys *keys, int64_t count, int is_first)
{
    const int64_t first = keys->first;
    const tg_attention *a = run->attention;
    const int64_t cols = run->tiles->cols, bytes = run->tiles->accum_bytes;
    const tgi_attention_state state = {state_rows, a->v_head_size, cols,
                                       tgi_attention_count_cols(run, item, query_block)};
    tgi_attention_state sums = state;
    if (!is_first)
        sums.rows = scratch->sums;
    const char *queries = scratch->queries + query_block * a->head_size * cols * bytes;
    const int is_edge = is_at_edge(&scratch->ranges[query_block], first, count);
    if (is_edge || a->has_slopes)
        find_edges(run, scratch, query_block, first, count);
    ahead ahead = {.count = 0};
    if (item->is_first && tgi_attention_is_in_place(run, &a->v))
        add_rows(&ahead, &a->v, bytes, keys->values.data, a->v_head_size, count);
    if (run->slices)
        tgi_attention_multiply_keys(run, scratch, keys, query_block, count, sums.cols);
    else
        multiply(run, count, a->head_size, keys->keys, TGI_A_ALONG_K, queries, scratch->scores,
                 sums.cols, &ahead);
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
    find_ahead(run, item, keys, &ahead);
    if (run->slices)
        tgi_attention_sum_values(run, scratch, keys, &block, &sums);
    else
        weigh_and_sum(run, scratch, keys, &block, &sums, &ahead);
    if (!is_first)
        run->isa->merge(&state, sums.rows);
}

/* Sets a query block's state to that of no keys. */
static void clear(const tgi_attention_run *run, char *state)
{
    const int64_t cols = run->tiles->cols, sums = (run->attention->v_head_size + 1) * cols;
    memset(state, 0, (size_t)(sums * run->tiles->accum_bytes));
    for (int64_t c = 0; c < cols; c++)
        tgi_attention_write(state, sums + c, tgi_attention_is_fp64(run), -INFINITY);
}

/* Adds a block of keys to all query blocks that see some of them. `start` is the split's first key,
 * and `states` are its states. */
static void add_block_to_all(const tgi_attention_run *run, const tgi_attention_item *item,
                             const tgi_attention_scratch *scratch, int64_t start, char *states,
                             tgi_attention_keys *keys)
{
    const tg_attention *a = run->attention;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_attention_range *range = &scratch->ranges[query_block];
        if (range->high <= keys->first || range->low >= keys->first + keys->length)
            continue;
        const int is_unread = !keys->keys.data;
        if (is_unread && !(run->slices && tgi_attention_pair_keys(run, item, scratch, keys))) {
            keys->keys = tgi_attention_load_rows(run, item, &a->k, a->head_size, keys->first,
                                                 keys->length, scratch->keys);
            keys->values = tgi_attention_load_rows(run, item, &a->v, a->v_head_size, keys->first,
                                                   keys->length, scratch->values);
            if (run->slices)
                tgi_attention_slice_keys(run, scratch, keys);
            /* Keys that are not sliced are multiplied by converted queries. */
            if (run->slices && keys->has_odd_keys)
                tgi_attention_load_queries(run, item, scratch);
        }
        const int64_t seen = range->high - keys->first;
        add_block(run, item, scratch, states + query_block * run->state_bytes, query_block, keys,
                  seen < keys->length ? seen : keys->length,
                  keys->first == start || range->low >= keys->first);
    }
}

void tgi_attention_form_split(const tgi_attention_run *run, const tgi_attention_item *item,
                              int64_t split, const tgi_attention_scratch *scratch, char *states)
{
    const int64_t start = split * run->split_keys, end = start + run->split_keys;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_attention_range *range = &scratch->ranges[query_block];
        if (range->high <= start || range->low >= end)
            clear(run, states + query_block * run->state_bytes);
    }
    for (int64_t first = start; first < end && first < item->keys; first += run->block_keys) {
        const int64_t left = item->keys - first;
        tgi_attention_keys keys = {.first = first,
                                   .length = left < run->block_keys ? left : run->block_keys,
                                   .is_finite = -1};
        add_block_to_all(run, item, scratch, start, states, &keys);
    }
}
