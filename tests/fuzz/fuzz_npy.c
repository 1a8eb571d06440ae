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
    tg_matrix view;
    cli_file_error error = {""};
    int code = cli_parse_npy(bytes, (int64_t)byte_count, &view, &error);
    require(code == (error.text[0] ? CLI_EXIT_USAGE : CLI_EXIT_OK));
    for (const char *c = error.text; *c; c++)
        require(*c >= ' ' && *c <= '~');
    if (code != CLI_EXIT_OK)
        return 0;
    int64_t m = view.row_count, n = view.col_count;
    int64_t data_bytes = m * n * tg_get_type_bytes(view.type);
    require(m >= 0 && n >= 0 && data_bytes <= (int64_t)byte_count);
    require((const uint8_t *)view.data + data_bytes == bytes + byte_count);
    require(view.row_stride == (view.col_stride == 1 ? n : 1) || view.col_stride == m);
    if (data_bytes > 0) { /* aligned, as the command makes it; every element is read */
        void *copy = malloc((size_t)data_bytes), *converted = NULL;
        require(copy != NULL);
        view.data = memcpy(copy, view.data, (size_t)data_bytes);
        require(cli_convert_matrix(&view, TG_TYPE_FP64, NULL, &converted, &error) == CLI_EXIT_OK);
        free(converted);
        free(copy);
    }
    return 0;
}
