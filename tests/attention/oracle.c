#include "attention/oracle.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "check/attention_check.h"
#include "check/check.h"

#define POISON 0xff
#define BAND 64 /* elements */

static int64_t row_bytes(const attention_case *c, int id)
{
    return tgi_attention_get(&c->attention, (tgi_attention_tensor_id)id).element_bytes;
}

static tg_type type_of(const tg_attention *a, int id)
{
    const int is_sum = id == TGI_ATTENTION_BIAS || id == TGI_ATTENTION_LOG_SUM_EXP;
    return is_sum ? tgi_attention_sum_type(a) : a->type;
}

/* Returns 1 if every byte of an output that is in no element of it is poison. */
static int is_unharmed(const attention_case *c, int id)
{
    const tg_attention *a = &c->attention;
    const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
    const int64_t bytes = row_bytes(c, id);
    char *is_element = calloc(1, (size_t)c->bytes[id] + 1);
    int is_ok = is_element != NULL;
    for (int64_t b = 0; b < a->batch_count && is_ok; b++)
        for (int64_t h = 0; h < t.counts[1]; h++)
            for (int64_t i = 0; i < tgi_attention_count_queries(a, b); i++)
                for (int64_t e = 0; e < t.counts[3]; e++) {
                    const char *at =
                        (const char *)t.heads->data +
                        check_find_element(t.heads, check_find_query(a, b, i), h, e) * bytes;
                    memset(is_element + (at - c->memory[id]), 1, (size_t)bytes);
                }
    for (int64_t i = 0; i < c->bytes[id] && is_ok; i++)
        is_ok = is_element[i] || (unsigned char)c->memory[id][i] == POISON;
    free(is_element);
    return is_ok;
}

double case_compare(const attention_case *c, const char *device)
{
    check_attention_result result;
    if (!check_compare_attention(&c->attention, device, INFINITY, &result) ||
        !is_unharmed(c, TGI_ATTENTION_D) ||
        (c->attention.has_log_sum_exp && !is_unharmed(c, TGI_ATTENTION_LOG_SUM_EXP)))
        return INFINITY;
    return result.worst_share;
}

void case_poison(attention_case *c)
{
    memset(c->memory[TGI_ATTENTION_D], POISON, (size_t)c->bytes[TGI_ATTENTION_D]);
    if (c->memory[TGI_ATTENTION_LOG_SUM_EXP])
        memset(c->memory[TGI_ATTENTION_LOG_SUM_EXP], POISON,
               (size_t)c->bytes[TGI_ATTENTION_LOG_SUM_EXP]);
}

/* Sets a tensor's strides: dimensions in a drawn order, with gaps, some of them backwards. Returns
 * the elements before and after the data pointer. */
static void lay_out(tg_heads *heads, const int64_t counts[4], int is_strided, uint64_t *random,
                    int64_t *before, int64_t *after)
{
    int64_t *const strides[] = {&heads->batch_stride, &heads->head_stride, &heads->row_stride,
                                &heads->element_stride};
    int order[] = {3, 2, 1, 0};
    int64_t reach = 1;
    *before = BAND;
    *after = BAND;
    for (int i = 3; i > 0 && is_strided; i--) {
        const int other = (int)(check_next_random(random) % (uint64_t)(i + 1));
        const int kept = order[i];
        order[i] = order[other];
        order[other] = kept;
    }
    for (int i = 0; i < 4; i++) {
        const int64_t count = counts[order[i]] > 0 ? counts[order[i]] : 1;
        int64_t stride = reach + (is_strided ? (int64_t)(check_next_random(random) % 3) : 0);
        reach = stride * count;
        if (is_strided && check_next_random(random) % 5 == 0) {
            *before += stride * (count - 1);
            stride = -stride;
        } else {
            *after += stride * (count - 1);
        }
        *strides[order[i]] = stride;
    }
}

