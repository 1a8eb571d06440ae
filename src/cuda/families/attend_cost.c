/*
 * Predicts the time of an attention on a GPU, in ns, for a row and a division of its keys. The
 * constants are figures of model/figures/h200_attention.def.
 */
#include <math.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "model/figures.h"

#define SCHEDULERS 4       /* warp schedulers of a multiprocessor */
#define TILES_LOOKED 8     /* tiles of a head whose times are predicted */
#define SECTOR_ELEMENTS 16 /* elements of 16 bits in 32 bytes */

/* Returns the time of a figure that depends on the size of a head. */
static double count(const double cost[2], const tgi_attention_row *row)
{
    return cost[0] + cost[1] * row->head_size;
}

/* Returns how many keys a tile with `rows` queries of a head, around query `query`, sees. */
static int64_t count_seen_keys(const tg_attention *a, const tgi_attention_choice *choice,
                               int64_t query, int64_t rows)
{
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t middle = query + (window.is_bottom ? a->n - a->m : 0);
    const int64_t queries = choice->shared_heads > 1 ? a->m : rows;
    const int64_t low = middle - queries / 2 - window.before;
    const int64_t high = middle + (queries + 1) / 2 + window.after; /* behind the last query */
    const int64_t keys = (high < a->n ? high : a->n) - (low > 0 ? low : 0);
    return keys < 1 ? 1 : keys;
}

/* Returns the number of steps of such a tile, of its first split. */
static double count_tile_steps(const tg_attention *a, const tgi_attention_choice *choice,
                               int64_t query, int64_t rows)
{
    const int64_t keys = count_seen_keys(a, choice, query, rows);
    return (double)tgi_divide_up(keys < choice->split_keys ? keys : choice->split_keys,
                                 choice->step_keys);
}

/* Returns the number of steps of the middle tile or, if is_last is 1, of the last tile. If all
 * tiles run at the same time, the last one takes longest under a causal mask. */
static double count_steps(const tg_attention *a, const tgi_attention_choice *choice, int is_last)
{
    const int64_t rows = choice->shared_heads > 1 ? a->m : choice->query_tile;
    return count_tile_steps(a, choice, is_last ? a->m - (rows + 1) / 2 : a->m / 2, rows);
}

/* Returns 1 if a mask hides keys of the last steps of tiles, whose V is then inspected. */
static int has_edges(const tg_attention *a)
{
    return tgi_attention_find_window(a).after < a->n;
}

/* Returns the bytes of a key of all heads, K and V. */
static double count_key_bytes(const tg_attention *a)
{
    return (double)(tgi_type_bytes(a->type) * (a->head_size + a->v_head_size) * a->batch_count *
                    a->kv_head_count);
}

/* Returns the share of K and V that the L2 cache no longer holds when the next call reads them. */
static double find_far_share(const tgi_machine *machine, const tg_attention *a)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const double held = count_key_bytes(a) * (double)a->n / (double)machine->l2_bytes;
    return fmin(1.0, fmax(0.0, (held - f->l2_whole) / (f->l2_lost - f->l2_whole)));
}

/* Returns the time of reading from memory what the L2 cache does not hold of K and V. */
static double predict_memory(const tgi_machine *machine, const tg_attention *a, double keys)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    return f->memory_byte * find_far_share(machine, a) * count_key_bytes(a) * keys;
}

/* Returns the time that K and V take at least: all reads of them from the L2 cache or, if they are
 * larger than that, each byte once from memory. */
static double predict_reads(const tgi_machine *machine, const tg_attention *a,
                            const tgi_attention_choice *choice)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const double keys =
        fmin((double)a->n, count_steps(a, choice, 0) * (double)choice->step_keys *
                               (double)(choice->warp_split_count * choice->cluster_count) *
                               (double)choice->split_count);
    const double all = 2.0 * (double)(a->head_size + a->v_head_size) * keys *
                       (double)a->batch_count * (double)(a->head_count / choice->shared_heads) *
                       (double)choice->tile_count;
    const double part = a->head_size < choice->row->head_size ? 1.0 + f->cached_part : 1.0;
    return fmax(f->cached_byte * part * all, predict_memory(machine, a, keys));
}

