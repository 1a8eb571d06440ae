/*
 * Calls the functions of attention with random arguments.
 *
 * SPDX-License-Identifier: MIT
 */
#include "hostile.h"

#include <stdio.h>
#include <string.h>

#include "draw.h"
#include "tilegemm_attention.h"

#define LIST_COUNT 64
#define PART_BYTES (MEMORY_BYTES / 8)

/* Draws all that is beside sizes and tensors. Most attentions have few of these. */
static void draw_mask(tg_attention *a)
{
    a->causal = draw_chance(2) ? (tg_causal)draw_enum(3) : TG_CAUSAL_NONE;
    a->scale = draw_chance(4) ? draw_double() : a->scale;
    a->soft_cap = draw_chance(6) ? draw_double() : 0.0;
    if (draw_chance(5)) {
        a->keys_before = draw_chance(4) ? draw_int64() : draw(90) - 1;
        a->keys_after = draw_chance(4) ? draw_int64() : draw(90) - 1;
    }
    a->has_bias = draw_chance(5);
    a->has_slopes = draw_chance(5);
    a->has_log_sum_exp = draw_chance(3);
    a->has_query_offsets = draw_chance(6);
    a->has_key_offsets = draw_chance(6);
    a->has_key_lengths = draw_chance(6);
    if (draw_chance(60))
        a->has_bias = (int)draw_int64();
    if (draw_chance(8)) {
        a->page_rows = 1 + draw(20);
        a->page_count = 1 + draw(9);
        a->pages_stride = (a->n + a->page_rows - 1) / a->page_rows + draw(2);
    }
}

/* Draws strides: without gaps, as [batch][row][head][element], or anything. */
static void draw_heads(tg_heads *heads, int64_t rows, int64_t head_count, int64_t size)
{
    if (draw_chance(3)) {
        heads->element_stride = 1;
        heads->head_stride = size;
        if (__builtin_mul_overflow(size, head_count, &heads->row_stride) ||
            __builtin_mul_overflow(heads->row_stride, rows, &heads->batch_stride))
            heads->row_stride = heads->batch_stride = 0;
    }
    int64_t *const strides[] = {&heads->batch_stride, &heads->head_stride, &heads->row_stride,
                                &heads->element_stride};
    if (draw_chance(20))
        *strides[draw(4)] = draw_chance(2) ? draw_int64() : draw(70) - 5;
}

/* Fills `list` with offsets of entries that have up to `most` rows each, most often. */
static void draw_offsets(int32_t *list, int64_t entry_count, int64_t most)
{
    list[0] = draw_chance(9) ? (int32_t)draw_int64() : 0;
    for (int64_t i = 0; i < entry_count; i++) {
        const uint32_t next = (uint32_t)list[i] + (uint32_t)draw(most + 1);
        list[i + 1] = draw_chance(60) ? (int32_t)draw_int64() : (int32_t)next;
    }
}

/* Points an operand at a part of the memory. Returns 0 if it would reach beyond. */
static int place_heads(tg_heads *heads, int part, int64_t batch_count, int64_t head_count,
                       int64_t rows, int64_t size, int element_bytes)
{
    const int64_t counts[] = {batch_count, head_count, rows, size};
    const int64_t strides[] = {heads->batch_stride, heads->head_stride, heads->row_stride,
                               heads->element_stride};
    int64_t low = 0, high = 1;
    for (int i = 0; i < 4; i++) {
        if (strides[i] < -PART_BYTES || strides[i] > PART_BYTES || counts[i] > PART_BYTES)
            return 0;
        const int64_t reach = counts[i] > 1 ? (counts[i] - 1) * strides[i] : 0;
        low += reach < 0 ? reach : 0;
        high += reach > 0 ? reach : 0;
    }
    if ((high - low) * element_bytes > PART_BYTES)
        return 0;
    heads->data = memory + (draw_chance(9) ? draw(7) : part) * PART_BYTES - low * element_bytes;
    return 1;
}

