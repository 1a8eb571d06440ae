/*
 * Predicts the time of an attention on a GPU for a row and a division of its keys. The figures, in
 * ns, are fitted to times of an H200 (bench/notes/attention_gpu.md) and serve to compare choices.
 */
#include <math.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "cuda/families/attend.h"

#define SCHEDULERS 4 /* warp schedulers of a multiprocessor */

/* A head_cost is constant + of_head * head_size, in ns. */
typedef struct head_cost {
    double constant, of_head;
} head_cost;

/* The figures of rows whose blocks have many queries. */
static const double wide_start = 730.0;
static const head_cost wide_fill = {1010.0, 5.6};       /* if each multiprocessor has a block */
static const head_cost wide_tile = {2090.0, 12.0};      /* start and end of a tile of queries */
static const head_cost wide_mixed = {875.0, 22.3};      /* added if tiles mix rows of heads */
static const double group_key = 1.82;                   /* per key of a step */
static const head_cost group_score = {0.0287, 0.00048}; /* per row and key */
static const double lone_key = 0.059; /* per key and element of a head, the least for few rows */

/* The figures of rows of few queries, whose warps each read their own keys. */
static const head_cost thin_tile = {2370.0, 3.5};
static const head_cost thin_mixed = {1430.0, 0.0};
static const head_cost thin_step = {760.0, 0.37};
static const double thin_byte = 0.0034; /* per byte of K and V that a multiprocessor reads */
static const double all_byte = 0.00002; /* per byte of K and V that all of them read */
static const double thin_crowd = 27.0;  /* per key of a step, if warps share a scheduler */
static const double joined_row = 517.0; /* per round of rows whose warps' states are joined */
static const double cluster = 350.0;    /* joining the states of a cluster's blocks */
static const double cluster_block = 73.0, cluster_row = 590.0;

/* The figures of rows of few keys, whose warps read them into registers. */
static const double light_start = 440.0;
static const double light_row = 13.3;                      /* per row of a warp, of 16 at most */
static const double light_open = 1850.0;                   /* per wave of blocks */
static const double light_turn = 65.0, light_step = 680.0; /* per turn, and per step of a turn */
static const double kept = 265.0, kept_step = 300.0;       /* if steps stay in shared memory */
static const double light_tile = 64.0; /* per 16 rows of a warp on a multiprocessor */
static const double light_keys = 52.0, light_element = 0.5; /* per step and per element of them */
static const double light_join = 163.0;                     /* per warp that shares out keys */

/* The figures of the second kernel, which merges splits. */
static const double merge = 3300.0, merged_split = 15.0, merged_round = 400.0;
static const double merged_row = 14.0, few_row = 110.0; /* per row of a multiprocessor */
static const double split_byte = 0.0007;

static double count(head_cost cost, const tgi_attention_row *row)
{
    return cost.constant + cost.of_head * row->head_size;
}

/* Returns the number of steps of the middle tile or, if is_last is 1, of the last tile. If all
 * tiles run at the same time, the last one takes longest under a causal mask. */
static double count_steps(const tg_attention *a, const tgi_attention_choice *choice, int is_last)
{
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t rows = choice->shared_heads > 1 ? a->m : choice->query_tile;
    const int64_t middle =
        (is_last ? a->m - rows / 2 : a->m / 2) + (window.is_bottom ? a->n - a->m : 0);
    const int64_t low = middle - rows / 2 - window.before;
    const int64_t high = middle + rows / 2 + window.after + 1;
    const int64_t keys = (high < a->n ? high : a->n) - (low > 0 ? low : 0);
    const int64_t seen = keys < 1 ? 1 : keys < choice->split_keys ? keys : choice->split_keys;
    return (double)tgi_divide_up(seen, choice->row->keys);
}

/* Returns how many rows of a tile the groups of warps of a block compute: the rows of the largest
 * tile, or the mean if is_largest is 0. Groups without rows do nothing. */
static double count_rows(const tg_attention *a, const tgi_attention_choice *choice, int is_largest)
{
    const double all = (double)tgi_round_up(choice->shared_heads * a->m, TGI_ATTEND_GROUP_QUERIES);
    return is_largest ? fmin((double)choice->query_tile, all) : all / (double)choice->tile_count;
}

/* Returns the time of a row of many queries whose multiprocessors each have `load` tiles in
 * turn. */
static double predict_wide(const tg_attention *a, const tgi_attention_choice *choice, double load,
                           double steps, int is_mixed)
{
    const tgi_attention_row *row = choice->row;
    const double tiles = ceil(load), rows = count_rows(a, choice, load <= 1.0);
    return wide_start + fmin(load, 1.0) * count(wide_fill, row) +
           tiles *
               (count(wide_tile, row) + (is_mixed ? count(wide_mixed, row) : 0.0) +
                steps * row->keys *
                    fmax(group_key + count(group_score, row) * rows, lone_key * row->head_size));
}

/* Returns the time of a row of few queries whose multiprocessors each have `tiles` tiles, as many
 * at once as fit. */
