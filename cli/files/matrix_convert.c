#include "files/matrix_convert.h"
#include "check.h"

#include <float.h>
#include <math.h>
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

int cli_convert_matrix(tg_matrix *view, tg_type type, cli_progress *progress, void **owned,
                       cli_file_error *error)
{
    int64_t m = view->row_count, n = view->col_count, bytes;
    if (__builtin_mul_overflow(m, n, &bytes) ||
        __builtin_mul_overflow(bytes, tg_get_type_bytes(type), &bytes))
        return cli_fail_file(error, CLI_EXIT_USAGE, "%lld x %lld %s needs more than 2^63 - 1 bytes",
                             (long long)m, (long long)n, tg_get_type_name(type));
    void *data = malloc(bytes > 0 ? (size_t)bytes : 1);
    if (!data)
        return cli_fail_file(error, CLI_EXIT_WRONG,
                             "out of memory: the matrix in %s needs %lld bytes",
                             tg_get_type_name(type), (long long)bytes);
    int64_t unseen_count = 0; /* elements since progress was last shown */
    for (int64_t i = 0; n > 0 && i < m; i++) {
        for (int64_t j = 0; j < n; j++) {
            double value = cli_load_element(view, i, j);
            if (!cli_store_element(type, data, i * n + j, value)) {
                free(data);
                return cli_fail_file(error, CLI_EXIT_USAGE,
                                     "element (%lld, %lld) = %g is beyond the largest %s, %g; pass "
                                     "a --type with a wider range",
                                     (long long)i, (long long)j, value, tg_get_type_name(type),
                                     cli_get_type_max(type));
            }
        }
        unseen_count += n;
        if (unseen_count >= CLI_PROGRESS_INTERVAL) {
            cli_show_progress(progress, i + 1, m);
            unseen_count = 0;
        }
    }
    *owned = data;
    *view = tg_make_matrix(type, data, m, n);
    return CLI_EXIT_OK;
}