/* Points every operand at memory. With offsets the rows of all entries follow each other. */
static int place(tg_attention *a)
{
    static int32_t lists[4][LIST_COUNT + 1];
    const int bytes = tg_get_type_bytes(a->type), sum_bytes = bytes < 4 ? 4 : bytes;
    const int64_t q_rows = a->has_query_offsets ? a->batch_count * a->m : a->m;
    int64_t kv_rows = a->has_key_offsets ? a->batch_count * a->n : a->n;
    int64_t kv_count = a->batch_count;
    if (a->page_rows > 0) {
        kv_rows = a->page_rows;
        kv_count = a->page_count;
    }
    draw_offsets(lists[0], a->batch_count, a->m);
    draw_offsets(lists[1], a->batch_count, a->n);
    for (int i = 0; i < LIST_COUNT; i++) {
        lists[2][i] = draw_chance(99) ? (int32_t)draw_int64() : (int32_t)draw(a->n + 1);
        lists[3][i] = draw_chance(999) ? (int32_t)draw_int64()
                                       : (int32_t)draw(a->page_count > 0 ? a->page_count : 1);
    }
    a->query_offsets = draw_chance(50) ? NULL : lists[0];
    a->key_offsets = draw_chance(50) ? NULL : lists[1];
    a->key_lengths = draw_chance(50) ? NULL : lists[2];
    a->pages = draw_chance(50) ? NULL : lists[3];
    a->slopes = draw_chance(50) ? NULL : memory;
    return a->batch_count * a->pages_stride <= LIST_COUNT &&
           place_heads(&a->q, 0, a->batch_count, a->head_count, q_rows, a->head_size, bytes) &&
           place_heads(&a->k, 1, kv_count, a->kv_head_count, kv_rows, a->head_size, bytes) &&
           place_heads(&a->v, 2, kv_count, a->kv_head_count, kv_rows, a->v_head_size, bytes) &&
           place_heads(&a->d, 3, a->batch_count, a->head_count, q_rows, a->v_head_size, bytes) &&
           place_heads(&a->bias, 4, a->batch_count, a->head_count, q_rows, a->n, sum_bytes) &&
           place_heads(&a->log_sum_exp, 5, a->batch_count, a->head_count, q_rows, 1, sum_bytes);
}

/* Draws an attention for planning, of any sizes, or one that is small enough for the memory. */
static int draw_attention(int is_small, tg_attention *a)
{
    static const tg_type types[] = {TG_TYPE_FP32, TG_TYPE_FP64, TG_TYPE_BF16, TG_TYPE_FP16};
    const int64_t kv_heads = is_small ? 1 + draw(2) : draw_size();
    int64_t heads = kv_heads;
    if (kv_heads > 0 && kv_heads <= 1 << 20)
        heads *= 1 + draw(3);
    if (draw_chance(30))
        heads = is_small ? 1 + draw(6) : draw_size();
    const int64_t m = is_small ? draw(40) : draw_size(), n = is_small ? draw(60) : draw_size();
    const tg_type type = draw_chance(40) ? (tg_type)draw_enum(6) : types[draw(4)];
    if (!check_status(tg_init_attention(a, sizeof *a, type, is_small ? draw(4) : draw_size(), heads,
                                        kv_heads, m, n, is_small ? 1 + draw(70) : draw_size())))
        return 0;
    if (draw_chance(4))
        a->v_head_size = is_small ? 1 + draw(40) : draw_size();
    draw_mask(a);
    draw_heads(&a->q, m, a->head_count, a->head_size);
    draw_heads(&a->k, n, a->kv_head_count, a->head_size);
    draw_heads(&a->v, n, a->kv_head_count, a->v_head_size);
    draw_heads(&a->d, m, a->head_count, a->v_head_size);
    a->log_sum_exp = (tg_heads){.head_stride = m, .row_stride = 1};
    if (__builtin_mul_overflow(m, a->head_count, &a->log_sum_exp.batch_stride))
        a->log_sum_exp.batch_stride = 0;
    return 1;
}

static void call_texts_of_attention(const tg_attention *given)
{
    char text[1024];
    tg_attention read;
    if (!check_status(
            tg_format_attention(given, text, draw_chance(4) ? (size_t)draw(1024) : sizeof text)))
        return;
    require(check_status(tg_parse_attention(text, &read, sizeof read)), "a text is not read");
    if (draw_chance(2)) {
        text[draw((int64_t)strlen(text) + 1)] = (char)draw(256);
        check_status(tg_parse_attention(text, &read, sizeof read));
    }
}

void call_attention(void)
{
    tg_attention attention;
    tg_attention_plan *plan;
    tg_context *context = draw_context();
    const int is_small = draw_chance(2);
    if (!draw_attention(is_small, &attention))
        return;
    call_texts_of_attention(&attention);
    if (check_status(tg_create_attention_plan(context, &attention, &plan))) {
        require(tg_get_attention_kernel(plan)[0] != '\0', "a plan has no kernel");
        const int64_t workspace_bytes = tg_get_attention_workspace_bytes(plan);
        require(workspace_bytes >= 0, "a workspace is negative");
        check_status(
            tg_execute_attention(plan, draw_chance(50) ? NULL : &attention, NULL, 0, NULL));
        if (is_small && place(&attention))
            check_status(tg_execute_attention(
                plan, &attention, draw_chance(4) ? memory + 7 * PART_BYTES + 64 * draw(9) : NULL,
                draw_chance(4) ? -draw(INT64_MAX) : draw(PART_BYTES - 640), NULL));
        tg_destroy_attention_plan(plan);
    }
    if (is_small && place(&attention))
        check_status(tg_attend(context, &attention));
    tg_destroy_attention_plan(NULL);
}
