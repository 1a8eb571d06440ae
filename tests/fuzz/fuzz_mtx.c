/*
 * Reads any bytes as a .mtx file. They are refused with a reason, or give a matrix that is the same
 * after it has been written and read again. The last byte chooses the element type.
 *
 * SPDX-License-Identifier: MIT
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

#include "files/matrix_convert.h"
#include "files/mtx_read.h"
#include "files/mtx_write.h"

#define LIMIT_BYTES (1 << 13)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Writes the matrix, reads it and compares. */
static void go_round(const tg_matrix *view)
{
    char *text = NULL;
    size_t text_bytes = 0;
    void *owned = NULL;
    tg_matrix read;
    cli_file_error error = {""};
    FILE *stream = open_memstream(&text, &text_bytes);
    require(stream && cli_write_mtx(stream, view, NULL) && fclose(stream) == 0);
    require(cli_parse_mtx(text, (int64_t)text_bytes, view->type, LIMIT_BYTES, NULL, &read, &owned,
                          &error) == CLI_EXIT_OK);
    require(read.row_count == view->row_count && read.col_count == view->col_count);
    for (int64_t i = 0; view->col_count > 0 && i < view->row_count; i++) {
        for (int64_t j = 0; j < view->col_count; j++) {
            double wrote = cli_load_element(view, i, j), got = cli_load_element(&read, i, j);
            require(wrote == got || (isnan(wrote) && isnan(got)));
        }
    }
    free(owned);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count)
{
    void *owned = NULL;
    tg_matrix view;
    cli_file_error error = {""};
    tg_type type = byte_count ? (tg_type)(bytes[byte_count - 1] % 4) : TG_TYPE_FP64;
    int code =
        cli_parse_mtx(bytes, (int64_t)byte_count, type, LIMIT_BYTES, NULL, &view, &owned, &error);
    /* A bad file is the user's error. A file larger than LIMIT_BYTES is the machine's. */
    require(error.text[0] ? code == CLI_EXIT_USAGE || code == CLI_EXIT_WRONG : code == CLI_EXIT_OK);
    for (const char *c = error.text; *c; c++)
        require(*c >= ' ' && *c <= '~');
    require((code == CLI_EXIT_OK) == (owned != NULL));
    if (code == CLI_EXIT_OK)
        go_round(&view);
    free(owned);
    return 0;
}
