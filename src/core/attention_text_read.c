/* Reads an attention as text. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "core/attention_text.h"
#include "core/problem_text.h"
#include "core/status.h"

#define PART_BYTES 64
#define TENSORS TGI_ATTENTION_TENSOR_COUNT

typedef struct attention_reading {
    tg_attention attention;
    int64_t strides[TENSORS][4];
    int is_given[TENSORS][4];
} attention_reading;

void tgi_attention_lay_out_all(tg_attention *a)
{
    tg_heads *const heads[] = {&a->q, &a->k, &a->v, &a->d, &a->bias, &a->log_sum_exp};
    for (int id = 0; id < TENSORS; id++) {
        const tgi_attention_tensor t = tgi_attention_get(a, (tgi_attention_tensor_id)id);
        *heads[id] = (tg_heads){0};
        if (t.is_used)
            tgi_attention_lay_out(heads[id], t.counts[1], t.counts[2], t.counts[3]);
    }
}

int64_t *tgi_attention_find_stride(tg_attention *a, int tensor, int stride)
{
    tg_heads *const heads[] = {&a->q, &a->k, &a->v, &a->d, &a->bias, &a->log_sum_exp};
    int64_t *const strides[] = {&heads[tensor]->batch_stride, &heads[tensor]->head_stride,
                                &heads[tensor]->row_stride, &heads[tensor]->element_stride};
    return strides[stride];
}

static tg_status fail_part(const char *part)
{
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "\"%.64s\" is no part of an attention; pass batch,heads,kv_heads,m,n,"
                           "head_size and parts such as :bf16:causal:dv=64:scale=0.5",
                           part);
}

/* Reads an integer that ends at `end`. Returns 0 if there is none. */
static int read_size(const char *text, const char *end, int64_t *value)
{
    char *stop;
    errno = 0;
    *value = strtoll(text, &stop, 10);
    return stop != text && stop == end && !errno && *text != ' ';
}

static int read_factor(const char *text, double *value)
{
    char *stop;
    *value = strtod(text, &stop);
    return stop != text && *stop == '\0';
}

/* Reads "ROWSxPAGESxPAGES_OF_AN_ENTRY". */
static int read_pages(const char *text, tg_attention *a)
{
    const char *first = strchr(text, 'x'), *second = first ? strchr(first + 1, 'x') : NULL;
    return second && read_size(text, first, &a->page_rows) &&
           read_size(first + 1, second, &a->page_count) &&
           read_size(second + 1, second + strlen(second), &a->pages_stride);
}

/* Reads a part "key=value". Returns 0 if the part is something else. */
static int read_value(const char *key, const char *value, attention_reading *r)
{
    tg_attention *a = &r->attention;
    const char *end = value + strlen(value);
#define READ_SIZE(word, member)                                                                    \
    if (strcmp(key, word) == 0)                                                                    \
        return read_size(value, end, &a->member);
    TGI_ATTENTION_SIZES(READ_SIZE)
#undef READ_SIZE
#define READ_FACTOR(word, member)                                                                  \
    if (strcmp(key, word) == 0)                                                                    \
        return read_factor(value, &a->member);
    TGI_ATTENTION_FACTORS(READ_FACTOR)
#undef READ_FACTOR
    if (strcmp(key, "causal") == 0 && strcmp(value, "top_left") == 0) {
        a->causal = TG_CAUSAL_TOP_LEFT;
        return 1;
    }
    if (strcmp(key, "pages") == 0)
        return read_pages(value, a);
    const char *tensor = strlen(key) == 2 ? strchr(TGI_ATTENTION_TENSOR_LETTERS, key[0]) : NULL;
    const char *stride = tensor ? strchr(TGI_ATTENTION_STRIDE_LETTERS, key[1]) : NULL;
    if (!stride)
        return 0;
    const int i = (int)(tensor - TGI_ATTENTION_TENSOR_LETTERS);
    const int s = (int)(stride - TGI_ATTENTION_STRIDE_LETTERS);
    r->is_given[i][s] = 1;
    return read_size(value, end, &r->strides[i][s]);
}

/* Reads a part of one word. Returns 0 if the part is something else. */
static int read_word(const char *word, tg_attention *a)
{
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP16; type++) {
        if (strcmp(word, tg_get_type_name((tg_type)type)) == 0) {
            a->type = (tg_type)type;
            return 1;
        }
    }
    if (strcmp(word, "causal") == 0) {
        a->causal = TG_CAUSAL_BOTTOM_RIGHT;
        return 1;
    }
#define READ_FLAG(name, member)                                                                    \
    if (strcmp(word, name) == 0) {                                                                 \
        a->member = 1;                                                                             \
        return 1;                                                                                  \
    }
    TGI_ATTENTION_FLAGS(READ_FLAG)
#undef READ_FLAG
    return 0;
}

/* Copies the part up to the next colon and moves *text behind it. Returns 0 if it is too long. */
static int take_part(const char **text, char part[PART_BYTES])
{
    const size_t length = strcspn(*text, ":");
    if (length >= PART_BYTES)
        return 0;
    memcpy(part, *text, length);
    part[length] = '\0';
    *text += length;
    return 1;
}

/* Reads "batch,heads,kv_heads,m,n,head_size". */
static tg_status read_sizes(char *part, attention_reading *r)
{
    int64_t sizes[6];
    char *at = part;
    for (int i = 0; i < 6; i++) {
        char *end = i < 5 ? strchr(at, ',') : at + strlen(at);
        if (!end || !read_size(at, end, &sizes[i]) || sizes[i] < 0)
            return fail_part(part);
        at = end + 1;
    }
    return tg_init_attention(&r->attention, sizeof r->attention, TG_TYPE_FP32, sizes[0], sizes[1],
                             sizes[2], sizes[3], sizes[4], sizes[5]);
}

static tg_status read_parts(const char *text, attention_reading *r)
{
    char part[PART_BYTES];
    tg_status status;
    if (!take_part(&text, part))
        return fail_part(text);
    if ((status = read_sizes(part, r)))
        return status;
    while (*text == ':') {
        text++;
        if (!take_part(&text, part))
            return fail_part(text);
        char *equals = strchr(part, '=');
        if (equals)
            *equals = '\0';
        if (equals ? !read_value(part, equals + 1, r) : !read_word(part, &r->attention)) {
            if (equals)
                *equals = '=';
            return fail_part(part);
        }
    }
    tgi_attention_lay_out_all(&r->attention);
    for (int i = 0; i < TENSORS; i++) {
        for (int s = 0; s < 4; s++) {
            if (r->is_given[i][s])
                *tgi_attention_find_stride(&r->attention, i, s) = r->strides[i][s];
        }
    }
    return TG_STATUS_OK;
}

tg_status tg_parse_attention(const char *text, tg_attention *attention, size_t struct_bytes)
{
    attention_reading reading = {.attention = {.struct_bytes = 0}};
    tgi_saved_locale saved;
    if (!text || !attention)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               text ? "attention" : "text");
    tg_status status = tgi_problem_text_enter_c_locale(&saved);
    if (status)
        return status;
    status = read_parts(text, &reading);
    tgi_problem_text_leave_c_locale(&saved);
    return status ? status
                  : tgi_struct_write(&tgi_struct_attention, &reading.attention, attention,
                                     struct_bytes);
}
