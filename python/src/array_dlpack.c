/*
 * Borrowing arrays by DLPack: by the table of C functions, which tells the producer's current
 * stream and synchronizes nothing, and by `__dlpack__`, which makes a stream that it is given wait
 * for the array.
 */
#include "extension.h"

/* Returns a stride in elements. Some versions of CuPy divide the bytes of a negative one as if they
 * had no sign; times the element's bytes they wrap to the right number. */
static int64_t read_stride(int64_t stride, int64_t elem_bytes)
{
    return (int64_t)((uint64_t)stride * (uint64_t)elem_bytes) / elem_bytes;
}

int tgpy_array_set_tensor(tgpy_array *array, const tgpy_dlpack_tensor *tensor)
{
    const tgpy_type_row *row = tgpy_type_find_dlpack(tensor->type.code, tensor->type.bits);
    if (!row || tensor->type.lanes != 1)
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s has elements of DLPack's type code %d with %d bits; convert it to "
                          "float32, float64, float16, bfloat16, float8_e4m3fn or float8_e5m2",
                          array->name, tensor->type.code, tensor->type.bits);
    const int kind = tensor->device.kind;
    if (kind != TGPY_DLPACK_CPU && kind != TGPY_DLPACK_CUDA && kind != TGPY_DLPACK_CUDA_HOST &&
        kind != TGPY_DLPACK_CUDA_MANAGED)
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s is on a device of DLPack's kind %d; move it to the CPU or to a GPU "
                          "of NVIDIA",
                          array->name, kind);
    if (tensor->dim_count > TGPY_DIM_MAX)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "%s has %d dimensions; the limit is %d", array->name,
                          tensor->dim_count, TGPY_DIM_MAX);
    array->type = row->type;
    array->is_on_gpu = kind == TGPY_DLPACK_CUDA || kind == TGPY_DLPACK_CUDA_MANAGED;
    array->device_index = array->is_on_gpu ? tensor->device.index : 0;
    array->data = tensor->data ? (char *)tensor->data + tensor->byte_offset : NULL;
    array->dim_count = tensor->dim_count;
    const int64_t elem_bytes = tg_get_type_bytes(array->type);
    int64_t reach = 1;
    for (int dim = tensor->dim_count - 1; dim >= 0; dim--) {
        array->shape[dim] = tensor->shape[dim];
        array->strides[dim] =
            tensor->strides ? read_stride(tensor->strides[dim], elem_bytes) : reach;
        reach = tgpy_stride_widen(reach, tensor->shape[dim]);
    }
    return 0;
}

int tgpy_array_borrow_table(tgpy_array *array, tgpy_stream *stream)
{
    const tgpy_exchange_table *table = array->class.table;
    tgpy_dlpack_tensor tensor;
    if (table->lend(array->object, &tensor) || tgpy_array_set_tensor(array, &tensor))
        return -1;
    if (!array->is_on_gpu)
        return 0;
    void *own_stream = NULL;
    if (table->find_stream(TGPY_DLPACK_CUDA, array->device_index, &own_stream))
        return -1;
    if (!stream->is_known)
        *stream = (tgpy_stream){1, own_stream};
    /* Another stream than the producer's: `__dlpack__` makes it wait for the producer's. */
    return stream->handle == own_stream ? 0 : tgpy_array_borrow_dlpack(array, stream);
}

/* Reads `__dlpack_device__`: kind and index. */
static int read_device(PyObject *object, int *kind, int *index)
{
    PyObject *device = PyObject_CallMethod(object, "__dlpack_device__", NULL);
    if (!device)
        return -1;
    PyObject *kind_value = PySequence_GetItem(device, 0);
    PyObject *index_value = kind_value ? PySequence_GetItem(device, 1) : NULL;
    if (index_value) {
        *kind = (int)PyLong_AsLong(kind_value);
        *index = (int)PyLong_AsLong(index_value);
    }
    Py_XDECREF(index_value);
    Py_XDECREF(kind_value);
    Py_DECREF(device);
    return PyErr_Occurred() ? -1 : 0;
}

/* Asks the array's library for its current stream on the device of the array. */
static int find_library_stream(const tgpy_array *array, tgpy_stream *stream)
{
    PyObject *arguments = PyTuple_Pack(1, array->object);
    PyObject *handle = arguments ? tgpy_library_call("find_stream", arguments) : NULL;
    Py_XDECREF(arguments);
    const int failure = handle ? tgpy_stream_parse(handle, stream) : -1;
    Py_XDECREF(handle);
    return failure;
}

/* Calls object.__dlpack__(max_version=(1, 3), stream=...), without max_version where the library is
 * older than DLPack 1.0. DLPack numbers the legacy default stream 1. */
static PyObject *call_dlpack(PyObject *object, int is_on_gpu, const tgpy_stream *stream)
{
    PyObject *method = PyObject_GetAttrString(object, "__dlpack__");
    PyObject *keywords = PyDict_New();
    PyObject *none = PyTuple_New(0), *version = Py_BuildValue("(ii)", 1, 3);
    PyObject *handle =
        is_on_gpu ? PyLong_FromVoidPtr(stream->handle ? stream->handle : (void *)1) : NULL;
    PyObject *capsule = NULL;
    if (method && keywords && none && version && (handle || !is_on_gpu) &&
        (!handle || PyDict_SetItemString(keywords, "stream", handle) == 0) &&
        PyDict_SetItemString(keywords, "max_version", version) == 0) {
        capsule = PyObject_Call(method, none, keywords);
        if (!capsule && PyErr_ExceptionMatches(PyExc_TypeError)) {
            PyErr_Clear();
            if (PyDict_DelItemString(keywords, "max_version") == 0)
                capsule = PyObject_Call(method, none, keywords);
        }
    }
    Py_XDECREF(handle);
    Py_XDECREF(version);
    Py_XDECREF(none);
    Py_XDECREF(keywords);
    Py_XDECREF(method);
    return capsule;
}

/* Reads a capsule, which is never consumed: its own destructor gives the lease back. */
static int read_capsule(tgpy_array *array)
{
    if (PyCapsule_IsValid(array->holder, "dltensor_versioned")) {
        const tgpy_dlpack_versioned *lease =
            PyCapsule_GetPointer(array->holder, "dltensor_versioned");
        if (lease->version.major != 1)
            return tgpy_raise(TGPY_OPERAND_ERROR,
                              "%s speaks version %d of DLPack; the versions known are 0 and 1",
                              array->name, (int)lease->version.major);
        array->is_read_only = (lease->flags & TGPY_DLPACK_READ_ONLY) != 0;
        return tgpy_array_set_tensor(array, &lease->tensor);
    }
    if (PyCapsule_IsValid(array->holder, "dltensor")) {
        const tgpy_dlpack_lease *lease = PyCapsule_GetPointer(array->holder, "dltensor");
        return tgpy_array_set_tensor(array, &lease->tensor);
    }
    return tgpy_raise(TGPY_OPERAND_ERROR, "%s.__dlpack__() gave no capsule of DLPack", array->name);
}

int tgpy_array_borrow_dlpack(tgpy_array *array, tgpy_stream *stream)
{
    int kind = 0, index = 0;
    if (read_device(array->object, &kind, &index))
        return -1;
    const int is_on_gpu = kind == TGPY_DLPACK_CUDA || kind == TGPY_DLPACK_CUDA_MANAGED;
    if (is_on_gpu && !stream->is_known && find_library_stream(array, stream))
        return -1;
    array->holder = call_dlpack(array->object, is_on_gpu, stream);
    return array->holder ? read_capsule(array) : -1;
}