/* Returns the time that a tile of `rows` rows takes more if these belong to several heads. */
static double predict_mixed(const double cost[2], const tgi_attention_row *row, double rows)
{
    return cost[0] + cost[1] * row->head_size * rows / row->queries;
}

/* Returns the time of a tile of `rows` rows of a row of many queries. */
static double predict_wide_tile(const tg_attention *a, const tgi_attention_row *row, int64_t rows,
                                double steps, int is_mixed)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const double computed = (double)tgi_round_up(rows, TGI_ATTEND_GROUP_QUERIES);
    return count(f->wide_tile, row) +
           (is_mixed ? predict_mixed(f->wide_mixed, row, (double)rows) : 0.0) +
           (has_edges(a) ? f->wide_edge : 0.0) +
           (has_edges(a) || a->n % row->keys ? f->wide_hidden : 0.0) +
           steps * row->keys *
               fmax(f->group_key + count(f->group_score, row) * computed,
                    f->lone_key * row->head_size);
}

/* The times of the tiles of a head in a row of many queries: the longest and the mean. */
typedef struct wide_times {
    double longest, mean;
} wide_times;

/* Looks at tiles all over the queries. Groups of warps without rows do nothing. */
static wide_times predict_wide_tiles(const tg_attention *a, const tgi_attention_choice *choice,
                                     int is_mixed)
{
    const int64_t last = choice->tile_count - 1, all = choice->shared_heads * a->m;
    const int64_t looked = last < TILES_LOOKED ? last + 1 : TILES_LOOKED;
    wide_times times = {0.0, 0.0};
    for (int64_t i = 0; i < looked; i++) {
        const int64_t tile = last > 0 ? i * last / (looked - 1) : 0;
        const int64_t first = tile * choice->query_tile, rest = all - first;
        const int64_t rows = rest < choice->query_tile ? rest : choice->query_tile;
        const int64_t middle = choice->shared_heads > 1 ? a->m / 2 : first + rows / 2;
        const double steps = count_tile_steps(a, choice, middle, rows);
        const double time = predict_wide_tile(a, choice->row, rows, steps, is_mixed);
        times.longest = fmax(times.longest, time);
        times.mean += time / (double)looked;
    }
    return times;
}

/* Returns the time of a row of many queries whose multiprocessors have `load` tiles each, in
 * turn. */
static double predict_wide(const tgi_machine *machine, const tg_attention *a,
                           const tgi_attention_choice *choice, double load, int is_mixed)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const double start = f->wide_start + fmin(load, 1.0) * count(f->wide_fill, choice->row);
    const wide_times tile = predict_wide_tiles(a, choice, is_mixed);
    if (load <= 1.0) {
        const double reads = predict_reads(machine, a, choice) + count(f->wide_tile, choice->row);
        return start + fmax(tile.longest, reads) + f->read_overlap * fmin(tile.longest, reads);
    }
    /* Under a causal mask short tiles follow long ones, so that blocks have loads alike. Up to two
     * tiles a block, two of the tile in the middle of these blocks take as long. */
    const double middle = tile.longest - 2.0 * (tile.longest - tile.mean) / load;
    const double tiles = count_steps(a, choice, 1) <= count_steps(a, choice, 0)
                             ? ceil(load) * tile.mean
                             : fmax(tile.longest, load < 2.0 ? 2.0 * middle : load * tile.mean);
    return start + fmax(tiles, predict_memory(machine, a, (double)a->n));
}

/* Returns the time of a row of few queries whose multiprocessors each have `tiles` tiles, as many
 * at once as fit. */
