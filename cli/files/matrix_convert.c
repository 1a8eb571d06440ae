#include "files/matrix_convert.h"
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double cli_get_type_max(tg_type type)
{
    switch (type) {
    case TG_TYPE_FP32:
        return FLT_MAX;
    case TG_TYPE_FP64:
        return DBL_MAX;
    case TG_TYPE_FP16:
        return 65504;
    case TG_TYPE_FP8_E4M3:
        return 448;
    case TG_TYPE_FP8_E5M2:
        return 57344;
    case TG_TYPE_BF16:
        break;
    }
    return 0x1.fep127;
}

/* Rounds to an FP32 number whose last bit is 1 if the value is not exact. A second rounding, to 16
 * or 8 bits, then gives the same as one rounding of the FP64 value. */
static double round_to_odd(double value)
{
    float nearest = (float)value;
    uint32_t bits;
    if ((double)nearest == value || !isfinite(value))
        return nearest;
    memcpy(&bits, &nearest, sizeof bits);
    if (fabs((double)nearest) > fabs(value))
        bits--; /* toward zero; from Inf to FLT_MAX too */
    bits |= 1;
    memcpy(&nearest, &bits, sizeof bits);
    return nearest;
}

int cli_store_element(tg_type type, void *data, int64_t index, double value)
{
    if (check_is_fp8(type) && fabs(value) > cli_get_type_max(type)) /* would saturate, even Inf */
        return 0;
    check_set_element(type, data, index, tg_get_type_bytes(type) < 4 ? round_to_odd(value) : value);
    return !isfinite(value) || isfinite(check_get_element(type, data, index));
}

double cli_load_element(const tg_matrix *view, int64_t row, int64_t col)
{
    return check_get_element(view->type, view->data,
                             row * view->row_stride + col * view->col_stride);
}

/* Reads an integer. Returns the FP64 number of the same value, or sets *is_exact to 0. */
static double load_integer(cli_integer integer, const void *data, int64_t index, int *is_exact)
{
    uint64_t bits = 0;
    const int bit_count = 8 * integer.elem_bytes;
    memcpy(&bits, (const char *)data + index * integer.elem_bytes, (size_t)integer.elem_bytes);
    const int is_negative = integer.is_signed && bits >> (bit_count - 1) & 1;
    if (is_negative && bit_count < 64)
        bits |= UINT64_MAX << bit_count;
    const uint64_t magnitude = is_negative ? 0 - bits : bits;
    const double value = (double)magnitude;
    *is_exact = value < 0x1p64 && (uint64_t)value == magnitude;
    return is_negative ? -value : value;
}

/* Writes the indices of an element as NumPy takes them: at least a row and a column. */
static const char *format_place(const int64_t place[4], int dim_count, char text[96])
{
    int length = 0;
    for (int i = dim_count < 3 ? 2 : 4 - dim_count; i < 4; i++)
        length += snprintf(text + length, 96 - (size_t)length, "%s%lld", length ? ", " : "(",
                           (long long)place[i]);
    snprintf(text + length, 96 - (size_t)length, ")");
    return text;
}

/* Converts element (group, batch, row, col) and stores it at `index`. */
static int convert_element(const cli_array *array, const int64_t place[4], tg_type type, void *data,
                           int64_t index, cli_file_error *error)
{
    const tg_matrix *view = &array->view;
    const int64_t source = place[0] * array->group_stride + place[1] * view->batch_stride +
                           place[2] * view->row_stride + place[3] * view->col_stride;
    int is_exact = 1;
    const double value = array->integer.elem_bytes
                             ? load_integer(array->integer, view->data, source, &is_exact)
                             : check_get_element(view->type, view->data, source);
    const int is_stored = cli_store_element(type, data, index, value);
    if (is_stored && array->integer.elem_bytes)
        is_exact = is_exact && check_get_element(type, data, index) == value;
    if (is_stored && is_exact)
        return CLI_EXIT_OK;
    char at[96];
    format_place(place, array->dim_count, at);
    if (!is_stored)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "element %s = %g is beyond the largest %s, %g; pass a --type with a "
                             "wider range",
                             at, value, tg_get_type_name(type), cli_get_type_max(type));
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "element %s = %.20g is not exact in %s; pass a --type with more bits, or "
                         "save the array as floating-point numbers",
                         at, value, tg_get_type_name(type));
}

int cli_convert_array(cli_array *array, tg_type type, cli_progress *progress, void **owned,
                      cli_file_error *error)
{
    const int64_t m = array->view.row_count, n = array->view.col_count;
    const int64_t batch_count = array->batch_count, count = array->group_count * batch_count;
    int64_t bytes;
    if (__builtin_mul_overflow(count, m, &bytes) || __builtin_mul_overflow(bytes, n, &bytes) ||
        __builtin_mul_overflow(bytes, tg_get_type_bytes(type), &bytes))
        return cli_fail_file(error, CLI_EXIT_USAGE, "%lld x %lld %s needs more than 2^63 - 1 bytes",
                             (long long)m, (long long)n, tg_get_type_name(type));
    void *data = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!data)
        return cli_fail_file(error, CLI_EXIT_WRONG,
                             "out of memory: the matrix in %s needs %lld bytes",
                             tg_get_type_name(type), (long long)bytes);
    int64_t unseen_count = 0; /* elements since progress was last shown */
    for (int64_t row = 0; n > 0 && row < count * m; row++) {
        for (int64_t j = 0; j < n; j++) {
            const int64_t place[4] = {row / m / batch_count, row / m % batch_count, row % m, j};
            const int code = convert_element(array, place, type, data, row * n + j, error);
            if (code != CLI_EXIT_OK) {
                free(data);
                return code;
            }
        }
        unseen_count += n;
        if (unseen_count >= CLI_PROGRESS_INTERVAL) {
            cli_show_progress(progress, row + 1, count * m);
            unseen_count = 0;
        }
    }
    *owned = data;
    array->view = tg_make_matrix(type, data, m, n);
    const int64_t matrix_elems = bytes > 0 ? m * n : 0; /* sizes of an empty array may be any */
    array->view.batch_stride = array->dim_count >= 3 ? matrix_elems : 0;
    array->group_stride = array->dim_count == 4 ? batch_count * matrix_elems : 0;
    array->integer = (cli_integer){0, 0};
    return CLI_EXIT_OK;
}
