/* Reads a problem from text: parts are collected one by one, then strides are filled in. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem_text.h"
#include "core/status.h"
#include "core/structs.h"

typedef long long ll; /* for printf */

/* The longest part is three counts of 19 digits and two x. */
#define PART_BYTES 64

/* --------------------------------------------------------------------------------- names -- */

/* Returns the name of an enum's value, NULL for a value outside the enum. */
typedef const char *name_of(int value);

#define DEFINE_NAME(kind)                                                                          \
    static const char *kind##_name(int value)                                                      \
    {                                                                                              \
        return tg_get_##kind##_name((tg_##kind)value);                                             \
    }

DEFINE_NAME(type)
DEFINE_NAME(bias)
DEFINE_NAME(activation)
DEFINE_NAME(precision)
DEFINE_NAME(scale)

#define KIND_NAME_MATRIX NULL
#define KIND_NAME_BIAS bias_name
#define KIND_NAME_SCALE scale_name

/* The name of a matrix is NULL: it has no kind. */
static const struct {
    const char *key;
    name_of *name;
} named_parts[TGI_TEXT_NAMED_COUNT] = {
    {"b", type_name},
    {"d", type_name},
    {"act", activation_name},
    {"prec", precision_name},
#define TGI_OPERAND(id, title, form, role, rows, cols, type, partner, key, ...)                    \
    {key, KIND_NAME_##form},
#include "core/operands.def"
#undef TGI_OPERAND
};

/* Returns the value of that name, -1 if there is none. */
static int find_name(name_of *name, const char *text)
{
    for (int value = 0; name(value); value++) {
        if (strcmp(name(value), text) == 0)
            return value;
    }
    return -1;
}

static tg_status read_name(const char *part, const char *text, name_of *name, int *value)
{
    char names[128] = "";
    *value = find_name(name, text);
    if (*value >= 0)
        return TG_STATUS_OK;
    for (int i = 0; name(i); i++) {
        size_t used = strlen(names);
        snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", name(i));
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\": \"%s\" is unknown; pass one of %s", part, text, names);
}

/* ------------------------------------------------------------------------------- reading -- */

static tg_status mark_given(tgi_text_reading *r, int bit, const char *part)
{
    if (r->given >> bit & 1u) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "part \"%s\" repeats an earlier part; keep one of them", part);
    }
    r->given |= UINT64_C(1) << bit;
    return TG_STATUS_OK;
}

/* Reads digits, after a minus if it is allowed, up to *end. Returns 0 if there are none or if they
 * do not fit in int64_t. */
static int read_int64(const char *text, int allows_minus, int64_t *value, const char **end)
{
    int is_negative = allows_minus && *text == '-';
    text += is_negative;
    *value = 0;
    if (*text < '0' || *text > '9')
        return 0;
    for (; *text >= '0' && *text <= '9'; text++) {
        int digit = *text - '0';
        if (__builtin_mul_overflow(*value, (int64_t)10, value) ||
            __builtin_add_overflow(*value, (int64_t)(is_negative ? -digit : digit), value)) {
            return 0;
        }
    }
    *end = text;
    return 1;
}

static tg_status read_whole(const char *part, const char *text, int allows_minus, int64_t *value)
{
    const char *end;
    if (read_int64(text, allows_minus, value, &end) && !*end)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\": \"%s\" is not a whole number from %s to %lld; pass one in "
                           "decimal digits",
                           part, text, allows_minus ? "-9223372036854775808" : "0", (ll)INT64_MAX);
}

static tg_status read_number(const char *part, const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    int is_number = end != text && !*end && !strchr(" \t\n\v\f\r", *text);
    int is_too_large = isinf(*value) && !strpbrk(text, "iI");
    if (is_number && !is_too_large)
        return TG_STATUS_OK;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\": \"%s\" is not a number of magnitude up to 1.797e308; pass "
                           "one such as 0.5 or -1e-3",
                           part, text);
}