static double draw_value(int id, attention_fill fill, uint64_t *random)
{
    const uint64_t chance = check_next_random(random) % 64;
    if (id == TGI_ATTENTION_V && fill == FILL_V_ONES)
        return 1.0;
    if (fill == FILL_NONFINITE_HEADS && id == TGI_ATTENTION_V && chance == 0)
        return check_next_random(random) % 2 ? NAN : INFINITY;
    /* Few elements of K, so that most rows see none of them. */
    if (fill == FILL_NONFINITE_HEADS && id == TGI_ATTENTION_K && chance == 0 &&
        check_next_random(random) % 64 == 0)
        return check_next_random(random) % 2 ? NAN : INFINITY;
    if (fill == FILL_NONFINITE_HEADS && id == TGI_ATTENTION_BIAS && chance < 16)
        return -INFINITY;
    return 2.0 * check_next_uniform(random);
}

static void fill_tensor(attention_case *c, int id, attention_fill fill, uint64_t *random)
{
    const tg_attention *a = &c->attention;
    const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
    const int is_keys = id == TGI_ATTENTION_K || id == TGI_ATTENTION_V;
    for (int64_t b = 0; b < a->batch_count; b++) {
        const int64_t rows =
            is_keys ? tgi_attention_count_keys(a, b) : tgi_attention_count_queries(a, b);
        for (int64_t h = 0; h < t.counts[1]; h++)
            for (int64_t i = 0; i < rows; i++)
                for (int64_t e = 0; e < t.counts[3]; e++) {
                    const check_place place =
                        is_keys ? check_find_key(a, b, i) : check_find_query(a, b, i);
                    check_set_element(type_of(a, id), t.heads->data,
                                      check_find_element(t.heads, place, h, e),
                                      draw_value(id, fill, random));
                }
    }
}

static int32_t *draw_offsets(int64_t batch_count, int64_t most, uint64_t *random)
{
    int32_t *offsets = malloc(sizeof *offsets * (size_t)(batch_count + 1));
    offsets[0] = (int32_t)(check_next_random(random) % 3);
    for (int64_t b = 0; b < batch_count; b++)
        offsets[b + 1] = offsets[b] + (int32_t)(check_next_random(random) % (uint64_t)(most + 1));
    return offsets;
}

static void draw_lists(attention_case *c, uint64_t *random)
{
    tg_attention *a = &c->attention;
    if (a->has_query_offsets)
        a->query_offsets = c->query_offsets = draw_offsets(a->batch_count, a->m, random);
    if (a->has_key_offsets)
        a->key_offsets = c->key_offsets = draw_offsets(a->batch_count, a->n, random);
    if (a->has_key_lengths) {
        c->key_lengths = malloc(sizeof(int32_t) * (size_t)(a->batch_count + 1));
        for (int64_t b = 0; b < a->batch_count; b++) {
            const int64_t most =
                a->has_key_offsets ? a->key_offsets[b + 1] - a->key_offsets[b] : a->n;
            c->key_lengths[b] = (int32_t)(check_next_random(random) % (uint64_t)(most + 1));
        }
        a->key_lengths = c->key_lengths;
    }
    if (a->page_rows > 0) { /* a page is of one entry alone, in a drawn order */
        const int64_t count = a->batch_count * a->pages_stride;
        c->pages = malloc(sizeof(int32_t) * (size_t)(count + 1));
        for (int64_t i = 0; i < count; i++) {
            const int64_t other = (int64_t)(check_next_random(random) % (uint64_t)(i + 1));
            c->pages[i] = c->pages[other];
            c->pages[other] = (int32_t)i;
        }
        a->pages = c->pages;
    }
    if (a->has_slopes) {
        const tg_type type = tgi_attention_sum_type(a);
        c->slopes = malloc(8 * (size_t)a->head_count);
        for (int64_t h = 0; h < a->head_count; h++)
            check_set_element(type, c->slopes, h, fabs(check_next_uniform(random)));
        a->slopes = c->slopes;
    }
}

