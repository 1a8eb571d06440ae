/* Divides the work of an attention on the CPU among threads. A task is a tile of queries of one
 * head of keys. If there are few such tiles, a task is one split of the keys of a tile, and the
 * states of the splits are merged afterwards. */
#include "cpu/attention_tasks.h"

#include <stdio.h>

#include "core/dtype.h"
#include "threads/threads.h"

#define QUERY_TILE 48
#define COPIED_QUERY_TILE 192 /* the most queries of a task whose blocks of K and V are copies */
#define SLICED_QUERY_TILE 512 /* the most queries of a task whose blocks are sliced */
#define TASKS_PER_THREAD 4    /* with fewer tiles than this, splits of the keys are tasks */
#define STATES_BYTES_MAX ((int64_t)256 << 20)

/* The instruction sets that have code for attention, for sums of FP32 and of FP64. Those for
 * products of 16 bits have none, because weights stay FP32. AMX has products of slices. */
static const tgi_attention_isa *const isas[TGI_ISA_COUNT] = {
    [TGI_ISA_generic] = tgi_attention_generic,
#if defined(__x86_64__)
    [TGI_ISA_avx2] = tgi_attention_avx2,
    [TGI_ISA_avx512] = tgi_attention_avx512,
#endif
};

/* Returns the last of these sets that the given one includes. */
static tgi_isa find_isa(tgi_isa isa)
{
    while (!isas[isa])
        isa--;
    return isa;
}

/* Makes products of slices those of the run, on tile registers. */
static void choose_slices(tgi_attention_run *run)
{
#if defined(__x86_64__)
    if (run->choice->isa == TGI_ISA_amx) {
        run->tiles = tgi_cpu_select_type(TGI_ISA_amx, TG_TYPE_BF16)->tiles;
        run->slices = &tgi_attention_amx;
        run->block_keys = TGI_ATTENTION_SLICED_BLOCK;
    }
#endif
}

/* Fills the members that follow from the problem and the choice; addresses stay NULL. */
static tgi_attention_run open_run(const tg_attention *a, const tgi_attention_choice *choice)
{
    const tg_type sum_type = tgi_attention_sum_type(a);
    const tgi_isa isa = find_isa(choice->isa);
    tgi_attention_run run = {.attention = a,
                             .choice = choice,
                             .kernels = tgi_cpu_select_type(isa, a->type),
                             .sum_kernels = tgi_cpu_select_type(isa, sum_type),
                             .isa = &isas[isa][a->type == TG_TYPE_FP64],
                             .block_keys = TGI_ATTENTION_BLOCK,
                             .group = a->head_count / a->kv_head_count};
    run.tiles = run.sum_kernels->tiles;
    choose_slices(&run);
    run.split_keys = TGI_ATTENTION_BLOCKS_OF_SPLIT * run.block_keys;
    const int64_t cols = run.tiles->cols, bytes = run.tiles->accum_bytes;
    const int64_t rows = run.group * a->m;
    const int64_t tile = choice->query_tile < rows ? choice->query_tile : rows;
    run.query_block_count = tile > 0 ? tgi_divide_up(tile, cols) : 1;
    run.tile_count = tgi_divide_up(rows, run.query_block_count * cols);
    run.split_count = a->n > 0 ? tgi_divide_up(a->n, run.split_keys) : 1;
    run.state_bytes =
        tgi_attention_round_bytes((a->v_head_size + TGI_ATTENTION_STATE_EXTRA) * cols * bytes);
    return run;
}

/* Returns the scratch buffers of a thread, which begin at `base`. Sets *bytes to their size, also
 * if `base` is NULL. */
static tgi_attention_scratch lay_out_scratch(const tgi_attention_run *run, char *base,
                                             int64_t *bytes)
{
    const tg_attention *a = run->attention;
    const int64_t elem = run->tiles->accum_bytes, cols = run->tiles->cols;
    const int64_t query_blocks = run->query_block_count, block_keys = run->block_keys;
    tgi_attention_scratch scratch;
    char *ranges;
    const struct {
        char **place;
        int64_t bytes;
    } blocks[] = {{&scratch.queries, query_blocks * a->head_size * cols * elem},
                  {&scratch.totals, query_blocks * run->state_bytes},
                  {&scratch.splits, query_blocks * run->state_bytes},
                  {&scratch.sums, run->state_bytes},
                  {&scratch.scores, block_keys * cols * elem},
                  {&scratch.bias, a->has_bias ? block_keys * cols * elem : 0},
                  {&scratch.keys, block_keys * a->head_size * elem},
                  {&scratch.values, block_keys * a->v_head_size * elem},
                  {&scratch.odd_columns, query_blocks * (int64_t)sizeof(uint32_t)},
                  {&scratch.odd_keys, block_keys},
                  {&ranges, query_blocks * (int64_t)sizeof(tgi_attention_range)},
                  {&scratch.lows, query_blocks * cols * (int64_t)sizeof(int64_t)},
                  {&scratch.highs, query_blocks * cols * (int64_t)sizeof(int64_t)},
                  {&scratch.places, query_blocks * cols * (int64_t)sizeof(int64_t)},
                  {&scratch.slopes, query_blocks * cols * elem},
                  {&scratch.low, cols * elem},
                  {&scratch.high, cols * elem},
                  {&scratch.place, cols * elem}};
    *bytes = 0;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        *blocks[i].place = base ? base + *bytes : NULL;
        *bytes += tgi_attention_round_bytes(blocks[i].bytes);
    }
    for (int i = 0; i < TGI_ATTENTION_SLICED_COUNT; i++) {
        scratch.slices[i] = base ? base + *bytes : NULL;
        *bytes += tgi_attention_count_slice_bytes(run, (tgi_attention_sliced)i);
    }
    scratch.ranges = (tgi_attention_range *)ranges;
    return scratch;
}

