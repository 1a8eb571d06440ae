/*
 * Reads any bytes as a .npy file. They are refused with a reason, or give a view that lies inside
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "files/matrix_convert.h"
#include "files/npy_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count);

static void require(int condition)
{
    if (!condition)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count)
{
    cli_array array;
    cli_file_error error = {""};
    int code = cli_parse_npy(bytes, (int64_t)byte_count, &array, &error);
    require(code == (error.text[0] ? CLI_EXIT_USAGE : CLI_EXIT_OK));
    for (const char *c = error.text; *c; c++)
        require(*c >= ' ' && *c <= '~');
    if (code != CLI_EXIT_OK)
        return 0;
    tg_matrix *view = &array.view;
    int64_t m = view->row_count, n = view->col_count;
    int64_t count = array.group_count * array.batch_count;
    int64_t elem_bytes =
        array.integer.elem_bytes ? array.integer.elem_bytes : tg_get_type_bytes(view->type);
    int64_t data_bytes = count * m * n * elem_bytes; /* in the order of the file */
    require(m >= 0 && n >= 0 && count >= 0 && data_bytes <= (int64_t)byte_count);
    require((const uint8_t *)view->data + data_bytes == bytes + byte_count);
    require(view->col_stride == 1 || view->col_stride == count * m || n <= 1);
    if (data_bytes > 0) { /* aligned, as the command makes it; every element is read */
        void *copy = malloc((size_t)data_bytes), *converted = NULL;
        require(copy != NULL);
        view->data = memcpy(copy, view->data, (size_t)data_bytes);
        code = cli_convert_array(&array, TG_TYPE_FP64, NULL, &converted, &error);
        require(code == (error.text[0] ? CLI_EXIT_USAGE : CLI_EXIT_OK));
        free(converted);
        free(copy);
    }
    return 0;
}