static double predict_thin(const tgi_machine *machine, const tg_attention *a,
                           const tgi_attention_choice *choice, int64_t tiles, int is_mixed)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const tgi_attention_row *row = choice->row;
    const int64_t warp_splits = choice->warp_split_count, blocks = choice->cluster_count;
    const int64_t held = machine->gpu.shared_bytes_per_sm / (choice->shared_bytes + 1024);
    const double rounds = (double)tgi_divide_up(tiles, held > 1 ? held : 1);
    const int64_t all = choice->shared_heads * a->m, rows = all < row->queries ? all : row->queries;
    const int64_t at_once = row->head_size > 128 ? 1 : 2; /* rows that a warp joins at once */
    double time = count(f->thin_tile, row) +
                  f->joined_row * (double)tgi_divide_up(rows, warp_splits * at_once);
    if (is_mixed)
        time += predict_mixed(f->thin_mixed, row, (double)rows);
    if (blocks > 1)
        time += f->cluster + f->cluster_block * (double)blocks +
                f->cluster_row * (double)tgi_divide_up(rows, blocks * warp_splits * at_once);
    /* Warps of all blocks that a multiprocessor has at once share its schedulers. */
    const int64_t sharers = held < 1 ? 1 : tiles < held ? tiles : held;
    const int64_t warps = warp_splits * sharers;
    time += f->thin_shared * (double)(sharers - 1);
    const double crowd = 1.0 + f->thin_crowd * (double)(tgi_divide_up(warps, SCHEDULERS) - 1);
    const double far_share = find_far_share(machine, a);
    /* Blocks of larger clusters lie close together and share ways to memory. */
    const double pair = blocks > 2 ? 1.0 + f->pair * far_share : 1.0;
    const double steps =
        rounds * count_steps(a, choice, rounds <= 1.0) * count(f->thin_step, row) * crowd;
    const double read =
        count_steps(a, choice, 0) * row->keys * (double)warp_splits; /* keys of a block */
    const double reads = predict_reads(machine, a, choice);
    const double byte = f->thin_byte + far_share * (f->far_byte - f->thin_byte);
    const double bytes = 4.0 * row->head_size * read * (double)tiles * byte *
                         (a->head_size < row->head_size ? 1.0 + f->thin_part : 1.0);
    const double most = fmax(fmax(steps, bytes), reads);
    return rounds * time + pair * (most + f->read_overlap * (steps + bytes + reads - most));
}

/* Returns the time of a row of few keys, whose warps compute 16 rows, for `groups` groups of
 * heads. */
static double predict_few_keys(const tgi_machine *machine, const tg_attention *a,
                               const tgi_attention_choice *choice, int64_t groups)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const tgi_attention_row *row = choice->row;
    const int64_t rows = choice->shared_heads * a->m, sm_count = machine->gpu.sm_count;
    const int64_t warp_splits = choice->warp_split_count, warps = choice->block_threads / 32;
    const int64_t readers =
        warp_splits > 1 ? 1 : row->queries / 16; /* warps that share the reads of keys */
    const int64_t blocks = tgi_divide_up(groups * choice->tile_count, sm_count);
    const int64_t waves = tgi_divide_up(blocks, tgi_cuda_count_held(machine, choice));
    const double tiles = (double)groups * (double)tgi_divide_up(rows, 16) / (double)sm_count;
    const double steps = count_steps(a, choice, waves <= 1);
    double wave = f->few_keys_open +
                  (double)choice->subtile_count * (f->few_keys_subtile + steps * f->few_keys_step);
    if (choice->kept_keys > row->keys)
        wave += f->kept + f->kept_step * ceil(steps / (double)readers);
    return f->few_keys_start +
           fmin((double)(groups * choice->tile_count) / (double)sm_count, 1.0) * f->few_keys_fill +
           f->few_keys_row * (double)(rows < 16 ? rows : 16) +
           (warp_splits > 1 ? f->few_keys_join * (double)warp_splits : 0.0) + (double)waves * wave +
           tiles * ((double)(warp_splits > 1 ? warps : row->warps * 16 / row->queries) *
                        (f->few_keys_tile + count_steps(a, choice, 0) * f->few_keys_key_step) +
                    f->few_keys_element * (double)a->head_size);
}

