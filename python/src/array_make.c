/*
 * Results: arrays that the library of an operand allocates, and memory of our own for libraries
 * whose arrays never change.
 */
#include "extension.h"

#include <stdlib.h>

PyObject *tgpy_library_call(const char *function, PyObject *arguments)
{
    static PyObject *module;
    if (!module && !(module = PyImport_ImportModule("tilegemm._libraries")))
        return NULL;
    PyObject *callable = PyObject_GetAttrString(module, function);
    PyObject *value = callable ? PyObject_Call(callable, arguments, NULL) : NULL;
    Py_XDECREF(callable);
    return value;
}

/* Returns NumPy's dtype of a type, borrowed. */
static PyObject *find_dtype(tg_type type)
{
    static PyObject *dtypes[8];
    if (!dtypes[type]) {
        PyObject *arguments = Py_BuildValue("(s)", tgpy_type_find(type)->name);
        dtypes[type] = arguments ? tgpy_library_call("find_numpy_dtype", arguments) : NULL;
        Py_XDECREF(arguments);
    }
    return dtypes[type];
}

/* Calls numpy.empty. NumPy is there, since an operand is its array. */
static PyObject *make_numpy(tg_type type, int dim_count, const int64_t *shape)
{
    static PyObject *empty;
    if (!empty) {
        PyObject *numpy = PyImport_ImportModule("numpy");
        empty = numpy ? PyObject_GetAttrString(numpy, "empty") : NULL;
        Py_XDECREF(numpy);
    }
    PyObject *dtype = empty ? find_dtype(type) : NULL;
    PyObject *sizes = dtype ? tgpy_shape_tuple(dim_count, shape) : NULL;
    PyObject *result = sizes ? PyObject_CallFunctionObjArgs(empty, sizes, dtype, NULL) : NULL;
    Py_XDECREF(sizes);
    return result;
}

static void set_table_error(void *state, const char *kind, const char *message)
{
    (void)state;
    PyGILState_STATE lock = PyGILState_Ensure();
    tgpy_raise(TGPY_MEMORY_ERROR, "the result: %s: %s", kind, message);
    PyGILState_Release(lock);
}

static PyObject *make_by_table(const tgpy_array *like, tg_type type, int dim_count,
                               const int64_t *shape)
{
    const tgpy_type_row *row = tgpy_type_find(type);
    tgpy_dlpack_tensor prototype = {
        .device = {like->is_on_gpu ? TGPY_DLPACK_CUDA : TGPY_DLPACK_CPU, like->device_index},
        .dim_count = dim_count,
        .type = {row->dlpack_code, row->bits, 1},
        .shape = (int64_t *)(uintptr_t)shape,
    };
    tgpy_dlpack_versioned *lease = NULL;
    void *object = NULL;
    const tgpy_exchange_table *table = like->class.table;
    if (table->allocate(&prototype, &lease, NULL, set_table_error) ||
        table->import_object(lease, &object))
        return NULL;
    return object;
}

/* Makes a memoryview of the shape over a bytearray. */
static PyObject *make_memory_view(tg_type type, int dim_count, const int64_t *shape)
{
    PyObject *sizes = tgpy_shape_tuple(dim_count, shape);
    PyObject *arguments = sizes ? Py_BuildValue("(Os)", sizes, tgpy_type_find(type)->name) : NULL;
    PyObject *view = arguments ? tgpy_library_call("make_memory_view", arguments) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(sizes);
    return view;
}

/* Memory of our own that a capsule lends, and the context that frees it. */
typedef struct owned_memory {
    tgpy_dlpack_lease lease;
    tg_context *context;
    int64_t sizes[2 * TGPY_DIM_MAX];
} owned_memory;

static void release_owned(tgpy_dlpack_lease *lease)
{
    owned_memory *memory = lease->owner;
    tg_release_memory(memory->context, lease->tensor.data);
    free(memory);
}

/* A capsule that somebody has consumed bears another name, and its memory is theirs. */
static void drop_capsule(PyObject *capsule)
{
    if (!PyCapsule_IsValid(capsule, "dltensor"))
        return;
    tgpy_dlpack_lease *lease = PyCapsule_GetPointer(capsule, "dltensor");
    lease->release(lease);
}

