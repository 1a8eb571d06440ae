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

enum { MATRIX_A, MATRIX_B, MATRIX_C, MATRIX_D, MATRIX_COUNT };
enum { STRIDE_LEADING, STRIDE_ROW, STRIDE_COL, STRIDE_BATCH, STRIDE_COUNT };

/* The scales of A, B and D come one after the other. */
enum { NAMED_B_TYPE, NAMED_D_TYPE, NAMED_BIAS, NAMED_ACTIVATION, NAMED_PRECISION, NAMED_SCALES };
#define NAMED_COUNT (NAMED_SCALES + 3)

/* Bits of what has been given: these, then the named values, then the strides matrix by matrix. */
enum { GIVEN_LAYOUT, GIVEN_TYPE, GIVEN_DCOL, GIVEN_ORDER, GIVEN_BATCH, GIVEN_ALPHA, GIVEN_BETA };
#define GIVEN_NAMED (GIVEN_BETA + 1)
#define GIVEN_STRIDES (GIVEN_NAMED + NAMED_COUNT)

static const char stride_keys[STRIDE_COUNT][3] = {"ld", "rs", "cs", "bs"};

typedef struct reading {
    tg_problem problem;
    int64_t m, n, k;
    tg_type type;
    int named[NAMED_COUNT]; /* values of their enums */
    int is_d_column_major;
    int64_t strides[MATRIX_COUNT][STRIDE_COUNT];
    uint64_t given;
} reading;

/* --------------------------------------------------------------------------------- names -- */

/* NULL for a value outside the enum. */
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

static const struct {
    const char *key;
    name_of *name;
} named_parts[NAMED_COUNT] = {
    {"b", type_name},         {"d", type_name},   {"bias", bias_name}, {"act", activation_name},
    {"prec", precision_name}, {"sa", scale_name}, {"sb", scale_name},  {"sd", scale_name}};

/* The value of that name; -1 where there is none. */
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

static tg_status mark_given(reading *r, int bit, const char *part)
{
    if (r->given >> bit & 1u) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "part \"%s\" gives what an earlier part has given; keep one of them",
                               part);
    }
    r->given |= UINT64_C(1) << bit;
    return TG_STATUS_OK;
}

static int is_given(const reading *r, int matrix, int stride)
{
    return r->given >> (GIVEN_STRIDES + matrix * STRIDE_COUNT + stride) & 1u;
}

/* Digits, after a minus where it is allowed, up to *end. Returns 0 if there are none or if they do
 * not fit in int64_t. */
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

static tg_status read_sizes(reading *r, const char *part)
{
    int64_t *sizes[] = {&r->m, &r->n, &r->k};
    const char *end = part;
    for (int i = 0; i < 3; i++) {
        const char *start = end;
        if (!read_int64(start, 0, sizes[i], &end) || *end != (i < 2 ? 'x' : '\0')) {
            return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                                   "part \"%s\": %c is not a whole number from 0 to %lld; the text "
                                   "begins with MxNxK, such as 512x512x64",
                                   part, "mnk"[i], (ll)INT64_MAX);
        }
        end++;
    }
    return TG_STATUS_OK;
}

/* A part without '='. */
static tg_status read_word(reading *r, const char *part)
{
    int type = find_name(type_name, part);
    if (type >= 0) {
        r->type = (tg_type)type;
        return mark_given(r, GIVEN_TYPE, part);
    }
    if (strcmp(part, "dcol") == 0) {
        r->is_d_column_major = 1;
        return mark_given(r, GIVEN_DCOL, part);
    }
    if (strcmp(part, "batch_invariant") == 0) {
        r->problem.is_batch_invariant = 1;
        return mark_given(r, GIVEN_ORDER, part);
    }
    if (strlen(part) == 2 && strspn(part, "nt") == 2) {
        r->problem.op_a = part[0] == 't' ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        r->problem.op_b = part[1] == 't' ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
        return mark_given(r, GIVEN_LAYOUT, part);
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\" is unknown; pass a layout (nn, nt, tn, tt), a type (fp32, "
                           "fp64, bf16, fp16, fp8_e4m3, fp8_e5m2), dcol, batch_invariant or "
                           "key=value",
                           part);
}

