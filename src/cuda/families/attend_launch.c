/* Launches attention. */
#include <stdio.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "cuda/families/attend_operand.h"
#include "cuda/runtime/tensor_map.h"
#include "kernels/attend/attend_args.h"

#define UNIT_BYTES TGI_TENSOR_UNIT_BYTES

typedef struct attention_kernels {
    tgi_cuda_kernel attend, merge;
    tgi_tensor_slots slots;
    tgi_tensor_slot slot[TGI_ATTEND_MAP_COUNT];
    tgi_tensor_map map[TGI_ATTEND_MAP_COUNT];
} attention_kernels;

/* A row of short sequences needs aligned operands. Calls without them take another choice. */
typedef struct attention_prepared {
    attention_kernels chosen, other;
    tgi_attention_choice other_choice;
} attention_prepared;

static void prepare_kernels(const tgi_machine *machine, const tg_attention *a,
                            const tgi_attention_choice *choice, attention_kernels *prepared)
{
    const tgi_attention_row *row = choice->row;
    const int64_t groups = a->batch_count * (a->head_count / choice->shared_heads);
    const int64_t merged = tgi_divide_up(a->batch_count * a->head_count * a->m,
                                         tgi_attend_count_merged((int32_t)choice->split_count));
    const int64_t blocks = groups * choice->tile_count * choice->split_count;
    const int64_t resident = (int64_t)machine->gpu.sm_count * row->resident_blocks;
    const int64_t grid = row->kind == TGI_ATTENTION_WIDE && row->has_boxes && resident < blocks
                             ? resident
                             : blocks * choice->cluster_count;
    prepared->attend = (tgi_cuda_kernel){.image = row->image,
                                         .grid = {(unsigned)grid, 1, 1},
                                         .block = {(unsigned)choice->block_threads, 1, 1},
                                         .shared_bytes = (unsigned)choice->shared_bytes,
                                         .cluster = (unsigned)choice->cluster_count,
                                         .is_early = 1};
    prepared->slots.slot = prepared->slot;
    for (int i = 0; i < TGI_ATTEND_MAP_COUNT; i++) {
        tgi_tensor_slot *slot = &prepared->slot[prepared->slots.count];
        *slot =
            (tgi_tensor_slot){.operand = i, .argument_offset = i * (int64_t)sizeof(tgi_tensor_map)};
        prepared->slots.count +=
            tgi_attend_describe(a, choice, tgi_attend_map_ids[i], &slot->tensor);
    }
    snprintf(prepared->attend.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", row->name);
    const int32_t merge_warps = tgi_attend_count_merge_warps((int32_t)choice->split_count);
    prepared->merge = (tgi_cuda_kernel){.image = row->image,
                                        .grid = {(unsigned)merged, 1, 1},
                                        .block = {32 * (unsigned)merge_warps, 1, 1},
                                        .is_early = 1};
    snprintf(prepared->merge.symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_attend_merge_%s",
             tg_get_type_name(a->type));
}

static void prepare(const tgi_machine *machine, const tg_attention *a,
                    const tgi_attention_choice *choice, void *block)
{
    attention_prepared *prepared = block;
    prepare_kernels(machine, a, choice, &prepared->chosen);
    if (choice->row->kind == TGI_ATTENTION_SHORT) {
        tgi_cuda_choose_unaligned(machine, a, &prepared->other_choice);
        prepare_kernels(machine, a, &prepared->other_choice, &prepared->other);
    }
}

static int32_t limit(int64_t distance)
{
    const int64_t most = (INT64_C(1) << 30) - 1; /* no key is further away */
    return (int32_t)(distance < most ? distance : most);
}

/* Returns the divisor of `value`, or of 1 if `value` is 0. */
static tgi_divisor make_divisor(int64_t value)
{
    return tgi_make_divisor(value > 0 ? (int32_t)value : 1);
}

tgi_attend_args tgi_cuda_make_attend_args(const tgi_attention_call *call)
{
    const tg_attention *a = call->attention;
    const tgi_attention_choice *choice = call->choice;
    const int64_t head_groups = a->head_count / choice->shared_heads;
    const int64_t tiles = choice->tile_count * choice->split_count;
    const int64_t rest = a->batch_count * head_groups % choice->section_groups;
    const float scale = (float)(a->scale * TGI_ATTEND_LOG2_E);
    const tgi_attention_window window = tgi_attention_find_window(a);
    const float cap = (float)(a->soft_cap * TGI_ATTEND_LOG2_E);
    const int is_scaled = a->type == TG_TYPE_FP64 ? a->scale > 0.0 && a->soft_cap == 0.0
                                                  : scale > 0.0f && cap == 0.0f;
    return (tgi_attend_args){
        .attention = *a,
        .scale = scale,
        .cap = cap,
        .cap_inverse = cap > 0.0f ? 1.0f / cap : 0.0f,
        .before = limit(window.before),
        .after = limit(window.after),
        .is_bottom = window.is_bottom,
        .is_plain = is_scaled && !a->has_bias && !a->has_slopes,
        .shared_heads = (int32_t)choice->shared_heads,
        .head_groups = make_divisor(head_groups),
        .kv_shares = make_divisor(a->head_count / a->kv_head_count),
        .query_count = make_divisor(a->m),
        .tile_count = make_divisor(choice->tile_count),
        .block_count = (uint32_t)(a->batch_count * head_groups * tiles),
        .section_groups = {make_divisor(choice->section_groups), make_divisor(rest)},
        .section_tiles = make_divisor(choice->section_groups * tiles),
        .tile_rows = (int32_t)choice->query_tile,
        .tile_places = (int32_t)choice->tile_places,
        .round_blocks = make_divisor(choice->round_blocks),
        .split_count = (int32_t)choice->split_count,
        .cluster_count = (int32_t)choice->cluster_count,
        .warp_split_count = (int32_t)choice->warp_split_count,
        .subtile_count = (int32_t)choice->subtile_count,
        .split_keys = (int32_t)choice->split_keys,
        .kept_keys = (int32_t)choice->kept_keys,
        .lets_next_start = choice->split_count > 1 || choice->is_resident ||
                           choice->row->kind == TGI_ATTENTION_SHORT,
        .has_units = {tgi_attend_is_aligned(a, TGI_ATTENTION_Q, UNIT_BYTES),
                      tgi_attend_is_aligned(a, TGI_ATTENTION_K, UNIT_BYTES),
                      tgi_attend_is_aligned(a, TGI_ATTENTION_V, UNIT_BYTES)},
        .has_map = {tgi_attend_has_map(a, choice, tgi_attend_map_ids[0]),
                    tgi_attend_has_map(a, choice, tgi_attend_map_ids[1]),
                    tgi_attend_has_map(a, choice, tgi_attend_map_ids[2]),
                    tgi_attend_has_map(a, choice, tgi_attend_map_ids[3])},
        .has_runs = a->page_rows % TGI_ATTEND_RUN == 0,
        .is_dense = tgi_attend_is_dense(a, choice) &&
                    tgi_attend_is_aligned(a, TGI_ATTENTION_K, UNIT_BYTES) &&
                    tgi_attend_is_aligned(a, TGI_ATTENTION_V, UNIT_BYTES),
        .box_rows = (int32_t)tgi_attend_count_box_rows(a, choice->step_keys),
        .has_d_units = tgi_attend_is_aligned(a, TGI_ATTENTION_D, UNIT_BYTES),
        .page_rows = make_divisor(a->page_rows),
        .splits = call->workspace};
}

static tg_status run(const tgi_attention_call *call, attention_kernels *prepared)
{
    const tgi_cuda_queue queue = {.device = call->machine->device, .stream = call->stream};
    tgi_attend_args args = tgi_cuda_make_attend_args(call);
    void *before;
    tg_status status = tgi_cuda_enter(queue.device, &before);
    if (status)
        return status;
    const void *base[TGI_ATTEND_MAP_COUNT];
    for (int i = 0; i < TGI_ATTEND_MAP_COUNT; i++)
        base[i] = args.has_map[i]
                      ? tgi_attention_get(&args.attention, tgi_attend_map_ids[i]).heads->data
                      : NULL;
    status = tgi_tensor_fill(queue.device, &prepared->slots, base, prepared->map, args.map,
                             sizeof args.map);
    if (!status)
        status = tgi_cuda_run(&queue, &prepared->attend, &args, sizeof args);
    if (!status && call->choice->split_count > 1)
        status = tgi_cuda_run(&queue, &prepared->merge, &args, sizeof args);
    tgi_cuda_leave(queue.device, before);
    return status;
}

static tg_status launch(const tgi_attention_call *call)
{
    static const tgi_attention_tensor_id ids[] = {TGI_ATTENTION_Q, TGI_ATTENTION_K, TGI_ATTENTION_V,
                                                  TGI_ATTENTION_D};
    attention_prepared *prepared = call->prepared;
    tgi_attention_call other = *call;
    int is_fit = 1;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++)
        is_fit = is_fit && tgi_attend_is_aligned(call->attention, ids[i], UNIT_BYTES);
    if (is_fit || call->choice->row->kind != TGI_ATTENTION_SHORT)
        return run(call, &prepared->chosen);
    other.choice = &prepared->other_choice;
    return run(&other, &prepared->other);
}

const tgi_attention_backend tgi_attention_cuda = {.device = "cuda",
                                                  .prepared_bytes = sizeof(attention_prepared),
                                                  .choose = tgi_cuda_choose_attention,
                                                  .prepare = prepare,
                                                  .launch = launch};
