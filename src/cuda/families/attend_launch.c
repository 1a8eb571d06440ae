/* Launches attention. */
#include <stdio.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "cuda/runtime/tensor_map.h"
#include "kernels/attend/attend_args.h"

#define UNIT_BYTES TGI_TENSOR_UNIT_BYTES
#define BOX_ROWS 8      /* the swizzle repeats after these */
#define STRIP_BYTES 128 /* bytes of a row of a strip in shared memory */
#define MAP_COUNT 3
#define SECTOR_ELEMENTS 16 /* 32 bytes */
#define LONG_STEPS 8
#define CROWD_WARPS 3 /* so many wait for TMA after fewer steps */
#define CROWD_STEPS 5
#define ROWS_MAX (INT64_C(1) << 30)

typedef struct attention_kernels {
    tgi_cuda_kernel attend, merge;
    tgi_tensor_slots slots;
    tgi_tensor_slot slot[MAP_COUNT];
    tgi_tensor_map map[MAP_COUNT];
} attention_kernels;

/* A row of short sequences needs aligned operands. Calls without them take another choice. */
typedef struct attention_prepared {
    attention_kernels chosen, other;
    tgi_attention_choice other_choice;
} attention_prepared;

/* map_ids lists the tensors of the maps in the order of tgi_attend_args. */
static const tgi_attention_tensor_id map_ids[MAP_COUNT] = {TGI_ATTENTION_K, TGI_ATTENTION_V,
                                                           TGI_ATTENTION_Q};

/* Returns the rows of a TMA box of K and V, a multiple of eight that divides pages and steps, or 0
 * where there is none. */
static int64_t count_box_rows(const tg_attention *a, int64_t keys)
{
    int64_t rows = keys;
    while (rows > 0 && (a->page_rows % rows > 0 || keys % rows > 0))
        rows -= BOX_ROWS;
    return rows;
}

/* Returns 1 if threads copy rows of `elems` elements faster than TMA. TMA takes as long for a row
 * that is no multiple of 32 bytes as for a whole line. It still brings the first bytes sooner,
 * which decides if there are few steps. */
static int is_slow(const tgi_attention_choice *choice, int64_t elems)
{
    const int steps = choice->warp_split_count < CROWD_WARPS ? LONG_STEPS : CROWD_STEPS;
    return choice->row->kind == TGI_ATTENTION_THIN && elems % SECTOR_ELEMENTS > 0 &&
           choice->split_keys >= steps * choice->row->keys;
}

/* Describes K, V or Q as a tensor of elements, rows, heads, and batch entries or pages. Returns 0
 * if TMA cannot read it. */
