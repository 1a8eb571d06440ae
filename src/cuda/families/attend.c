/* Plans attention on a GPU. */
#include "cuda/families/attend.h"

#include <math.h>
#include <stdio.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/status.h"
#include "core/types.h"
#include "kernels/attend/attend_args.h"

typedef long long ll; /* for printf */

#define LENGTH_MAX (INT64_C(1) << 30) /* keeps the ends of tiles within 32 bits */
#define BLOCKS_MAX INT32_MAX
#define THIN_QUERIES 32 /* queries that share keys, to which rows of fewer queries fit better */
#define WARP_QUERIES 16
#define THIN_ROWS_MAX(heads) (2048 / least_of(heads, 8)) /* with more, wide rows are faster */
#define KEPT_KEYS_MOST 4096 /* keeps bytes of kept keys within 32 bits; above each chip's limit */
#define SPLIT_KEYS 512 /* least keys of a block's split, in rows whose warps do not split keys */

static tg_status check(const tgi_machine *machine, const tg_attention *a)
{
    if (a->head_size > TGI_ATTEND_HEAD_MAX || a->v_head_size > TGI_ATTEND_HEAD_MAX)
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "head_size = %lld and v_head_size = %lld: on a GPU neither is above "
                               "%d; pass a context of device cpu",
                               (ll)a->head_size, (ll)a->v_head_size, TGI_ATTEND_HEAD_MAX);
    if (a->m > LENGTH_MAX || a->n > LENGTH_MAX)
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "m = %lld and n = %lld: on a GPU neither is above 2^30; pass a "
                               "context of device cpu",
                               (ll)a->m, (ll)a->n);
    if (!tgi_cuda_is_real(a) && !tgi_kernels_isa_runs(TGI_ISA_sm80, machine->features))
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "type = %s has attention on GPUs of compute capability 8.0 or "
                               "later, this one has %d.%d; pass fp32 or fp64, or a context of "
                               "device cpu",
                               tg_get_type_name(a->type), machine->gpu.capability / 10,
                               machine->gpu.capability % 10);
    return TG_STATUS_OK;
}

