/* Copies the operands of an attention on the CPU to and from the blocks of a thread. */
#include <math.h>
#include <string.h>

#include "core/attention_mask.h"
#include "core/dtype.h"
#include "cpu/attention_tasks.h"

#define LOG2_E 1.4426950408889634
#define LN_2 0.6931471805599453

static int64_t least_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t largest_of(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

int64_t tgi_attention_find_row(const tgi_attention_run *run, const tgi_attention_item *item,
                               int64_t c, int64_t *entry, int64_t *row)
{
    const tg_attention *a = run->attention;
    const int64_t place = item->first + c;
    *row = place % item->queries;
    *entry = item->batch;
    if (a->has_query_offsets) {
        *row += a->query_offsets[item->batch];
        *entry = 0;
    }
    return item->kv_head * run->group + place / item->queries;
}

/* Sets the keys that query `c` sees, low .. high - 1, and its slope and place. */
static void find_keys(const tgi_attention_run *run, const tgi_attention_item *item,
                      const tgi_attention_scratch *scratch, int64_t c)
{
    const tg_attention *a = run->attention;
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t i = (item->first + c) % item->queries;
    const int64_t head = item->kv_head * run->group + (item->first + c) / item->queries;
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t place = window.is_bottom ? i + item->keys - item->queries : i;
    const int64_t low = largest_of(0, place - window.before);
    const int64_t high = least_of(item->keys, place + window.after + 1);
    ((int64_t *)scratch->lows)[c] = low;
    ((int64_t *)scratch->highs)[c] = largest_of(high, low);
    ((int64_t *)scratch->places)[c] = place;
    if (a->has_slopes)
        tgi_attention_write(scratch->slopes, c, is_fp64,
                            tgi_attention_read(a->slopes, head, is_fp64) * LOG2_E);
}

/* Finds the keys that some query, and that all queries, of a query block see. */
static tgi_attention_range find_range(const tgi_attention_run *run, const tgi_attention_item *item,
                                      const tgi_attention_scratch *scratch, int64_t query_block)
{
    const int64_t cols = run->tiles->cols, end = least_of((query_block + 1) * cols, item->count);
    tgi_attention_range range = {INT64_MAX, 0, 0, INT64_MAX};
    for (int64_t c = query_block * cols; c < end; c++) {
        const int64_t low = ((int64_t *)scratch->lows)[c], high = ((int64_t *)scratch->highs)[c];
        range.all_low = largest_of(range.all_low, low);
        range.all_high = least_of(range.all_high, high);
        if (low == high)
            continue;
        range.low = least_of(range.low, low);
        range.high = largest_of(range.high, high);
    }
    return range;
}

void tgi_attention_load_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                                const tgi_attention_scratch *scratch)
{
    const tg_attention *a = run->attention;
    const int64_t cols = run->tiles->cols, bytes = run->tiles->accum_bytes;
    memset(scratch->queries, 0, (size_t)(run->query_block_count * a->head_size * cols * bytes));
    for (int64_t c = 0; c < item->count;) {
        /* A run of queries lies in one head and one query block. */
        int64_t entry, row;
        const int64_t head = tgi_attention_find_row(run, item, c, &entry, &row);
        int64_t count = least_of(item->count - c, cols - c % cols);
        count = least_of(count, item->queries - (item->first + c) % item->queries);
        const tgi_copy copy = {
            .target = scratch->queries + (c / cols * a->head_size * cols + c % cols) * bytes,
            .target_stride = cols,
            .source = tgi_attention_at(&a->q, tgi_type_bytes(a->type), entry, head, row, 0),
            .outer = a->head_size,
            .inner = count,
            .outer_stride = a->q.element_stride,
            .inner_stride = a->q.row_stride};
        run->kernels->widen(&copy);
        c += count;
    }
}

void tgi_attention_find_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                                const tgi_attention_scratch *scratch)
{
    const int64_t cols = run->tiles->cols;
    for (int64_t c = 0; c < item->count; c++)
        find_keys(run, item, scratch, c);
    /* Columns without a query see no key. */
    for (int64_t c = item->count; c < run->query_block_count * cols; c++) {
        ((int64_t *)scratch->lows)[c] = ((int64_t *)scratch->highs)[c] = 0;
        ((int64_t *)scratch->places)[c] = 0;
        tgi_attention_write(scratch->slopes, c, tgi_attention_is_fp64(run), 0.0);
    }
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++)
        scratch->ranges[query_block] = find_range(run, item, scratch, query_block);
}

tgi_attention_rows tgi_attention_find_rows(const tgi_attention_run *run,
                                           const tgi_attention_item *item, const tg_heads *heads,
                                           int64_t first)
{
    const tg_attention *a = run->attention;
    const int64_t row = first + (a->has_key_offsets ? a->key_offsets[item->batch] : 0);
    const int64_t entry = a->has_key_offsets ? 0 : item->batch;
    return (tgi_attention_rows){
        tgi_attention_at(heads, tgi_type_bytes(a->type), entry, item->kv_head, row, 0),
        heads->row_stride};
}

