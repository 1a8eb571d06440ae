/* Makes the last checks of an attention, which need its pointers. */
#include <stdint.h>

#include "core/attention_problem.h"
#include "core/checked.h"
#include "core/overlap.h"
#include "core/status.h"
#include "core/types.h"

typedef long long ll; /* for printf */

#define LIST_MAX (INT64_C(1) << 56) /* elements */

static tg_status fail_missing(const char *name)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s = NULL, but this attention uses it; pass its memory", name);
}

/* Refuses offsets that decrease, or that differ by more than `most`, the largest length. */
static tg_status check_offsets(const char *name, const char *limit, const int32_t *offsets,
                               int64_t batch_count, int64_t most)
{
    for (int64_t b = 0; b < batch_count; b++) {
        const int64_t length = (int64_t)offsets[b + 1] - offsets[b];
        if (offsets[b] < 0 || length < 0 || length > most)
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "%s[%lld .. %lld] = %d, %d; pass offsets of 0 or more that grow "
                                   "by at most %s = %lld",
                                   name, (ll)b, (ll)b + 1, (int)offsets[b], (int)offsets[b + 1],
                                   limit, (ll)most);
    }
    return TG_STATUS_OK;
}

static tg_status check_lengths(const tg_attention *a)
{
    for (int64_t b = 0; b < a->batch_count; b++) {
        const int64_t most = a->has_key_offsets ? a->key_offsets[b + 1] - a->key_offsets[b] : a->n;
        if (a->key_lengths[b] < 0 || a->key_lengths[b] > most)
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "key_lengths[%lld] = %d; pass 0 .. %lld, the keys of the entry",
                                   (ll)b, (int)a->key_lengths[b], (ll)most);
    }
    return TG_STATUS_OK;
}

static tg_status check_pages(const tg_attention *a)
{
    for (int64_t b = 0; b < a->batch_count; b++) {
        const int64_t count = tgi_divide_up(tgi_attention_count_keys(a, b), a->page_rows);
        for (int64_t i = 0; i < count; i++) {
            const int32_t page = a->pages[b * a->pages_stride + i];
            if (page < 0 || page >= a->page_count)
                return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                       "pages[%lld] of batch entry %lld = %d; pass 0 .. %lld, "
                                       "below page_count",
                                       (ll)i, (ll)b, (int)page, (ll)a->page_count - 1);
        }
    }
    return TG_STATUS_OK;
}

tgi_attention_list tgi_attention_get_list(const tg_attention *a, int id)
{
    const int64_t sum_bytes = tgi_type_bytes(tgi_attention_sum_type(a));
    const int64_t offset_count = a->batch_count + 1;
    const int64_t page_count = tgi_checked_multiply(a->batch_count, a->pages_stride);
    const tgi_attention_list lists[TGI_ATTENTION_LIST_COUNT] = {
        {"slopes", a->has_slopes, a->slopes, a->head_count, sum_bytes},
        {"query_offsets", a->has_query_offsets, a->query_offsets, offset_count, 4},
        {"key_offsets", a->has_key_offsets, a->key_offsets, offset_count, 4},
        {"key_lengths", a->has_key_lengths, a->key_lengths, a->batch_count, 4},
        {"pages", a->page_rows > 0, a->pages, page_count, 4}};
    return lists[id];
}

/* Refuses lists that are missing. */
static tg_status check_presence(const tg_attention *a)
{
    for (int id = 0; id < TGI_ATTENTION_LIST_COUNT; id++) {
        const tgi_attention_list list = tgi_attention_get_list(a, id);
        if (list.is_used && !list.data)
            return fail_missing(list.name);
    }
    return TG_STATUS_OK;
}

static tg_status check_lists(const tg_attention *a)
{
    tg_status status = TG_STATUS_OK;
    if (a->has_query_offsets)
        status = check_offsets("query_offsets", "m", a->query_offsets, a->batch_count, a->m);
    if (!status && a->has_key_offsets)
        status = check_offsets("key_offsets", "n", a->key_offsets, a->batch_count, a->n);
    if (!status && a->has_key_lengths)
        status = check_lengths(a);
    if (!status && a->page_rows > 0)
        status = check_pages(a);
    return status;
}

