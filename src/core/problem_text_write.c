/* Writes a problem as the shortest text that problem_text_read.c reads back to the same problem. */
#include <fenv.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/problem.h"
#include "core/problem_text.h"
#include "core/status.h"
#include "core/structs.h"
#include "tilegemm_lab.h"

typedef long long ll; /* for printf */

/* Bytes of a stride at its longest, ":rsa=-9223372036854775808". */
#define STRIDE_BYTES 25

/* At least the sum of all parts at their longest: sizes 59, words and names 126, batch 26, factors
 * 32 each, three strides of each matrix, NUL. */
enum {
    TEXT_BYTES = 59 + 126 + 26 + 1
#define TGI_FACTOR(name, value) +32
#include "core/operands.def"
#undef TGI_FACTOR
#define TGI_OPERAND(name, title, form, ...)                                                        \
    +(TGI_FORM_##form == TGI_FORM_MATRIX ? 3 * STRIDE_BYTES : 0)
#include "core/operands.def"
#undef TGI_OPERAND
};

/* Above two strides of each matrix, dcol and NUL. */
#define PARTS_BYTES (2 * STRIDE_BYTES * TGI_OPERAND_COUNT + 6)

/* The longest number is "-2.2250738585072014e-308" with its NUL. */
#define NUMBER_BYTES 32

int tgi_problem_text_get_batch_stride(const tg_matrix *matrix, int64_t batch_count,
                                      const tg_matrix *d, int64_t *stride)
{
    int64_t rows, cols;
    *stride = 0;
    if (d && matrix->row_stride == d->row_stride && matrix->col_stride == d->col_stride) {
        *stride = d->batch_stride;
        return 1;
    }
    if (batch_count == 1)
        return 1;
    if (__builtin_mul_overflow(matrix->row_count, matrix->row_stride, &rows) ||
        __builtin_mul_overflow(matrix->col_count, matrix->col_stride, &cols) || rows == INT64_MIN ||
        cols == INT64_MIN) {
        return 0;
    }
    rows = rows < 0 ? -rows : rows;
    cols = cols < 0 ? -cols : cols;
    *stride = rows > cols ? rows : cols;
    return 1;
}

tg_status tgi_problem_text_enter_c_locale(tgi_saved_locale *saved)
{
    saved->previous = (locale_t)0;
    saved->own = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    if (saved->own == (locale_t)0) {
        return tgi_status_fail(TG_STATUS_OUT_OF_MEMORY,
                               "no memory for the locale \"C\", in which numbers are read and "
                               "written; free some");
    }
    saved->previous = uselocale(saved->own);
    saved->rounding = fegetround();
    fesetround(FE_TONEAREST);
    return TG_STATUS_OK;
}

void tgi_problem_text_leave_c_locale(const tgi_saved_locale *saved)
{
    fesetround(saved->rounding);
    uselocale(saved->previous);
    freelocale(saved->own);
}

/* Appends to `text`, which holds `capacity` bytes; they suffice for every call of this file. */
static void append(char *text, size_t capacity, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static void append(char *text, size_t capacity, const char *format, ...)
{
    size_t used = strlen(text);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text + used, capacity - used, format, arguments);
    va_end(arguments);
}

/* Fills `number` with the shortest text of %g that strtod reads back as the same number. */
static void write_number(double value, char number[NUMBER_BYTES])
{
    snprintf(number, NUMBER_BYTES, "%.17g", value);
    for (int digits = 16; digits >= 1; digits--) {
        char attempt[NUMBER_BYTES];
        int length = snprintf(attempt, sizeof attempt, "%.*g", digits, value);
        if (length < (int)strlen(number) && strtod(attempt, NULL) == value)
            memcpy(number, attempt, sizeof attempt);
    }
}

/* Appends the row and column stride of a matrix if they differ from the given defaults: as a
 * leading dimension or one by one, whichever is shorter. */
static void append_strides(char *text, const char *name, const tg_matrix *matrix,
                           int64_t row_default, int64_t col_default, int is_column_major)
{
    int64_t row = matrix->row_stride, col = matrix->col_stride;
    int64_t unit = is_column_major ? row : col, leading = is_column_major ? col : row;
    int64_t length = is_column_major ? matrix->row_count : matrix->col_count;
    char singly[PARTS_BYTES] = "", together[PARTS_BYTES] = "";
    if (row != row_default)
        append(singly, sizeof singly, ":rs%s=%lld", name, (ll)row);
    if (col != col_default)
        append(singly, sizeof singly, ":cs%s=%lld", name, (ll)col);
    append(together, sizeof together, ":ld%s=%lld", name, (ll)leading);
    int is_together = unit == 1 && leading >= length && strlen(together) <= strlen(singly);
    append(text, PARTS_BYTES, "%s", is_together ? together : singly);
}

/* Appends the strides of D, and of the epilogue's matrices that are used, in the shorter of the two
 * ways to say them. */
static void append_output_strides(char *text, const tg_problem *p)
{
    char parts[2][PARTS_BYTES] = {"", ":dcol"};
    int64_t m = p->d.row_count, n = p->d.col_count;
    for (int is_column_major = 0; is_column_major <= 1; is_column_major++) {
        char *part = parts[is_column_major];
        append_strides(part, "d", &p->d, is_column_major ? 1 : n, is_column_major ? m : 1,
                       is_column_major);
        for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
            if (tgi_operands_is_matrix_used(p, id))
                append_strides(part, tgi_operands_get(id)->key, tgi_operands_get_matrix(p, id),
                               p->d.row_stride, p->d.col_stride, is_column_major);
        }
    }
    append(text, TEXT_BYTES, "%s", parts[strlen(parts[1]) < strlen(parts[0])]);
}

