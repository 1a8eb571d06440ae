/*
 * The shapes of a product by the rules of numpy.matmul: vectors, batches, broadcasting.
 */
#include "extension.h"

/* Sets matrices A and B and checks their sizes. A vector is a row of A or a column of B. */
static int describe_matrices(tgpy_product *product)
{
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    const tgpy_array *b = &product->operand[TGPY_OPERAND_B];
    const tgpy_array *empty = a->dim_count == 0 ? a : b;
    if (empty->dim_count == 0)
        return tgpy_raise(TGPY_ARGUMENT_ERROR,
                          "%s is a scalar; pass an array of one dimension or more, or multiply by "
                          "alpha",
                          empty->name);
    tg_problem *problem = &product->problem;
    const int a_last = a->dim_count - 1, b_last = b->dim_count - 1;
    problem->a = (tg_matrix){.data = a->data,
                             .type = a->type,
                             .row_count = a_last ? a->shape[a_last - 1] : 1,
                             .col_count = a->shape[a_last],
                             .row_stride = a_last ? a->strides[a_last - 1] : 0,
                             .col_stride = a->strides[a_last]};
    problem->b = (tg_matrix){.data = b->data,
                             .type = b->type,
                             .row_count = b->shape[b_last ? b_last - 1 : 0],
                             .col_count = b_last ? b->shape[b_last] : 1,
                             .row_stride = b->strides[b_last ? b_last - 1 : 0],
                             .col_stride = b_last ? b->strides[b_last] : 0};
    if (problem->a.col_count != problem->b.row_count)
        return tgpy_array_refuse_shapes(a, b, "the columns of a differ from the rows of b");
    return 0;
}

/* Returns dimension `index` of `count` batch dimensions, which the array's own end: size and stride
 * of the array there, 1 and 0 before its first. */
static int64_t find_batch(const tgpy_array *array, int count, int index, int64_t *stride)
{
    const int own_count = array->dim_count > 2 ? array->dim_count - 2 : 0;
    const int dim = index - (count - own_count);
    *stride = dim < 0 || array->shape[dim] == 1 ? 0 : array->strides[dim];
    return dim < 0 ? 1 : array->shape[dim];
}

/* Lists the batch dimensions in the product's loops, outermost first. */
static int describe_batches(tgpy_product *product)
{
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    const tgpy_array *b = &product->operand[TGPY_OPERAND_B];
    const int longest = a->dim_count > b->dim_count ? a->dim_count : b->dim_count;
    const int count = longest > 2 ? longest - 2 : 0;
    for (int i = 0; i < count; i++) {
        tgpy_batch *loop = &product->loops[i];
        const int64_t a_size = find_batch(a, count, i, &loop->stride[TGPY_OPERAND_A]);
        const int64_t b_size = find_batch(b, count, i, &loop->stride[TGPY_OPERAND_B]);
        if (a_size != b_size && a_size != 1 && b_size != 1)
            return tgpy_array_refuse_shapes(a, b, "their batch dimensions do not broadcast");
        loop->size = a_size == 1 ? b_size : a_size;
    }
    product->loop_count = count;
    return 0;
}

/* Lists the result's dimensions: those of the batch, rows unless a is a vector, columns unless b is
 * one. Returns their count. */
static int list_result_dims(const tgpy_product *product, int64_t *shape)
{
    int count = product->loop_count;
    for (int i = 0; i < count; i++)
        shape[i] = product->loops[i].size;
    if (product->operand[TGPY_OPERAND_A].dim_count > 1)
        shape[count++] = product->problem.a.row_count;
    if (product->operand[TGPY_OPERAND_B].dim_count > 1)
        shape[count++] = product->problem.b.col_count;
    return count;
}

/* Sets C or D of the problem, and its strides in the loops. A dimension that the array lacks, or
 * has with size 1, has stride 0. */
static void describe_result(tgpy_product *product, tgpy_operand operand, int dim_count,
                            const int64_t *shape, tg_matrix *matrix)
{
    const tgpy_array *array = &product->operand[operand];
    int64_t strides[TGPY_DIM_MAX + 2];
    for (int dim = 0; dim < dim_count; dim++) {
        const int own = dim - (dim_count - array->dim_count);
        strides[dim] =
            own < 0 || (array->shape[own] == 1 && shape[dim] != 1) ? 0 : array->strides[own];
    }
    for (int i = 0; i < product->loop_count; i++)
        product->loops[i].stride[operand] = strides[i];
    int dim = product->loop_count;
    const int64_t row_count = product->problem.a.row_count;
    const int64_t col_count = product->problem.b.col_count;
    *matrix = (tg_matrix){
        .data = array->data, .type = array->type, .row_count = row_count, .col_count = col_count};
    matrix->row_stride =
        product->operand[TGPY_OPERAND_A].dim_count > 1 ? strides[dim++] : col_count;
    matrix->col_stride = product->operand[TGPY_OPERAND_B].dim_count > 1 ? strides[dim] : 1;
}

/* Returns the type of a result that the caller does not give: the operands' own, bfloat16 for FP8,
 * since a result in FP8 needs a scale. */
static tg_type choose_result_type(tg_type type)
{
    return type == TG_TYPE_FP8_E4M3 || type == TG_TYPE_FP8_E5M2 ? TG_TYPE_BF16 : type;
}

int tgpy_shape_describe(tgpy_product *product)
{
    if (describe_matrices(product) || describe_batches(product))
        return -1;
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    const tgpy_array *c = &product->operand[TGPY_OPERAND_C];
    tgpy_array *d = &product->operand[TGPY_OPERAND_D];
    int64_t shape[TGPY_DIM_MAX + 2];
    const int dim_count = list_result_dims(product, shape);
    if (d->object) {
        if (tgpy_array_check_shape(d, dim_count, shape))
            return -1;
    } else if (tgpy_array_make(d, a, choose_result_type(a->type), dim_count, shape,
                               &product->stream, &product->result)) {
        return -1;
    }
    describe_result(product, TGPY_OPERAND_D, dim_count, shape, &product->problem.d);
    product->problem.c = product->problem.d;
    for (int i = 0; i < product->loop_count; i++)
        product->loops[i].stride[TGPY_OPERAND_C] = product->loops[i].stride[TGPY_OPERAND_D];
    if (!product->is_c_read || !c->object)
        return 0;
    if (tgpy_array_check_broadcast(c, dim_count, shape))
        return -1;
    describe_result(product, TGPY_OPERAND_C, dim_count, shape, &product->problem.c);
    return 0;
}