static int describe(const tg_attention *a, const tgi_attention_choice *choice,
                    tgi_attention_tensor_id id, tgi_tensor *tensor)
{
    const tgi_attention_tensor t = tgi_attention_get(a, id);
    const int is_q = id == TGI_ATTENTION_Q, is_paged = !is_q && a->page_rows > 0;
    const int has_heads = is_q && a->m == 1; /* one row of each head: heads are the map's rows */
    const int64_t strides[] = {has_heads ? t.heads->head_stride : t.heads->row_stride,
                               has_heads ? t.heads->row_stride : t.heads->head_stride,
                               t.heads->batch_stride};
    const int64_t box_rows = is_q ? choice->row->queries : count_box_rows(a, choice->step_keys);
    *tensor = (tgi_tensor){.elem_bytes = t.element_bytes,
                           .count = {t.counts[3],
                                     has_heads  ? a->head_count
                                     : is_q     ? a->m
                                     : is_paged ? a->page_rows
                                                : a->n,
                                     has_heads ? 1
                                     : is_q    ? a->head_count
                                               : a->kv_head_count,
                                     is_paged ? a->page_count : a->batch_count},
                           .tma_box_elems = (int)(STRIP_BYTES / t.element_bytes),
                           .tma_box_runs = (int)box_rows,
                           .is_swizzled = 1};
    if (!is_q && a->has_key_offsets && !is_paged) {
        tensor->count[1] = ROWS_MAX; /* the lists know */
        tensor->count[3] = 1;
    }
    int is_fit = choice->row->has_boxes && !is_slow(choice, t.counts[3]) && box_rows > 0 &&
                 t.heads->element_stride == 1 &&
                 (!is_q || ((choice->shared_heads == 1 || has_heads) && !a->has_query_offsets));
    for (int i = 0; i < 3; i++) {
        const int64_t bytes =
            tensor->count[i + 1] == 1 ? TGI_TENSOR_UNIT_BYTES : strides[i] * t.element_bytes;
        tensor->stride_bytes[i] = bytes;
        is_fit = is_fit && tensor->count[i + 1] > 0 && bytes > 0 &&
                 bytes % TGI_TENSOR_UNIT_BYTES == 0 && bytes < TGI_TENSOR_STRIDE_MAX;
    }
    return is_fit;
}

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
    for (int i = 0; i < MAP_COUNT; i++) {
        tgi_tensor_slot *slot = &prepared->slot[prepared->slots.count];
        *slot =
            (tgi_tensor_slot){.operand = i, .argument_offset = i * (int64_t)sizeof(tgi_tensor_map)};
        prepared->slots.count += describe(a, choice, map_ids[i], &slot->tensor);
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

/* Returns 1 if every row of the tensor begins at a multiple of `bytes` and its elements are
 * contiguous. */
static int is_aligned(const tg_attention *a, tgi_attention_tensor_id id, int64_t bytes)
{
    const tgi_attention_tensor t = tgi_attention_get(a, id);
    const int64_t strides[] = {t.heads->batch_stride, t.heads->head_stride, t.heads->row_stride};
    int64_t rest = (int64_t)((uintptr_t)t.heads->data % (uintptr_t)bytes);
    for (int i = 0; i < 3; i++) {
        if (t.counts[i] > 1 || (i == 2 && t.has_offsets))
            rest |= strides[i] * t.element_bytes % bytes;
    }
    return rest == 0 && (t.heads->element_stride == 1 || t.counts[3] == 1);
}

int tgi_cuda_has_units(const tg_attention *a, const tgi_attention_choice *choice)
{
    tgi_tensor tensor;
    tg_attention stored = *a;
    stored.d.data = NULL;
    int is_fit = a->v_head_size * tgi_type_bytes(a->type) % UNIT_BYTES == 0 &&
                 is_aligned(&stored, TGI_ATTENTION_D, UNIT_BYTES);
    for (int i = 0; i < MAP_COUNT; i++)
        is_fit = is_fit && describe(a, choice, map_ids[i], &tensor);
    return is_fit;
}

/* Returns 1 if TMA can read the tensor where it lies. */
static int has_map(const tg_attention *a, const tgi_attention_choice *choice,
                   tgi_attention_tensor_id id)
{
    tgi_tensor tensor;
    return describe(a, choice, id, &tensor) && is_aligned(a, id, UNIT_BYTES);
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
    return (tgi_attend_args){
        .attention = *a,
        .scale = scale,
        .cap = cap,
        .cap_inverse = cap > 0.0f ? 1.0f / cap : 0.0f,
        .before = limit(window.before),
        .after = limit(window.after),
        .is_bottom = window.is_bottom,
        .is_plain = scale > 0.0f && cap == 0.0f && !a->has_bias && !a->has_slopes,
        .shared_heads = (int32_t)choice->shared_heads,
        .head_groups = make_divisor(head_groups),
        .kv_shares = make_divisor(a->head_count / a->kv_head_count),
        .query_count = make_divisor(a->m),
        .tile_count = make_divisor(choice->tile_count),
        .block_count = (uint32_t)(a->batch_count * head_groups * tiles),
        .section_groups = {make_divisor(choice->section_groups), make_divisor(rest)},
        .section_tiles = make_divisor(choice->section_groups * tiles),
        .tile_rows = (int32_t)choice->query_tile,
        .split_count = (int32_t)choice->split_count,
        .cluster_count = (int32_t)choice->cluster_count,
        .warp_split_count = (int32_t)choice->warp_split_count,
        .turn_count = (int32_t)choice->turn_count,
        .split_keys = (int32_t)choice->split_keys,
        .kept_keys = (int32_t)choice->kept_keys,
        .lets_next_start = choice->split_count > 1 || choice->is_resident,
        .has_units = {is_aligned(a, TGI_ATTENTION_Q, UNIT_BYTES),
                      is_aligned(a, TGI_ATTENTION_K, UNIT_BYTES),
                      is_aligned(a, TGI_ATTENTION_V, UNIT_BYTES)},
        .has_map = {has_map(a, choice, map_ids[0]), has_map(a, choice, map_ids[1]),
                    has_map(a, choice, map_ids[2])},
        .has_runs = a->page_rows % TGI_ATTEND_RUN == 0,
        .box_rows = (int32_t)count_box_rows(a, choice->step_keys),
        .has_d_units = is_aligned(a, TGI_ATTENTION_D, UNIT_BYTES),
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
    const void *base[MAP_COUNT];
    for (int i = 0; i < MAP_COUNT; i++)
        base[i] =
            args.has_map[i] ? tgi_attention_get(&args.attention, map_ids[i]).heads->data : NULL;
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
        is_fit = is_fit && is_aligned(call->attention, ids[i], UNIT_BYTES);
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
