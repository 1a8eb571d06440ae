/*
 * Chooses the order of the tiles of queries of attention. Blocks that stay on their multiprocessors
 * process tiles in turn (kernels/attend/attend.cuh), and under a mask tiles take different times.
 * The number of heads whose tiles come together decides which tiles a block gets, and so how even
 * the loads are.
 */
#include <stdio.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "model/figures.h"

#define ROWS_MAX (INT64_C(1) << 30)
#define BLOCKS_MAX 1024              /* blocks whose loads are compared */
#define TILES_MAX (INT64_C(1) << 17) /* tiles above which loads are not compared */

static int64_t least_of(int64_t x, int64_t y)
{
    return x < y ? x : y;
}

static int64_t most_of(int64_t x, int64_t y)
{
    return x > y ? x : y;
}

/* Returns the number of steps of a tile, plus one for its start and its end. */
static int64_t count_steps(const tg_attention *a, const tgi_attention_choice *choice, int64_t tile)
{
    const int64_t rows = choice->query_tile, keys = choice->row->keys;
    const tgi_attention_window window = tgi_attention_find_window(a);
    const int64_t shift = window.is_bottom ? a->n - a->m : 0;
    const int64_t from = tile * rows + shift, to = least_of(a->m, (tile + 1) * rows) - 1 + shift;
    const int64_t low = most_of(0, from - window.before) / keys * keys;
    const int64_t high = least_of(a->n, to + window.after + 1);
    return (high > low ? tgi_divide_up(high - low, keys) : 0) + 1;
}

/* Returns the largest load of a block over the mean, if the tiles of `section` heads come
 * together. */
static double compare_loads(const tg_attention *a, const tgi_attention_choice *choice,
                            int64_t block_count, int64_t section)
{
    int64_t load[BLOCKS_MAX] = {0}, sum = 0, largest = 0;
    const int64_t tiles = choice->tile_count, heads = a->batch_count * a->head_count;
    for (int64_t first = 0, at = 0; first < heads; first += section) {
        const int64_t groups = least_of(section, heads - first);
        for (int64_t tile = tiles - 1; tile >= 0; tile--) {
            const int64_t steps = count_steps(a, choice, tile);
            for (int64_t i = 0; i < groups; i++, at++) {
                const int64_t round = at / block_count, block = at % block_count;
                load[round % 2 ? block_count - 1 - block : block] += steps;
            }
            sum += steps * groups;
        }
    }
    for (int64_t i = 0; i < block_count; i++)
        largest = most_of(largest, load[i]);
    return (double)largest * (double)block_count / (double)sum;
}

int64_t tgi_cuda_count_section_groups(const tgi_machine *machine, const tg_attention *a,
                                      const tgi_attention_choice *choice)
{
    const tgi_attention_figures *f = tgi_figures_find_attention();
    const int64_t readers = (int64_t)f->order_readers;
    const int64_t tiles = choice->tile_count * choice->split_count;
    const int64_t groups_of_keys =
        tgi_divide_up(a->head_count / a->kv_head_count, choice->shared_heads);
    const int64_t bytes = tgi_type_bytes(a->type) * (a->n + 1) * (a->head_size + a->v_head_size);
    const int64_t fitting = most_of(1, machine->l2_bytes / 2 / bytes * groups_of_keys);
    const int64_t allowed = tiles > 0 ? most_of(1, ROWS_MAX / tiles) : 1;
    const int64_t block_count = machine->gpu.sm_count;
    const int64_t heads = a->batch_count * a->head_count;
    int64_t chosen = least_of(fitting, allowed);
    /* Products of FP32 and FP64 take longer than reads of K and V from memory. */
    if (tgi_cuda_is_real(a) && count_steps(a, choice, 0) != count_steps(a, choice, tiles - 1))
        return least_of(allowed, heads);
    if (choice->row->kind != TGI_ATTENTION_WIDE || !choice->row->has_boxes ||
        choice->shared_heads > 1 || choice->split_count > 1 || block_count > BLOCKS_MAX ||
        heads * tiles <= block_count || heads * tiles > TILES_MAX ||
        count_steps(a, choice, 0) == count_steps(a, choice, tiles - 1))
        return chosen;
    /* Heads whose keys do not fit together may come together if enough blocks read each. */
    const int64_t most = least_of(most_of(chosen, block_count / readers), heads);
    double least = 1e9;
    for (int64_t section = most; section > 0 && least > f->order_even_ratio; section--) {
        const double load = compare_loads(a, choice, block_count, section);
        if (load < least) {
            least = load;
            chosen = section;
        }
    }
    return chosen;
}

/* Returns the blocks of a round: each multiprocessor gets a block of every round if all blocks run
 * at the same time. Otherwise all are one round. */
static int64_t find_round(const tgi_machine *machine, const tg_attention *a,
                          const tgi_attention_choice *choice, int64_t blocks)
{
    const int64_t sm_count = machine->gpu.sm_count;
    return tgi_cuda_is_real(a) && blocks <= sm_count * tgi_cuda_count_held(machine, choice)
               ? sm_count
               : blocks;
}

void tgi_cuda_complete_choice(const tgi_machine *machine, const tg_attention *a,
                              tgi_attention_choice *choice)
{
    const int64_t blocks =
        a->batch_count * (a->head_count / choice->shared_heads) * choice->tile_count;
    if (tgi_cuda_is_real(a))
        tgi_cuda_set_real_block(machine, blocks, choice);
    choice->isa = choice->row->isa;
    choice->thread_count = 1;
    snprintf(choice->kernel, sizeof choice->kernel, "%s", choice->row->name);
    choice->section_groups = tgi_cuda_count_section_groups(machine, a, choice);
    choice->round_blocks = find_round(machine, a, choice, blocks * choice->split_count);
}
