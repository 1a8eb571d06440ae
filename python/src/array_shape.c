/*
 * Checks what the shapes and devices of several arrays must have in common.
 */
#include "extension.h"

PyObject *tgpy_shape_tuple(int dim_count, const int64_t *shape)
{
    PyObject *tuple = PyTuple_New(dim_count);
    for (int dim = 0; tuple && dim < dim_count; dim++) {
        PyObject *size = PyLong_FromLongLong(shape[dim]);
        if (!size || PyTuple_SetItem(tuple, dim, size))
            Py_CLEAR(tuple);
    }
    return tuple;
}

int64_t tgpy_stride_widen(int64_t stride, int64_t size)
{
    return size > 1 ? (int64_t)((uint64_t)stride * (uint64_t)size) : stride;
}

int tgpy_array_refuse_shapes(const tgpy_array *first, const tgpy_array *second, const char *fault)
{
    PyObject *first_shape = tgpy_shape_tuple(first->dim_count, first->shape);
    PyObject *second_shape = tgpy_shape_tuple(second->dim_count, second->shape);
    if (first_shape && second_shape)
        tgpy_raise(TGPY_ARGUMENT_ERROR, "%s has shape %R and %s has %R: %s", first->name,
                   first_shape, second->name, second_shape, fault);
    Py_XDECREF(first_shape);
    Py_XDECREF(second_shape);
    return -1;
}

static int refuse_result(const tgpy_array *array, int dim_count, const int64_t *shape)
{
    PyObject *own = tgpy_shape_tuple(array->dim_count, array->shape);
    PyObject *result = tgpy_shape_tuple(dim_count, shape);
    if (own && result)
        tgpy_raise(TGPY_ARGUMENT_ERROR, "%s has shape %R, which does not fit the result's, %R",
                   array->name, own, result);
    Py_XDECREF(own);
    Py_XDECREF(result);
    return -1;
}

int tgpy_array_check_shape(const tgpy_array *array, int dim_count, const int64_t *shape)
{
    int is_equal = array->dim_count == dim_count;
    for (int dim = 0; dim < dim_count && is_equal; dim++)
        is_equal = array->shape[dim] == shape[dim];
    return is_equal ? 0 : refuse_result(array, dim_count, shape);
}

int tgpy_array_check_broadcast(const tgpy_array *array, int dim_count, const int64_t *shape)
{
    int is_fitting = array->dim_count <= dim_count;
    for (int own = 0; own < array->dim_count && is_fitting; own++) {
        const int64_t size = shape[own + dim_count - array->dim_count];
        is_fitting = array->shape[own] == size || array->shape[own] == 1;
    }
    return is_fitting ? 0 : refuse_result(array, dim_count, shape);
}

int tgpy_array_check_device(const tgpy_array *first, const tgpy_array *other)
{
    if (!other->object || (other->is_on_gpu == first->is_on_gpu &&
                           (!first->is_on_gpu || other->device_index == first->device_index)))
        return 0;
    return tgpy_raise(TGPY_ARGUMENT_ERROR,
                      "%s is on %s %d and %s is on %s %d; move them to one device", first->name,
                      first->is_on_gpu ? "GPU" : "CPU", first->device_index, other->name,
                      other->is_on_gpu ? "GPU" : "CPU", other->device_index);
}
