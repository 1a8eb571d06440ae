/*
 * Plans attention of short sequences (kernels/attend/attend_short.cuh). All keys of a head stay in
 * the shared memory of a block.
 */
#include "core/checked.h"
#include "cuda/families/attend.h"
#include "cuda/families/attend_operand.h"

#define KEPT_STEPS 2        /* a block with one tile may have room for so many */
#define COPIED_STEPS_MOST 4 /* steps of such a block, which waits for copies of all but two */
#define STEPS_MOST 15       /* as many as barriers have room for */
#define SUBTILES_MOST 8     /* tiles of a block */
#define GROUP_WARPS 4
#define BLOCKS_MOST INT32_MAX

/* Sets the shared memory of a block. Returns how many waves of blocks the machine computes, or 0 if
 * it has no room for a block. */
static int64_t fit_shared(const tgi_machine *machine, int64_t blocks, tgi_attention_choice *choice)
{
    const tgi_attention_row *row = choice->row;
    choice->shared_bytes =
        tgi_attend_short_bytes(row->head_size, row->queries, (int32_t)choice->subtile_count,
                               (int32_t)choice->warp_split_count, (int32_t)choice->kept_keys);
    const int64_t room = machine->gpu.sm_count * tgi_cuda_count_held(machine, choice);
    return choice->shared_bytes <= machine->gpu.shared_bytes_per_block ? tgi_divide_up(blocks, room)
                                                                       : 0;
}

/* Makes the choice with steps of `step_keys` keys, whose blocks compute `subtiles` tiles in turn by
 * `groups` groups of four warps, and keep all keys if is_kept is 1. Returns 0 if it cannot serve
 * the attention, or if keeping fewer keys saves no wave of blocks. */
static int make_choice(const tgi_machine *machine, const tg_attention *a,
                       const tgi_attention_row *row, int64_t step_keys, int64_t subtiles,
                       int64_t groups, int is_kept, tgi_attention_choice *choice)
{
    const int64_t tiles = tgi_divide_up(a->m, row->queries);
    const int64_t steps = a->n > 0 ? tgi_divide_up(a->n, step_keys) : 1;
    *choice = (tgi_attention_choice){.row = row,
                                     .shared_heads = 1,
                                     .subtile_count = subtiles,
                                     .query_tile = subtiles * row->queries,
                                     .tile_count = tgi_divide_up(tiles, subtiles),
                                     .split_count = 1,
                                     .cluster_count = 1,
                                     .warp_split_count = groups,
                                     .split_keys = steps * step_keys,
                                     .step_keys = step_keys,
                                     .kept_keys = steps * step_keys,
                                     .block_threads = 32 * GROUP_WARPS * groups};
    const int64_t blocks = tgi_checked_multiply(tgi_checked_multiply(a->batch_count, a->head_count),
                                                choice->tile_count);
    if (steps > STEPS_MOST || blocks > BLOCKS_MOST)
        return 0;
    int64_t waves = fit_shared(machine, blocks, choice);
    if (!is_kept) {
        const int64_t before = waves;
        if (subtiles > 1 || steps <= KEPT_STEPS || steps > COPIED_STEPS_MOST)
            return 0;
        choice->kept_keys = KEPT_STEPS * step_keys;
        waves = fit_shared(machine, blocks, choice);
        if (before > 0 && waves >= before)
            return 0;
    }
    return waves > 0 && tgi_attend_has_units(a, choice);
}

/* Tries steps of `step_keys` keys: blocks that compute one tile, two and so on, by one group of
 * four warps, two and so on. */
static void try_steps(const tgi_machine *machine, const tg_attention *a,
                      const tgi_attention_row *row, int64_t step_keys, tgi_attention_visit *visit,
                      void *state)
{
    const int64_t tiles = tgi_divide_up(a->m, row->queries);
    for (int64_t subtiles = 1; subtiles == 1 || (subtiles <= tiles && subtiles <= SUBTILES_MOST);
         subtiles++)
        for (int64_t groups = 1; groups <= subtiles && groups <= row->warps / GROUP_WARPS; groups++)
            for (int is_kept = 0; is_kept <= 1; is_kept++) {
                tgi_attention_choice tried;
                if (make_choice(machine, a, row, step_keys, subtiles, groups, is_kept, &tried))
                    visit(&tried, state);
            }
}

void tgi_cuda_visit_short(const tgi_machine *machine, const tg_attention *a,
                          const tgi_attention_row *row, tgi_attention_visit *visit, void *state)
{
    static const int64_t lengths[] = {32, 64, 80, 96};
    for (int i = 0; i < 4 && lengths[i] <= row->keys; i++)
        try_steps(machine, a, row, lengths[i], visit, state);
}
