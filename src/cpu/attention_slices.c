/* Forms the products of attention from slices, which AMX multiplies. Numbers that are not sliced
 * are added one by one. */
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "cpu/attention_tasks.h"

/* This says how the products of a type are formed: the slices of Q, K and V and those of weights,
 * and the largest sum of the numbers of two slices that are multiplied. */
typedef struct slicing {
    int inputs, weights, scores_most, sums_most;
} slicing;

/* BF16 is its own slice, and FP16 two. Two slices of a weight have an error of 2^-16. */
static slicing find_slicing(tg_type type)
{
    return type == TG_TYPE_BF16 ? (slicing){1, 2, 0, 1} : (slicing){2, 2, 2, 1};
}

/* Returns the steps of k that hold so many numbers. */
static int64_t count_steps(int64_t k)
{
    return tgi_divide_up(k, 2 * TGI_SLICES_SIDE);
}

/* Returns the slices of a matrix at `data`. */
static tgi_slices lay_out(const tgi_attention_run *run, tgi_attention_sliced which, char *data)
{
    const tg_attention *a = run->attention;
    const slicing slicing = find_slicing(a->type);
    const int is_query = which == TGI_ATTENTION_QUERIES || which == TGI_ATTENTION_KEYS;
    const int64_t rows = which == TGI_ATTENTION_KEYS     ? run->block_keys
                         : which == TGI_ATTENTION_VALUES ? a->v_head_size
                                                         : TGI_SLICES_COLS;
    tgi_slices slices = {.pairs = (uint32_t *)data,
                         .steps = count_steps(is_query ? a->head_size : run->block_keys)};
    slices.count = which == TGI_ATTENTION_WEIGHTS ? slicing.weights : slicing.inputs;
    slices.slice = tgi_divide_up(rows, TGI_SLICES_ROWS) * slices.steps * 2 * TGI_SLICES_TILE;
    return slices;
}

static int64_t count_bytes(const tgi_slices *slices)
{
    return tgi_attention_round_bytes(slices->count * slices->slice * (int64_t)sizeof(uint32_t));
}

int64_t tgi_attention_count_slice_bytes(const tgi_attention_run *run, tgi_attention_sliced which)
{
    if (!run->slices)
        return 0;
    const tgi_slices slices = lay_out(run, which, NULL);
    return count_bytes(&slices) * (which == TGI_ATTENTION_QUERIES ? run->query_block_count : 1);
}

static tgi_slices find(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                       tgi_attention_sliced which)
{
    return lay_out(run, which, scratch->slices[which]);
}

static tgi_slices find_queries(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                               int64_t query_block)
{
    tgi_slices slices = find(run, scratch, TGI_ATTENTION_QUERIES);
    slices.pairs += query_block * count_bytes(&slices) / (int64_t)sizeof *slices.pairs;
    return slices;
}

void tgi_attention_slice_queries(const tgi_attention_run *run, const tgi_attention_scratch *scratch)
{
    const int64_t size = run->attention->head_size;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_slices slices = find_queries(run, scratch, query_block);
        const float *queries = (float *)scratch->queries + query_block * size * TGI_SLICES_COLS;
        ((uint32_t *)scratch->odd_columns)[query_block] =
            run->slices->slice_right(queries, size, &slices);
    }
}

int tgi_attention_pair_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                               const tgi_attention_scratch *scratch)
{
    const tg_attention *a = run->attention;
    if (a->type != TG_TYPE_BF16 || a->q.element_stride != 1)
        return 0;
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_slices slices = find_queries(run, scratch, query_block);
        const uint16_t *columns[TGI_SLICES_COLS];
        for (int64_t c = 0; c < TGI_SLICES_COLS; c++) {
            const int64_t place = query_block * TGI_SLICES_COLS + c;
            int64_t entry, row;
            columns[c] = NULL;
            if (place >= item->count)
                continue;
            const int64_t head = tgi_attention_find_row(run, item, place, &entry, &row);
            columns[c] = (const uint16_t *)tgi_attention_at(&a->q, 2, entry, head, row, 0);
        }
        if (run->slices->pair_columns(columns, a->head_size, &slices))
            return 0;
        ((uint32_t *)scratch->odd_columns)[query_block] = 0;
    }
    return 1;
}

