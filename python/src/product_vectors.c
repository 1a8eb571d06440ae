/*
 * The bias and the scales of a product.
 */
#include "extension.h"

/* Returns 1 if `array` is a vector of `count` elements without gaps along dimension `dim`, and has
 * size 1 in its other dimensions. */
static int is_vector(const tgpy_array *array, int dim, int64_t count)
{
    for (int i = 0; i < array->dim_count; i++) {
        if (i != dim && array->shape[i] != 1)
            return 0;
    }
    return dim >= 0 && dim < array->dim_count && array->shape[dim] == count &&
           (count < 2 || array->strides[dim] == 1);
}

static int refuse_vector(const tgpy_array *array, const char *expected)
{
    PyObject *shape = tgpy_shape_tuple(array->dim_count, array->shape);
    if (shape)
        tgpy_raise(TGPY_ARGUMENT_ERROR, "%s has shape %R; pass %s, without gaps in memory",
                   array->name, shape, expected);
    Py_XDECREF(shape);
    return -1;
}

/* A bias adds to the result as NumPy would add it: by its last dimension, or by rows as (m, 1). */
static int describe_bias(tgpy_product *product, PyObject *object)
{
    tgpy_array *bias = &product->bias;
    tg_problem *problem = &product->problem;
    if (tgpy_array_borrow(bias, object, "bias", &product->stream))
        return -1;
    if (bias->type != problem->d.type)
        return tgpy_raise(TGPY_OPERAND_ERROR, "bias has type %s and the result %s; convert bias",
                          tgpy_type_find(bias->type)->name, tgpy_type_find(problem->d.type)->name);
    const int last = bias->dim_count - 1;
    const int is_column = product->operand[TGPY_OPERAND_B].dim_count == 1;
    if (!is_column && is_vector(bias, last, problem->d.col_count)) {
        problem->bias = TG_BIAS_COL;
    } else if (is_vector(bias, is_column ? last : last - 1, problem->d.row_count)) {
        problem->bias = TG_BIAS_ROW;
    } else {
        return refuse_vector(bias, is_column ? "one value for each row of a"
                                             : "n values, one for each column, or shape (m, 1)");
    }
    problem->bias_data = bias->data;
    return 0;
}

/* A scale is a number, which becomes part of alpha, or float32 values in memory: one, or one for
 * each row of a or column of b, which is dimension `dim` of a pair. */
static int describe_scale(tgpy_product *product, PyObject *object, tgpy_array *array,
                          const char *name, int dim, tg_scale *scale, const float **data)
{
    tg_problem *problem = &product->problem;
    const tg_type type = dim ? problem->b.type : problem->a.type;
    if (type != TG_TYPE_FP8_E4M3 && type != TG_TYPE_FP8_E5M2)
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s is given and %s has type %s; only FP8 has scales, pass alpha", name,
                          dim ? "b" : "a", tgpy_type_find(type)->name);
    if (PyFloat_Check(object) || PyLong_Check(object)) {
        problem->alpha *= PyFloat_AsDouble(object);
        return PyErr_Occurred() ? -1 : 0;
    }
    if (tgpy_array_borrow(array, object, name, &product->stream))
        return -1;
    if (array->type != TG_TYPE_FP32)
        return tgpy_raise(TGPY_OPERAND_ERROR, "%s has type %s; pass float32", name,
                          tgpy_type_find(array->type)->name);
    const int64_t count = dim ? problem->d.col_count : problem->d.row_count;
    int64_t elem_count = 1;
    for (int i = 0; i < array->dim_count; i++)
        elem_count *= array->shape[i];
    const int vector_dim = array->dim_count == 2 ? dim : array->dim_count - 1;
    if (elem_count == 1)
        *scale = TG_SCALE_TENSOR;
    else if (is_vector(array, vector_dim, count))
        *scale = TG_SCALE_VECTOR;
    else
        return refuse_vector(array, dim ? "one value, n values or shape (1, n)"
                                        : "one value, m values or shape (m, 1)");
    *data = array->data;
    return 0;
}

int tgpy_vectors_describe(tgpy_product *product, const tgpy_arguments *arguments)
{
    PyObject *const *value = arguments->value;
    tg_problem *problem = &product->problem;
    if (value[TGPY_BIAS] && describe_bias(product, value[TGPY_BIAS]))
        return -1;
    if (value[TGPY_SCALE_A] &&
        describe_scale(product, value[TGPY_SCALE_A], &product->a_scale, "scale_a", 0,
                       &problem->a_scale, &problem->a_scale_data))
        return -1;
    if (value[TGPY_SCALE_B] &&
        describe_scale(product, value[TGPY_SCALE_B], &product->b_scale, "scale_b", 1,
                       &problem->b_scale, &problem->b_scale_data))
        return -1;
    return 0;
}
