/*
 * Element types in the words of Python's libraries.
 */
#include "extension.h"

#include <string.h>

static const tgpy_type_row rows[] = {
    {TG_TYPE_FP32, "float32", "f", TGPY_DLPACK_FLOAT, 32},
    {TG_TYPE_FP64, "float64", "d", TGPY_DLPACK_FLOAT, 64},
    {TG_TYPE_BF16, "bfloat16", NULL, TGPY_DLPACK_BFLOAT, 16},
    {TG_TYPE_FP16, "float16", "e", TGPY_DLPACK_FLOAT, 16},
    {TG_TYPE_FP8_E4M3, "float8_e4m3fn", NULL, TGPY_DLPACK_E4M3FN, 8},
    {TG_TYPE_FP8_E5M2, "float8_e5m2", NULL, TGPY_DLPACK_E5M2, 8},
};
enum { row_count = sizeof rows / sizeof *rows };

const tgpy_type_row *tgpy_type_find(tg_type type)
{
    for (int i = 0; i < row_count; i++) {
        if (rows[i].type == type)
            return &rows[i];
    }
    return NULL;
}

const tgpy_type_row *tgpy_type_find_dlpack(uint8_t code, uint8_t bits)
{
    for (int i = 0; i < row_count; i++) {
        if (rows[i].dlpack_code == code && rows[i].bits == bits)
            return &rows[i];
    }
    return NULL;
}

const tgpy_type_row *tgpy_type_find_name(const char *name)
{
    for (int i = 0; i < row_count; i++) {
        if (strcmp(rows[i].name, name) == 0)
            return &rows[i];
    }
    return NULL;
}
