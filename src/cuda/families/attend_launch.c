/* Launches attention. */
#include <stdio.h>

#include "core/attention_mask.h"
#include "core/checked.h"
#include "core/types.h"
#include "cuda/families/attend.h"
#include "cuda/runtime/launch.h"
#include "kernels/attend/attend_args.h"

#define UNIT_BYTES 16

typedef struct attention_prepared {
    tgi_cuda_kernel attend, merge;
} attention_prepared;

static void prepare(const tgi_machine *machine, const tg_attention *a,
                    const tgi_attention_choice *choice, void *block)
{
    const tgi_attention_row *row = choice->row;
    attention_prepared *prepared = block;
    const int64_t groups = a->batch_count * (a->head_count / choice->shared_heads);
    const int64_t merged =
        tgi_divide_up(a->batch_count * a->head_count * a->m, TGI_ATTEND_MERGE_WARPS);
    (void)machine;
    prepared->attend = (tgi_cuda_kernel){
        .image = row->image,
        .grid = {(unsigned)(groups * choice->tile_count * choice->part_count), 1, 1},
        .block = {(unsigned)(32 * row->warps), 1, 1},
        .shared_bytes = (unsigned)tgi_attend_shared_bytes(row->head_size, row->queries, row->keys),
        .is_early = 1};
    snprintf(prepared->attend.symbol, TGI_CUDA_SYMBOL_BYTES, "%s", row->name);
    prepared->merge = (tgi_cuda_kernel){.image = row->image,
                                        .grid = {(unsigned)merged, 1, 1},
                                        .block = {32 * TGI_ATTEND_MERGE_WARPS, 1, 1},
                                        .is_early = 1};
    snprintf(prepared->merge.symbol, TGI_CUDA_SYMBOL_BYTES, "tgi_attend_merge_%s",
             tg_get_type_name(a->type));
}

/* Returns 1 if every row of the tensor begins at a multiple of `bytes`, its elements side by
 * side. */
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

static int32_t limit(int64_t distance)
{
    const int64_t most = (INT64_C(1) << 30) - 1; /* no key is further away */
    return (int32_t)(distance < most ? distance : most);
}

tgi_attend_args tgi_cuda_make_attend_args(const tgi_attention_call *call)
{
    const tg_attention *a = call->attention;
    const tgi_attention_choice *choice = call->choice;
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
        .head_groups = (int32_t)(a->head_count / choice->shared_heads),
        .kv_shares = (int32_t)(a->head_count / a->kv_head_count),
        .tile_count = (int32_t)choice->tile_count,
        .part_count = (int32_t)choice->part_count,
        .part_keys = (int32_t)choice->part_keys,
        .has_units = {is_aligned(a, TGI_ATTENTION_Q, UNIT_BYTES),
                      is_aligned(a, TGI_ATTENTION_K, UNIT_BYTES),
                      is_aligned(a, TGI_ATTENTION_V, UNIT_BYTES)},
        .has_d_units = is_aligned(a, TGI_ATTENTION_D, UNIT_BYTES),
        .page_rows = tgi_make_divisor(a->page_rows > 0 ? (int32_t)a->page_rows : 1),
        .parts = call->workspace};
}

static tg_status launch(const tgi_attention_call *call)
{
    const tgi_cuda_queue queue = {.device = call->machine->device, .stream = call->stream};
    attention_prepared *prepared = call->prepared;
    tgi_attend_args args = tgi_cuda_make_attend_args(call);
    void *arguments[] = {&args};
    void *before;
    tg_status status = tgi_cuda_enter(queue.device, &before);
    if (status)
        return status;
    status = tgi_cuda_run(&queue, &prepared->attend, arguments);
    if (!status && call->choice->part_count > 1)
        status = tgi_cuda_run(&queue, &prepared->merge, arguments);
    tgi_cuda_leave(queue.device, before);
    return status;
}

const tgi_attention_backend tgi_attention_cuda = {.device = "cuda",
                                                  .prepared_bytes = sizeof(attention_prepared),
                                                  .choose = tgi_cuda_choose_attention,
                                                  .prepare = prepare,
                                                  .launch = launch};
