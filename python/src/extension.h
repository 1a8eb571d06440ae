/*
 * This header is shared by the files of the extension module: arrays, products, errors. All
 * functions that return int return 0, or -1 with a Python exception set. The GIL is held in all of
 * them.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TGPY_EXTENSION_H
#define TGPY_EXTENSION_H

#define Py_LIMITED_API 0x030A0000
#define PY_SSIZE_T_CLEAN
#include <Python.h>
#include <tilegemm.h>

#include "dlpack_abi.h"

enum { TGPY_DIM_MAX = 64 }; /* NumPy's and PyTorch's own limit */

/* ------------------------------------------------------------------------------- exceptions -- */

/* The exceptions of the module. Each is a tilegemm.Error too. */
typedef enum tgpy_exception {
    TGPY_ERROR,             /* Error: base of the others */
    TGPY_ARGUMENT_ERROR,    /* ArgumentError, a ValueError */
    TGPY_OPERAND_ERROR,     /* OperandTypeError, a TypeError */
    TGPY_UNSUPPORTED_ERROR, /* UnsupportedError, a NotImplementedError */
    TGPY_MEMORY_ERROR,      /* OutOfMemoryError, a MemoryError */
    TGPY_DEVICE_ERROR,      /* DeviceError, a RuntimeError */
    TGPY_EXCEPTION_COUNT
} tgpy_exception;

int tgpy_exceptions_add(PyObject *module);

/* Sets an exception and returns -1. `format` is PyErr_Format's. */
int tgpy_raise(tgpy_exception kind, const char *format, ...);

/* Sets the exception of a status with tg_get_error_detail, and returns -1; returns 0 for OK. */
int tgpy_raise_status(tg_status status);

/* ------------------------------------------------------------------------------------ types -- */

/* An element type in the words of each interface. */
typedef struct tgpy_type_row {
    tg_type type;
    const char *name;   /* NumPy's, ml_dtypes' and PyTorch's: "float32", "float8_e4m3fn" */
    const char *format; /* the buffer protocol's, or NULL */
    uint8_t dlpack_code, bits;
} tgpy_type_row;

const tgpy_type_row *tgpy_type_find(tg_type type);
const tgpy_type_row *tgpy_type_find_dlpack(uint8_t code, uint8_t bits);
const tgpy_type_row *tgpy_type_find_name(const char *name); /* NULL where none has it */

/* ----------------------------------------------------------------------------------- arrays -- */

/* The interface by which a Python type lends its memory. */
typedef enum tgpy_interface {
    TGPY_INTERFACE_TABLE,  /* __dlpack_c_exchange_api__ */
    TGPY_INTERFACE_NUMPY,  /* __array_struct__ */
    TGPY_INTERFACE_DLPACK, /* __dlpack__ */
    TGPY_INTERFACE_CUDA,   /* __cuda_array_interface__ */
    TGPY_INTERFACE_BUFFER  /* the buffer protocol */
} tgpy_interface;

/* A Python type, as its first array taught. */
typedef struct tgpy_class {
    PyTypeObject *type;
    tgpy_interface interface;
    const tgpy_exchange_table *table;
    int has_gradients; /* its arrays have `requires_grad` */
    int has_signs;     /* its arrays have `is_neg` */
    int has_items;     /* its arrays take assignments, as NumPy's scalars do not */
} tgpy_class;

/* An array that an argument lends for one call. */
typedef struct tgpy_array {
    const char *name; /* the argument's: "a" */
    PyObject *object; /* borrowed; NULL: the argument was not given */
    tgpy_class class;
    void *data;
    tg_type type;
    int is_read_only, is_made; /* is_made: by tgpy_array_make */
    int is_on_gpu, device_index;
    int dim_count;
    int64_t shape[TGPY_DIM_MAX], strides[TGPY_DIM_MAX]; /* strides in elements */
    PyObject *holder;   /* keeps the lent memory; NULL where nothing must be released */
    tgpy_buffer buffer; /* its owner is NULL where the buffer protocol was not used */
} tgpy_array;

