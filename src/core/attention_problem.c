/* VALIDATE of an attention has two halves, before and after its pointers are known. */
#include "core/attention_problem.h"

#include <math.h>
#include <stdlib.h>

#include "core/checked.h"
#include "core/status.h"
#include "core/types.h"

typedef long long ll; /* for printf */

#define LENGTH_MAX INT32_MAX
#define HEAD_SIZE_MAX 65536
#define SPAN_BYTES_LOG2 61
#define ROWS_MAX (INT64_C(1) << 61)

/* The page's module has 4-byte pointers and is the only caller of its own struct. */
_Static_assert(sizeof(void *) < 8 ||
                   offsetof(tg_attention, pages) + sizeof(int32_t *) == sizeof(tg_attention),
               "tg_attention ends with padding");
const tgi_struct tgi_struct_attention = {"tg_attention", "fill it with tg_init_attention",
                                         sizeof(tg_attention), offsetof(tg_attention, soft_cap)};

void tgi_attention_lay_out(tg_heads *heads, int64_t head_count, int64_t row_count,
                           int64_t element_count)
{
    const int64_t head_stride = tgi_checked_multiply(row_count, element_count);
    *heads = (tg_heads){NULL, tgi_checked_multiply(head_count, head_stride), head_stride,
                        element_count, 1};
}

tg_status tg_init_attention(tg_attention *attention, size_t struct_bytes, tg_type type,
                            int64_t batch_count, int64_t head_count, int64_t kv_head_count,
                            int64_t m, int64_t n, int64_t head_size)
{
    if (!attention)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "attention = NULL; pass its address");
    tg_attention made = {.type = type,
                         .batch_count = batch_count,
                         .head_count = head_count,
                         .kv_head_count = kv_head_count,
                         .m = m,
                         .n = n,
                         .head_size = head_size,
                         .v_head_size = head_size,
                         .scale = head_size > 0 ? 1.0 / sqrt((double)head_size) : 1.0,
                         .keys_before = -1,
                         .keys_after = -1};
    tgi_attention_lay_out(&made.q, head_count, m, head_size);
    tgi_attention_lay_out(&made.k, kv_head_count, n, head_size);
    tgi_attention_lay_out(&made.v, kv_head_count, n, head_size);
    tgi_attention_lay_out(&made.d, head_count, m, head_size);
    return tgi_struct_write(&tgi_struct_attention, &made, attention, struct_bytes);
}

tgi_attention_tensor tgi_attention_get(const tg_attention *a, tgi_attention_tensor_id id)
{
    static const char *const names[] = {"q", "k", "v", "d", "bias", "log_sum_exp"};
    const tg_heads *const heads[] = {&a->q, &a->k, &a->v, &a->d, &a->bias, &a->log_sum_exp};
    const int is_keys = id == TGI_ATTENTION_K || id == TGI_ATTENTION_V;
    const int is_sum = id == TGI_ATTENTION_BIAS || id == TGI_ATTENTION_LOG_SUM_EXP;
    const int64_t elements[] = {a->head_size,   a->head_size, a->v_head_size,
                                a->v_head_size, a->n,         1};
    tgi_attention_tensor tensor = {
        .name = names[id],
        .is_used = is_sum ? (id == TGI_ATTENTION_BIAS ? a->has_bias : a->has_log_sum_exp) : 1,
        .is_output = id == TGI_ATTENTION_D || id == TGI_ATTENTION_LOG_SUM_EXP,
        .element_bytes = tgi_type_bytes(is_sum ? tgi_attention_sum_type(a) : a->type),
        .counts = {a->batch_count, is_keys ? a->kv_head_count : a->head_count,
                   is_keys ? a->n : a->m, elements[id]},
        .heads = heads[id]};
    if (is_keys && a->page_rows > 0) {
        tensor.counts[0] = a->page_count;
        tensor.counts[2] = a->page_rows;
    } else if (is_keys ? a->has_key_offsets : a->has_query_offsets) {
        tensor.counts[0] = 1;
        tensor.has_offsets = 1;
    }
    return tensor;
}

static tg_status check_range(const char *name, int64_t value, int64_t least, int64_t most)
{
    if (value < least)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = %lld; pass %lld or more", name,
                               (ll)value, (ll)least);
    if (value > most)
        return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                               "%s = %lld is above the limit; pass %lld "
                               "or less",
                               name, (ll)value, (ll)most);
    return TG_STATUS_OK;
}

static tg_status check_sizes(const tg_attention *a)
{
    const struct {
        const char *name;
        int64_t value, least, most;
    } sizes[] = {{"batch_count", a->batch_count, 0, LENGTH_MAX},
                 {"head_count", a->head_count, 1, LENGTH_MAX},
                 {"kv_head_count", a->kv_head_count, 1, LENGTH_MAX},
                 {"m", a->m, 0, LENGTH_MAX},
                 {"n", a->n, 0, LENGTH_MAX},
                 {"head_size", a->head_size, 1, HEAD_SIZE_MAX},
                 {"v_head_size", a->v_head_size, 1, HEAD_SIZE_MAX},
                 {"keys_before", a->keys_before, -1, LENGTH_MAX},
                 {"keys_after", a->keys_after, -1, LENGTH_MAX},
                 {"page_rows", a->page_rows, 0, LENGTH_MAX}};
    tg_status status = TG_STATUS_OK;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && !status; i++)
        status = check_range(sizes[i].name, sizes[i].value, sizes[i].least, sizes[i].most);
    if (status)
        return status;
    const int64_t rows =
        tgi_checked_multiply(tgi_checked_multiply(a->batch_count, a->head_count), a->m);
    if ((status = check_range("batch_count * head_count * m", rows, 0, ROWS_MAX)) ||
        a->page_rows == 0)
        return status;
    if ((status = check_range("page_count", a->page_count, 0, LENGTH_MAX)))
        return status;
    return check_range("pages_stride", a->pages_stride, tgi_divide_up(a->n, a->page_rows),
                       LENGTH_MAX);
}

