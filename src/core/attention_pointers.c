/* The last checks of an attention, which need its pointers. */
#include <stdint.h>
#include <stdlib.h>

#include "core/attention_problem.h"
#include "core/checked.h"
#include "core/status.h"

typedef long long ll; /* for printf */

static tg_status fail_missing(const char *name)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%s = NULL, but this attention uses it; pass its memory", name);
}

/* Refuses offsets that fall or reach further apart than `most`, the largest length. */
static tg_status check_offsets(const char *name, const char *limit, const int32_t *offsets,
                               int64_t batch_count, int64_t most)
{
    if (!offsets)
        return fail_missing(name);
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
    if (!a->key_lengths)
        return fail_missing("key_lengths");
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
    if (!a->pages)
        return fail_missing("pages");
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
    if (!status && a->has_slopes && !a->slopes)
        status = fail_missing("slopes");
    return status;
}

/* The addresses of a tensor, low .. high - 1; equal if it has none. */
typedef struct address_range {
    uintptr_t low, high;
} address_range;

/* Returns the rows of all batch entries of a tensor with offsets, or those of one entry. */
static int64_t count_rows(const tg_attention *a, const tgi_attention_tensor *t, int is_keys)
{
    return !t->has_offsets ? t->counts[2]
                           : (is_keys ? a->key_offsets : a->query_offsets)[a->batch_count];
}

/* Returns the addresses of a tensor. */
static address_range find_range(const tgi_attention_tensor *t)
{
    const int64_t strides[] = {t->heads->batch_stride, t->heads->head_stride, t->heads->row_stride,
                               t->heads->element_stride};
    const uintptr_t data = (uintptr_t)t->heads->data;
    int64_t low = 0, high = t->element_bytes;
    for (int i = 0; i < 4; i++) {
        if (t->counts[i] <= 0)
            return (address_range){data, data};
        const int64_t reach = (t->counts[i] - 1) * strides[i] * t->element_bytes;
        *(reach < 0 ? &low : &high) += reach;
    }
    return (address_range){data + (uintptr_t)low, data + (uintptr_t)high};
}

tg_status tgi_attention_check_pointers(const tg_attention *a)
{
    address_range ranges[TGI_ATTENTION_TENSOR_COUNT] = {{0, 0}};
    tgi_attention_tensor tensors[TGI_ATTENTION_TENSOR_COUNT];
    tg_status status = check_lists(a);
    if (status)
        return status;
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        tensors[id] = tgi_attention_get(a, (tgi_attention_tensor_id)id);
        if (!tensors[id].is_used)
            continue;
        const int is_keys = id == TGI_ATTENTION_K || id == TGI_ATTENTION_V;
        tensors[id].counts[2] = count_rows(a, &tensors[id], is_keys);
        if (tensors[id].is_output && (status = tgi_attention_check_distinct(&tensors[id])))
            return status;
        ranges[id] = find_range(&tensors[id]);
        if (ranges[id].low != ranges[id].high && !tensors[id].heads->data)
            return fail_missing(tensors[id].name);
    }
    for (int out = 0; out < TGI_ATTENTION_TENSOR_COUNT; out++) {
        for (int other = 0; other < TGI_ATTENTION_TENSOR_COUNT && tensors[out].is_output; other++) {
            if (other != out && ranges[other].low < ranges[out].high &&
                ranges[out].low < ranges[other].high && ranges[other].low != ranges[other].high &&
                ranges[out].low != ranges[out].high)
                return tgi_status_fail(TG_STATUS_OVERLAP,
                                       "%s at %p overlaps the addresses of %s; pass memory of its "
                                       "own",
                                       tensors[out].name, tensors[out].heads->data,
                                       tensors[other].name);
        }
    }
    return TG_STATUS_OK;
}