/* The stream of a call. The first array on a GPU decides it, unless the caller has. */
typedef struct tgpy_stream {
    int is_known;
    void *handle; /* CUstream; NULL: the legacy default stream */
} tgpy_stream;

/* Finds what is known of an object's type, or learns it. Returns NULL with an exception where the
 * type speaks no interface. `name` is the argument's. */
const tgpy_class *tgpy_class_find(PyObject *object, const char *name);

/* Marks an array as not given. Only what says so is set, since an array has places for many
 * dimensions. */
void tgpy_array_begin(tgpy_array *array);

/* Borrows the memory of `object`. Work that its library has queued before is ordered before what
 * `stream` gets next. The caller passes *array to tgpy_array_release, after a failure too. */
int tgpy_array_borrow(tgpy_array *array, PyObject *object, const char *name, tgpy_stream *stream);
void tgpy_array_release(tgpy_array *array);

/* Each borrows by one interface. */
int tgpy_array_borrow_table(tgpy_array *array, tgpy_stream *stream);
int tgpy_array_borrow_dlpack(tgpy_array *array, tgpy_stream *stream);
int tgpy_array_borrow_cuda(tgpy_array *array, tgpy_stream *stream);
int tgpy_array_borrow_numpy(tgpy_array *array);
int tgpy_array_borrow_buffer(tgpy_array *array);

/* Fills *array from DLPack's description. */
int tgpy_array_set_tensor(tgpy_array *array, const tgpy_dlpack_tensor *tensor);

/* Sets shape and strides from byte strides (NULL: row-major without gaps). */
int tgpy_array_set_layout(tgpy_array *array, int dim_count, const intptr_t *shape,
                          const intptr_t *byte_strides);

/* Returns the stride without gaps of the dimension before one with `size` entries and `stride`.
 * Only the strides of an array without elements, which lead nowhere, overflow. */
int64_t tgpy_stride_widen(int64_t stride, int64_t size);

/* Makes a result of `type` and `shape` in the library of `like`, on the device of `like`, and
 * borrows it as *array for work on `stream`. The caller owns *result. */
int tgpy_array_make(tgpy_array *array, const tgpy_array *like, tg_type type, int dim_count,
                    const int64_t *shape, tgpy_stream *stream, PyObject **result);

/* Turns the memory of tgpy_array_make into the object that the caller gets, once the product is in
 * it: a scalar of NumPy, an array of a library whose arrays never change. Takes over *result. An
 * array of the caller's is left as it is. */
int tgpy_array_finish(const tgpy_array *array, const tgpy_array *like, tg_context *context,
                      void *stream, PyObject **result);

/* Returns a tuple of sizes, a new reference, or NULL. */
PyObject *tgpy_shape_tuple(int dim_count, const int64_t *shape);

/* Refuses two arrays for a fault of their shapes. Returns -1. */
int tgpy_array_refuse_shapes(const tgpy_array *first, const tgpy_array *second, const char *fault);

/* Refuse an array that has not the shape of the result, or does not broadcast to it. */
int tgpy_array_check_shape(const tgpy_array *array, int dim_count, const int64_t *shape);
int tgpy_array_check_broadcast(const tgpy_array *array, int dim_count, const int64_t *shape);

/* Refuses an array that is given and is not on the device of `first`. */
int tgpy_array_check_device(const tgpy_array *first, const tgpy_array *other);

/* Calls a function of the Python module tilegemm._libraries. Returns a new reference or NULL. */
PyObject *tgpy_library_call(const char *function, PyObject *arguments);

/* Sets *stream to a stream that Python names by a number or by an object that has one. */
int tgpy_stream_parse(PyObject *object, tgpy_stream *stream);

/* Set *context to the context of a device, which is made at first use. The first needs no GIL and
 * sets no exception. */
tg_status tgpy_context_open(int is_on_gpu, int device_index, tg_context **context);
int tgpy_context_find(int is_on_gpu, int device_index, tg_context **context);

/* --------------------------------------------------------------------------------- products -- */

