/*
 * The lists of an attention in files: offsets, lengths and pages.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"

#include <stdlib.h>

typedef long long ll; /* for printf */

/* Copies the loaded numbers. */
static int take_values(const cli_matrix_file *file, int32_t *values, cli_file_error *error)
{
    const tg_matrix *view = &file->array.view;
    const double *const numbers = view->data;
    const int64_t count = view->row_count * view->col_count;
    for (int64_t i = 0; i < count; i++) {
        if (numbers[i] < INT32_MIN || numbers[i] > INT32_MAX)
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s holds %.0f at place %lld; its numbers have 32 bits",
                                 file->path, numbers[i], (ll)i);
        values[i] = (int32_t)numbers[i];
    }
    return CLI_EXIT_OK;
}

int cli_load_attention_list(cli_matrix_file *file, cli_memory *memory, cli_progress *progress,
                            int32_t **values, cli_file_error *error)
{
    if (file->array.integer.elem_bytes < 4)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s holds no integers of 32 or 64 bits; save them as such, for "
                             "example a.astype('int32')",
                             file->path);
    if (file->array.dim_count > 2)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s has %d dimensions; a list has 1, a table of pages 2",
                             file->path, file->array.dim_count);
    int code = cli_load_matrix(file, TG_TYPE_FP64, memory, progress, error);
    if (code != CLI_EXIT_OK)
        return code;
    const size_t bytes =
        (size_t)(file->array.view.row_count * file->array.view.col_count) * sizeof **values;
    code = cli_reserve_memory(memory, (int64_t)bytes, "a list", error);
    if (code != CLI_EXIT_OK)
        return code;
    *values = malloc(bytes > 0 ? bytes : 1);
    if (!*values)
        return cli_fail_file(error, CLI_EXIT_WRONG, "out of memory: %.300s needs %zu bytes",
                             file->path, bytes);
    return take_values(file, *values, error);
}

int cli_check_offset_lists(const cli_attention_inputs *inputs, cli_file_error *error)
{
    static const int ids[] = {CLI_ATTENTION_QUERY_OFFSETS, CLI_ATTENTION_KEY_OFFSETS};
    for (int i = 0; i < 2; i++) {
        const cli_matrix_file *file = &inputs->files[ids[i]];
        char text[96];
        if (inputs->lists[ids[i]] && (file->array.dim_count != 1 || file->array.view.col_count < 1))
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s is %s; pass a vector of offsets, one for each batch entry "
                                 "and the end",
                                 file->path, cli_format_head_shape(file, text));
    }
    return CLI_EXIT_OK;
}

int64_t cli_count_offset_entries(const cli_attention_inputs *inputs, int file)
{
    return inputs->files[file].array.view.col_count - 1;
}

int64_t cli_find_longest_entry(const cli_attention_inputs *inputs, int file)
{
    const int32_t *offsets = inputs->lists[file];
    int64_t longest = 0;
    for (int64_t b = 0; b < cli_count_offset_entries(inputs, file); b++) {
        const int64_t length = (int64_t)offsets[b + 1] - offsets[b];
        longest = length > longest ? length : longest;
    }
    return longest;
}

static int check_vector(const cli_matrix_file *file, int64_t count, const char *what,
                        cli_file_error *error)
{
    char text[96];
    if (file->array.dim_count == 1 && file->array.view.col_count == count)
        return CLI_EXIT_OK;
    return cli_fail_file(error, CLI_EXIT_USAGE, "%.300s is %s; pass a vector of %lld %s",
                         file->path, cli_format_head_shape(file, text), (ll)count, what);
}