static void append_batch_stride(char *text, const char *name, const tg_matrix *matrix,
                                int64_t batch_count, const tg_matrix *d)
{
    int64_t stride;
    if (!tgi_problem_text_get_batch_stride(matrix, batch_count, d, &stride) ||
        stride != matrix->batch_stride) {
        append(text, TEXT_BYTES, ":bs%s=%lld", name, (ll)matrix->batch_stride);
    }
}

static void append_input_strides(char *text, const char *name, const tg_matrix *matrix)
{
    char parts[PARTS_BYTES] = "";
    append_strides(parts, name, matrix, matrix->col_count, 1, 0);
    append(text, TEXT_BYTES, "%s", parts);
}

static void append_factors(char *text, const tg_problem *p)
{
    char number[NUMBER_BYTES];
#define TGI_FACTOR(name, value)                                                                    \
    if (p->name != value) {                                                                        \
        write_number(p->name, number);                                                             \
        append(text, TEXT_BYTES, ":" #name "=%s", number);                                         \
    }
#include "core/operands.def"
#undef TGI_FACTOR
}

/* Appends the kinds of the vectors of one form. */
static void append_kinds(char *text, const tg_problem *p, tgi_operand_form form)
{
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tgi_operand_row *row = tgi_operands_get(id);
        const int kind = tgi_operands_get_kind(p, id);
        if (row->form == form && kind != 0)
            append(text, TEXT_BYTES, ":%s=%s", row->key,
                   form == TGI_FORM_BIAS ? tg_get_bias_name((tg_bias)kind)
                                         : tg_get_scale_name((tg_scale)kind));
    }
}

/* Writes all of `p`, which is legal. */
static void write_problem(const tg_problem *p, char text[TEXT_BYTES])
{
    int is_a_transposed = p->op_a == TG_OPERATION_TRANSPOSE;
    int is_b_transposed = p->op_b == TG_OPERATION_TRANSPOSE;
    int64_t k = is_a_transposed ? p->a.row_count : p->a.col_count;
    text[0] = '\0';
    append(text, TEXT_BYTES, "%lldx%lldx%lld", (ll)p->d.row_count, (ll)p->d.col_count, (ll)k);
    if (is_a_transposed || is_b_transposed) {
        append(text, TEXT_BYTES, ":%c%c", is_a_transposed ? 't' : 'n', is_b_transposed ? 't' : 'n');
    }
    if (p->a.type != TG_TYPE_FP32)
        append(text, TEXT_BYTES, ":%s", tg_get_type_name(p->a.type));
    if (p->b.type != p->a.type)
        append(text, TEXT_BYTES, ":b=%s", tg_get_type_name(p->b.type));
    if (p->d.type != p->a.type)
        append(text, TEXT_BYTES, ":d=%s", tg_get_type_name(p->d.type));
    if (p->batch_count != 1)
        append(text, TEXT_BYTES, ":batch=%lld", (ll)p->batch_count);
    append_factors(text, p);
    append_kinds(text, p, TGI_FORM_BIAS);
    if (p->activation != TG_ACTIVATION_NONE) {
        append(text, TEXT_BYTES, ":act=%s", tg_get_activation_name(p->activation));
    }
    if (p->precision != TG_PRECISION_DEFAULT) {
        append(text, TEXT_BYTES, ":prec=%s", tg_get_precision_name(p->precision));
    }
    append_kinds(text, p, TGI_FORM_SCALE);
    if (p->is_batch_invariant)
        append(text, TEXT_BYTES, ":batch_invariant");
    append_input_strides(text, "a", &p->a);
    append_input_strides(text, "b", &p->b);
    append_output_strides(text, p);
    append_batch_stride(text, "a", &p->a, p->batch_count, NULL);
    append_batch_stride(text, "b", &p->b, p->batch_count, NULL);
    append_batch_stride(text, "d", &p->d, p->batch_count, NULL);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        if (tgi_operands_is_matrix_used(p, id))
            append_batch_stride(text, tgi_operands_get(id)->key, tgi_operands_get_matrix(p, id),
                                p->batch_count, &p->d);
    }
}

tg_status tg_format_problem(const tg_problem *problem, char *text, size_t text_bytes)
{
    if (!problem || !text) {
        return tgi_status_fail(TG_STATUS_INVALID_ARGUMENT, "%s = NULL; pass %s",
                               problem ? "text" : "problem",
                               problem ? "a buffer of 640 bytes" : "the problem to write");
    }
    tg_problem converted;
    problem = tgi_struct_read(&tgi_struct_problem, problem, &converted);
    if (!problem)
        return TG_STATUS_INVALID_ARGUMENT;
    tgi_problem canonical;
    tgi_saved_locale saved;
    tg_status status = tgi_problem_validate(problem, &canonical);
    if (status || (status = tgi_problem_text_enter_c_locale(&saved)))
        return status;
    char whole[TEXT_BYTES];
    write_problem(problem, whole);
    tgi_problem_text_leave_c_locale(&saved);
    size_t needed_bytes = strlen(whole) + 1;
    if (text_bytes < needed_bytes) {
        return tgi_status_fail(
            TG_STATUS_INVALID_ARGUMENT,
            "text_bytes = %zu is less than the %zu that this problem takes; pass "
            "a buffer of 640 bytes",
            text_bytes, needed_bytes);
    }
    memcpy(text, whole, needed_bytes);
    return TG_STATUS_OK;
}
