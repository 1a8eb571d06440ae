/*
 * Borrowing arrays: which interface a Python type speaks, and the two interfaces of arrays on the
 * CPU, NumPy's and the buffer protocol.
 */
#include "extension.h"

#include <dlfcn.h>
#include <string.h>

enum { CLASS_MAX = 64 };
static tgpy_class classes[CLASS_MAX];
static int class_count;

/* Reads the type's table of C functions, version 1. Returns NULL if it has none that is known. */
static const tgpy_exchange_table *find_table(PyTypeObject *type)
{
    PyObject *capsule = PyObject_GetAttrString((PyObject *)type, "__dlpack_c_exchange_api__");
    const tgpy_exchange_table *table = NULL;
    if (capsule && PyCapsule_IsValid(capsule, "dlpack_exchange_api"))
        table = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    PyErr_Clear();
    Py_XDECREF(capsule);
    while (table && table->version.major != 1)
        table = table->older;
    return table && table->lend ? table : NULL;
}

static int has_attribute(PyTypeObject *type, const char *name)
{
    PyObject *value = PyObject_GetAttrString((PyObject *)type, name);
    PyErr_Clear();
    Py_XDECREF(value);
    return value != NULL;
}

static int has_buffer(PyObject *object)
{
    PyObject *view = PyMemoryView_FromObject(object);
    PyErr_Clear();
    Py_XDECREF(view);
    return view != NULL;
}

/* Learns a type's interface. A masked array is refused, since its memory holds hidden numbers. */
static int classify(PyObject *object, const char *name, tgpy_class *class)
{
    PyTypeObject *type = Py_TYPE(object);
    *class = (tgpy_class){.type = type, .table = find_table(type)};
    class->has_gradients = has_attribute(type, "requires_grad");
    class->has_signs = has_attribute(type, "is_neg");
    class->has_items = has_attribute(type, "__setitem__");
    if (class->table) {
        class->interface = TGPY_INTERFACE_TABLE;
    } else if (has_attribute(type, "__array_struct__")) {
        class->interface = TGPY_INTERFACE_NUMPY;
        if (has_attribute(type, "mask"))
            return tgpy_raise(TGPY_OPERAND_ERROR,
                              "%s is a masked array; pass its filled(...) array", name);
    } else if (has_attribute(type, "__dlpack__")) {
        class->interface = TGPY_INTERFACE_DLPACK;
    } else if (has_attribute(type, "__cuda_array_interface__")) {
        class->interface = TGPY_INTERFACE_CUDA;
    } else if (has_buffer(object)) {
        class->interface = TGPY_INTERFACE_BUFFER;
    } else {
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s is a %R, which is no array: it has none of __dlpack__, "
                          "__cuda_array_interface__ and the buffer protocol; pass an array of "
                          "NumPy, CuPy, JAX or PyTorch",
                          name, type);
    }
    return 0;
}

const tgpy_class *tgpy_class_find(PyObject *object, const char *name)
{
    PyTypeObject *type = Py_TYPE(object);
    for (int i = 0; i < class_count; i++) {
        if (classes[i].type == type)
            return &classes[i];
    }
    tgpy_class class;
    if (classify(object, name, &class))
        return NULL;
    /* A full table forgets its last type, so that the others keep their places. */
    tgpy_class *place = &classes[class_count < CLASS_MAX ? class_count++ : CLASS_MAX - 1];
    Py_INCREF(type);
    Py_XDECREF(place->type);
    *place = class;
    return place;
}

int tgpy_array_set_layout(tgpy_array *array, int dim_count, const intptr_t *shape,
                          const intptr_t *byte_strides)
{
    const int64_t elem_bytes = tg_get_type_bytes(array->type);
    if (dim_count > TGPY_DIM_MAX)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "%s has %d dimensions; the limit is %d", array->name,
                          dim_count, TGPY_DIM_MAX);
    array->dim_count = dim_count;
    int64_t reach = 1;
    for (int dim = dim_count - 1; dim >= 0; dim--) {
        array->shape[dim] = shape[dim];
        array->strides[dim] = reach;
        if (byte_strides && shape[dim] > 1) {
            if (byte_strides[dim] % elem_bytes != 0)
                return tgpy_raise(TGPY_ARGUMENT_ERROR,
                                  "%s has a stride of %zd bytes, which is no multiple of its "
                                  "element's %d; pass a copy",
                                  array->name, byte_strides[dim], (int)elem_bytes);
            array->strides[dim] = byte_strides[dim] / elem_bytes;
        }
        reach = tgpy_stride_widen(reach, shape[dim]);
    }
    return 0;
}