/* The arguments of matmul in their order. The first three may be positional. */
typedef enum tgpy_argument {
    TGPY_A,
    TGPY_B,
    TGPY_OUT,
    TGPY_BIAS,
    TGPY_ACTIVATION,
    TGPY_ALPHA,
    TGPY_BETA,
    TGPY_C,
    TGPY_SCALE_A,
    TGPY_SCALE_B,
    TGPY_PRECISION,
    TGPY_BATCH_INVARIANT,
    TGPY_STREAM,
    TGPY_ARGUMENT_COUNT
} tgpy_argument;

/* The arguments of a call, borrowed; NULL: not given, or None. */
typedef struct tgpy_arguments {
    PyObject *value[TGPY_ARGUMENT_COUNT];
} tgpy_arguments;

int tgpy_arguments_intern(void);
int tgpy_arguments_read(tgpy_arguments *arguments, const char *function, PyObject *const *values,
                        Py_ssize_t value_count, PyObject *keyword_names);

/* Sets what a problem takes from the scalar arguments: alpha, beta, activation, precision. */
int tgpy_arguments_set_problem(const tgpy_arguments *arguments, tg_problem *problem);

/* The operands of a product that have batch dimensions. */
typedef enum tgpy_operand {
    TGPY_OPERAND_A,
    TGPY_OPERAND_B,
    TGPY_OPERAND_C,
    TGPY_OPERAND_D,
    TGPY_OPERAND_COUNT
} tgpy_operand;

/* One dimension over which matrices are numbered, with each operand's stride in elements. */
typedef struct tgpy_batch {
    int64_t size, stride[TGPY_OPERAND_COUNT];
} tgpy_batch;

/* A product of arrays: the library's problem, and loops around it over batch dimensions that one
 * stride cannot describe. */
typedef struct tgpy_product {
    tgpy_array operand[TGPY_OPERAND_COUNT];
    tgpy_array bias, a_scale, b_scale;
    const tg_problem *scalars; /* a plan's, in place of the arguments'; or NULL */
    PyObject *result;          /* owned; NULL until the arrays are ready */
    tg_problem problem;
    tg_context *context;
    tgpy_stream stream;
    int is_c_read; /* beta is not 0 */
    int loop_count;
    tgpy_batch loops[TGPY_DIM_MAX];
} tgpy_product;

/* Prepares a product for the functions below. */
void tgpy_product_begin(tgpy_product *product);

/* Borrows the arrays, makes the result and describes the product. The caller passes *product to
 * tgpy_product_release, after a failure too. */
int tgpy_product_describe(tgpy_product *product, const tgpy_arguments *arguments);
void tgpy_product_release(tgpy_product *product);

/* Computes the product, by `plan` unless that is NULL, without the GIL where it takes long. */
int tgpy_product_compute(tgpy_product *product, const tg_plan *plan);

/* Describe parts of a product, in this order: its matrices, loops and result; the bias and the
 * scales; which loops become the library's batch. */
int tgpy_shape_describe(tgpy_product *product);
int tgpy_vectors_describe(tgpy_product *product, const tgpy_arguments *arguments);
int tgpy_batch_describe(tgpy_product *product);

/* ------------------------------------------------------------------------ functions, objects -- */

extern const char tgpy_matmul_doc[];
PyObject *tgpy_matmul(PyObject *module, PyObject *const *values, Py_ssize_t value_count,
                      PyObject *keyword_names);
PyObject *tgpy_describe(PyObject *module, PyObject *const *values, Py_ssize_t value_count,
                        PyObject *keyword_names);
extern const char tgpy_attend_doc[];
PyObject *tgpy_attend(PyObject *module, PyObject *values, PyObject *keywords);
int tgpy_plan_add_type(PyObject *module);
PyObject *tgpy_list_candidates(PyObject *module, PyObject *arguments);
PyObject *tgpy_open_torch(PyObject *module, PyObject *unused);
PyObject *tgpy_override_torch(PyObject *module, PyObject *arguments);
PyObject *tgpy_run_command(PyObject *module, PyObject *arguments);

#endif
