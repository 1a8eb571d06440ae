/*
 * The exceptions of the module, and the exception of each status of the library.
 */
#include "extension.h"

#include <stdarg.h>

static PyObject *exceptions[TGPY_EXCEPTION_COUNT];

typedef struct exception_row {
    const char *name, *doc;
    PyObject **base; /* Python's own exception that it is too */
} exception_row;

static PyObject *make_exception(const exception_row *row)
{
    PyObject *bases = row->base ? PyTuple_Pack(2, exceptions[TGPY_ERROR], *row->base)
                                : PyTuple_Pack(1, PyExc_Exception);
    PyObject *exception =
        bases ? PyErr_NewExceptionWithDoc(row->name, row->doc, bases, NULL) : NULL;
    Py_XDECREF(bases);
    return exception;
}

int tgpy_exceptions_add(PyObject *module)
{
    const exception_row rows[TGPY_EXCEPTION_COUNT] = {
        [TGPY_ERROR] = {"tilegemm.Error", "Base of tilegemm's exceptions.", NULL},
        [TGPY_ARGUMENT_ERROR] = {"tilegemm.ArgumentError",
                                 "An argument's value is out of range, or does not fit the others.",
                                 &PyExc_ValueError},
        [TGPY_OPERAND_ERROR] = {"tilegemm.OperandTypeError",
                                "An argument is no array, or its element type does not fit.",
                                &PyExc_TypeError},
        [TGPY_UNSUPPORTED_ERROR] = {"tilegemm.UnsupportedError",
                                    "The product is legal, but no kernel here computes it.",
                                    &PyExc_NotImplementedError},
        [TGPY_MEMORY_ERROR] = {"tilegemm.OutOfMemoryError", "Memory ran out.", &PyExc_MemoryError},
        [TGPY_DEVICE_ERROR] = {"tilegemm.DeviceError", "There is no such device, or it failed.",
                               &PyExc_RuntimeError},
    };
    for (int kind = 0; kind < TGPY_EXCEPTION_COUNT; kind++) {
        exceptions[kind] = make_exception(&rows[kind]);
        if (!exceptions[kind] ||
            PyObject_SetAttrString(module, rows[kind].name + sizeof "tilegemm", exceptions[kind]))
            return -1;
    }
    return 0;
}

int tgpy_raise(tgpy_exception kind, const char *format, ...)
{
    va_list values;
    va_start(values, format);
    PyErr_FormatV(exceptions[kind], format, values);
    va_end(values);
    return -1;
}

int tgpy_raise_status(tg_status status)
{
    static const tgpy_exception kinds[] = {
        [TG_STATUS_OK] = TGPY_ERROR,
        [TG_STATUS_INVALID_ARGUMENT] = TGPY_ARGUMENT_ERROR,
        [TG_STATUS_SIZE_OVERFLOW] = TGPY_ARGUMENT_ERROR,
        [TG_STATUS_OVERLAP] = TGPY_ARGUMENT_ERROR,
        [TG_STATUS_UNSUPPORTED] = TGPY_UNSUPPORTED_ERROR,
        [TG_STATUS_UNKNOWN_NAME] = TGPY_ARGUMENT_ERROR,
        [TG_STATUS_OUT_OF_MEMORY] = TGPY_MEMORY_ERROR,
        [TG_STATUS_WORKSPACE_TOO_SMALL] = TGPY_ARGUMENT_ERROR,
        [TG_STATUS_NO_DEVICE] = TGPY_DEVICE_ERROR,
        [TG_STATUS_DEVICE_FAILURE] = TGPY_DEVICE_ERROR,
    };
    if (status == TG_STATUS_OK)
        return 0;
    const size_t row = (size_t)status;
    return tgpy_raise(row < sizeof kinds / sizeof *kinds ? kinds[row] : TGPY_ERROR, "%s",
                      tg_get_error_detail());
}