/* A part key=value; `key` ends where the '=' was. */
static tg_status read_keyed(reading *r, const char *part, const char *key, const char *text)
{
    tg_status status;
    for (int i = 0; i < NAMED_COUNT; i++) {
        if (strcmp(named_parts[i].key, key) != 0)
            continue;
        status = mark_given(r, GIVEN_NAMED + i, part);
        return status ? status : read_name(part, text, named_parts[i].name, &r->named[i]);
    }
    if (strcmp(key, "batch") == 0) {
        status = mark_given(r, GIVEN_BATCH, part);
        return status ? status : read_whole(part, text, 0, &r->problem.batch_count);
    }
    if (strcmp(key, "alpha") == 0) {
        status = mark_given(r, GIVEN_ALPHA, part);
        return status ? status : read_number(part, text, &r->problem.alpha);
    }
    if (strcmp(key, "beta") == 0) {
        status = mark_given(r, GIVEN_BETA, part);
        return status ? status : read_number(part, text, &r->problem.beta);
    }
    for (int i = 0; i < MATRIX_COUNT * STRIDE_COUNT; i++) {
        int matrix = i / STRIDE_COUNT, stride = i % STRIDE_COUNT;
        if (strncmp(key, stride_keys[stride], 2) != 0 || key[2] != "abcd"[matrix] || key[3])
            continue;
        status = mark_given(r, GIVEN_STRIDES + i, part);
        return status
                   ? status
                   : read_whole(part, text, stride != STRIDE_LEADING, &r->strides[matrix][stride]);
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "part \"%s\": key \"%s\" is unknown; pass b, d, batch, alpha, beta, "
                           "bias, act, prec, sa, sb, sd, or ld, rs, cs, bs before a, b, c, d",
                           part, key);
}

/* Reads the part from `start` up to `end`. */
static tg_status read_part(reading *r, const char *start, const char *end, int is_first)
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

/* ------------------------------------------------------------------------------- strides -- */

/* A leading dimension is the row stride, or the column stride of a column-major matrix, whose rows
 * (columns) then hold `length` contiguous elements, the size named `size`. */
static tg_status fill_leading(const reading *r, int index, int is_column_major, int64_t length,
                              char size, tg_matrix *matrix)
{
    int64_t leading = r->strides[index][STRIDE_LEADING];
    char name = "abcd"[index];
    for (int stride = STRIDE_ROW; stride <= STRIDE_COL; stride++) {
        if (is_given(r, index, stride)) {
            return tgi_status_fail(
                TG_STATUS_INVALID_ARGUMENT,
                "ld%c = %lld and %s%c = %lld both give a stride; pass either ld%c "
                "or rs%c and cs%c",
                name, (ll)leading, stride_keys[stride], name, (ll)r->strides[index][stride], name,
                name, name);
        }
    }
    if (leading < length) {
        const char *key = stride_keys[is_column_major ? STRIDE_COL : STRIDE_ROW];
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                               "ld%c = %lld is less than %c = %lld; pass ld%c >= %lld, or %s%c = "
                               "%lld where elements are to coincide",
                               name, (ll)leading, size, (ll)length, name, (ll)length, key, name,
                               (ll)leading);
    }
    matrix->row_stride = is_column_major ? 1 : leading;
    matrix->col_stride = is_column_major ? leading : 1;
    return TG_STATUS_OK;
}