/* Returns the rows of all batch entries of a tensor with offsets, or those of one entry. */
static int64_t count_rows(const tg_attention *a, const tgi_attention_tensor *t, int is_keys)
{
    return !t->has_offsets ? t->counts[2]
                           : (is_keys ? a->key_offsets : a->query_offsets)[a->batch_count];
}

/* An operand of a call that holds an element. */
typedef struct operand_memory {
    const char *name;
    const void *data;
    tgi_span span;
} operand_memory;

typedef struct memory_list {
    operand_memory all[TGI_ATTENTION_TENSOR_COUNT + TGI_ATTENTION_LIST_COUNT];
    int count;
} memory_list;

/* Returns 0 for a tensor without an element. */
static int measure_tensor(const tgi_attention_tensor *t, operand_memory *memory)
{
    const int64_t strides[] = {t->heads->batch_stride, t->heads->head_stride, t->heads->row_stride,
                               t->heads->element_stride};
    for (int i = 0; i < 4; i++) {
        if (t->counts[i] <= 0)
            return 0;
    }
    *memory = (operand_memory){t->name, t->heads->data,
                               tgi_overlap_measure(4, t->counts, strides, t->element_bytes)};
    return 1;
}

static void add_lists(memory_list *list, const tg_attention *a)
{
    const int64_t stride = 1;
    for (int id = 0; id < TGI_ATTENTION_LIST_COUNT; id++) {
        const tgi_attention_list one = tgi_attention_get_list(a, id);
        /* A list that no entry reads may have any length, but no list is longer than the address
         * space. */
        const int64_t count = one.count < LIST_MAX ? one.count : LIST_MAX;
        if (one.is_used && count > 0)
            list->all[list->count++] = (operand_memory){
                one.name, one.data, tgi_overlap_measure(1, &count, &stride, one.element_bytes)};
    }
}

/* Refuses an output that shares a byte with another operand. */
static tg_status check_sharing(const operand_memory *output, const memory_list *list)
{
    for (int i = 0; i < list->count; i++) {
        const operand_memory *other = &list->all[i];
        if (other != output &&
            tgi_overlap_may_share(output->data, &output->span, other->data, &other->span))
            return tgi_status_fail(TG_STATUS_OVERLAP,
                                   "%s at %p shares memory with %s at %p; pass memory of its own",
                                   output->name, output->data, other->name, other->data);
    }
    return TG_STATUS_OK;
}

/* Lists the tensors, and sets outputs[0 .. *output_count - 1] to the places of the outputs. */
static tg_status list_tensors(const tg_attention *a, int has_lists, memory_list *list,
                              int outputs[2], int *output_count)
{
    tg_status status = TG_STATUS_OK;
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT && !status; id++) {
        tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
        if (!t.is_used)
            continue;
        if (t.has_offsets && !has_lists) {
            if (!t.heads->data)
                return fail_missing(t.name);
            continue;
        }
        t.counts[2] = count_rows(a, &t, id == TGI_ATTENTION_K || id == TGI_ATTENTION_V);
        if (t.is_output)
            status = tgi_attention_check_distinct(&t);
        if (status || !measure_tensor(&t, &list->all[list->count]))
            continue;
        if (t.is_output)
            outputs[(*output_count)++] = list->count;
        list->count++;
        if (!t.heads->data)
            status = fail_missing(t.name);
    }
    return status;
}

tg_status tgi_attention_check_pointers(const tg_attention *a, int has_lists)
{
    memory_list list = {.count = 0};
    int outputs[2], output_count = 0;
    tg_status status = check_presence(a);
    if (!status && has_lists)
        status = check_lists(a);
    if (!status)
        status = list_tensors(a, has_lists, &list, outputs, &output_count);
    if (!status)
        add_lists(&list, a);
    for (int i = 0; i < output_count && !status; i++)
        status = check_sharing(&list.all[outputs[i]], &list);
    return status;
}
