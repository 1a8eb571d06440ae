#include "files/npy_write.h"
#include "files/npy_read.h"

#include <stdio.h>
#include <string.h>

static const char *get_descr(tg_type type)
{
    switch (type) {
    case TG_TYPE_FP32:
        return "<f4";
    case TG_TYPE_FP64:
        return "<f8";
    case TG_TYPE_FP16:
        return "<f2";
    case TG_TYPE_FP8_E4M3:
    case TG_TYPE_FP8_E5M2:
        return "|V1"; /* ml_dtypes writes both FP8 types so */
    case TG_TYPE_BF16:
        break;
    }
    return "<V2"; /* ml_dtypes writes bfloat16 so */
}

void cli_format_npy_header(tg_type type, const int64_t *sizes, int dim_count,
                           char header[CLI_NPY_HEADER_BYTES])
{
    const int start = 10; /* magic, version, length */
    static const char prefix[] = CLI_NPY_MAGIC "\x01\x00";
    memset(header, ' ', CLI_NPY_HEADER_BYTES);
    memcpy(header, prefix, 8);
    header[8] = (char)(CLI_NPY_HEADER_BYTES - start);
    header[9] = 0;
    /* The text always fits: a size has at most 19 digits, of three the product has as many. */
    int length = snprintf(header + start, (size_t)(CLI_NPY_HEADER_BYTES - start),
                          "{'descr': '%s', 'fortran_order': False, 'shape': (", get_descr(type));
    for (int i = 0; i < dim_count; i++)
        length +=
            snprintf(header + start + length, (size_t)(CLI_NPY_HEADER_BYTES - start - length),
                     dim_count == 1 || i < dim_count - 1 ? "%lld, " : "%lld", (long long)sizes[i]);
    length +=
        snprintf(header + start + length, (size_t)(CLI_NPY_HEADER_BYTES - start - length), "), }");
    header[start + length] = ' '; /* over snprintf's NUL */
    header[CLI_NPY_HEADER_BYTES - 1] = '\n';
}
