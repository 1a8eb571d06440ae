/*
 * Plans attention of FP32 and FP64 on a GPU: shows the choices of rows and predicts their times. A
 * block has as many warps as the plan says.
 */
#include <math.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "model/figures.h"

#define SCHEDULERS 4  /* warp schedulers of a multiprocessor */
#define LEAST_WARPS 4 /* warps that a block of few queries may have */
#define ROWS_MAX (INT64_C(1) << 30)
#define FEW_ROWS_MAX 8 /* rows of heads that share keys, in rows of few queries */
#define STEPS_MAX 64   /* steps of a row of few queries, of which each rounds the sums so far */

int tgi_cuda_is_real(const tg_attention *a)
{
    return a->type == TG_TYPE_FP32 || a->type == TG_TYPE_FP64;
}

/* Returns the number of warps that share queries. */
static int64_t count_sharers(const tgi_attention_row *row)
{
    return TGI_ATTEND_REAL_SHARERS(row->head_size, row->queries, row->warps);
}

/* Returns the queries of the warps that share rows. */
static int64_t count_shared_queries(const tgi_attention_row *row)
{
    return row->queries * count_sharers(row) / row->warps;
}

/* Returns the bytes of shared memory of a block with `queries` queries and `places` tiles. */
static int64_t count_bytes(const tgi_attention_row *row, int64_t queries, int64_t places)
{
    return tgi_attend_real_bytes((int32_t)tgi_type_bytes(row->type), row->head_size,
                                 (int32_t)queries,
                                 (int32_t)tgi_round_up(queries, count_shared_queries(row)),
                                 (int32_t)count_sharers(row), row->keys, (int32_t)places);
}

/* Sets the places of tiles, and the bytes of shared memory. */
static void set_places(int64_t places, tgi_attention_choice *choice)
{
    choice->tile_places = places;
    choice->shared_bytes = count_bytes(choice->row, choice->query_tile, places);
}

/* Chooses one place of tiles if there is no room for two, or if a second block fits then. */
static void choose_places(const tgi_machine *machine, int64_t blocks, tgi_attention_choice *choice)
{
    const int64_t each = tgi_divide_up(blocks, machine->gpu.sm_count);
    set_places(2, choice);
    const int has_room = choice->shared_bytes <= machine->gpu.shared_bytes_per_block;
    const int64_t held = has_room ? tgi_cuda_count_held(machine, choice) : 0;
    if (held > 1 || (held == 1 && each == 1))
        return;
    set_places(1, choice);
    if (held == 1 && tgi_cuda_count_held(machine, choice) == 1)
        set_places(2, choice);
}

void tgi_cuda_set_real_block(const tgi_machine *machine, int64_t blocks,
                             tgi_attention_choice *choice)
{
    const tgi_attention_row *row = choice->row;
    if (row->kind == TGI_ATTENTION_FEW_QUERIES) {
        choice->block_threads = 32 * row->warps;
        choice->tile_places = 1;
        choice->shared_bytes = tgi_attend_few_queries_bytes((int32_t)tgi_type_bytes(row->type),
                                                            row->queries, row->warps);
        return;
    }
    const int64_t queries = tgi_round_up(choice->query_tile, count_shared_queries(row));
    const int64_t half = machine->gpu.shared_bytes_per_sm / 2;
    choice->block_threads = 32 * count_sharers(row) * queries / count_shared_queries(row);
    choose_places(machine, blocks * choice->split_count, choice);
    /* Blocks of the next kernel start beside these. With half of the memory for each, no two of
     * them share a multiprocessor while others have none. */
    if (choice->split_count == 1 && blocks <= machine->gpu.sm_count &&
        choice->shared_bytes < half && half <= machine->gpu.shared_bytes_per_block)
        choice->shared_bytes = half;
}

/* Sets the queries of a tile of `most` queries or, if shared memory lacks room for them and one
 * tile of keys, of fewer, of which the last warps have some. Returns 0 if they would have none. */
static int set_tile(const tgi_machine *machine, int64_t most, tgi_attention_choice *choice)
{
    const tgi_attention_row *row = choice->row;
    const int64_t room = machine->gpu.shared_bytes_per_block;
    const int64_t fewest = most - count_shared_queries(row);
    choice->query_tile = most;
    while (choice->query_tile > fewest && count_bytes(row, choice->query_tile, 1) > room)
        choice->query_tile -= TGI_ATTEND_REAL_ROWS;
    return choice->query_tile > fewest;
}

/* Tries `fewest` splits of the keys (1: 1, 2, 3, 4, 6, 8, ...) and more, up to as many as give each
 * multiprocessor its blocks, or each step a split, and these too; of each the fewest that take as
 * many steps. */