/* The means of tiles of a row of short sequences: steps, and those of which rows do not see all
 * keys, whose V is then inspected. */
typedef struct short_steps {
    double all, edges;
} short_steps;

/* Looks at tiles all over the queries, from tile `first` on. */
static short_steps count_short_steps(const tg_attention *a, const tgi_attention_choice *choice,
                                     int64_t first)
{
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t size = choice->row->queries, keys = choice->step_keys;
    const int64_t shift = window.is_bottom ? a->n - a->m : 0;
    const int64_t last = tgi_divide_up(a->m, size) - 1 - first;
    const int64_t looked = last < 0 ? 1 : last < TILES_LOOKED ? last + 1 : TILES_LOOKED;
    short_steps mean = {0.0, 0.0};
    for (int64_t i = 0; i < looked; i++) {
        const int64_t tile = first + (looked > 1 ? i * last / (looked - 1) : 0);
        const int64_t from = tile * size, rest = a->m - from, rows = rest < size ? rest : size;
        const double steps = count_tile_steps(a, choice, from + rows / 2, rows);
        const int64_t low = from + rows - 1 + shift - window.before;
        const int64_t high = from + shift + window.after + 1; /* all rows see low .. high - 1 */
        const double plain = (double)((high < a->n ? high / keys : tgi_divide_up(a->n, keys)) -
                                      (low > 0 ? tgi_divide_up(low, keys) : 0));
        mean.all += steps / (double)looked;
        mean.edges += fmax(0.0, steps - fmax(0.0, plain)) / (double)looked;
    }
    return mean;
}

/* Returns the time of a row of short sequences for `groups` heads of all batch entries. The next
 * kernel starts while the last blocks run, so that waves need not be whole. */
static double predict_short(const tgi_machine *machine, const tg_attention *a,
                            const tgi_attention_choice *choice, int64_t groups)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const int64_t sm_count = machine->gpu.sm_count;
    const int64_t sharers = choice->warp_split_count; /* groups of warps of a block */
    const double load = (double)(groups * choice->tile_count) / (double)sm_count;
    const double held = (double)tgi_cuda_count_held(machine, choice);
    const double waves = fmax(1.0, 0.5 * (load / held + ceil(ceil(load) / held)));
    const double keys = (double)choice->step_keys, size = choice->row->head_size;
    const short_steps mean = count_short_steps(a, choice, 0);
    /* If all blocks run at the same time, the last ones take longest under a causal mask. */
    const short_steps steps =
        waves > 1.0
            ? mean
            : count_short_steps(a, choice, (choice->tile_count - 1) * choice->subtile_count);
    const double passing = fmax(0.0, steps.all - (double)(choice->kept_keys / choice->step_keys));
    const double rows = (double)(a->m < choice->row->queries ? a->m : choice->row->queries);
    const double subtile = (f->short_subtile + f->short_row * rows) * size +
                           passing * f->short_passing + steps.edges * f->short_edge +
                           steps.all * (f->short_step + f->short_key * keys);
    const double tiles =
        (double)groups * (double)tgi_divide_up(a->m, choice->row->queries) / (double)sm_count;
    const double copied = load * 2.0 * mean.all * keys + tiles * rows;
    const double crowd = 1.0 + f->short_crowd * (double)(sharers - 1);
    const double own = (double)tgi_divide_up(choice->subtile_count, sharers) * subtile * crowd;
    return f->short_start + fmin(load, 1.0) * f->short_fill +
           waves * (f->short_wave + (steps.all > 1.0 ? f->short_more : 0.0) +
                    (load > 1.0 || sharers > 1 ? f->short_shared / size : 0.0) + own) +
           tiles * size * (f->short_tile + f->short_product * keys * mean.all) +
           (a->head_size % SECTOR_ELEMENTS ? f->short_part * copied : 0.0);
}

