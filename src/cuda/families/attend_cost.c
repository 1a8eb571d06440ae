/*
 * Predicts the time of an attention on a GPU by a row and a division of its keys. The figures, in
 * ns, fit times of an H200 (bench/notes/attention_gpu.md) and serve to compare choices.
 */
#include "core/attention_mask.h"
#include "core/checked.h"
#include "cuda/families/attend.h"

/* A sum of a constant and of a factor of the head size. */
typedef struct head_cost {
    double constant, of_head;
} head_cost;

/* Rows whose blocks have many queries: */
static const double wide_start = 950.0;
static const head_cost wide_tile = {1580.0, 7.1};       /* beginning and end of a tile of queries */
static const head_cost wide_mixed = {870.0, 20.5};      /* more where threads mix rows of heads */
static const head_cost group_score = {0.0307, 0.00044}; /* a row and a key */

/* Rows of few queries, whose warps each read their keys: */
static const head_cost thin_tile = {2120.0, 1.47};
static const head_cost thin_mixed = {2280.0, 0.0};
static const head_cost thin_step = {770.0, 1.04};
static const double thin_byte = 0.00224; /* each of K and V that a multiprocessor reads */
static const double joined_row = 840.0;  /* joining the states of warps: rows of a warp */
static const double cluster = 620.0;     /* and those of a cluster's blocks */
static const double cluster_block = 88.0, cluster_row = 450.0;

/* A second kernel merges parts: */
static const double merge = 1800.0, merged_part = 98.0;
static const double merged_row = 300.0; /* a row of a multiprocessor */
static const double part_byte = 0.0007;

static double count(head_cost cost, const tgi_attention_row *row)
{
    return cost.constant + cost.of_head * row->head_size;
}

/* Returns how many keys the middle tile sees. */
static int64_t count_keys(const tg_attention *a, const tgi_attention_choice *choice)
{
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t rows = choice->shared_heads > 1 ? a->m : choice->row->queries;
    const int64_t middle = a->m / 2 + (window.is_bottom ? a->n - a->m : 0);
    const int64_t low = middle - rows / 2 - window.before;
    const int64_t high = middle + rows / 2 + window.after + 1;
    const int64_t keys = (high < a->n ? high : a->n) - (low > 0 ? low : 0);
    return keys > 1 ? keys : 1;
}

/* Returns the time of `tiles` tiles of a row of many queries, one after the other. */
static double predict_wide(const tgi_attention_choice *choice, double tiles, double steps,
                           int is_mixed)
{
    const tgi_attention_row *row = choice->row;
    const double score = count(group_score, row);
    return wide_start + tiles * (count(wide_tile, row) + (is_mixed ? count(wide_mixed, row) : 0.0) +
                                 steps * score * row->queries * row->keys);
}

/* Returns the time of `tiles` tiles of a row of few queries, as many at once as fit. */
static double predict_thin(const tgi_machine *machine, const tg_attention *a,
                           const tgi_attention_choice *choice, int64_t tiles, double steps,
                           int is_mixed)
{
    const tgi_attention_row *row = choice->row;
    const int64_t splits = choice->split_count, blocks = choice->cluster_count;
    const int64_t held = machine->gpu.shared_bytes_per_sm / (choice->shared_bytes + 1024);
    const double rounds = (double)tgi_divide_up(tiles, held > 1 ? held : 1);
    const int64_t all = choice->shared_heads * a->m, rows = all < row->queries ? all : row->queries;
    const int64_t at_once = row->head_size > 128 ? 1 : 2; /* rows that a warp joins */
    double time = count(thin_tile, row) + steps * count(thin_step, row) +
                  joined_row * (double)tgi_divide_up(rows, splits * at_once);
    if (is_mixed)
        time += count(thin_mixed, row);
    if (blocks > 1)
        time += cluster + cluster_block * (double)blocks +
                cluster_row * (double)tgi_divide_up(rows, blocks * splits * at_once);
    return rounds * time +
           thin_byte * 4.0 * row->head_size * row->keys * steps * (double)(tiles * splits);
}

double tgi_cuda_predict_attention(const tgi_machine *machine, const tg_attention *a,
                                  const tgi_attention_choice *choice)
{
    const int64_t sm_count = machine->gpu.sm_count, parts = choice->part_count;
    const int64_t groups = a->batch_count * (a->head_count / choice->shared_heads);
    const int64_t blocks = groups * choice->tile_count * parts * choice->cluster_count;
    const int64_t tiles = tgi_divide_up(blocks, sm_count), seen = count_keys(a, choice);
    const int64_t keys = seen < choice->part_keys ? seen : choice->part_keys;
    const double steps = (double)tgi_divide_up(keys, choice->row->keys);
    const int is_mixed = choice->shared_heads > 1 && a->m > 1;
    double time = choice->row->is_split ? predict_thin(machine, a, choice, tiles, steps, is_mixed)
                                        : predict_wide(choice, (double)tiles, steps, is_mixed);
    if (parts > 1)
        time +=
            merge + merged_part * (double)parts +
            merged_row * (double)tgi_divide_up(a->batch_count * a->head_count * a->m, sm_count) +
            part_byte * (double)choice->workspace_bytes;
    return time;
}
