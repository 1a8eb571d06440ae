/*
 * Makes an attention of arrays in files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"

#include <stdio.h>

cli_head_shape cli_find_head_shape(const cli_matrix_file *file)
{
    const cli_array *array = &file->array;
    return (cli_head_shape){
        {array->group_count, array->batch_count, array->view.row_count, array->view.col_count}};
}

const char *cli_format_head_shape(const cli_matrix_file *file, char text[96])
{
    const cli_head_shape shape = cli_find_head_shape(file);
    int length = 0;
    for (int i = 4 - file->array.dim_count; i < 4; i++)
        length += snprintf(text + length, 96 - (size_t)length, length ? " x %lld" : "%lld",
                           (long long)shape.sizes[i]);
    return text;
}

/* Returns the array as heads of `counts`; a dimension of 1 is broadcast. */
static tg_heads get_heads(const cli_matrix_file *file, const int64_t counts[4])
{
    const cli_array *array = &file->array;
    const tg_matrix *view = &array->view;
    const cli_head_shape shape = cli_find_head_shape(file);
    tg_heads heads = {view->data, array->group_stride, view->batch_stride, view->row_stride,
                      view->col_stride};
    int64_t *const strides[] = {&heads.batch_stride, &heads.head_stride, &heads.row_stride,
                                &heads.element_stride};
    uint64_t dense = 1; /* the stride of an array without gaps, for a dimension without one */
    for (int i = 3; i >= 0; i--) {
        if (shape.sizes[i] == 1)
            *strides[i] = counts[i] == 1 ? (int64_t)dense : 0;
        dense *= (uint64_t)counts[i];
    }
    return heads;
}

/* Refuses a K or V whose batch entries are not those of the attention. */
static int check_batch(const cli_attention_inputs *inputs, int id, int64_t batch_count,
                       cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[id];
    const int64_t count = cli_find_head_shape(file).sizes[0];
    const int is_packed = inputs->lists[CLI_ATTENTION_QUERY_OFFSETS] != NULL;
    if (count == batch_count || count == 1)
        return CLI_EXIT_OK;
    return cli_fail_file(
        error, CLI_EXIT_USAGE,
        "%.300s has %lld batch entries and %.300s has %lld; pass as many, or 1 for all",
        inputs->files[is_packed ? CLI_ATTENTION_QUERY_OFFSETS : CLI_ATTENTION_Q].path,
        (long long)batch_count, file->path, (long long)count);
}

/* With offsets all entries lie one after another in the rows of one entry. */
static int check_packed(const cli_attention_inputs *inputs, int id, const char *option,
                        cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[id];
    char text[96];
    if (cli_find_head_shape(file).sizes[0] == 1)
        return CLI_EXIT_OK;
    return cli_fail_file(error, CLI_EXIT_USAGE,
                         "%.300s is %s; with %s pass one entry [head][row][element], whose rows "
                         "are those of all entries",
                         file->path, cli_format_head_shape(file, text), option);
}

