/* Writes an attention as the shortest text that is read back as the same attention. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/alloc.h"
#include "core/attention_text.h"
#include "core/problem_text.h"
#include "core/status.h"

typedef long long ll; /* for printf */

/* This exceeds six sizes, all words, and 24 strides of ":qb=-9223372036854775808". */
#define TEXT_BYTES 1024

static void append(char *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void append(char *text, const char *format, ...)
{
    const size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, TEXT_BYTES - used, format, arguments);
    va_end(arguments);
}

/* Appends a factor with the fewest digits that are read back as the same number. */
static void append_factor(char *text, const char *word, double value)
{
    char number[32];
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(number, sizeof number, "%.*g", digits, value);
        if (strtod(number, NULL) == value)
            break;
    }
    append(text, ":%s=%s", word, number);
}

static void write_words(const tg_attention *a, const tg_attention *standard, char *text)
{
    if (a->type != TG_TYPE_FP32)
        append(text, ":%s", tg_get_type_name(a->type));
    if (a->causal != TG_CAUSAL_NONE)
        append(text, a->causal == TG_CAUSAL_TOP_LEFT ? ":causal=top_left" : ":causal");
#define WRITE_SIZE(word, member)                                                                   \
    if (a->member != standard->member)                                                             \
        append(text, ":%s=%lld", word, (ll)a->member);
    TGI_ATTENTION_SIZES(WRITE_SIZE)
#undef WRITE_SIZE
#define WRITE_FACTOR(word, member)                                                                 \
    if (a->member != standard->member)                                                             \
        append_factor(text, word, a->member);
    TGI_ATTENTION_FACTORS(WRITE_FACTOR)
#undef WRITE_FACTOR
#define WRITE_FLAG(word, member)                                                                   \
    if (a->member)                                                                                 \
        append(text, ":%s", word);
    TGI_ATTENTION_FLAGS(WRITE_FLAG)
#undef WRITE_FLAG
    if (a->page_rows > 0)
        append(text, ":pages=%lldx%lldx%lld", (ll)a->page_rows, (ll)a->page_count,
               (ll)a->pages_stride);
}

static tg_status write_whole(const tg_attention *attention, char *text)
{
    tg_attention a = *attention, standard;
    tg_status status = tg_init_attention(&standard, sizeof standard, a.type, a.batch_count,
                                         a.head_count, a.kv_head_count, a.m, a.n, a.head_size);
    if (status)
        return status;
    snprintf(text, TEXT_BYTES, "%lld,%lld,%lld,%lld,%lld,%lld", (ll)a.batch_count, (ll)a.head_count,
             (ll)a.kv_head_count, (ll)a.m, (ll)a.n, (ll)a.head_size);
    write_words(&a, &standard, text);
    standard = a;
    tgi_attention_lay_out_all(&standard);
    for (int i = 0; i < TGI_ATTENTION_TENSOR_COUNT; i++) {
        for (int s = 0; s < 4; s++) {
            const int64_t stride = *tgi_attention_find_stride(&a, i, s);
            if (tgi_attention_get(&a, (tgi_attention_tensor_id)i).is_used &&
                stride != *tgi_attention_find_stride(&standard, i, s))
                append(text, ":%c%c=%lld", TGI_ATTENTION_TENSOR_LETTERS[i],
                       TGI_ATTENTION_STRIDE_LETTERS[s], (ll)stride);
        }
    }
    return TG_STATUS_OK;
}

/* Copies a text into the caller's buffer. */
static tg_status copy_text(const char *whole, char *text, size_t text_bytes)
{
    const size_t needed_bytes = strlen(whole) + 1;
    if (text_bytes < needed_bytes)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "text_bytes = %zu is less than the %zu that this attention takes; "
                               "pass a buffer of 1024 bytes",
                               text_bytes, needed_bytes);
    memcpy(text, whole, needed_bytes);
    return TG_STATUS_OK;
}

tg_status tg_format_attention(const tg_attention *attention, char *text, size_t text_bytes)
{
    tg_attention copy;
    tgi_saved_locale saved;
    if (!text || !attention)
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass its address",
                               text ? "attention" : "text");
    attention = tgi_struct_read(&tgi_struct_attention, attention, &copy);
    if (!attention)
        return TG_STATUS_INVALID_ARGUMENT;
    tg_status status = tgi_attention_validate(attention);
    if (status || (status = tgi_problem_text_enter_c_locale(&saved)))
        return status;
    char *whole = tgi_alloc_object(TEXT_BYTES);
    status = whole ? write_whole(attention, whole) : TG_STATUS_OUT_OF_MEMORY;
    tgi_problem_text_leave_c_locale(&saved);
    if (!status)
        status = copy_text(whole, text, text_bytes);
    tgi_alloc_free(whole);
    return status;
}