static int64_t count_items(const tgi_attention_run *run)
{
    return run->attention->batch_count * run->attention->kv_head_count * run->tile_count;
}

/* Sets the queries of a task, and returns the run. A task that copies blocks of K and V gets more
 * queries if there are enough tasks, because it copies once for all of them. Bits do not depend on
 * this. */
static tgi_attention_run choose_tile(const tgi_machine *machine, const tg_attention *a,
                                     tgi_attention_choice *choice)
{
    choice->query_tile = QUERY_TILE;
    tgi_attention_run run = open_run(a, choice);
    if (run.slices)
        choice->query_tile = TGI_SLICES_COLS;
    const int is_copied = run.slices || !tgi_attention_is_in_place(&run, &a->k) ||
                          !tgi_attention_is_in_place(&run, &a->v);
    const int64_t most = run.slices ? SLICED_QUERY_TILE : COPIED_QUERY_TILE;
    while (is_copied && choice->query_tile < most &&
           count_items(&run) / 2 >= TASKS_PER_THREAD * machine->thread_count) {
        choice->query_tile *= 2;
        run = open_run(a, choice);
    }
    return run;
}

/* Returns 1 if AMX multiplies slices. */
static int is_sliced(const tgi_machine *machine, const tg_attention *a)
{
    return machine->isa == TGI_ISA_amx && tgi_type_bytes(a->type) == 2;
}

static tg_status choose(const tgi_machine *machine, const tg_attention *a,
                        tgi_attention_choice *choice)
{
    choice->isa = is_sliced(machine, a) ? TGI_ISA_amx : find_isa(machine->isa);
    snprintf(choice->kernel, sizeof choice->kernel, "cpu_attention_%s_%s",
             tgi_kernels_isa_name(choice->isa), tg_get_type_name(a->type));
    tgi_attention_run run = choose_tile(machine, a, choice);
    lay_out_scratch(&run, NULL, &run.scratch_bytes);
    const int64_t items = count_items(&run);
    const int64_t states_bytes = tgi_checked_multiply(tgi_checked_multiply(items, run.split_count),
                                                      run.query_block_count * run.state_bytes);
    choice->is_split = run.split_count > 1 && machine->thread_count > 1 &&
                       items < TASKS_PER_THREAD * machine->thread_count &&
                       states_bytes <= STATES_BYTES_MAX;
    const int64_t tasks = choice->is_split ? items * run.split_count : items;
    choice->thread_count =
        tasks < machine->thread_count ? (int)(tasks > 0 ? tasks : 1) : machine->thread_count;
    choice->workspace_bytes =
        run.scratch_bytes * choice->thread_count + (choice->is_split ? states_bytes : 0);
    return TG_STATUS_OK;
}

/* Returns 0 if the batch entry has no such tile of queries. */
static int find_item(const tgi_attention_run *run, int64_t index, tgi_attention_item *item)
{
    const tg_attention *a = run->attention;
    const int64_t cols = run->query_block_count * run->tiles->cols;
    /* The last tiles come first: under a causal mask they take longest. One of fewer queries comes
     * after all others, because the first one has to hide that K and V come from memory. */
    const int64_t rest = run->group * a->m % cols > 0;
    const int64_t tile = run->tile_count - 1 - (index + rest) % run->tile_count;
    item->kv_head = index / run->tile_count % a->kv_head_count;
    item->batch = index / run->tile_count / a->kv_head_count;
    item->queries = tgi_attention_count_queries(a, item->batch);
    item->keys = tgi_attention_count_keys(a, item->batch);
    item->first = tile * cols;
    const int64_t left = run->group * item->queries - item->first;
    item->count = left < cols ? left : cols;
    item->is_first = index % run->tile_count == 0 && item->count > run->tiles->vector_elems;
    item->next_queries = NULL;
    item->next_count = 0;
    return item->count > 0;
}

static tgi_attention_scratch find_scratch(const tgi_attention_run *run, int thread)
{
    int64_t bytes;
    return lay_out_scratch(run, run->thread_scratch + thread * run->scratch_bytes, &bytes);
}