static tg_status read_sizes(tgi_text_reading *r, const char *part)
{
    int64_t *sizes[] = {&r->m, &r->n, &r->k};
    const char *end = part;
    for (int i = 0; i < 3; i++) {
        const char *start = end;
        if (i > 0 && end[-1] == '\0')
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "part \"%s\" has no %c; the text begins with MxNxK, such as "
                                   "512x512x64",
                                   part, "mnk"[i]);
        if (!read_int64(start, 0, sizes[i], &end) || (*end && (i == 2 || *end != 'x'))) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "part \"%s\": %c is not a whole number from 0 to %lld; the text "
                                   "begins with MxNxK, such as 512x512x64",
                                   part, "mnk"[i], (ll)INT64_MAX);
        }
        end++;
    }
    return TG_STATUS_OK;
}

/* Reads a part without '='. */
static tg_status read_word(tgi_text_reading *r, const char *part)
{
    int type = find_name(type_name, part);
    if (type >= 0) {
        r->type = (tg_type)type;
        return mark_given(r, TGI_TEXT_GIVEN_TYPE, part);
    }
    if (strcmp(part, "dcol") == 0) {
        r->is_d_column_major = 1;
        return mark_given(r, TGI_TEXT_GIVEN_DCOL, part);
    }
    if (strcmp(part, "batch_invariant") == 0) {
        r->problem.is_batch_invariant = 1;
        return mark_given(r, TGI_TEXT_GIVEN_ORDER, part);
    }
    if (strlen(part) == 2 && strspn(part, "nt") == 2) {
        r->problem.op_a = part[0] == 't' ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        r->problem.op_b = part[1] == 't' ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        return mark_given(r, TGI_TEXT_GIVEN_LAYOUT, part);
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\" is unknown; pass a layout (nn, nt, tn, tt), a type (fp32, "
                           "fp64, bf16, fp16, fp8_e4m3, fp8_e5m2), dcol, batch_invariant or "
                           "key=value",
                           part);
}

/* Reads the part if it is a stride of a matrix, and sets *is_read. */
static tg_status read_stride(tgi_text_reading *r, const char *part, const char *key,
                             const char *text, int *is_read)
{
    for (int i = 0; i < TGI_OPERAND_COUNT * TGI_TEXT_STRIDE_COUNT; i++) {
        const int id = i / TGI_TEXT_STRIDE_COUNT, stride = i % TGI_TEXT_STRIDE_COUNT;
        const tgi_operand_row *row = tgi_operands_get(id);
        if (row->form != TGI_FORM_MATRIX || strncmp(key, tgi_text_stride_keys[stride], 2) != 0 ||
            strcmp(key + 2, row->key) != 0)
            continue;
        *is_read = 1;
        tg_status status = mark_given(r, TGI_TEXT_GIVEN_STRIDES + i, part);
        return status ? status
                      : read_whole(part, text, stride != TGI_TEXT_STRIDE_LEADING,
                                   &r->strides[id][stride]);
    }
    *is_read = 0;
    return TG_STATUS_OK;
}

#define LIST_KEY_MATRIX(key)
#define LIST_KEY_BIAS(key) key ", "
#define LIST_KEY_SCALE(key) key ", "
#define LIST_MATRIX_MATRIX(key) key ", "
#define LIST_MATRIX_BIAS(key)
#define LIST_MATRIX_SCALE(key)

/* The keys that a text may have, with ", " after each. */
static const char keys[] = "b, d, batch, "
#define TGI_FACTOR(name, value) #name ", "
#include "core/operands.def"
#undef TGI_FACTOR
                           "act, prec, "
#define TGI_OPERAND(id, title, form, role, rows, cols, type, partner, key, ...) LIST_KEY_##form(key)
#include "core/operands.def"
#undef TGI_OPERAND
                           "or ld, rs, cs, bs before "
#define TGI_OPERAND(id, title, form, role, rows, cols, type, partner, key, ...)                    \
    LIST_MATRIX_##form(key)