static double predict_thin(const tgi_machine *machine, const tg_attention *a,
                           const tgi_attention_choice *choice, int64_t tiles, int is_mixed)
{
    const tgi_attention_row *row = choice->row;
    const int64_t warp_splits = choice->warp_split_count, blocks = choice->cluster_count;
    const int64_t held = machine->gpu.shared_bytes_per_sm / (choice->shared_bytes + 1024);
    const double rounds = (double)tgi_divide_up(tiles, held > 1 ? held : 1);
    const int64_t all = choice->shared_heads * a->m, rows = all < row->queries ? all : row->queries;
    const int64_t at_once = row->head_size > 128 ? 1 : 2; /* rows that a warp joins at once */
    double time = count(thin_tile, row) +
                  count_steps(a, choice, rounds <= 1.0) * count(thin_step, row) +
                  joined_row * (double)tgi_divide_up(rows, warp_splits * at_once);
    if (is_mixed)
        time += count(thin_mixed, row);
    if (warp_splits > SCHEDULERS)
        time += thin_crowd * row->keys;
    if (blocks > 1)
        time += cluster + cluster_block * (double)blocks +
                cluster_row * (double)tgi_divide_up(rows, blocks * warp_splits * at_once);
    const double read =
        count_steps(a, choice, 0) * row->keys * (double)warp_splits; /* keys of a block */
    const double seen = fmin(read * (double)(blocks * choice->split_count), (double)a->n);
    const double groups = (double)a->batch_count * (double)(a->head_count / choice->shared_heads);
    return rounds * time + thin_byte * 4.0 * row->head_size * read * (double)tiles +
           all_byte * 2.0 * (double)(a->head_size + a->v_head_size) * seen * groups *
               (double)choice->tile_count;
}

/* Returns the time of a row of few keys, whose warps compute 16 rows, for `groups` groups of
 * heads. */
static double predict_light(const tgi_machine *machine, const tg_attention *a,
                            const tgi_attention_choice *choice, int64_t groups)
{
    const tgi_attention_row *row = choice->row;
    const int64_t rows = choice->shared_heads * a->m, sm_count = machine->gpu.sm_count;
    const int64_t warp_splits = choice->warp_split_count, warps = choice->block_threads / 32;
    const int64_t readers =
        warp_splits > 1 ? 1 : row->queries / 16; /* warps that share the reads of keys */
    const int64_t by_warps = row->resident_blocks * row->warps / warps;
    const int64_t by_bytes = machine->gpu.shared_bytes_per_sm / (choice->shared_bytes + 1024);
    const int64_t held = by_warps < by_bytes ? by_warps : by_bytes;
    const int64_t blocks = tgi_divide_up(groups * choice->tile_count, sm_count);
    const int64_t waves = tgi_divide_up(blocks, held > 1 ? held : 1);
    const double tiles = (double)groups * (double)tgi_divide_up(rows, 16) / (double)sm_count;
    const double steps = count_steps(a, choice, waves <= 1);
    double wave = light_open + (double)choice->turn_count * (light_turn + steps * light_step);
    if (choice->kept_keys > row->keys)
        wave += kept + kept_step * ceil(steps / (double)readers);
    return light_start + light_row * (double)(rows < 16 ? rows : 16) +
           (warp_splits > 1 ? light_join * (double)warp_splits : 0.0) + (double)waves * wave +
           tiles * ((double)(warp_splits > 1 ? warps : row->warps * 16 / row->queries) *
                        (light_tile + count_steps(a, choice, 0) * light_keys) +
                    light_element * (double)a->head_size);
}

double tgi_cuda_predict_attention(const tgi_machine *machine, const tg_attention *a,
                                  const tgi_attention_choice *choice)
{
    const int64_t sm_count = machine->gpu.sm_count, splits = choice->split_count;
    const int64_t groups = a->batch_count * (a->head_count / choice->shared_heads);
    const int64_t blocks = groups * choice->tile_count * splits * choice->cluster_count;
    const int64_t tiles = tgi_divide_up(blocks, sm_count);
    const double steps = count_steps(a, choice, tiles <= 1);
    const int is_mixed = choice->shared_heads > 1 && a->m > 1;
    double time = choice->row->kind == TGI_ATTENTION_LIGHT
                      ? predict_light(machine, a, choice, groups)
                  : choice->row->kind == TGI_ATTENTION_THIN
                      ? predict_thin(machine, a, choice, tiles, is_mixed)
                      : predict_wide(a, choice, (double)blocks / (double)sm_count, steps, is_mixed);
    if (splits > 1)
        time += merge + merged_split * (double)splits +
                merged_round * (double)((splits - 1) / (4 * TGI_ATTEND_MERGE_WARPS_MAX)) +
                (tgi_attend_count_merged((int32_t)splits) > 1 ? few_row : merged_row) *
                    (double)tgi_divide_up(a->batch_count * a->head_count * a->m, sm_count) +
                split_byte * (double)choice->workspace_bytes;
    return time;
}