/* With offsets the entries lie one after another in the rows of `rows_file`. */
static int check_offsets(const cli_attention_inputs *inputs, int id, int rows_id,
                         int64_t batch_count, cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[id], *rows_file = &inputs->files[rows_id];
    const int32_t *offsets = inputs->lists[id];
    const int64_t row_count = rows_file->array.view.row_count;
    const int code =
        check_vector(file, batch_count + 1, "offsets, one for each batch entry and the end", error);
    if (code != CLI_EXIT_OK)
        return code;
    if (offsets[0] != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s begins with %d; pass offsets that begin with 0", file->path,
                             (int)offsets[0]);
    for (int64_t b = 0; b < batch_count; b++) {
        if (offsets[b + 1] < offsets[b])
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s falls from %d to %d at place %lld; pass offsets that do "
                                 "not fall",
                                 file->path, (int)offsets[b], (int)offsets[b + 1], (ll)b + 1);
    }
    if (offsets[batch_count] != row_count)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s ends with %d and %.300s has %lld rows; pass offsets that end "
                             "with the rows",
                             file->path, (int)offsets[batch_count], rows_file->path, (ll)row_count);
    return CLI_EXIT_OK;
}

static int check_lengths(const cli_attention_inputs *inputs, const tg_attention *a,
                         cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[CLI_ATTENTION_KEY_LENGTHS];
    const int code = check_vector(file, a->batch_count, "lengths, one for each batch entry", error);
    for (int64_t b = 0; b < a->batch_count && code == CLI_EXIT_OK; b++) {
        const int64_t most = a->has_key_offsets ? a->key_offsets[b + 1] - a->key_offsets[b] : a->n;
        if (a->key_lengths[b] < 0 || a->key_lengths[b] > most)
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s holds %d at place %lld; pass 0 .. %lld, the keys of the "
                                 "entry",
                                 file->path, (int)a->key_lengths[b], (ll)b, (ll)most);
    }
    return code;
}

/* Pages behind the last key of an entry may be anything. */
static int check_pages(const cli_attention_inputs *inputs, const tg_attention *a,
                       cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[CLI_ATTENTION_PAGES];
    const char *const k_path = inputs->files[CLI_ATTENTION_K].path;
    char text[96];
    if (file->array.view.row_count != a->batch_count)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s; pass a table of %lld rows, one for each batch entry",
                             file->path, cli_format_head_shape(file, text), (ll)a->batch_count);
    if (a->page_rows == 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s has pages of 0 rows; pass pages of 1 row or more", k_path);
    for (int64_t b = 0; b < a->batch_count; b++) {
        const int64_t key_count = a->has_key_lengths ? a->key_lengths[b] : a->n;
        const int64_t used_count = key_count / a->page_rows + (key_count % a->page_rows != 0);
        for (int64_t i = 0; i < used_count; i++) {
            const int32_t page = a->pages[b * a->pages_stride + i];
            if (page < 0 || page >= a->page_count)
                return cli_fail_file(error, CLI_EXIT_USAGE,
                                     "%.300s holds %d in row %lld at place %lld; pass a page of "
                                     "%.300s, which has %lld, from 0 on",
                                     file->path, (int)page, (ll)b, (ll)i, k_path,
                                     (ll)a->page_count);
        }
    }
    return CLI_EXIT_OK;
}

int cli_set_attention_lists(const cli_attention_inputs *inputs, tg_attention *a,
                            cli_file_error *error)
{
    int code = CLI_EXIT_OK;
    a->query_offsets = inputs->lists[CLI_ATTENTION_QUERY_OFFSETS];
    a->key_offsets = inputs->lists[CLI_ATTENTION_KEY_OFFSETS];
    a->key_lengths = inputs->lists[CLI_ATTENTION_KEY_LENGTHS];
    a->pages = inputs->lists[CLI_ATTENTION_PAGES];
    a->has_query_offsets = a->query_offsets != NULL;
    a->has_key_offsets = a->key_offsets != NULL;
    a->has_key_lengths = a->key_lengths != NULL;
    if (a->has_query_offsets)
        code = check_offsets(inputs, CLI_ATTENTION_QUERY_OFFSETS, CLI_ATTENTION_Q, a->batch_count,
                             error);
    if (code == CLI_EXIT_OK && a->has_key_offsets)
        code = check_offsets(inputs, CLI_ATTENTION_KEY_OFFSETS, CLI_ATTENTION_K, a->batch_count,
                             error);
    if (code == CLI_EXIT_OK && a->has_key_lengths)
        code = check_lengths(inputs, a, error);
    if (code == CLI_EXIT_OK && a->pages)
        code = check_pages(inputs, a, error);
    return code;
}
