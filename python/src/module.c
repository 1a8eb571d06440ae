/*
 * The extension module tilegemm._tilegemm.
 */
#include "extension.h"

static PyObject *get_version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(tg_get_version());
}

static PyMethodDef functions[] = {
    {"matmul", (PyCFunction)(void (*)(void))tgpy_matmul, METH_FASTCALL | METH_KEYWORDS,
     tgpy_matmul_doc},
    {"describe", (PyCFunction)(void (*)(void))tgpy_describe, METH_FASTCALL | METH_KEYWORDS,
     "describe($module, a, b, out=None, *, bias=None, activation=None, alpha=1.0, beta=0.0,"
     " c=None, scale_a=None, scale_b=None, precision=\"default\", batch_invariant=False,"
     " stream=None)\n--\n\nReturn the product that matmul would compute, as text, and its device."},
    {"attention", (PyCFunction)(void (*)(void))tgpy_attend, METH_VARARGS | METH_KEYWORDS,
     tgpy_attend_doc},
    {"list_candidates", tgpy_list_candidates, METH_VARARGS,
     "list_candidates($module, problem, device, chip, /)\n--\n\n"
     "Return a tuple for each kernel beside a problem."},
    {"open_torch", tgpy_open_torch, METH_NOARGS,
     "open_torch($module, /)\n--\n\n"
     "Define the operators in PyTorch, which is loaded. Return whether it has CUDA."},
    {"override_torch", tgpy_override_torch, METH_VARARGS,
     "override_torch($module, is_on, fp32, bf16, batch_invariant, /)\n--\n\n"
     "Put kernels in place of PyTorch's mm and bmm, or PyTorch's back."},
    {"run_command", tgpy_run_command, METH_VARARGS,
     "run_command($module, arguments, /)\n--\n\n"
     "Run the command tilegemm and return its exit code. It may end the process."},
    {"get_version", get_version, METH_NOARGS,
     "get_version($module, /)\n--\n\nReturn the version of the library."},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {PyModuleDef_HEAD_INIT, .m_name = "tilegemm._tilegemm",
                                        .m_size = -1, .m_methods = functions};

PyMODINIT_FUNC PyInit__tilegemm(void);
PyMODINIT_FUNC PyInit__tilegemm(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (module &&
        (tgpy_arguments_intern() || tgpy_exceptions_add(module) || tgpy_plan_add_type(module)))
        Py_CLEAR(module);
    return module;
}
