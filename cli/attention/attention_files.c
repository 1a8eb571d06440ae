/*
 * Makes an attention of arrays in files.
 *
 * SPDX-License-Identifier: MIT
 */
#include "attention/attention.h"

#include <stdio.h>

/* The dimensions of an array as [batch][head][row][element], 1 where it has none. */
typedef struct head_shape {
    int64_t sizes[4];
} head_shape;

static head_shape find_shape(const cli_matrix_file *file)
{
    const cli_array *array = &file->array;
    return (head_shape){
        {array->group_count, array->batch_count, array->view.row_count, array->view.col_count}};
}

static const char *format_shape(const cli_matrix_file *file, char text[96])
{
    const head_shape shape = find_shape(file);
    int length = 0;
    for (int i = 4 - file->array.dim_count; i < 4; i++)
        length += snprintf(text + length, 96 - (size_t)length, length ? " x %lld" : "%lld",
                           (long long)shape.sizes[i]);
    return text;
}

/* Returns the array as heads of `counts`; a dimension of 1 serves all. */
static tg_heads get_heads(const cli_matrix_file *file, const int64_t counts[4])
{
    const cli_array *array = &file->array;
    const tg_matrix *view = &array->view;
    const head_shape shape = find_shape(file);
    tg_heads heads = {view->data, array->group_stride, view->batch_stride, view->row_stride,
                      view->col_stride};
    int64_t *const strides[] = {&heads.batch_stride, &heads.head_stride, &heads.row_stride,
                                &heads.element_stride};
    uint64_t dense =
        1; /* the stride of an array without gaps, for a dimension that does not step */
    for (int i = 3; i >= 0; i--) {
        if (shape.sizes[i] == 1)
            *strides[i] = counts[i] == 1 ? (int64_t)dense : 0;
        dense *= (uint64_t)counts[i];
    }
    return heads;
}

/* Refuses K and V that do not fit to Q or to each other. */
static int check_keys(const cli_matrix_file *files, cli_file_error *error)
{
    const cli_matrix_file *q_file = &files[CLI_ATTENTION_Q], *k_file = &files[CLI_ATTENTION_K],
                          *v_file = &files[CLI_ATTENTION_V];
    const head_shape q = find_shape(q_file), k = find_shape(k_file), v = find_shape(v_file);
    char one[96], other[96];
    if (k.sizes[3] != q.sizes[3])
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and %.300s is %s: their head sizes %lld and %lld differ",
                             q_file->path, format_shape(q_file, one), k_file->path,
                             format_shape(k_file, other), (long long)q.sizes[3],
                             (long long)k.sizes[3]);
    if (v.sizes[2] != k.sizes[2] || v.sizes[1] != k.sizes[1])
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and %.300s is %s; K and V have the same heads and rows",
                             k_file->path, format_shape(k_file, one), v_file->path,
                             format_shape(v_file, other));
    if (k.sizes[1] < 1 || q.sizes[1] % k.sizes[1] != 0)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s has %lld heads and %.300s has %lld; the heads of K divide "
                             "those of Q",
                             q_file->path, (long long)q.sizes[1], k_file->path,
                             (long long)k.sizes[1]);
    for (int i = CLI_ATTENTION_K; i <= CLI_ATTENTION_V; i++) {
        const int64_t count = find_shape(&files[i]).sizes[0];
        if (count != q.sizes[0] && count != 1)
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s has %lld batch entries and %.300s has %lld; pass as many, "
                                 "or 1 for all",
                                 q_file->path, (long long)q.sizes[0], files[i].path,
                                 (long long)count);
    }
    return CLI_EXIT_OK;
}

/* The bias has the dimensions of the scores, or 1 where one value serves all. */
static int set_bias(const cli_matrix_file *file, tg_attention *a, cli_file_error *error)
{
    const int64_t scores[] = {a->batch_count, a->head_count, a->m, a->n};
    const head_shape shape = find_shape(file);
    char text[96];
    for (int i = 0; i < 4; i++) {
        if (shape.sizes[i] != scores[i] && shape.sizes[i] != 1)
            return cli_fail_file(error, CLI_EXIT_USAGE,
                                 "%.300s is %s and the scores are %lld x %lld x %lld x %lld; pass "
                                 "a bias of these dimensions, or 1 where one value serves all",
                                 file->path, format_shape(file, text), (long long)scores[0],
                                 (long long)scores[1], (long long)scores[2], (long long)scores[3]);
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
                             file->path, format_shape(file, text), (long long)a->head_count);
    a->has_slopes = 1;
    a->slopes = array->view.data;
    return CLI_EXIT_OK;
}

int cli_make_attention(const cli_attention_options *options, const cli_matrix_file *files,
                       tg_type type, cli_attention_result *result, cli_file_error *error)
{
    const head_shape q = find_shape(&files[CLI_ATTENTION_Q]),
                     k = find_shape(&files[CLI_ATTENTION_K]);
    const int64_t v_head_size = find_shape(&files[CLI_ATTENTION_V]).sizes[3];
    const int64_t k_counts[] = {q.sizes[0], k.sizes[1], k.sizes[2], q.sizes[3]};
    const int64_t v_counts[] = {q.sizes[0], k.sizes[1], k.sizes[2], v_head_size};
    tg_attention *a = &result->attention;
    int code = check_keys(files, error);
    if (code != CLI_EXIT_OK)
        return code;
    tg_init_attention(a, sizeof *a, type, q.sizes[0], q.sizes[1], k.sizes[1], q.sizes[2],
                      k.sizes[2], q.sizes[3]);
    a->v_head_size = v_head_size;
    a->q = get_heads(&files[CLI_ATTENTION_Q], q.sizes);
    a->k = get_heads(&files[CLI_ATTENTION_K], k_counts);
    a->v = get_heads(&files[CLI_ATTENTION_V], v_counts);
    /* The plan refuses sizes whose product overflows. */
    const uint64_t head_stride = (uint64_t)a->m * (uint64_t)v_head_size;
    a->d = (tg_heads){NULL, (int64_t)((uint64_t)a->head_count * head_stride), (int64_t)head_stride,
                      v_head_size, 1};
    a->causal = options->causal;
    a->scale = options->has_scale ? options->scale : a->scale;
    a->soft_cap = options->soft_cap;
    a->keys_before = options->keys_before;
    a->keys_after = options->keys_after;
    result->dim_count = files[CLI_ATTENTION_Q].array.dim_count;
    for (int i = 0; i < result->dim_count; i++)
        result->sizes[i] = q.sizes[4 - result->dim_count + i];
    result->sizes[result->dim_count - 1] = v_head_size;
    if (options->paths[CLI_ATTENTION_BIAS])
        code = set_bias(&files[CLI_ATTENTION_BIAS], a, error);
    if (code == CLI_EXIT_OK && options->paths[CLI_ATTENTION_SLOPES])
        code = set_slopes(&files[CLI_ATTENTION_SLOPES], a, error);
    return code;
}