#include "core/operands.def"
#undef TGI_OPERAND
    ;

/* Reads a part key=value; `key` ends where the '=' was. */
static tg_status read_keyed(tgi_text_reading *r, const char *part, const char *key,
                            const char *text)
{
    tg_status status;
    int is_stride;
    for (int i = 0; i < TGI_TEXT_NAMED_COUNT; i++) {
        if (!named_parts[i].name || strcmp(named_parts[i].key, key) != 0)
            continue;
        status = mark_given(r, TGI_TEXT_GIVEN_NAMED + i, part);
        return status ? status : read_name(part, text, named_parts[i].name, &r->named[i]);
    }
    if (strcmp(key, "batch") == 0) {
        status = mark_given(r, TGI_TEXT_GIVEN_BATCH, part);
        return status ? status : read_whole(part, text, 0, &r->problem.batch_count);
    }
#define TGI_FACTOR(factor, value)                                                                  \
    if (strcmp(key, #factor) == 0) {                                                               \
        status = mark_given(r, TGI_TEXT_GIVEN_##factor, part);                                     \
        return status ? status : read_number(part, text, &r->problem.factor);                      \
    }
#include "core/operands.def"
#undef TGI_FACTOR
    status = read_stride(r, part, key, text, &is_stride);
    if (is_stride)
        return status;
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\": key \"%s\" is unknown; pass %.*s", part, key,
                           (int)(sizeof keys - sizeof ", "), keys);
}

/* Reads the part from `start` up to `end`. */
static tg_status read_part(tgi_text_reading *r, const char *start, const char *end, int is_first)
{
    char part[PART_BYTES], key[PART_BYTES];
    size_t length = (size_t)(end - start);
    if (length == 0) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "problem \"%.80s\" has an empty part; pass MxNxK, then parts with one "
            "colon before each",
            is_first ? start : start - 1);
    }
    if (length >= sizeof part) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "part \"%.40s...\" has %zu bytes, the longest may have %d; shorten it", start, length,
            PART_BYTES - 1);
    }
    memcpy(part, start, length);
    part[length] = '\0';
    if (is_first)
        return read_sizes(r, part);
    memcpy(key, part, length + 1);
    char *equals = strchr(key, '=');
    if (!equals)
        return read_word(r, part);
    *equals = '\0';
    return read_keyed(r, part, key, equals + 1);
}

/* ---------------------------------------------------------------------------------- whole -- */

static tg_status read_parts(tgi_text_reading *r, const char *text)
{
    for (const char *start = text;; start++) {
        const char *end = start + strcspn(start, ":");
        tg_status status = read_part(r, start, end, start == text);
        if (status || !*end)
            return status;
        start = end;
    }
}

tg_status tg_parse_problem(const char *text, tg_problem *problem, size_t struct_bytes)
{
    if (!text || !problem) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass %s",
                               text ? "problem" : "text",
                               text ? "the problem to fill" : "MxNxK and its parts");
    }
    tgi_text_reading r;
    memset(&r, 0, sizeof r);
    r.problem = tg_make_problem(r.problem.a, r.problem.b, r.problem.d);
    tgi_saved_locale saved;
    tg_status status = tgi_problem_text_enter_c_locale(&saved);
    if (status)
        return status;
    status = read_parts(&r, text);
    tgi_problem_text_leave_c_locale(&saved);
    if (status || (status = tgi_text_fill_matrices(&r)))
        return status;
    r.problem.activation = (tg_activation)r.named[TGI_TEXT_NAMED_ACTIVATION];
    r.problem.precision = (tg_precision)r.named[TGI_TEXT_NAMED_PRECISION];
    for (int id = 0; id < TGI_OPERAND_COUNT; id++)
        tgi_operands_set_kind(&r.problem, id, r.named[TGI_TEXT_NAMED_KINDS + id]);
    return tgi_struct_write(&tgi_struct_problem, &r.problem, problem, struct_bytes);
}
