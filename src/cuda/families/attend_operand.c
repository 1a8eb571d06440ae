/* Describes the operands of attention for TMA. */
#include "cuda/families/attend_operand.h"

#include "core/types.h"
#include "kernels/attend/attend_args.h"

#define UNIT_BYTES TGI_TENSOR_UNIT_BYTES
#define BOX_ROWS 8         /* the swizzle repeats after these */
#define STRIP_BYTES 128    /* bytes of a row of a strip in shared memory */
#define STORED_ROWS 16     /* a box of D has so many */
#define SECTOR_ELEMENTS 16 /* 32 bytes */
#define LONG_STEPS 8
#define CROWD_WARPS 3 /* so many wait for TMA after fewer steps */
#define CROWD_STEPS 5
#define ROWS_MAX (INT64_C(1) << 30)

const tgi_attention_tensor_id tgi_attend_map_ids[TGI_ATTEND_MAP_COUNT] = {
    TGI_ATTENTION_K, TGI_ATTENTION_V, TGI_ATTENTION_Q, TGI_ATTENTION_D};

int64_t tgi_attend_count_box_rows(const tg_attention *a, int64_t keys)
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

/* Returns 1 if the rows of a head of K or V have no gaps and an odd number of units. */
static int has_no_gaps(const tg_attention *a, tgi_attention_tensor_id id)
{
    const tgi_attention_tensor t = tgi_attention_get(a, id);
    return t.counts[3] % SECTOR_ELEMENTS == SECTOR_ELEMENTS / 2 &&
           t.heads->row_stride == t.counts[3] && t.heads->element_stride == 1;
}

int tgi_attend_is_dense(const tg_attention *a, const tgi_attention_choice *choice)
{
    return choice->row->kind == TGI_ATTENTION_THIN && choice->row->has_boxes &&
           a->page_rows % choice->step_keys == 0 && has_no_gaps(a, TGI_ATTENTION_K) &&
           has_no_gaps(a, TGI_ATTENTION_V);
}

int tgi_attend_describe(const tg_attention *a, const tgi_attention_choice *choice,
                        tgi_attention_tensor_id id, tgi_tensor *tensor)
{
    const tgi_attention_tensor t = tgi_attention_get(a, id);
    const int is_d = id == TGI_ATTENTION_D, is_q = id == TGI_ATTENTION_Q || is_d;
    const int is_paged = !is_q && a->page_rows > 0;
    /* One query of each head: heads are the map's rows. */
    const int has_heads = is_q && !is_d && a->m == 1;
    const int64_t strides[] = {has_heads ? t.heads->head_stride : t.heads->row_stride,
                               has_heads ? t.heads->row_stride : t.heads->head_stride,
                               t.heads->batch_stride};
    const int64_t box_rows = is_d   ? STORED_ROWS
                             : is_q ? choice->row->queries
                                    : tgi_attend_count_box_rows(a, choice->step_keys);
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
    if (!is_q && tgi_attend_is_dense(a, choice))
        return 0;
    /* TMA stores whole units: it would write behind the ends of rows of other lengths. */
    if (is_d &&
        (choice->split_count > 1 || t.counts[3] * t.element_bytes % UNIT_BYTES > 0 ||
         (choice->row->kind != TGI_ATTENTION_WIDE && choice->row->kind != TGI_ATTENTION_SHORT)))
        return 0;
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

int tgi_attend_is_aligned(const tg_attention *a, tgi_attention_tensor_id id, int64_t bytes)
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

int tgi_attend_has_units(const tg_attention *a, const tgi_attention_choice *choice)
{
    tgi_tensor tensor;
    int is_fit = 1;
    for (int i = 0; i < TGI_ATTEND_MAP_COUNT; i++)
        is_fit = is_fit && tgi_attend_describe(a, choice, tgi_attend_map_ids[i], &tensor);
    return is_fit;
}

int tgi_attend_has_map(const tg_attention *a, const tgi_attention_choice *choice,
                       tgi_attention_tensor_id id)
{
    tgi_tensor tensor;
    return tgi_attend_describe(a, choice, id, &tensor) && tgi_attend_is_aligned(a, id, UNIT_BYTES);
}