static int64_t least_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most_of(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Returns how many warps of a block have the same queries, each with a part of the head's elements,
 * in a row of few keys. */
static int count_sharers(const tgi_attention_row *row)
{
    return row->warps * WARP_QUERIES / row->queries;
}

/* Returns the bytes of shared memory of a block of the row, or of each of its warps where warps
 * share out the keys. */
static int64_t count_own_bytes(const tgi_attention_row *row)
{
    if (row->kind == TGI_ATTENTION_FEW_KEYS || row->kind == TGI_ATTENTION_SHORT)
        return 0;
    const int places = row->kind == TGI_ATTENTION_WIDE && row->has_boxes
                           ? TGI_ATTEND_QUERY_PLACES(row->head_size)
                           : 1;
    return tgi_attend_shared_bytes(row->head_size, places * row->queries, row->keys, row->tiles);
}

/* Returns the machine's first row of the kind and the type that holds the heads. */
static const tgi_attention_row *find_row(const tgi_machine *machine, const tg_attention *a,
                                         tgi_attention_kind kind)
{
    const int64_t head = most_of(a->head_size, a->v_head_size);
    const tgi_attention_row *row;
    for (int i = 0; (row = tgi_attention_rows_get(i)); i++) {
        if (row->type == a->type && row->head_size >= head && row->kind == kind &&
            tgi_kernels_isa_runs(row->isa, machine->features) &&
            count_own_bytes(row) <= machine->gpu.shared_bytes_per_block)
            break;
    }
    return row;
}

/* Returns how many keys a block of a row of few keys keeps in shared memory: its split of the keys,
 * or only the keys that its queries see, from the beginning of a step on. */
static int64_t count_kept(const tg_attention *a, const tgi_attention_choice *choice)
{
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t rows = choice->shared_heads > 1 ? a->m : choice->query_tile;
    const int64_t seen = window.before + window.after + rows + choice->row->keys - 1;
    return least_of(least_of(choice->split_keys, tgi_round_up(seen, choice->row->keys)),
                    KEPT_KEYS_MOST);
}

void tgi_cuda_divide_keys(const tgi_machine *machine, const tg_attention *a, int64_t blocks,
                          tgi_attention_choice *choice)
{
    const tgi_attention_row *row = choice->row;
    const int64_t keys = most_of(a->n, 1), sm_count = machine->gpu.sm_count;
    const int64_t shares = choice->cluster_count * choice->warp_split_count;
    const int is_thin = row->kind == TGI_ATTENTION_THIN;
    choice->step_keys = row->keys;
    choice->split_keys = tgi_round_up(tgi_divide_up(keys, choice->split_count * shares), row->keys);
    choice->split_count = tgi_divide_up(keys, choice->split_keys * shares);
    choice->kept_keys = count_kept(a, choice);
    choice->block_threads =
        32 * (is_thin                        ? choice->warp_split_count
              : choice->warp_split_count > 1 ? choice->warp_split_count * count_sharers(row)
                                             : row->warps);
    choice->shared_bytes =
        row->kind == TGI_ATTENTION_FEW_KEYS
            ? tgi_attend_few_keys_bytes(row->head_size, row->warps, count_sharers(row),
                                        (int32_t)choice->warp_split_count, row->keys,
                                        (int32_t)choice->kept_keys)
            : count_own_bytes(row) * choice->warp_split_count;
    if (tgi_cuda_is_real(a))
        tgi_cuda_set_real_block(machine, blocks, choice);
    choice->is_resident =
        blocks * choice->split_count * choice->cluster_count <=
        sm_count * (row->kind == TGI_ATTENTION_FEW_KEYS ? row->resident_blocks : 1);
    choice->workspace_bytes = 0;
    if (choice->split_count > 1)
        choice->workspace_bytes = a->batch_count * a->head_count * a->m * choice->split_count *
                                  tgi_attend_split_reals(a->v_head_size) *
                                  tgi_type_bytes(tgi_attention_sum_type(a));
}

/* Returns how many multiprocessors clusters of `cluster` blocks can fill. The multiprocessors of a
 * cluster are neighbours, which come in pairs, so larger clusters leave some multiprocessors
 * idle. */
static int64_t count_cluster_room(const tgi_machine *machine, int64_t cluster)
{
    const int64_t sm_count = machine->gpu.sm_count;
    return cluster == 2 ? sm_count : sm_count * 5 / 6;
}

/* The search shows each choice to a visitor. */
typedef struct attention_search {
    const tgi_machine *machine;
    const tg_attention *attention;
    tgi_attention_visit *visit;
    void *state;
} attention_search;

/* Tries numbers of splits of the keys for the choice's clusters and warps: 1, the most splits whose
 * blocks have room at once, and parts of those. */
static void try_splits(attention_search *search, tgi_attention_choice *tried, int64_t blocks,
                       int64_t room, int64_t most)
{
    const int64_t shares = tried->cluster_count * tried->warp_split_count;
    if (tried->cluster_count > 1)
        room = least_of(room, count_cluster_room(search->machine, tried->cluster_count));
    const int64_t filling =
        least_of(room / most_of(blocks * tried->cluster_count, 1), tgi_divide_up(most, shares));
    static const int parts[] = {0, 24, 21, 12, 8, 6}; /* 24 of them are all */
    for (int i = 0; i < 6; i++) {
        tried->split_count = i == 0 ? 1 : filling * parts[i] / 24;
        if (tried->split_count <= (i > 0))
            continue;
        tgi_cuda_divide_keys(search->machine, search->attention, blocks, tried);
        if (tried->shared_bytes > search->machine->gpu.shared_bytes_per_block)
            continue;
        search->visit(tried, search->state);
    }
}

/* Returns the number of query tiles that each block processes in turn. A row of few keys has
 * enough of them for all blocks to run at the same time; other rows have 1. */
static int64_t count_subtiles(const tgi_machine *machine, const tg_attention *a,
                              const tgi_attention_row *row, int64_t shared_heads)
{
    const int64_t tiles = tgi_divide_up(shared_heads * a->m, row->queries);
    const double groups = (double)a->batch_count * (double)(a->head_count / shared_heads);
    const double room = (double)machine->gpu.sm_count * row->resident_blocks;
    const double subtiles = ceil(groups * (double)tiles / room);
    if (row->kind != TGI_ATTENTION_FEW_KEYS || subtiles < 2.0)
        return 1;
    return tgi_divide_up(tiles, tgi_divide_up(tiles, (int64_t)fmin(subtiles, (double)tiles)));
}

/* Sets how many warps share out the keys, and the tiles that have `queries` queries a subtile.
 * Returns the number of blocks for all heads and batch entries. */
static int64_t set_tiles(const tgi_machine *machine, const tg_attention *a, int64_t queries,
                         int64_t warp_splits, tgi_attention_choice *choice)
{
    const int64_t heads = choice->shared_heads;
    /* In rows of few keys, all warps that share out the keys have the same queries. */
    const int is_few_keys_split = choice->row->kind == TGI_ATTENTION_FEW_KEYS && warp_splits > 1;
    choice->warp_split_count = warp_splits;
    choice->subtile_count = is_few_keys_split ? 1 : count_subtiles(machine, a, choice->row, heads);
    choice->query_tile = is_few_keys_split ? WARP_QUERIES : queries * choice->subtile_count;
    choice->tile_count = tgi_divide_up(heads * a->m, choice->query_tile);
    return tgi_checked_multiply(tgi_checked_multiply(a->batch_count, a->head_count / heads),
                                choice->tile_count);
}

/* Returns among how many warps of a block the keys may be shared out: as many as fit in shared
 * memory or, in rows of few keys, as there are sets of warps with all columns of D. */
static int64_t count_warp_splits(const tgi_machine *machine, const tgi_attention_row *row)
{
    if (row->kind == TGI_ATTENTION_THIN)
        return least_of(machine->gpu.shared_bytes_per_block / count_own_bytes(row), row->warps);
    return row->kind == TGI_ATTENTION_FEW_KEYS ? row->warps / count_sharers(row) : 1;
}

/* Tries the row's divisions of the keys, for tiles of `queries` queries of `shared_heads` heads
 * that share keys. */
static void try_tiles(attention_search *search, const tgi_attention_row *row, int64_t shared_heads,
                      int64_t queries)
{
    const tgi_machine *machine = search->machine;
    const tg_attention *a = search->attention;
    const int64_t most = most_of(1, tgi_divide_up(a->n, row->keys));
    const int64_t warp_splits_most = count_warp_splits(machine, row);
    tgi_attention_choice tried = {.row = row, .shared_heads = shared_heads};
    for (int64_t cluster = 1; cluster <= row->cluster; cluster *= 2) {
        for (int64_t warp_splits = 1;
             warp_splits <= warp_splits_most && cluster * warp_splits <= most; warp_splits++) {
            const int64_t blocks = set_tiles(machine, a, queries, warp_splits, &tried);
            const int64_t room =
                row->kind == TGI_ATTENTION_FEW_KEYS ? blocks : machine->gpu.sm_count;
            if (blocks > BLOCKS_MAX ||
                (cluster > 1 && cluster * blocks > count_cluster_room(machine, cluster)))
                break;
            tried.cluster_count = cluster;
            try_splits(search, &tried, blocks, room, most);
        }
    }
}

/* Tries the row's tiles. In rows of many queries, tiles may have fewer queries than the row, and
 * some groups of warps are then idle. */
static void try_row(attention_search *search, const tgi_attention_row *row, int64_t shared_heads)
{
    const int64_t least = row->kind == TGI_ATTENTION_WIDE ? TGI_ATTEND_GROUP_QUERIES : row->queries;
    for (int64_t queries = row->queries; queries >= least; queries -= TGI_ATTEND_GROUP_QUERIES)
        try_tiles(search, row, shared_heads, queries);
}

/* Chooses a row without a prediction, for chips that no figures are fitted to. Keys are divided if
 * tiles of queries leave multiprocessors idle, first among blocks, then among a block's warps. */
static void fill_machine(const tgi_machine *machine, const tg_attention *a,
                         tgi_attention_choice *choice)
{
    const int64_t group = a->head_count / a->kv_head_count, sm_count = machine->gpu.sm_count;
    const int is_thin = group * a->m <= THIN_QUERIES;
    const tgi_attention_row *row =
        find_row(machine, a, is_thin ? TGI_ATTENTION_THIN : TGI_ATTENTION_WIDE);
    if (!row)
        return;
    const int64_t shared_heads = a->m < row->queries && group * a->m <= LENGTH_MAX ? group : 1;
    const int64_t tiles = tgi_divide_up(shared_heads * a->m, row->queries);
    const int64_t blocks = tgi_checked_multiply(
        tgi_checked_multiply(a->batch_count, a->head_count / shared_heads), tiles);
    const int64_t fitting =
        most_of(1, (machine->gpu.shared_bytes_per_sm - 1024) / count_own_bytes(row));
    const int64_t resident = least_of(fitting, is_thin ? row->warps : row->resident_blocks);
    const int64_t most = most_of(a->n, 1) / (is_thin ? row->keys : SPLIT_KEYS);
    const int64_t wanted = most_of(1, least_of(sm_count * resident / most_of(blocks, 1), most));
    if (blocks > BLOCKS_MAX)
        return;
    *choice = (tgi_attention_choice){.row = row,
                                     .shared_heads = shared_heads,
                                     .subtile_count = 1,
                                     .query_tile = row->queries,
                                     .tile_count = tiles,
                                     .split_count = wanted,
                                     .cluster_count = 1,
                                     .warp_split_count = 1};
    if (is_thin) {
        choice->split_count = least_of(wanted, most_of(1, sm_count / most_of(blocks, 1)));
        choice->warp_split_count = least_of(resident, tgi_divide_up(wanted, choice->split_count));
    }
    tgi_cuda_divide_keys(machine, a, blocks, choice);
}

/* Returns 1 if rows of few keys have code for the attention. They hold the scale as an FP32 number,
 * which must be greater than zero. */
static int fits_few_keys(const tg_attention *a)
{
    return (float)(a->scale * TGI_ATTEND_LOG2_E) > 0.0f && a->soft_cap == 0.0 && !a->has_bias &&
           !a->has_slopes && a->page_rows == 0 &&
           (!a->has_query_offsets || a->head_count == a->kv_head_count);
}

void tgi_cuda_choose_unaligned(const tgi_machine *machine, const tg_attention *a,
                               tgi_attention_choice *choice)
{
    const tgi_attention_row *row = find_row(machine, a, TGI_ATTENTION_WIDE);
    *choice =
        (tgi_attention_choice){.row = row, .shared_heads = 1, .split_count = 1, .cluster_count = 1};
    tgi_cuda_divide_keys(machine, a, set_tiles(machine, a, row->queries, 1, choice), choice);
    choice->section_groups = tgi_cuda_count_section_groups(machine, a, choice);
}

void tgi_cuda_visit_choices(const tgi_machine *machine, const tg_attention *a,
                            tgi_attention_visit *visit, void *state)
{
    static const tgi_attention_kind kinds[] = {TGI_ATTENTION_FEW_KEYS, TGI_ATTENTION_THIN,
                                               TGI_ATTENTION_WIDE};
    attention_search search = {machine, a, visit, state};
    if (tgi_cuda_is_real(a)) {
        tgi_cuda_visit_real(machine, a, visit, state);
        return;
    }
    const int64_t group = a->head_count / a->kv_head_count;
    const tgi_attention_row *brief = find_row(machine, a, TGI_ATTENTION_SHORT);
    const int has_few_keys = fits_few_keys(a);
    /* The short row depends on batch strides, which TMA may not take, and so on the batch. */
    if (brief && has_few_keys && !a->is_batch_invariant && !a->has_query_offsets &&
        !a->has_key_offsets && !a->has_key_lengths)
        tgi_cuda_visit_short(machine, a, brief, visit, state);
    for (int i = has_few_keys ? 0 : 1; i < 3; i++) {
        const tgi_attention_row *row = find_row(machine, a, kinds[i]);
        if (!row || (row->kind == TGI_ATTENTION_THIN && a->m > THIN_ROWS_MAX(a->head_count)))
            continue;
        try_row(&search, row, 1);
        if (group > 1 && (a->m < row->queries || row->kind == TGI_ATTENTION_FEW_KEYS) &&
            group * a->m <= LENGTH_MAX)
            try_row(&search, row, group);
    }
}

/* The choice with the least predicted time so far. */
typedef struct fastest_choice {
    const tgi_machine *machine;
    const tg_attention *attention;
    tgi_attention_choice *choice;
    double least_ns;
} fastest_choice;

static void keep_fastest(const tgi_attention_choice *tried, void *state)
{
    fastest_choice *fastest = state;
    const double time = tgi_cuda_predict_attention(fastest->machine, fastest->attention, tried);
    if (time < fastest->least_ns &&
        !tgi_cuda_has_narrower(fastest->machine, fastest->attention, tried)) {
        fastest->least_ns = time;
        *fastest->choice = *tried;
    }
}

/* Makes the choice for a batch entry one for `count` of them. Returns 0 if their blocks are too
 * many. */
static int repeat(const tg_attention *a, int64_t count, tgi_attention_choice *choice)
{
    choice->workspace_bytes = tgi_checked_multiply(choice->workspace_bytes, count);
    choice->is_resident = 0;
    return tgi_checked_multiply(a->head_count / choice->shared_heads * choice->tile_count *
                                    choice->split_count * choice->cluster_count,
                                count) <= BLOCKS_MAX;
}

tg_status tgi_cuda_choose_attention(const tgi_machine *machine, const tg_attention *a,
                                    tgi_attention_choice *choice)
{
    tg_attention planned = *a;
    fastest_choice fastest = {machine, &planned, choice, INFINITY};
    const tg_status status = check(machine, a);
    if (status)
        return status;
    const int is_repeated = a->is_batch_invariant && a->batch_count > 1;
    planned.batch_count = is_repeated ? 1 : a->batch_count;
    const tgi_attention_row *wide = find_row(machine, a, TGI_ATTENTION_WIDE);
    if (tgi_cuda_is_real(a) || (wide && wide->has_boxes))
        tgi_cuda_visit_choices(machine, &planned, keep_fastest, &fastest);
    else
        fill_machine(machine, &planned, choice);
    if (!choice->row || (is_repeated && !repeat(a, a->batch_count, choice)))
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "batch_count = %lld, head_count = %lld, m = %lld: more than 2^31 - "
                               "1 tiles of queries; pass fewer in a call",
                               (ll)a->batch_count, (ll)a->head_count, (ll)a->m);
    tgi_cuda_complete_choice(machine, a, choice);
    return TG_STATUS_OK;
}