static PyObject *make_owned(const tgpy_array *like, tg_type type, int dim_count,
                            const int64_t *shape)
{
    const tgpy_type_row *row = tgpy_type_find(type);
    owned_memory *memory = calloc(1, sizeof *memory);
    if (!memory)
        return PyErr_NoMemory();
    tgpy_dlpack_tensor *tensor = &memory->lease.tensor;
    int64_t size_bytes = row->bits / 8, stride = 1;
    int is_large = 0;
    for (int dim = dim_count - 1; dim >= 0; dim--) {
        memory->sizes[dim] = shape[dim];
        memory->sizes[TGPY_DIM_MAX + dim] = stride;
        stride = tgpy_stride_widen(stride, shape[dim]);
        is_large |= __builtin_mul_overflow(size_bytes, shape[dim], &size_bytes);
    }
    if (is_large)
        tgpy_raise(TGPY_MEMORY_ERROR, "the result has more than 2^63 - 1 bytes");
    if (is_large || tgpy_context_find(like->is_on_gpu, like->device_index, &memory->context) ||
        tgpy_raise_status(tg_allocate_memory(memory->context, size_bytes, &tensor->data))) {
        free(memory);
        return NULL;
    }
    tensor->device.kind = like->is_on_gpu ? TGPY_DLPACK_CUDA : TGPY_DLPACK_CPU;
    tensor->device.index = like->device_index;
    tensor->dim_count = dim_count;
    tensor->type = (tgpy_dlpack_type){row->dlpack_code, row->bits, 1};
    tensor->shape = memory->sizes;
    tensor->strides = memory->sizes + TGPY_DIM_MAX;
    memory->lease.owner = memory;
    memory->lease.release = release_owned;
    PyObject *capsule = PyCapsule_New(&memory->lease, "dltensor", drop_capsule);
    if (!capsule)
        release_owned(&memory->lease);
    return capsule;
}

/* Asks the operand's library for an array. It gives None where its arrays never change. */
static PyObject *make_by_library(const tgpy_array *like, tg_type type, int dim_count,
                                 const int64_t *shape)
{
    PyObject *sizes = tgpy_shape_tuple(dim_count, shape);
    PyObject *arguments =
        sizes ? Py_BuildValue("(OOs)", like->object, sizes, tgpy_type_find(type)->name) : NULL;
    PyObject *result = arguments ? tgpy_library_call("make_array", arguments) : NULL;
    Py_XDECREF(arguments);
    Py_XDECREF(sizes);
    if (result == Py_None) {
        Py_DECREF(result);
        result = make_owned(like, type, dim_count, shape);
    }
    return result;
}

int tgpy_array_make(tgpy_array *array, const tgpy_array *like, tg_type type, int dim_count,
                    const int64_t *shape, tgpy_stream *stream, PyObject **result)
{
    const tgpy_interface interface = like->class.interface;
    if (interface == TGPY_INTERFACE_NUMPY)
        *result = make_numpy(type, dim_count, shape);
    else if (interface == TGPY_INTERFACE_TABLE)
        *result = make_by_table(like, type, dim_count, shape);
    else if (interface == TGPY_INTERFACE_BUFFER)
        *result = make_memory_view(type, dim_count, shape);
    else
        *result = make_by_library(like, type, dim_count, shape);
    if (!*result)
        return -1;
    array->name = "the result";
    array->object = *result;
    array->class = like->class;
    array->is_made = 1;
    if (PyCapsule_IsValid(*result, "dltensor")) {
        const tgpy_dlpack_lease *lease = PyCapsule_GetPointer(*result, "dltensor");
        return tgpy_array_set_tensor(array, &lease->tensor);
    }
    if (interface == TGPY_INTERFACE_NUMPY)
        return tgpy_array_borrow_numpy(array);
    if (interface == TGPY_INTERFACE_TABLE) {
        tgpy_dlpack_tensor tensor;
        return like->class.table->lend(*result, &tensor) ? -1
                                                         : tgpy_array_set_tensor(array, &tensor);
    }
    return tgpy_array_borrow(array, *result, array->name, stream);
}

int tgpy_array_finish(const tgpy_array *array, const tgpy_array *like, tg_context *context,
                      void *stream, PyObject **result)
{
    PyObject *arguments = NULL, *finished;
    if (!array->is_made)
        return 0;
    if (PyCapsule_IsValid(*result, "dltensor")) {
        /* The consumer knows nothing of our stream, so the product must be complete. */
        if (array->is_on_gpu && tgpy_raise_status(tg_synchronize(context, stream)))
            return -1;
        arguments = Py_BuildValue("(OOii)", like->object, *result,
                                  array->is_on_gpu ? TGPY_DLPACK_CUDA : TGPY_DLPACK_CPU,
                                  array->device_index);
        finished = arguments ? tgpy_library_call("convert_capsule", arguments) : NULL;
    } else if (array->dim_count == 0 && (like->class.interface == TGPY_INTERFACE_NUMPY ||
                                         like->class.interface == TGPY_INTERFACE_BUFFER)) {
        PyObject *index = PyTuple_New(0);
        finished = index ? PyObject_GetItem(*result, index) : NULL;
        Py_XDECREF(index);
    } else {
        return 0;
    }
    Py_XDECREF(arguments);
    Py_DECREF(*result);
    *result = finished;
    return finished ? 0 : -1;
}