static void try_splits(const tgi_machine *machine, const tg_attention *a, int64_t blocks,
                       int64_t fewest, tgi_attention_choice *tried, tgi_attention_visit *visit,
                       void *state)
{
    const int64_t steps = tgi_divide_up(a->n > 1 ? a->n : 1, tried->row->keys);
    const int64_t room = machine->gpu.sm_count * tried->row->resident_blocks * tried->row->warps;
    const int64_t filling = blocks < room ? room / (blocks > 1 ? blocks : 1) : 1;
    const int64_t wanted = filling < steps ? filling : steps;
    const int64_t most = wanted > fewest ? wanted : fewest;
    int64_t visited = 0;
    for (int64_t splits = fewest, last = 0; last < most; splits += splits / 4 + 1) {
        tried->split_count = last = splits < most ? splits : most;
        tgi_cuda_divide_keys(machine, a, blocks, tried);
        if (tried->split_count > visited)
            visit(tried, state);
        visited = tried->split_count;
    }
}

/* Tries tiles of the queries of as many warps as a block may have, of one warp less and so on,
 * whose rows belong to `heads` heads. Blocks of few queries may have LEAST_WARPS, of which some
 * copy alone. The first of choices with the same time is taken, since a larger tile copies K and V
 * less often. */
static void try_tiles(const tgi_machine *machine, const tg_attention *a,
                      const tgi_attention_row *row, int64_t heads, tgi_attention_visit *visit,
                      void *state)
{
    const int64_t queries = count_shared_queries(row), all = heads * a->m;
    const int64_t most = tgi_divide_up(all > 1 ? all : 1, queries);
    const int64_t least = LEAST_WARPS / count_sharers(row);
    const int64_t tried_most = most > least ? most : least, largest = row->queries / queries;
    for (int64_t warps = tried_most < largest ? tried_most : largest; warps > 0; warps--) {
        tgi_attention_choice tried = {.row = row,
                                      .shared_heads = heads,
                                      .subtile_count = 1,
                                      .cluster_count = 1,
                                      .warp_split_count = 1};
        if (!set_tile(machine, warps * queries, &tried))
            continue;
        tried.tile_count = tgi_divide_up(all, tried.query_tile);
        const int64_t blocks = tgi_checked_multiply(
            tgi_checked_multiply(a->batch_count, a->head_count / heads), tried.tile_count);
        if (blocks <= INT32_MAX)
            try_splits(machine, a, blocks, 1, &tried, visit, state);
    }
}

/* Returns the keys of a step of all warps of a block of few queries. */
static int64_t count_step_keys(const tg_attention *a, const tgi_attention_row *row)
{
    const int64_t head = a->head_size > a->v_head_size ? a->head_size : a->v_head_size;
    return row->warps * 32 * TGI_ATTEND_KEYS_AT_ONCE /
           tgi_attend_count_lanes((int32_t)head, (int32_t)tgi_type_bytes(row->type));
}

/* Tries a row of few queries, with those of the `heads` heads that share keys in a block. */
static void try_few_queries(const tgi_machine *machine, const tg_attention *a,
                            const tgi_attention_row *row, int64_t heads, tgi_attention_visit *visit,
                            void *state)
{
    tgi_attention_choice tried = {.row = row,
                                  .shared_heads = heads,
                                  .subtile_count = 1,
                                  .query_tile = row->queries,
                                  .tile_count = tgi_divide_up(heads * a->m, row->queries),
                                  .cluster_count = 1,
                                  .warp_split_count = 1};
    const int64_t most_keys = STEPS_MAX * count_step_keys(a, row);
    const int64_t fewest = tgi_divide_up(a->n > 1 ? a->n : 1, most_keys);
    const int64_t blocks = tgi_checked_multiply(
        tgi_checked_multiply(a->batch_count, a->head_count / heads), tried.tile_count);
    if (tgi_checked_multiply(blocks, fewest) <= INT32_MAX)
        try_splits(machine, a, blocks, fewest, &tried, visit, state);
}

void tgi_cuda_visit_real(const tgi_machine *machine, const tg_attention *a,
                         tgi_attention_visit *visit, void *state)
{
    const int64_t head = a->head_size > a->v_head_size ? a->head_size : a->v_head_size;
    const int64_t group = a->head_count / a->kv_head_count;
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int has_mask = window.before < a->n || window.after < a->n;
    const tgi_attention_row *row;
    for (int i = 0; (row = tgi_attention_rows_get(i)); i++) {
        if (row->type != a->type || row->head_size < head ||
            !tgi_kernels_isa_runs(row->isa, machine->features))
            continue;
        if (row->kind == TGI_ATTENTION_FEW_QUERIES) {
            if (group <= FEW_ROWS_MAX && group * a->m <= FEW_ROWS_MAX)
                try_few_queries(machine, a, row, group, visit, state);
            continue;
        }
        try_tiles(machine, a, row, 1, visit, state);
        if (group > 1 && (a->m < row->queries || !has_mask) && group * a->m <= ROWS_MAX)
            try_tiles(machine, a, row, group, visit, state);
    }
}