static int refuse_type(const tgpy_array *array, PyObject *type_name)
{
    return tgpy_raise(TGPY_OPERAND_ERROR,
                      "%s has elements of type %S; convert it to float32, float64, float16, "
                      "bfloat16, float8_e4m3fn or float8_e5m2",
                      array->name, type_name);
}

/* Finds the type of an array of NumPy by the name of its dtype, as ml_dtypes registers them. */
static int set_named_type(tgpy_array *array)
{
    PyObject *dtype = PyObject_GetAttrString(array->object, "dtype");
    PyObject *name = dtype ? PyObject_GetAttrString(dtype, "name") : NULL;
    const char *text = name ? PyUnicode_AsUTF8AndSize(name, NULL) : NULL;
    const tgpy_type_row *row = text ? tgpy_type_find_name(text) : NULL;
    int failure = -1;
    if (row) {
        array->type = row->type;
        failure = 0;
    } else if (text) {
        refuse_type(array, name);
    }
    Py_XDECREF(name);
    Py_XDECREF(dtype);
    return failure;
}

static int refuse_address(const tgpy_array *array)
{
    return tgpy_raise(TGPY_ARGUMENT_ERROR,
                      "%s begins or advances between two elements' addresses; pass a copy",
                      array->name);
}

int tgpy_array_borrow_numpy(tgpy_array *array)
{
    static PyObject *attribute;
    if (!attribute && !(attribute = PyUnicode_InternFromString("__array_struct__")))
        return -1;
    array->holder = PyObject_GetAttr(array->object, attribute);
    const tgpy_numpy_array *source =
        array->holder ? PyCapsule_GetPointer(array->holder, NULL) : NULL;
    if (!source)
        return -1;
    const tgpy_type_row *row = NULL;
    if (source->kind == 'f')
        row = tgpy_type_find_dlpack(TGPY_DLPACK_FLOAT, (uint8_t)(8 * source->elem_bytes));
    if (row)
        array->type = row->type;
    else if (set_named_type(array))
        return -1;
    if (!(source->flags & TGPY_NUMPY_NATIVE_ORDER))
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "%s has numbers in the other byte order; pass "
                          "%s.astype(%s.dtype.newbyteorder('='))",
                          array->name, array->name, array->name);
    if (!(source->flags & TGPY_NUMPY_ALIGNED))
        return refuse_address(array);
    array->data = source->data;
    /* A scalar lends a copy of its value, which is lost with what is written to it. */
    array->is_read_only = !(source->flags & TGPY_NUMPY_WRITABLE) ||
                          (source->dim_count == 0 && !array->class.has_items);
    return tgpy_array_set_layout(array, source->dim_count, source->shape, source->strides);
}

/* The functions of the buffer protocol, which CPython 3.10 exports but its limited API lacks. */
typedef int get_buffer(PyObject *object, tgpy_buffer *buffer, int flags);
typedef void release_buffer(tgpy_buffer *buffer);
enum { BUFFER_FORMAT_AND_STRIDES = 0x0004 | 0x0008 | 0x0010 };

