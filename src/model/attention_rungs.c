/* Has the table of the rungs of attention, and tells which attentions they accept. */
#include "model/attention_rungs.h"

#include <string.h>

#include "core/attention_problem.h"
#include "core/checked.h"
#include "core/status.h"

typedef long long ll; /* printf needs it */

/* Counts stay below 2^63: the largest is 8 operations for each product of whole tiles. */
#define PRODUCTS_MAX 1e18
/* A row less than a tile past an edge, and every index inside, must be an int. */
#define ELEMS_MAX (INT32_MAX - 1024)

#define LIST(...)                                                                                  \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }
static const tgi_attention_rung rungs[] = {
#define TGI_ATTENTION_RUNG(word, rung, isa_word, type_word, queries, head, x, y, register_counts,  \
                           arguments, text)                                                        \
    {.name = "attention_" #word "_" #isa_word "_" #type_word "_" #queries "x" #head,               \
     .family_name = "attention_" #word,                                                            \
     .idea = text,                                                                                 \
     .family = TGI_ATTENTION_##word,                                                               \
     .number = rung,                                                                               \
     .isa = TGI_ISA_##isa_word,                                                                    \
     .type = TGI_TYPE_OF(type_word),                                                               \
     .query_count = queries,                                                                       \
     .head_size = head,                                                                            \
     .threads_x = x,                                                                               \
     .threads_y = y,                                                                               \
     .registers = LIST register_counts},
#include "core/attention_kernels.def"
#undef TGI_ATTENTION_RUNG
};

int tgi_model_attention_rung_count(void)
{
    return (int)(sizeof rungs / sizeof rungs[0]);
}

const tgi_attention_rung *tgi_model_attention_get(int index)
{
    return &rungs[index];
}

tgi_attention_sizes tgi_model_attention_sizes(const tg_attention *a)
{
    return (tgi_attention_sizes){.head_count = a->batch_count * a->head_count,
                                 .m = a->m,
                                 .n = a->n,
                                 .head_size = a->head_size,
                                 .shift = a->causal == TG_CAUSAL_NONE       ? a->n
                                          : a->causal == TG_CAUSAL_TOP_LEFT ? 0
                                                                            : a->n - a->m};
}

/* Returns 1 for a plain attention, causal or not, on tensors without gaps. */
static int is_plain(const tg_attention *a)
{
    tg_attention plain;
    if (tg_init_attention(&plain, sizeof plain, a->type, a->batch_count, a->head_count,
                          a->kv_head_count, a->m, a->n, a->head_size))
        return 0;
    const tg_heads *const given[] = {&a->q, &a->k, &a->v, &a->d};
    const tg_heads *const made[] = {&plain.q, &plain.k, &plain.v, &plain.d};
    for (int i = 0; i < 4; i++) {
        if (given[i]->batch_stride != made[i]->batch_stride ||
            given[i]->head_stride != made[i]->head_stride ||
            given[i]->row_stride != made[i]->row_stride || given[i]->element_stride != 1)
            return 0;
    }
    return a->v_head_size == a->head_size && a->keys_before < 0 && a->keys_after < 0 &&
           a->soft_cap == 0.0 && !a->has_bias && !a->has_slopes && !a->has_log_sum_exp &&
           !a->has_query_offsets && !a->has_key_offsets && !a->has_key_lengths && !a->page_rows;
}

static tg_status check_sizes(const tgi_attention_rung *rung, const tg_attention *a)
{
    const int multiple = rung->family == TGI_ATTENTION_mma ? 16 : 8;
    const double rows = (double)a->batch_count * (double)a->head_count * (double)a->m;
    const double keys = (double)a->batch_count * (double)a->kv_head_count * (double)a->n;
    const double longest = rows > keys ? rows : keys;
    if (a->batch_count < 1 || a->m < 1 || a->n < 1) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "batch_count = %lld, m = %lld, n = %lld: no kernel runs; pass 1 or "
                               "more for each",
                               (ll)a->batch_count, (ll)a->m, (ll)a->n);
    }
    if (a->head_size % multiple || a->head_size > rung->head_size) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "head_size = %lld: %s takes multiples of %d up to %d",
                               (ll)a->head_size, rung->name, multiple, rung->head_size);
    }
    if (longest * (double)a->head_size > ELEMS_MAX ||
        (rung->family == TGI_ATTENTION_naive && rows * (double)a->n > ELEMS_MAX)) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "%s indexes by int: tensors%s must have at most %d elements each; "
                               "pass shorter ones",
                               rung->name, rung->family == TGI_ATTENTION_naive ? " and scores" : "",
                               ELEMS_MAX);
    }
    if ((double)a->batch_count * (double)a->head_count *
            (double)tgi_round_up(a->m, rung->query_count) *
            (double)tgi_round_up(a->n, rung->query_count) * rung->head_size >
        PRODUCTS_MAX) {
        return tgi_status_fail(TG_STATUS_SIZE_OVERFLOW,
                               "m = %lld, n = %lld: the counts exceed 63 bits; pass shorter ones",
                               (ll)a->m, (ll)a->n);
    }
    if (a->batch_count * a->head_count > TGI_GRID_HEIGHT_MAX) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "batch_count * head_count = %lld: a grid is %d blocks high at most; "
                               "pass fewer",
                               (ll)(a->batch_count * a->head_count), TGI_GRID_HEIGHT_MAX);
    }
    return TG_STATUS_OK;
}

tg_status tgi_model_attention_choose(const char *name, const tg_attention *attention,
                                     const tgi_attention_rung **chosen)
{
    const tgi_attention_rung *named = NULL;
    const tg_status status = tgi_attention_validate(attention);
    if (status)
        return status;
    for (int i = 0; i < tgi_model_attention_rung_count(); i++) {
        const tgi_attention_rung *rung = &rungs[i];
        const int is_family = strcmp(rung->family_name, name) == 0;
        if (!is_family && strcmp(rung->name, name) != 0)
            continue;
        /* If a head is too large for all rows of a family and type, the last row is refused. */
        if (!named || (named->type != attention->type && rung->type == attention->type) ||
            (named->type == rung->type && named->head_size < attention->head_size))
            named = rung;
    }
    if (!named) {
        return tgi_status_fail(TG_STATUS_UNKNOWN_NAME,
                               "kernel = \"%.64s\" is no rung of attention; pass attention_naive, "
                               "attention_tiled or attention_mma",
                               name);
    }
    if (named->type != attention->type) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "type = %s: %s multiplies %s; pass an attention of that type",
                               tg_get_type_name(attention->type), named->family_name,
                               named->type == TG_TYPE_FP32 ? "fp32" : "bf16 or fp16");
    }
    if (!is_plain(attention)) {
        return tgi_status_fail(TG_STATUS_UNSUPPORTED,
                               "the rungs take tensors without gaps and a causal mask or none; "
                               "leave out strides, windows, bias, lists and caps");
    }
    *chosen = named;
    return check_sizes(named, attention);
}

int64_t tgi_model_attention_shared_bytes(const tgi_attention_rung *rung)
{
    const int64_t queries = rung->query_count, head = rung->head_size;
    switch (rung->family) {
    case TGI_ATTENTION_naive:
        return 0;
    case TGI_ATTENTION_tiled: /* Q, K or V, scores and weights, each row padded by a word */
        return 4 * queries * (2 * (head + 1) + 2 * (queries + 1));
    default: /* Q, K and V of 16 bits */
        return 2 * 3 * queries * head;
    }
}