/* Refuses K and V that do not fit Q or each other. */
static int check_keys(const cli_attention_inputs *inputs, int64_t batch_count,
                      cli_file_error *error)
{
    const cli_matrix_file *q_file = &inputs->files[CLI_ATTENTION_Q],
                          *k_file = &inputs->files[CLI_ATTENTION_K],
                          *v_file = &inputs->files[CLI_ATTENTION_V];
    const cli_head_shape q = cli_find_head_shape(q_file), k = cli_find_head_shape(k_file),
                         v = cli_find_head_shape(v_file);
    const int has_pages = inputs->lists[CLI_ATTENTION_PAGES] != NULL;
    int code = CLI_EXIT_OK;
    char one[96], other[96];
    if (k.sizes[3] != q.sizes[3])
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and %.300s is %s: their head sizes %lld and %lld differ",
                             q_file->path, cli_format_head_shape(q_file, one), k_file->path,
                             cli_format_head_shape(k_file, other), (long long)q.sizes[3],
                             (long long)k.sizes[3]);
    if (v.sizes[2] != k.sizes[2] || v.sizes[1] != k.sizes[1] ||
        (has_pages && v.sizes[0] != k.sizes[0]))
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and %.300s is %s; K and V have the same %sheads and "
                             "rows",
                             k_file->path, cli_format_head_shape(k_file, one), v_file->path,
                             cli_format_head_shape(v_file, other), has_pages ? "pages, " : "");
    if (k.sizes[1] < 1 || q.sizes[1] % k.sizes[1] != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s has %lld heads and %.300s has %lld; the heads of K divide "
                             "those of Q",
                             q_file->path, (long long)q.sizes[1], k_file->path,
                             (long long)k.sizes[1]);
    for (int id = CLI_ATTENTION_K; id <= CLI_ATTENTION_V && !has_pages && code == CLI_EXIT_OK; id++)
        code = inputs->lists[CLI_ATTENTION_KEY_OFFSETS]
                   ? check_packed(inputs, id, "--key-offsets", error)
                   : check_batch(inputs, id, batch_count, error);
    return code;
}

/* The bias has the dimensions of the scores, or 1 where it is broadcast. */
static int set_bias(const cli_attention_inputs *inputs, tg_attention *a, cli_file_error *error)
{
    const cli_matrix_file *file = &inputs->files[CLI_ATTENTION_BIAS];
    const cli_head_shape q = cli_find_head_shape(&inputs->files[CLI_ATTENTION_Q]);
    const int64_t scores[] = {q.sizes[0], q.sizes[1], q.sizes[2], a->n};
    const cli_head_shape shape = cli_find_head_shape(file);
    char text[96];
    for (int i = 0; i < 4; i++) {
        if (shape.sizes[i] != scores[i] && shape.sizes[i] != 1)
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s is %s and the scores are %lld x %lld x %lld x %lld; pass "
                                 "a bias of these dimensions, or 1 where one value serves all",
                                 file->path, cli_format_head_shape(file, text),
                                 (long long)scores[0], (long long)scores[1], (long long)scores[2],
                                 (long long)scores[3]);
    }
    a->has_bias = 1;
    a->bias = get_heads(file, scores);
    return CLI_EXIT_OK;
}

static int set_slopes(const cli_matrix_file *file, tg_attention *a, cli_file_error *error)
{
    const cli_array *array = &file->array;
    char text[96];
    if (array->dim_count != 1 || array->view.col_count != a->head_count)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s; pass a vector of %lld slopes, one for each head of Q",
                             file->path, cli_format_head_shape(file, text),
                             (long long)a->head_count);
    a->has_slopes = 1;
    a->slopes = array->view.data;
    return CLI_EXIT_OK;
}

/* Sets the sizes. With offsets the list gives the batch size, and the lengths are the largest; with
 * pages an entry has as many keys as its pages hold. */
static void set_sizes(const cli_attention_inputs *inputs, tg_type type, tg_attention *a)
{
    const cli_head_shape q = cli_find_head_shape(&inputs->files[CLI_ATTENTION_Q]),
                         k = cli_find_head_shape(&inputs->files[CLI_ATTENTION_K]);
    int64_t batch_count = q.sizes[0], m = q.sizes[2], n = k.sizes[2];
    const int64_t pages_of_entry = inputs->files[CLI_ATTENTION_PAGES].array.view.col_count;
    if (inputs->lists[CLI_ATTENTION_QUERY_OFFSETS]) {
        batch_count = cli_count_offset_entries(inputs, CLI_ATTENTION_QUERY_OFFSETS);
        m = cli_find_longest_entry(inputs, CLI_ATTENTION_QUERY_OFFSETS);
    }
    if (inputs->lists[CLI_ATTENTION_KEY_OFFSETS])
        n = cli_find_longest_entry(inputs, CLI_ATTENTION_KEY_OFFSETS);
    if (inputs->lists[CLI_ATTENTION_PAGES] && __builtin_mul_overflow(pages_of_entry, n, &n))
        n = INT64_MAX;
    tg_init_attention(a, sizeof *a, type, batch_count, q.sizes[1], k.sizes[1], m, n, q.sizes[3]);
    a->v_head_size = cli_find_head_shape(&inputs->files[CLI_ATTENTION_V]).sizes[3];
    if (inputs->lists[CLI_ATTENTION_PAGES]) {
        a->page_rows = k.sizes[2];
        a->page_count = k.sizes[0];
        a->pages_stride = pages_of_entry;
    }
}