int tgpy_array_borrow_buffer(tgpy_array *array)
{
    get_buffer *get = (get_buffer *)dlsym(RTLD_DEFAULT, "PyObject_GetBuffer");
    if (!get)
        return tgpy_raise(TGPY_OPERAND_ERROR, "this Python has no PyObject_GetBuffer");
    if (get(array->object, &array->buffer, BUFFER_FORMAT_AND_STRIDES)) {
        array->buffer.owner = NULL;
        return -1;
    }
    const char *format = array->buffer.format ? array->buffer.format : "B";
    const char *letter = *format == '@' || *format == '=' || *format == '<' ? format + 1 : format;
    static const tg_type types[] = {TG_TYPE_FP32, TG_TYPE_FP64, TG_TYPE_FP16};
    const tgpy_type_row *row = NULL;
    for (int i = 0; i < 3 && !row; i++) {
        if (strcmp(letter, tgpy_type_find(types[i])->format) == 0)
            row = tgpy_type_find(types[i]);
    }
    if (!row) {
        PyObject *name = PyUnicode_FromFormat("'%s'", format);
        if (name)
            refuse_type(array, name);
        Py_XDECREF(name);
        return -1;
    }
    array->type = row->type;
    array->data = array->buffer.data;
    array->is_read_only = array->buffer.is_read_only;
    return tgpy_array_set_layout(array, array->buffer.dim_count, array->buffer.shape,
                                 array->buffer.strides);
}

/* Refuses a tensor of PyTorch that stands for its negative: a part of a conjugated complex tensor,
 * whose strides are therefore never 1. */
static int check_sign(const tgpy_array *array)
{
    for (int dim = 0; dim < array->dim_count; dim++) {
        if (array->strides[dim] == 1 && array->shape[dim] > 1)
            return 0;
    }
    PyObject *flag = PyObject_CallMethod(array->object, "is_neg", NULL);
    const int is_negative = flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flag);
    if (is_negative <= 0)
        return is_negative;
    return tgpy_raise(TGPY_OPERAND_ERROR, "%s has its sign to come; pass %s.resolve_neg()",
                      array->name, array->name);
}

/* Refuses an array whose gradient the product would lose. */
static int check_gradient(const tgpy_array *array)
{
    PyObject *flag = PyObject_GetAttrString(array->object, "requires_grad");
    const int is_needed = flag ? PyObject_IsTrue(flag) : -1;
    Py_XDECREF(flag);
    if (is_needed <= 0)
        return is_needed;
    PyObject *arguments = PyTuple_New(0);
    PyObject *is_on = arguments ? tgpy_library_call("records_gradients", arguments) : NULL;
    const int is_recorded = is_on ? PyObject_IsTrue(is_on) : -1;
    Py_XDECREF(is_on);
    Py_XDECREF(arguments);
    if (is_recorded <= 0)
        return is_recorded;
    return tgpy_raise(TGPY_OPERAND_ERROR,
                      "%s requires a gradient, which this call does not record; pass %s.detach(), "
                      "or multiply by torch.ops.tilegemm.mm of tilegemm.torch",
                      array->name, array->name);
}

static int borrow_by_interface(tgpy_array *array, tgpy_stream *stream)
{
    switch (array->class.interface) {
    case TGPY_INTERFACE_TABLE:
        return tgpy_array_borrow_table(array, stream);
    case TGPY_INTERFACE_NUMPY:
        return tgpy_array_borrow_numpy(array);
    case TGPY_INTERFACE_DLPACK:
        return tgpy_array_borrow_dlpack(array, stream);
    case TGPY_INTERFACE_CUDA:
        return tgpy_array_borrow_cuda(array, stream);
    default:
        return tgpy_array_borrow_buffer(array);
    }
}

void tgpy_array_begin(tgpy_array *array)
{
    array->object = array->holder = NULL;
    array->buffer.owner = NULL;
    array->is_on_gpu = array->is_read_only = array->is_made = array->device_index = 0;
}

int tgpy_array_borrow(tgpy_array *array, PyObject *object, const char *name, tgpy_stream *stream)
{
    array->name = name;
    array->object = object;
    const tgpy_class *class = tgpy_class_find(object, name);
    if (!class)
        return -1;
    array->class = *class;
    if (class->has_gradients && check_gradient(array))
        return -1;
    if (borrow_by_interface(array, stream) || (class->has_signs && check_sign(array)))
        return -1;
    return (uintptr_t)array->data % (uintptr_t)tg_get_type_bytes(array->type) == 0
               ? 0
               : refuse_address(array);
}

void tgpy_array_release(tgpy_array *array)
{
    Py_CLEAR(array->holder);
    if (array->buffer.owner) {
        release_buffer *release = (release_buffer *)dlsym(RTLD_DEFAULT, "PyBuffer_Release");
        release(&array->buffer);
    }
}