void case_open(attention_case *c, const tg_attention *attention, attention_fill fill,
               int is_strided, uint64_t *random)
{
    *c = (attention_case){.attention = *attention};
    tg_attention *a = &c->attention;
    tg_heads *const heads[] = {&a->q, &a->k, &a->v, &a->d, &a->bias, &a->log_sum_exp};
    draw_lists(c, random);
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++) {
        const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
        const int is_keys = id == TGI_ATTENTION_K || id == TGI_ATTENTION_V;
        int64_t counts[] = {t.counts[0], t.counts[1], t.counts[2], t.counts[3]};
        int64_t before, after;
        if (!t.is_used)
            continue;
        if (t.has_offsets)
            counts[2] = (is_keys ? a->key_offsets : a->query_offsets)[a->batch_count];
        lay_out(heads[id], counts, is_strided, random, &before, &after);
        c->bytes[id] = (before + after) * t.element_bytes;
        c->memory[id] = malloc((size_t)c->bytes[id]);
        memset(c->memory[id], POISON, (size_t)c->bytes[id]);
        heads[id]->data = c->memory[id] + before * t.element_bytes;
        if (!t.is_output)
            fill_tensor(c, id, fill, random);
    }
}

void case_close(attention_case *c)
{
    for (int id = 0; id < TGI_ATTENTION_TENSOR_COUNT; id++)
        free(c->memory[id]);
    free(c->slopes);
    free(c->query_offsets);
    free(c->key_offsets);
    free(c->key_lengths);
    free(c->pages);
}

static int64_t draw_from(const int64_t *list, int64_t count, uint64_t *random)
{
    return list[check_next_random(random) % (uint64_t)count];
}

tg_attention draw_attention(uint64_t *random)
{
    static const int64_t lengths[] = {0, 1, 1, 2, 3, 7, 13, 16, 31, 48, 49, 97, 128, 129, 211, 257};
    static const int64_t long_lengths[] = {1023, 1024, 1025, 1301, 2049, 2311};
    static const int64_t sizes[] = {1, 2, 3, 8, 16, 17, 32, 40, 64, 96, 128, 192, 256};
    static const int64_t groups[] = {1, 1, 2, 3, 4};
    tg_attention a;
    const int64_t batch = 1 + (int64_t)(check_next_random(random) % 3);
    const int64_t kv_heads = 1 + (int64_t)(check_next_random(random) % 2);
    const int64_t heads = kv_heads * draw_from(groups, 5, random);
    int64_t m = draw_from(lengths, 16, random), n = draw_from(lengths, 16, random);
    int64_t size = draw_from(sizes, 13, random), v_size = draw_from(sizes, 13, random);
    const uint64_t flags = check_next_random(random);
    if (flags % 8 == 0)
        m = 1 + m % 5, n = draw_from(long_lengths, 6, random);
    while (batch * heads * m * n * (size + v_size) > 3000000) {
        size = size > 16 ? size / 2 : size;
        v_size = v_size > 16 ? v_size / 2 : v_size;
        *(m > n ? &m : &n) /= 2;
    }
    tg_init_attention(&a, sizeof a, (tg_type)(flags >> 8 & 3), batch, heads, kv_heads, m, n, size);
    a.v_head_size = v_size;
    a.causal = (tg_causal)((flags >> 16) % 3);
    a.scale = flags >> 20 & 1 ? a.scale : 0.3 * check_next_uniform(random);
    if ((flags >> 21) % 3 == 0)
        a.keys_before = (int64_t)(check_next_random(random) % 150);
    if ((flags >> 24) % 4 == 0)
        a.keys_after = (int64_t)(check_next_random(random) % 150);
    a.soft_cap = (flags >> 28) % 4 == 0 ? 3.5 : 0.0;
    a.has_bias = (flags >> 32) % 4 == 0;
    a.has_slopes = (flags >> 36) % 4 == 0;
    a.has_log_sum_exp = (flags >> 40) & 1;
    a.has_query_offsets = (flags >> 41) % 4 == 0;
    a.has_key_lengths = (flags >> 44) % 4 == 0;
    if ((flags >> 48) % 4 == 0) {
        a.page_rows = 16 * (1 + (int64_t)((flags >> 51) % 3));
        a.pages_stride = (n + a.page_rows - 1) / a.page_rows + 1;
        a.page_count = batch * a.pages_stride;
    } else {
        a.has_key_offsets = (flags >> 54) % 4 == 0;
    }
    return a;
}