int tgi_cuda_has_narrower(const tgi_machine *machine, const tg_attention *a,
                          const tgi_attention_choice *choice)
{
    const int64_t head = a->head_size > a->v_head_size ? a->head_size : a->v_head_size;
    const tgi_attention_row *row = choice->row, *other;
    const int is_asked =
        row->type == TG_TYPE_FP32 || (row->type == TG_TYPE_FP64 && !choice->is_resident);
    for (int i = 0; is_asked && (other = tgi_attention_rows_get(i)); i++) {
        if (other->type == row->type && other->kind == row->kind && head <= other->head_size &&
            other->head_size < row->head_size &&
            tgi_kernels_isa_runs(other->isa, machine->features))
            return 1;
    }
    return 0;
}

/* Returns the elements of a head that a warp multiplies for each of its scores. Warps that share
 * queries have half of them each. */
static int64_t count_elements(const tg_attention *a, const tgi_attention_row *row)
{
    const int64_t least = 32 * count_sharers(row);
    return tgi_round_up(a->head_size, least) + tgi_round_up(a->v_head_size, least);
}

/* Returns the time of a step of `count` blocks that share a multiprocessor: that of a block which
 * waits for its own warps alone, or that of the scheduler with the most warps. */
static double predict_step(const tg_attention *a, const tgi_attention_choice *choice, int64_t count)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const tgi_attention_row *row = choice->row;
    const int is_fp64 = row->type == TG_TYPE_FP64;
    const int64_t warps = choice->block_threads / 32, rows = row->queries / row->warps;
    const double elements = (double)(row->keys * count_elements(a, row));
    const double copied = (double)row->keys * (double)tgi_type_bytes(row->type) *
                          (double)(a->head_size + a->v_head_size) / (double)warps;
    const double waits = f->real_byte * copied;
    const double alone = f->real_step + waits + f->real_alone[is_fp64] * elements * (double)rows;
    const double shared = elements * (double)tgi_round_up(warps * count, SCHEDULERS) *
                              (f->real_read[is_fp64] + f->real_product[is_fp64] * (double)rows) +
                          f->real_copied * copied * (double)(warps * count);
    return fmax(alone, choice->tile_places > 1 ? shared : shared + waits);
}

/* Returns the time for the starts and the ends of `count` blocks that share a multiprocessor. */
static double predict_ends(const tg_attention *a, const tgi_attention_choice *choice, int64_t count)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const double mixed = f->real_mixed * (double)(choice->row->queries / choice->row->warps);
    return f->real_tile + (choice->shared_heads > 1 ? mixed : 0.0) +
           f->real_row * (double)(count * choice->query_tile) * (double)a->head_size;
}

double tgi_cuda_predict_real(const tgi_machine *machine, const tg_attention *a,
                             const tgi_attention_choice *choice, int64_t blocks, double steps,
                             double mean_steps)
{
    const int64_t held = tgi_cuda_count_held(machine, choice);
    const int64_t each = tgi_divide_up(blocks, machine->gpu.sm_count);
    const int64_t rest = each % held;
    const double alone = predict_ends(a, choice, 1) + steps * predict_step(a, choice, 1);
    const double full = (double)(each / held) * (predict_ends(a, choice, held) +
                                                 mean_steps * predict_step(a, choice, held));
    const double last =
        rest > 0 ? predict_ends(a, choice, rest) + mean_steps * predict_step(a, choice, rest) : 0.0;
    return tgi_figures_find_attention()->real_start + fmax(alone, full + last);
}

double tgi_cuda_predict_few_queries(const tgi_machine *machine, const tg_attention *a,
                                    const tgi_attention_choice *choice, int64_t blocks,
                                    double steps)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const tgi_attention_row *row = choice->row;
    const int64_t all = choice->shared_heads * a->m;
    const double rows = (double)(all < row->queries ? all : row->queries);
    const double keys = steps * (double)choice->step_keys;
    const double own = ceil(keys / (double)count_step_keys(a, row));
    const double each = (double)tgi_divide_up(blocks, machine->gpu.sm_count);
    const double waves = fmax(1.0, each / (double)tgi_cuda_count_held(machine, choice));
    const double waits = waves * own * (f->few_queries_step + f->few_queries_row * (rows - 1.0));
    const double issue = each * (f->few_queries_block + own * rows * f->few_queries_issue);
    const double reads = each * keys * (double)tgi_type_bytes(row->type) *
                         (double)(a->head_size + a->v_head_size) * f->few_queries_byte;
    const double most = fmax(fmax(waits, issue), reads);
    return f->few_queries_start + most + f->read_overlap * (waits + issue + reads - most);
}
