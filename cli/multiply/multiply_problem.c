#include "multiply/multiply.h"

#include <stdio.h>

/* A vector has one dimension: as A it is a row, as B a column, and D lacks the dimension. */
static int is_vector(const cli_matrix_file *file)
{
    return file->array.dim_count == 1;
}

/* Returns A or B as a matrix. Transposing a vector changes nothing. */
static tg_matrix get_operand(const cli_matrix_file *file, int is_column)
{
    tg_matrix view = file->array.view;
    if (file->array.batch_count == 1)
        view.batch_stride = 0;
    if (is_vector(file) && is_column) {
        view.row_count = view.col_count;
        view.col_count = 1;
        view.row_stride = 1;
    }
    return view;
}

static const char *format_shape(const cli_matrix_file *file, char text[96])
{
    const cli_array *array = &file->array;
    const long long m = array->view.row_count, n = array->view.col_count;
    if (array->dim_count == 3)
        snprintf(text, 96, "%lld times %lld x %lld", (long long)array->batch_count, m, n);
    else if (array->dim_count == 1)
        snprintf(text, 96, "a vector of %lld", n);
    else
        snprintf(text, 96, "%lld x %lld", m, n);
    return text;
}

/* Adds an operand's batch. A batch of one serves every entry. */
static int add_batch(const cli_matrix_file *file, int64_t *batch_count, cli_file_error *error)
{
    const int64_t count = file->array.batch_count;
    if (count == 1 || count == *batch_count)
        return CLI_EXIT_OK;
    if (*batch_count != 1)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is a batch of %lld matrices and another one has %lld; pass "
                             "batches of one size, or one matrix for all",
                             file->path, (long long)count, (long long)*batch_count);
    *batch_count = count;
    return CLI_EXIT_OK;
}

static int check_inner(const cli_multiply_options *options, const cli_multiply_files *files,
                       int64_t inner_a, int64_t inner_b, cli_file_error *error)
{
    char a[96], b[96];
    if (inner_a == inner_b)
        return CLI_EXIT_OK;
    return cli_fail_file(
        error, CLI_EXIT_USAGE,
        "%.300s is %s%s and %.300s is %s%s: the inner sizes %lld and %lld differ; see "
        "--transpose-a and --transpose-b",
        files->a.path, format_shape(&files->a, a), options->is_a_transposed ? ", transposed," : "",
        files->b.path, format_shape(&files->b, b), options->is_b_transposed ? ", transposed" : "",
        (long long)inner_a, (long long)inner_b);
}

/* Sets the sizes of D's array, which lacks the dimension of a vector. */
static void set_sizes(const cli_multiply_files *files, cli_multiply_result *result)
{
    result->dim_count = 0;
    if (files->a.array.dim_count == 3 || files->b.array.dim_count == 3 ||
        (files->has_c && files->c.array.dim_count == 3))
        result->sizes[result->dim_count++] = result->batch_count;
    if (!is_vector(&files->a))
        result->sizes[result->dim_count++] = result->m;
    if (!is_vector(&files->b))
        result->sizes[result->dim_count++] = result->n;
}

/* C has D's shape; its batch may be missing, and a vector may be a row or a column. */
static int set_c(const cli_multiply_files *files, const cli_multiply_result *result,
                 tg_problem *problem, cli_file_error *error)
{
    char text[96];
    const int is_column = is_vector(&files->b) && !is_vector(&files->a);
    const tg_matrix c = get_operand(&files->c, is_column);
    if (c.row_count != result->m || c.col_count != result->n)
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and D is %lld x %lld; C must have D's shape",
                             files->c.path, format_shape(&files->c, text), (long long)result->m,
                             (long long)result->n);
    problem->c = c;
    return CLI_EXIT_OK;
}

/* A vector or a row has a value for each column of D, a column one for each row. */
static int set_bias(const cli_multiply_files *files, const cli_multiply_result *result,
                    tg_problem *problem, cli_file_error *error)
{
    char text[96];
    const tg_matrix *bias = &files->bias.array.view;
    if (files->bias.array.batch_count == 1 && bias->row_count == 1 && bias->col_count == result->n)
        problem->bias = TG_BIAS_COL;
    else if (files->bias.array.batch_count == 1 && bias->col_count == 1 &&
             bias->row_count == result->m)
        problem->bias = TG_BIAS_ROW;
    else
        return cli_fail_file(error, CLI_EXIT_USAGE,
                             "%.300s is %s and D is %lld x %lld; pass a bias of %lld values or 1 x "
                             "%lld for D's columns, or %lld x 1 for its rows",
                             files->bias.path, format_shape(&files->bias, text),
                             (long long)result->m, (long long)result->n, (long long)result->n,
                             (long long)result->n, (long long)result->m);
    problem->bias_data = bias->data;
    return CLI_EXIT_OK;
}

int cli_make_multiply_problem(const cli_multiply_options *options, const cli_multiply_files *files,
                              cli_multiply_result *result, tg_problem *problem,
                              cli_file_error *error)
{
    const tg_matrix a = get_operand(&files->a, 0), b = get_operand(&files->b, 1);
    const int turns_a = options->is_a_transposed && !is_vector(&files->a);
    const int turns_b = options->is_b_transposed && !is_vector(&files->b);
    const int64_t inner_b = turns_b ? b.col_count : b.row_count;
    result->m = turns_a ? a.col_count : a.row_count;
    result->k = turns_a ? a.row_count : a.col_count;
    result->n = turns_b ? b.row_count : b.col_count;
    result->batch_count = 1;
    int code = check_inner(options, files, result->k, inner_b, error);
    if (code == CLI_EXIT_OK)
        code = add_batch(&files->a, &result->batch_count, error);
    if (code == CLI_EXIT_OK)
        code = add_batch(&files->b, &result->batch_count, error);
    if (code == CLI_EXIT_OK && files->has_c)
        code = add_batch(&files->c, &result->batch_count, error);
    if (code != CLI_EXIT_OK)
        return code;
    set_sizes(files, result);
    *problem =
        tg_make_problem(a, b, tg_make_matrix(result->output_type, NULL, result->m, result->n));
    problem->batch_count = result->batch_count;
    problem->d.batch_stride = result->batch_count > 1 ? result->m * result->n : 0;
    problem->op_a = turns_a ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem->op_b = turns_b ? TG_OPERATION_TRANSPOSE : TG_OPERATION_NONE;
    problem->alpha = options->alpha;
    problem->beta = options->beta;
    problem->precision = options->precision;
    problem->activation = options->activation;
    if (files->has_c)
        code = set_c(files, result, problem, error);
    if (code == CLI_EXIT_OK && files->has_bias)
        code = set_bias(files, result, problem, error);
    return code;
}