/* Returns the time of a row of FP32 or FP64. Tiles are looked at all over the queries. Under a mask
 * splits of a tile may have no keys. */
static double predict_real(const tgi_machine *machine, const tg_attention *a,
                           const tgi_attention_choice *choice, int64_t blocks)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const int64_t last = choice->tile_count - 1;
    const int64_t looked = last < TILES_LOOKED ? last + 1 : TILES_LOOKED;
    double most = 0.0, mean = 0.0;
    for (int64_t i = 0; i < looked; i++) {
        const int64_t tile = last > 0 ? i * last / (looked - 1) : 0;
        const int64_t first = tile * choice->query_tile, rest = a->m - first;
        const int64_t rows = choice->shared_heads > 1    ? a->m
                             : rest < choice->query_tile ? rest
                                                         : choice->query_tile;
        const int64_t middle = choice->shared_heads > 1 ? a->m / 2 : first + rows / 2;
        const int64_t seen = count_seen_keys(a, choice, middle, rows);
        most = fmax(most, count_tile_steps(a, choice, middle, rows));
        mean +=
            (double)tgi_divide_up(seen, choice->step_keys) / (double)(choice->split_count * looked);
    }
    return fmax(choice->row->kind == TGI_ATTENTION_FEW_QUERIES
                    ? tgi_cuda_predict_few_queries(machine, a, choice, blocks, most)
                    : tgi_cuda_predict_real(machine, a, choice, blocks, most, mean),
                f->real_start + predict_memory(machine, a, (double)a->n));
}

int64_t tgi_cuda_count_held(const tgi_machine *machine, const tgi_attention_choice *choice)
{
    const tgi_attention_row *row = choice->row;
    const int64_t by_warps = row->resident_blocks * row->warps * 32 / choice->block_threads;
    const int64_t by_bytes = machine->gpu.shared_bytes_per_sm / (choice->shared_bytes + 1024);
    const int64_t held = by_warps < by_bytes ? by_warps : by_bytes;
    return held > 1 ? held : 1;
}

double tgi_cuda_predict_attention(const tgi_machine *machine, const tg_attention *a,
                                  const tgi_attention_choice *choice)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const int64_t sm_count = machine->gpu.sm_count, splits = choice->split_count;
    const int64_t groups = a->batch_count * (a->head_count / choice->shared_heads);
    const int64_t blocks = groups * choice->tile_count * splits * choice->cluster_count;
    const int64_t tiles = tgi_divide_up(blocks, sm_count);
    const int is_mixed = choice->shared_heads > 1 && a->m > 1;
    double time =
        tgi_cuda_is_real(a)                           ? predict_real(machine, a, choice, blocks)
        : choice->row->kind == TGI_ATTENTION_FEW_KEYS ? predict_few_keys(machine, a, choice, groups)
        : choice->row->kind == TGI_ATTENTION_SHORT    ? predict_short(machine, a, choice, groups)
        : choice->row->kind == TGI_ATTENTION_THIN
            ? predict_thin(machine, a, choice, tiles, is_mixed)
            : predict_wide(machine, a, choice, (double)blocks / (double)sm_count, is_mixed);
    if (splits > 1 && choice->row->kind == TGI_ATTENTION_THIN && blocks > sm_count * 10 / 11)
        time += f->merge_crowd;
    if (splits > 1)
        time += f->merge + f->merged_split * (double)splits +
                f->merged_round * (double)((splits - 1) / (4 * TGI_ATTEND_MERGE_WARPS_MAX)) +
                (tgi_attend_count_merged((int32_t)splits) > 1 ? f->few_row : f->merged_row) *
                    (double)tgi_divide_up(a->batch_count * a->head_count * a->m, sm_count) +
                f->split_byte * (double)choice->workspace_bytes;
    return time;
}