/* Puts the strides given into `matrix`, whose own are the default. `d` as in get_batch_stride. */
static tg_status fill_strides(const reading *r, int index, int is_column_major, char size,
                              const tg_matrix *d, tg_matrix *matrix)
{
    if (is_given(r, index, STRIDE_LEADING)) {
        int64_t length = is_column_major ? matrix->row_count : matrix->col_count;
        tg_status status = fill_leading(r, index, is_column_major, length, size, matrix);
        if (status)
            return status;
    }
    if (is_given(r, index, STRIDE_ROW))
        matrix->row_stride = r->strides[index][STRIDE_ROW];
    if (is_given(r, index, STRIDE_COL))
        matrix->col_stride = r->strides[index][STRIDE_COL];
    if (is_given(r, index, STRIDE_BATCH)) {
        matrix->batch_stride = r->strides[index][STRIDE_BATCH];
        return TG_STATUS_OK;
    }
    if (tgi_problem_text_get_batch_stride(matrix, r->problem.batch_count, d,
                                          &matrix->batch_stride)) {
        return TG_STATUS_OK;
    }
    return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT,
                           "%c of %lld x %lld with strides %lld, %lld has more elements than %lld; "
                           "pass smaller sizes, or its batch stride as bs%c",
                           "ABCD"[index], (ll)matrix -> row_count, (ll)matrix -> col_count,
                           (ll)matrix -> row_stride, (ll)matrix -> col_stride, (ll)INT64_MAX,
                           "abcd"[index]);
}

/* Of a matrix whose type may have been given; else A's. */
static tg_type get_type(const reading *r, int named)
{
    return r->given >> (GIVEN_NAMED + named) & 1u ? (tg_type)r->named[named] : r->type;
}

static tg_status fill_matrices(reading *r)
{
    tg_problem *p = &r->problem;
    tg_type b_type = get_type(r, NAMED_B_TYPE), d_type = get_type(r, NAMED_D_TYPE);
    int is_a_transposed = p->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = p->op_b == TG_OPERATION_TRANSPOSE;
    int is_d_column_major = r->is_d_column_major;
    tg_status status;
    p->a = is_a_transposed ? tg_make_matrix(r->type, NULL, r->k, r->m)
                           : tg_make_matrix(r->type, NULL, r->m, r->k);
    p->b = is_b_transposed ? tg_make_matrix(b_type, NULL, r->n, r->k)
                           : tg_make_matrix(b_type, NULL, r->k, r->n);
    p->d = tg_make_matrix(d_type, NULL, r->m, r->n);
    if (is_d_column_major) {
        p->d.row_stride = 1;
        p->d.col_stride = r->m;
    }
    char d_size = is_d_column_major ? 'm' : 'n';
    if ((status = fill_strides(r, MATRIX_A, 0, is_a_transposed ? 'm' : 'k', NULL, &p->a)) ||
        (status = fill_strides(r, MATRIX_B, 0, is_b_transposed ? 'k' : 'n', NULL, &p->b)) ||
        (status = fill_strides(r, MATRIX_D, is_d_column_major, d_size, NULL, &p->d))) {
        return status;
    }
    p->c = p->d;
    return fill_strides(r, MATRIX_C, is_d_column_major, d_size, &p->d, &p->c);
}

/* ---------------------------------------------------------------------------------- whole -- */

static tg_status read_parts(reading *r, const char *text)
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
    reading r;
    memset(&r, 0, sizeof r);
    r.problem = tg_make_problem(r.problem.a, r.problem.b, r.problem.d);
    tgi_saved_locale saved;
    tg_status status = tgi_problem_text_enter_c_locale(&saved);
    if (status)
        return status;
    status = read_parts(&r, text);
    tgi_problem_text_leave_c_locale(&saved);
    if (status || (status = fill_matrices(&r)))
        return status;
    r.problem.bias = (tg_bias)r.named[NAMED_BIAS];
    r.problem.activation = (tg_activation)r.named[NAMED_ACTIVATION];
    r.problem.precision = (tg_precision)r.named[NAMED_PRECISION];
    r.problem.a_scale = (tg_scale)r.named[NAMED_SCALES];
    r.problem.b_scale = (tg_scale)r.named[NAMED_SCALES + 1];
    r.problem.d_scale = (tg_scale)r.named[NAMED_SCALES + 2];
    return tgi_struct_write(&tgi_struct_problem, &r.problem, problem, struct_bytes);
}