int tgi_attention_pair_keys(const tgi_attention_run *run, const tgi_attention_item *item,
                            const tgi_attention_scratch *scratch, tgi_attention_keys *keys)
{
    const tg_attention *a = run->attention;
    if (a->type != TG_TYPE_BF16 || a->page_rows > 0 || a->k.element_stride != 1 ||
        a->v.element_stride != 1)
        return 0;
    /* Queries that are not sliced are multiplied by converted keys. */
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++)
        if (((uint32_t *)scratch->odd_columns)[query_block])
            return 0;
    const tgi_slices key_slices = find(run, scratch, TGI_ATTENTION_KEYS);
    const tgi_slices value_slices = find(run, scratch, TGI_ATTENTION_VALUES);
    keys->keys = tgi_attention_find_rows(run, item, &a->k, keys->first);
    keys->values = tgi_attention_find_rows(run, item, &a->v, keys->first);
    return !run->slices->pair_rows(keys->keys.data, keys->keys.stride, keys->length, a->head_size,
                                   &key_slices) &&
           !run->slices->pair_transpose(keys->values.data, keys->values.stride, keys->length,
                                        a->v_head_size, &value_slices);
}

void tgi_attention_slice_keys(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                              tgi_attention_keys *keys)
{
    const tgi_slices key_slices = find(run, scratch, TGI_ATTENTION_KEYS);
    const tgi_slices value_slices = find(run, scratch, TGI_ATTENTION_VALUES);
    keys->has_odd_keys = run->slices->slice_rows(keys->keys.data, keys->keys.stride, keys->length,
                                                 run->attention->head_size, &key_slices,
                                                 (unsigned char *)scratch->odd_keys);
    keys->has_odd_values =
        run->slices->slice_transpose(keys->values.data, keys->values.stride, keys->length,
                                     run->attention->v_head_size, &value_slices);
}

/* Forms the scores of keys and queries that are not sliced. */
static void repair_scores(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                          const tgi_attention_keys *keys, int64_t query_block, int64_t count,
                          int64_t cols)
{
    const int64_t size = run->attention->head_size;
    const uint32_t odd_columns = ((uint32_t *)scratch->odd_columns)[query_block];
    const float *queries = (float *)scratch->queries + query_block * size * TGI_SLICES_COLS;
    float *scores = (float *)scratch->scores;
    for (int64_t j = 0; j < count; j++) {
        const float *key = (const float *)keys->keys.data + j * keys->keys.stride;
        for (int64_t c = 0; c < cols; c++) {
            if (!scratch->odd_keys[j] && !(odd_columns >> c & 1))
                continue;
            float sum = 0.0F;
            for (int64_t e = 0; e < size; e++)
                sum = fmaf(queries[e * TGI_SLICES_COLS + c], key[e], sum);
            scores[j * TGI_SLICES_COLS + c] = sum;
        }
    }
}

void tgi_attention_multiply_keys(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                                 const tgi_attention_keys *keys, int64_t query_block, int64_t count,
                                 int64_t cols)
{
    const tgi_slices key_slices = find(run, scratch, TGI_ATTENTION_KEYS);
    const tgi_slices queries = find_queries(run, scratch, query_block);
    const slicing slicing = find_slicing(run->attention->type);
    run->slices->multiply(count, cols, count_steps(run->attention->head_size), &key_slices,
                          &queries, slicing.scores_most, (float *)scratch->scores);
    if (keys->has_odd_keys || ((uint32_t *)scratch->odd_columns)[query_block])
        repair_scores(run, scratch, keys, query_block, count, cols);
}

/* Adds the numbers of V that are not sliced, for the queries that see them. */
static void add_odd_values(const tgi_attention_keys *keys, const tgi_attention_block *block,
                           const tgi_attention_state *sums)
{
    const float *weights = block->scores, *low = block->low, *high = block->high;
    for (int64_t j = 0; j < block->keys; j++) {
        const float *values = (const float *)keys->values.data + j * keys->values.stride;
        for (int64_t e = 0; e < sums->size; e++) {
            float *row = (float *)sums->rows + e * sums->row;
            if (fabsf(values[e]) < 0x1p127F)
                continue;
            for (int64_t c = 0; c < sums->cols; c++)
                if (!low || ((float)j >= low[c] && (float)j < high[c]))
                    row[c] = fmaf(weights[j * sums->row + c], values[e], row[c]);
        }
    }
}

void tgi_attention_sum_values(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                              const tgi_attention_keys *keys, const tgi_attention_block *block,
                              const tgi_attention_state *sums)
{
    const tgi_slices weights = find(run, scratch, TGI_ATTENTION_WEIGHTS);
    const tgi_slices values = find(run, scratch, TGI_ATTENTION_VALUES);
    run->slices->weigh(block, sums, &weights, keys->has_odd_values);
    run->slices->multiply(sums->size, sums->cols, count_steps(block->keys), &values, &weights,
                          find_slicing(run->attention->type).sums_most, sums->rows);
    if (keys->has_odd_values)
        add_odd_values(keys, block, sums);
}