/* Merges a split, in the order of the splits, into the totals. */
static void merge_split(const tgi_attention_run *run, const tgi_attention_item *item, char *totals,
                        const char *states)
{
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        const tgi_attention_state total = {totals + query_block * run->state_bytes,
                                           run->attention->v_head_size, run->tiles->cols,
                                           tgi_attention_count_cols(run, item, query_block)};
        run->isa->merge(&total, states + query_block * run->state_bytes);
    }
}

static int64_t count_splits(const tgi_attention_run *run, const tgi_attention_item *item)
{
    return tgi_divide_up(item->keys, run->split_keys);
}

/* Merges the states of all splits into those of the first one, and stores the item. With `states`
 * NULL it forms them first. */
static void finish_item(const tgi_attention_run *run, const tgi_attention_item *item,
                        const tgi_attention_scratch *scratch, char *states)
{
    const int64_t split_bytes = run->query_block_count * run->state_bytes;
    const int64_t split_count = count_splits(run, item);
    const int is_formed = states && split_count > 0;
    char *totals = is_formed ? states : scratch->totals;
    if (!is_formed)
        tgi_attention_form_split(run, item, 0, scratch, totals);
    for (int64_t split = 1; split < split_count; split++) {
        if (!states)
            tgi_attention_form_split(run, item, split, scratch, scratch->splits);
        merge_split(run, item, totals, states ? states + split * split_bytes : scratch->splits);
    }
    for (int64_t query_block = 0; query_block < run->query_block_count; query_block++) {
        if (query_block * run->tiles->cols < item->count)
            tgi_attention_store(run, item, scratch, query_block,
                                totals + query_block * run->state_bytes);
    }
}

static void start_item(const tgi_attention_run *run, const tgi_attention_item *item,
                       const tgi_attention_scratch *scratch)
{
    tgi_attention_find_queries(run, item, scratch);
    if (run->slices)
        run->slices->open();
    if (run->slices && tgi_attention_pair_queries(run, item, scratch))
        return;
    tgi_attention_load_queries(run, item, scratch);
    if (run->slices)
        tgi_attention_slice_queries(run, scratch);
}

/* Finds the rows of Q that the next item reads. */
static void find_next(const tgi_attention_run *run, int64_t index, tgi_attention_item *item)
{
    const tg_attention *a = run->attention;
    tgi_attention_item next;
    int64_t entry, row;
    if (index + 1 >= count_items(run) || !find_item(run, index + 1, &next))
        return;
    const int64_t head = tgi_attention_find_row(run, &next, 0, &entry, &row);
    item->next_queries = tgi_attention_at(&a->q, tgi_type_bytes(a->type), entry, head, row, 0);
    item->next_count = tgi_attention_count_run(&next);
}

static void run_item(void *state, int64_t index, int thread)
{
    const tgi_attention_run *run = state;
    const tgi_attention_scratch scratch = find_scratch(run, thread);
    tgi_attention_item item;
    if (!find_item(run, index, &item))
        return;
    find_next(run, index, &item);
    start_item(run, &item, &scratch);
    finish_item(run, &item, &scratch, NULL);
    if (run->slices)
        run->slices->close();
}

static void run_split(void *state, int64_t index, int thread)
{
    const tgi_attention_run *run = state;
    const int64_t split = index % run->split_count;
    const tgi_attention_scratch scratch = find_scratch(run, thread);
    tgi_attention_item item;
    if (!find_item(run, index / run->split_count, &item) || split >= count_splits(run, &item))
        return;
    start_item(run, &item, &scratch);
    tgi_attention_form_split(run, &item, split, &scratch,
                             run->states + index * run->query_block_count * run->state_bytes);
    if (run->slices)
        run->slices->close();
}

static void merge_item(void *state, int64_t index, int thread)
{
    const tgi_attention_run *run = state;
    const tgi_attention_scratch scratch = find_scratch(run, thread);
    tgi_attention_item item;
    if (find_item(run, index, &item))
        finish_item(run, &item, &scratch,
                    run->states +
                        index * run->split_count * run->query_block_count * run->state_bytes);
}

static tg_status launch(const tgi_attention_call *call)
{
    const tgi_attention_choice *choice = call->choice;
    tgi_attention_run run = open_run(call->attention, choice);
    lay_out_scratch(&run, NULL, &run.scratch_bytes);
    run.thread_scratch = call->workspace;
    run.states = run.thread_scratch + run.scratch_bytes * choice->thread_count;
    const int64_t items = count_items(&run);
    if (!choice->is_split) {
        tgi_threads_run(run_item, &run, items, choice->thread_count);
        return TG_STATUS_OK;
    }
    tgi_threads_run(run_split, &run, items * run.split_count, choice->thread_count);
    tgi_threads_run(merge_item, &run, items, choice->thread_count);
    return TG_STATUS_OK;
}

const tgi_attention_backend tgi_attention_cpu = {
    .device = "cpu", .choose = choose, .launch = launch};
