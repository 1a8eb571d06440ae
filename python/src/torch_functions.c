/*
 * The functions by which the Python module tilegemm.torch reaches the operators.
 */
#include "extension.h"
#include "torch_shims.h"

PyObject *tgpy_open_torch(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    const char *missing = tgpy_torch_open();
    if (missing) {
        tgpy_raise(TGPY_UNSUPPORTED_ERROR,
                   "PyTorch has no %s; tilegemm.torch needs PyTorch 2.9 or later, tilegemm.matmul "
                   "takes tensors of any",
                   missing);
        return NULL;
    }
    if (tgpy_torch_define()) {
        tgpy_raise(TGPY_ERROR, "PyTorch refused the operators; it has printed why");
        return NULL;
    }
    return PyBool_FromLong(tgpy_torch.has_cuda);
}

PyObject *tgpy_override_torch(PyObject *module, PyObject *arguments)
{
    (void)module;
    int is_on, has_fp32, has_bf16;
    tgpy_torch_choice choice = {.is_batch_invariant = 0};
    if (!PyArg_ParseTuple(arguments, "pppp", &is_on, &has_fp32, &has_bf16,
                          &choice.is_batch_invariant))
        return NULL;
    choice.takes[TG_TYPE_FP32] = has_fp32;
    choice.takes[TG_TYPE_BF16] = has_bf16;
    if (is_on)
        tgpy_torch_chosen = choice;
    if ((is_on ? tgpy_torch_override : tgpy_torch_restore)()) {
        tgpy_raise(TGPY_ERROR, "PyTorch refused the kernels; it has printed why");
        return NULL;
    }
    Py_INCREF(Py_None);
    return Py_None;
}
