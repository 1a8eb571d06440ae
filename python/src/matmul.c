/*
 * The functions matmul and describe.
 */
#include "extension.h"

PyObject *tgpy_matmul(PyObject *module, PyObject *const *values, Py_ssize_t value_count,
                      PyObject *keyword_names)
{
    (void)module;
    tgpy_arguments arguments;
    if (tgpy_arguments_read(&arguments, "matmul", values, value_count, keyword_names))
        return NULL;
    tgpy_product product;
    tgpy_product_begin(&product);
    PyObject *result = NULL;
    if (tgpy_product_describe(&product, &arguments) == 0 &&
        tgpy_product_compute(&product, NULL) == 0) {
        result = product.result;
        product.result = NULL;
    }
    tgpy_product_release(&product);
    return result;
}

PyObject *tgpy_describe(PyObject *module, PyObject *const *values, Py_ssize_t value_count,
                        PyObject *keyword_names)
{
    (void)module;
    tgpy_arguments arguments;
    if (tgpy_arguments_read(&arguments, "describe", values, value_count, keyword_names))
        return NULL;
    tgpy_product product;
    tgpy_product_begin(&product);
    PyObject *pair = NULL;
    char problem[640];
    if (tgpy_product_describe(&product, &arguments) == 0 &&
        tgpy_raise_status(tg_format_problem(&product.problem, problem, sizeof problem)) == 0) {
        const tgpy_array *a = &product.operand[TGPY_OPERAND_A];
        PyObject *device = a->is_on_gpu ? PyUnicode_FromFormat("cuda:%d", a->device_index)
                                        : PyUnicode_FromString("cpu");
        pair = device ? Py_BuildValue("(sN)", problem, device) : NULL;
    }
    tgpy_product_release(&product);
    return pair;
}

const char tgpy_matmul_doc[] =
    "matmul($module, a, b, out=None, *, bias=None, activation=None, alpha=1.0, beta=0.0, c=None,"
    " scale_a=None, scale_b=None, precision=\"default\", batch_invariant=False, stream=None)\n"
    "--\n\n"
    "Return activation(alpha * a @ b + beta * c + bias).\n\n"
    "Shapes follow numpy.matmul: a is (..., m, k) or (k,), b is (..., k, n) or (k,), and the\n"
    "result is (..., m, n) without the dimension that a vector lacks. Batch dimensions broadcast.\n"
    "Views, transposes, negative strides and broadcast arrays are read where they are.\n\n"
    "a, b      arrays of one type on one device: float32, float64, float16, bfloat16, or FP8\n"
    "          (float8_e4m3fn, float8_e5m2, any mix). Any object counts that speaks DLPack,\n"
    "          __cuda_array_interface__, NumPy's array interface or the buffer protocol.\n"
    "out       array that receives the result and is returned; its type may be another that the\n"
    "          library stores (float32 for 16-bit operands). It must not overlap a or b.\n"
    "          Without it the library of a makes the result: of a's type, bfloat16 for FP8.\n"
    "bias      values of the result's type: (n,) for columns, (m, 1) for rows\n"
    "activation  'none', 'relu', 'gelu_erf', 'gelu_tanh' or 'silu'\n"
    "beta, c   c broadcasts to the result; without c, out is read. beta = 0 never reads c.\n"
    "scale_a, scale_b  scales of FP8: a number, a float32 array of one value, or one value for\n"
    "          each row of a and column of b\n"
    "precision 'default', 'ieee_fp32', 'ieee_fp64', 'tf32', 'bf16x3', 'bf16x6', 'bf16x9' or\n"
    "          'fp16x3': a bound on the error, see docs/numerics.md\n"
    "batch_invariant  True: the bits of a row depend on no other row\n"
    "stream    CUDA stream (a number, or PyTorch's or CuPy's object); default: the current\n"
    "          stream of the library of the first array on a GPU\n\n"
    "The GIL is released while a product of some size is computed. On a GPU the call returns\n"
    "when the work is in the stream.\n\n"
    "Raises ArgumentError (a ValueError) for shapes, overlap and values; OperandTypeError (a\n"
    "TypeError) for what is no array and for types; UnsupportedError, OutOfMemoryError,\n"
    "DeviceError. The message names argument, value and remedy.\n\n"
    ">>> import numpy, tilegemm\n"
    ">>> a = numpy.array([[1, 2], [3, 4]], dtype=numpy.float32)\n"
    ">>> tilegemm.matmul(a, a.T, bias=numpy.array([-10, 0], dtype=numpy.float32),\n"
    "...                 activation='relu')\n"
    "array([[ 0., 11.],\n"
    "       [ 1., 25.]], dtype=float32)\n";