static tg_status check_values(const tg_attention *a)
{
    if (a->type < 0 || a->type > TG_TYPE_FP16)
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "type = %d has no attention; pass FP32, FP64, BF16 or FP16",
                               (int)a->type);
    if (a->causal < TG_CAUSAL_NONE || a->causal > TG_CAUSAL_BOTTOM_RIGHT)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "causal = %d; pass a tg_causal",
                               (int)a->causal);
    if (!isfinite(a->scale))
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "scale = %g; pass a finite number",
                               a->scale);
    if (!(isfinite(a->soft_cap) && a->soft_cap >= 0.0))
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "soft_cap = %g; pass a positive number, or 0 for none", a->soft_cap);
    if (a->page_rows > 0 && a->has_key_offsets)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "has_key_offsets = %d beside page_rows = %lld; pass key_lengths "
                               "with pages",
                               a->has_key_offsets, (ll)a->page_rows);
    return TG_STATUS_OK;
}

/* Refuses a number of heads that is not a multiple of the heads of K and V. */
static tg_status check_heads(const tg_attention *a)
{
    if (a->head_count % a->kv_head_count == 0)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "kv_head_count = %lld does not divide head_count = %lld; pass a divisor",
                           (ll)a->kv_head_count, (ll)a->head_count);
}

static void list_strides(const tgi_attention_tensor *t, int64_t strides[4])
{
    const int64_t given[] = {t->heads->batch_stride, t->heads->head_stride, t->heads->row_stride,
                             t->heads->element_stride};
    for (int i = 0; i < 4; i++)
        strides[i] = t->counts[i] > 1 ? given[i] : 0;
}

static int is_empty(const tgi_attention_tensor *t)
{
    return t->counts[0] == 0 || t->counts[1] == 0 || t->counts[2] == 0 || t->counts[3] == 0;
}

/* Refuses a tensor that reaches over too many bytes. With offsets the number of rows is known only
 * at execution, and the strides must allow any number. */
static tg_status check_span(const tgi_attention_tensor *tensor)
{
    tgi_attention_tensor any_rows = *tensor;
    const tgi_attention_tensor *t = &any_rows;
    if (t->has_offsets)
        any_rows.counts[2] = LENGTH_MAX;
    static const char *const parts[] = {"batch_stride", "head_stride", "row_stride",
                                        "element_stride"};
    const int64_t most = ((int64_t)1 << SPAN_BYTES_LOG2) / t->element_bytes;
    int64_t strides[4], span = 1;
    list_strides(t, strides);
    for (int i = 0; i < 4 && !is_empty(t); i++) {
        const int64_t stride = strides[i] == INT64_MIN ? INT64_MAX : llabs(strides[i]);
        span = tgi_checked_add(span, tgi_checked_multiply(t->counts[i] - 1, stride));
        if (span > most)
            return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                                   "%s: %lld entries with %s = %lld reach over more than 2^%d "
                                   "bytes; pass smaller counts or strides",
                                   t->name, (ll)t->counts[i], parts[i], (ll)strides[i],
                                   SPAN_BYTES_LOG2);
    }
    return TG_STATUS_OK;
}

/* Refuses an output in which two elements share an address: each stride, the smallest first, must
 * clear the reach of those before it. */
tg_status tgi_attention_check_distinct(const tgi_attention_tensor *t)
{
    int64_t strides[4], reach = 0;
    int is_done[4] = {0};
    list_strides(t, strides);
    for (int done = 0; done < 4 && !is_empty(t); done++) {
        int least = -1;
        for (int i = 0; i < 4; i++) {
            if (!is_done[i] && (least < 0 || llabs(strides[i]) < llabs(strides[least])))
                least = i;
        }
        is_done[least] = 1;
        if (t->counts[least] == 1)
            continue;
        if (llabs(strides[least]) <= reach)
            return tgi_status_fail(TG_STATUS_OVERLAP,
                                   "%s has a stride of %lld elements where others reach over "
                                   "%lld; pass strides that keep its elements distinct",
                                   t->name, (ll)strides[least], (ll)reach);
        reach += (t->counts[least] - 1) * llabs(strides[least]);
    }
    return TG_STATUS_OK;
}

tg_status tgi_attention_validate(const tg_attention *a)
{
    tg_status status = check_sizes(a);
    if (status || (status = check_values(a)) || (status = check_heads(a)))
        return status;
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
        if (t.is_used &&
            ((status = check_span(&t)) ||
             (t.is_output && !t.has_offsets && (status = tgi_attention_check_distinct(&t)))))
            return status;
    }
    return TG_STATUS_OK;
}
