#include "cuda/runtime/ptx_text.h"

#include <ctype.h>
#include <string.h>

#define TYPE_COUNT 32 /* types of registers, "%r", "%rd" and others, in a text */
#define TYPE_LETTERS 8
#define FAR 1000      /* a number so far from the one it is counted from is written as it is */
#define LABEL "L__BB" /* "$L__BB3_17" is label 17 of function 3 */

typedef struct register_type {
    char letters[TYPE_LETTERS]; /* not ended by a zero byte */
    int64_t last;               /* the register that others are counted from */
} register_type;

typedef struct writer {
    register_type types[TYPE_COUNT];
    register_type *first; /* type of the first register of a line; NULL before it */
    int64_t first_number;
    int64_t last_function, last_label; /* numbers of the last label that began a line */
    char *written;                     /* may be NULL */
    int64_t bytes;
} writer;

static void put(writer *w, const char *text, int64_t bytes)
{
    if (w->written)
        memcpy(w->written + w->bytes, text, (size_t)bytes);
    w->bytes += bytes;
}

static void put_number(writer *w, int64_t number)
{
    char digits[24];
    int left = sizeof digits;
    do
        digits[--left] = (char)('0' + number % 10);
    while ((number /= 10) > 0);
    put(w, digits + left, (int64_t)sizeof digits - left);
}

/* Returns the type of these letters, which is new if no register had it, or NULL if there is no
 * room. */
static register_type *find_type(writer *w, const char *letters, int64_t count)
{
    char name[TYPE_LETTERS] = {0};
    if (count == 0 || count > TYPE_LETTERS)
        return NULL;
    memcpy(name, letters, (size_t)count);
    for (register_type *type = w->types; type < w->types + TYPE_COUNT; type++) {
        if (type->letters[0] == '\0')
            memcpy(type->letters, name, sizeof name);
        if (memcmp(type->letters, name, sizeof name) == 0)
            return type;
    }
    return NULL;
}

/* Reads digits from *at on and moves *at behind them. */
static int64_t read_digits(const char *text, int64_t bytes, int64_t *at)
{
    int64_t number = 0;
    for (; *at < bytes && isdigit((unsigned char)text[*at]); ++*at)
        number = 10 * number + (text[*at] - '0');
    return number;
}

/* Writes the number that begins at *at, digits or, in this form, a sign and digits, in the other
 * form, counted from `last`. Moves *at behind it and returns it. */
static int64_t put_other_form(writer *w, const char *text, int64_t bytes, int64_t *at, int64_t last,
                              int is_reverse)
{
    const char sign = text[*at];
    const int has_sign = is_reverse && !isdigit((unsigned char)sign);
    *at += has_sign;
    const int64_t read = read_digits(text, bytes, at);
    const int64_t number = !has_sign ? read : sign == '-' ? last - read : last + read;
    const int64_t from_last = number - last;
    if (is_reverse || from_last <= -FAR || from_last >= FAR) {
        put_number(w, number);
    } else {
        put(w, from_last < 0 ? "-" : "+", 1);
        put_number(w, from_last < 0 ? -from_last : from_last);
    }
    return number;
}

/* Returns whether a number begins at `at`, in this form if is_reverse is 1. */
static int is_number(const char *text, int64_t bytes, int64_t at, int is_reverse)
{
    if (is_reverse && at < bytes && (text[at] == '+' || text[at] == '-'))
        at++;
    return at < bytes && isdigit((unsigned char)text[at]);
}

/* Writes the register, if it is one, whose type's letters begin at `begin`. Returns where what is
 * not yet written begins. */
static int64_t put_register(writer *w, const char *text, int64_t bytes, int64_t begin,
                            int is_reverse)
{
    int64_t at = begin;
    while (at < bytes && islower((unsigned char)text[at]))
        at++;
    register_type *type = find_type(w, text + begin, at - begin);
    put(w, text + begin, at - begin);
    if (type && at < bytes && text[at] == '<') /* "%r<90>" declares the registers of a kernel */
        type->last = 0;
    if (!type || !is_number(text, bytes, at, is_reverse))
        return at;
    const int64_t number = put_other_form(w, text, bytes, &at, type->last, is_reverse);
    if (!w->first) {
        w->first = type;
        w->first_number = number;
    }
    return at;
}

/* Writes the label, if it is one, whose letters begin at `begin`. Returns where what is not yet
 * written begins. */
static int64_t put_label(writer *w, const char *text, int64_t bytes, int64_t begin, int is_reverse)
{
    const int64_t letters = (int64_t)strlen(LABEL);
    int64_t at = begin + letters;
    if (at > bytes || memcmp(text + begin, LABEL, (size_t)letters) != 0 ||
        !is_number(text, bytes, at, is_reverse))
        return begin;
    put(w, LABEL, letters);
    const int64_t function = put_other_form(w, text, bytes, &at, w->last_function, is_reverse);
    if (at == bytes || text[at] != '_' || !is_number(text, bytes, at + 1, is_reverse))
        return at;
    put(w, "_", 1);
    at++;
    const int64_t label = put_other_form(w, text, bytes, &at, w->last_label, is_reverse);
    if (begin == 1 || text[begin - 2] == '\n') {
        w->last_function = function;
        w->last_label = label;
    }
    return at;
}

int64_t tgi_ptx_write(const char *text, int64_t bytes, int is_reverse, char *written)
{
    writer w = {.written = written};
    for (int64_t at = 0; at < bytes;) {
        const char c = text[at++];
        put(&w, &c, 1);
        if (c == '%')
            at = put_register(&w, text, bytes, at, is_reverse);
        if (c == '$')
            at = put_label(&w, text, bytes, at, is_reverse);
        if (c == '\n' && w.first) {
            w.first->last = w.first_number;
            w.first = NULL;
        }
    }
    return w.bytes;
}
