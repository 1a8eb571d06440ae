/*
 * Borrowing arrays on a GPU by `__cuda_array_interface__`, version 2 or 3, and streams.
 */
#include "extension.h"

/* Reads a tuple of integers into `values`. Returns their count, or -1. */
static int read_integers(PyObject *tuple, intptr_t *values)
{
    const Py_ssize_t count = PySequence_Size(tuple);
    if (count < 0 || count > TGPY_DIM_MAX)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(tuple, i);
        values[i] = item ? PyLong_AsSsize_t(item) : -1;
        Py_XDECREF(item);
        if (PyErr_Occurred())
            return -1;
    }
    return (int)count;
}

/* Reads "typestr": '<f4'. Types that NumPy has no letter for are found by dtype.name. */
static int read_type(tgpy_array *array, PyObject *entries)
{
    PyObject *code = PyDict_GetItemString(entries, "typestr");
    const char *text = code ? PyUnicode_AsUTF8AndSize(code, NULL) : NULL;
    const tgpy_type_row *row = NULL;
    if (text && (text[0] == '<' || text[0] == '|' || text[0] == '=') && text[1] == 'f' &&
        text[2] >= '1' && text[2] <= '8')
        row = tgpy_type_find_dlpack(TGPY_DLPACK_FLOAT, (uint8_t)(8 * (text[2] - '0')));
    PyObject *dtype = row ? NULL : PyObject_GetAttrString(array->object, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    const char *name_text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    if (name_text)
        row = tgpy_type_find_name(name_text);
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    if (!row)
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s has elements of type '%s'; convert it to float32, float64, float16, "
                          "bfloat16, float8_e4m3fn or float8_e5m2",
                          array->name, text ? text : "");
    array->type = row->type;
    return 0;
}

/* Makes `stream` wait for the array's own stream. If no stream is known, the array's becomes it. */
static int join_stream(tgpy_array *array, PyObject *entries, tgpy_stream *stream)
{
    PyObject *entry = PyDict_GetItemString(entries, "stream");
    tgpy_stream own = {0};
    if (entry && entry != Py_None && tgpy_stream_parse(entry, &own))
        return -1;
    if (!stream->is_known)
        *stream = (tgpy_stream){1, own.handle};
    if (!own.is_known || own.handle == stream->handle)
        return 0;
    tg_context *context = NULL;
    if (tgpy_context_find(1, array->device_index, &context))
        return -1;
    return tgpy_raise_status(tg_synchronize(context, own.handle));
}

int tgpy_array_borrow_cuda(tgpy_array *array, tgpy_stream *stream)
{
    PyObject *entries = PyObject_GetAttrString(array->object, "__cuda_array_interface__");
    if (!entries)
        return -1;
    array->holder = entries;
    PyObject *data = PyDict_GetItemString(entries, "data");
    PyObject *shape = PyDict_GetItemString(entries, "shape");
    PyObject *strides = PyDict_GetItemString(entries, "strides");
    PyObject *device = PyObject_GetAttrString(array->object, "device");
    PyObject *index = device ? PyObject_GetAttrString(device, "id") : NULL;
    array->device_index = index ? (int)PyLong_AsLong(index) : 0;
    PyErr_Clear();
    Py_XDECREF(index);
    Py_XDECREF(device);
    array->is_on_gpu = 1;
    PyObject *address = data ? PySequence_GetItem(data, 0) : NULL;
    PyObject *flag = address ? PySequence_GetItem(data, 1) : NULL;
    if (flag) {
        array->data = PyLong_AsVoidPtr(address);
        array->is_read_only = PyObject_IsTrue(flag);
    }
    Py_XDECREF(flag);
    Py_XDECREF(address);
    intptr_t sizes[TGPY_DIM_MAX], byte_strides[TGPY_DIM_MAX];
    const int dim_count = shape ? read_integers(shape, sizes) : -1;
    const int has_strides = strides && strides != Py_None;
    if (PyErr_Occurred() || !flag || dim_count < 0 ||
        (has_strides && read_integers(strides, byte_strides) != dim_count)) {
        PyErr_Clear();
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s.__cuda_array_interface__ lacks data, shape or strides", array->name);
    }
    if (read_type(array, entries) || join_stream(array, entries, stream))
        return -1;
    return tgpy_array_set_layout(array, dim_count, sizes, has_strides ? byte_strides : NULL);
}

int tgpy_stream_parse(PyObject *object, tgpy_stream *stream)
{
    static const char *const attributes[] = {"cuda_stream", "ptr", "handle"};
    PyObject *number = PyLong_Check(object) ? object : NULL;
    Py_XINCREF(number);
    PyObject *pair = number ? NULL : PyObject_CallMethod(object, "__cuda_stream__", NULL);
    if (pair) {
        number = PySequence_GetItem(pair, 1);
        Py_DECREF(pair);
    }
    for (int i = 0; i < 3 && !number; i++) {
        PyErr_Clear();
        number = PyObject_GetAttrString(object, attributes[i]);
    }
    PyErr_Clear();
    if (!number || !PyLong_Check(number)) {
        Py_XDECREF(number);
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "stream is %R; pass the number of a CUstream, or a stream of PyTorch or "
                          "CuPy",
                          object);
    }
    void *handle = PyLong_AsVoidPtr(number);
    Py_DECREF(number);
    if (PyErr_Occurred())
        return -1;
    /* Libraries number the legacy default stream 0 or 1; the driver takes NULL for it. */
    *stream = (tgpy_stream){1, handle == (void *)1 ? NULL : handle};
    return 0;
}