/* Sets the tensors; outputs have no memory yet, and no gaps. */
static void set_tensors(const cli_attention_inputs *inputs, tg_attention *a)
{
    const cli_head_shape q = cli_find_head_shape(&inputs->files[CLI_ATTENTION_Q]),
                         k = cli_find_head_shape(&inputs->files[CLI_ATTENTION_K]);
    /* An array with one entry has a batch stride of 0: the entry is broadcast, holds all entries,
     * or is the only page. */
    const int64_t k_counts[] = {a->batch_count, k.sizes[1], k.sizes[2], a->head_size};
    const int64_t v_counts[] = {a->batch_count, k.sizes[1], k.sizes[2], a->v_head_size};
    a->q = get_heads(&inputs->files[CLI_ATTENTION_Q], q.sizes);
    a->k = get_heads(&inputs->files[CLI_ATTENTION_K], k_counts);
    a->v = get_heads(&inputs->files[CLI_ATTENTION_V], v_counts);
    /* The plan refuses sizes whose product overflows. */
    const uint64_t head_stride = (uint64_t)q.sizes[2] * (uint64_t)a->v_head_size;
    a->d = (tg_heads){NULL, (int64_t)((uint64_t)a->head_count * head_stride), (int64_t)head_stride,
                      a->v_head_size, 1};
    a->log_sum_exp = (tg_heads){NULL, (int64_t)((uint64_t)a->head_count * (uint64_t)q.sizes[2]),
                                q.sizes[2], 1, 1};
}

int cli_make_attention(const cli_attention_options *options, const cli_attention_inputs *inputs,
                       tg_type type, cli_attention_result *result, cli_file_error *error)
{
    const cli_matrix_file *q_file = &inputs->files[CLI_ATTENTION_Q];
    const cli_head_shape q = cli_find_head_shape(q_file);
    tg_attention *a = &result->attention;
    int code = cli_check_offset_lists(inputs, error);
    if (code != CLI_EXIT_OK)
        return code;
    set_sizes(inputs, type, a);
    if (inputs->lists[CLI_ATTENTION_QUERY_OFFSETS])
        code = check_packed(inputs, CLI_ATTENTION_Q, "--query-offsets", error);
    if (code == CLI_EXIT_OK)
        code = check_keys(inputs, a->batch_count, error);
    if (code == CLI_EXIT_OK)
        code = cli_set_attention_lists(inputs, a, error);
    if (code != CLI_EXIT_OK)
        return code;
    set_tensors(inputs, a);
    a->has_log_sum_exp = options->log_sum_exp_path != NULL;
    a->is_batch_invariant = options->is_batch_invariant;
    a->causal = options->causal;
    a->scale = options->has_scale ? options->scale : a->scale;
    a->soft_cap = options->soft_cap;
    a->keys_before = options->keys_before;
    a->keys_after = options->keys_after;
    result->dim_count = q_file->array.dim_count;
    for (int i = 0; i < result->dim_count; i++)
        result->sizes[i] = q.sizes[4 - result->dim_count + i];
    result->sizes[result->dim_count - 1] = a->v_head_size;
    if (options->paths[CLI_ATTENTION_BIAS])
        code = set_bias(inputs, a, error);
    if (code == CLI_EXIT_OK && options->paths[CLI_ATTENTION_SLOPES])
        code = set_slopes(&inputs->files[CLI_ATTENTION_SLOPES], a, error);
    return code;
}