tgi_attention_rows tgi_attention_load_rows(const tgi_attention_run *run,
                                           const tgi_attention_item *item, const tg_heads *heads,
                                           int64_t size, int64_t first, int64_t count,
                                           void *scratch)
{
    const tg_attention *a = run->attention;
    const int64_t bytes = tgi_type_bytes(a->type);
    const int64_t row = first + (a->has_key_offsets ? a->key_offsets[item->batch] : 0);
    const int64_t entry = a->has_key_offsets ? 0 : item->batch;
    if (tgi_attention_is_in_place(run, heads))
        return tgi_attention_find_rows(run, item, heads, first);
    for (int64_t j = 0; j < count;) {
        int64_t from_entry = entry, from_row = row + j, run_rows = count - j;
        if (a->page_rows > 0) {
            const int64_t page = (first + j) / a->page_rows;
            from_row = (first + j) % a->page_rows;
            from_entry = a->pages[item->batch * a->pages_stride + page];
            run_rows = least_of(run_rows, a->page_rows - from_row);
        }
        const tgi_copy copy = {
            .target = (char *)scratch + j * size * run->tiles->accum_bytes,
            .target_stride = size,
            .source = tgi_attention_at(heads, bytes, from_entry, item->kv_head, from_row, 0),
            .outer = run_rows,
            .inner = size,
            .outer_stride = heads->row_stride,
            .inner_stride = heads->element_stride};
        run->kernels->widen(&copy);
        j += run_rows;
    }
    return (tgi_attention_rows){scratch, size};
}

void tgi_attention_load_bias(const tgi_attention_run *run, const tgi_attention_item *item,
                             const tgi_attention_scratch *scratch, int64_t query_block,
                             int64_t first, int64_t count)
{
    const tg_attention *a = run->attention;
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t cols = run->tiles->cols, bytes = run->tiles->accum_bytes;
    const int64_t used = tgi_attention_count_cols(run, item, query_block);
    for (int64_t c = 0; c < used; c++) {
        int64_t entry, row;
        const int is_query = query_block * cols + c < item->count;
        const int64_t head =
            tgi_attention_find_row(run, item, is_query ? query_block * cols + c : 0, &entry, &row);
        const char *at = tgi_attention_at(&a->bias, bytes, entry, head, row, first);
        for (int64_t j = 0; j < count; j++) {
            const double value =
                tgi_attention_read(at, j * a->bias.element_stride, is_fp64) * LOG2_E;
            tgi_attention_write(scratch->bias, j * cols + c, is_fp64, value);
        }
    }
}

/* Writes a row of a D that differs in type from the sums or is not contiguous. */
static void store_row(const tg_attention *a, char *d, const void *sums, int64_t cols, int is_fp64)
{
    for (int64_t e = 0; e < a->v_head_size; e++) {
        const int64_t at = e * a->d.element_stride;
        if (is_fp64)
            ((double *)d)[at] = ((const double *)sums)[e * cols];
        else if (a->type == TG_TYPE_FP32)
            ((float *)d)[at] = ((const float *)sums)[e * cols];
        else if (a->type == TG_TYPE_BF16)
            ((uint16_t *)d)[at] = tgi_bf16_from_fp32(((const float *)sums)[e * cols]);
        else
            ((uint16_t *)d)[at] = tgi_fp16_from_fp32(((const float *)sums)[e * cols]);
    }
}

/* Writes the log-sum-exp of a query as a natural logarithm; the state holds base 2. */
static void store_log_sum(const tgi_attention_run *run, char *at, const void *state, int64_t c)
{
    const tg_attention *a = run->attention;
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t cols = run->tiles->cols;
    const double sum = tgi_attention_read(state, a->v_head_size * cols + c, is_fp64);
    const double largest = tgi_attention_read(state, (a->v_head_size + 1) * cols + c, is_fp64);
    tgi_attention_write(at, 0, is_fp64, sum == 0.0 ? -INFINITY : largest * LN_2 + log(sum));
}

void tgi_attention_store(const tgi_attention_run *run, const tgi_attention_item *item,
                         const tgi_attention_scratch *scratch, int64_t query_block, char *state)
{
    const tg_attention *a = run->attention;
    const int is_fp64 = tgi_attention_is_fp64(run);
    const int64_t cols = run->tiles->cols, bytes = run->tiles->accum_bytes;
    const int64_t d_bytes = tgi_type_bytes(a->type);
    const int64_t left = least_of(item->count - query_block * cols, cols);
    const tgi_attention_state whole = {state, a->v_head_size, cols,
                                       tgi_attention_count_cols(run, item, query_block)};
    run->isa->divide(&whole);
    for (int64_t c = 0; c < left;) {
        int64_t entry, row, count = 1;
        const int64_t head =
            tgi_attention_find_row(run, item, query_block * cols + c, &entry, &row);
        char *d = tgi_attention_at(&a->d, d_bytes, entry, head, row, 0);
        const int is_narrow = d_bytes != bytes;
        /* A block of scores holds the rows of a query block before they are rounded. */
        const int has_room = !is_narrow || a->v_head_size <= run->block_keys;
        if (has_room && a->d.element_stride == 1 && a->d.row_stride > 0) {
            count = least_of(left - c, item->queries -
                                           (item->first + query_block * cols + c) % item->queries);
            const tgi_copy copy = {.target = is_narrow ? scratch->scores : d,
                                   .target_stride = is_narrow ? a->v_head_size : a->d.row_stride,
                                   .source = state + c * bytes,
                                   .outer = count,
                                   .inner = a->v_head_size,
                                   .outer_stride = 1,
                                   .inner_stride = cols};
            run->sum_kernels->widen(&copy);
            for (int64_t i = 0; i < count && is_narrow; i++)
                run->isa->narrow(a->type, (uint16_t *)d + i * a->d.row_stride,
                                 (float *)scratch->scores + i * a->v_head_size, a->v_head_size);
        } else {
            store_row(a, d, state + c * bytes, cols, is_fp64);
        }
        for (int64_t i = 0; i < count && a->has_log_sum_exp; i++)
            store_log_sum(run, tgi_attention_at(&a->log_sum_exp, bytes, entry, head, row + i, 0),
                          state, c + i);
        c += count;
    }
}
