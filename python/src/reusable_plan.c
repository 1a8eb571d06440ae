/*
 * The type Plan: a product whose kernel is chosen once.
 */
#include "extension.h"

#include <math.h>

typedef struct plan_object {
    PyObject_HEAD tg_plan *plan;
    tg_problem scalars; /* alpha, beta, activation, precision, as the arguments gave them */
    tg_problem problem; /* without pointers */
    PyObject *text;     /* the problem as text */
    int is_on_gpu, device_index;
} plan_object;

static void forget_pointers(tg_problem *problem)
{
    problem->a.data = problem->b.data = problem->c.data = problem->d.data = NULL;
    problem->bias_data = NULL;
    problem->a_scale_data = problem->b_scale_data = problem->d_scale_data = NULL;
}

static int is_equal_matrix(const tg_matrix *x, const tg_matrix *y, int64_t batch_count)
{
    return x->type == y->type && x->row_count == y->row_count && x->col_count == y->col_count &&
           (x->row_stride == y->row_stride || x->row_count < 2) &&
           (x->col_stride == y->col_stride || x->col_count < 2) &&
           (x->batch_stride == y->batch_stride || batch_count < 2);
}

static int is_equal_factor(double x, double y)
{
    return x == y || (isnan(x) && isnan(y));
}

/* Returns 1 if a plan for x serves y, which has the scalar arguments of x. */
static int is_equal_problem(const tg_problem *x, const tg_problem *y)
{
    return x->batch_count == y->batch_count && x->bias == y->bias &&
           is_equal_factor(x->alpha, y->alpha) && x->a_scale == y->a_scale &&
           x->b_scale == y->b_scale && is_equal_matrix(&x->a, &y->a, x->batch_count) &&
           is_equal_matrix(&x->b, &y->b, x->batch_count) &&
           is_equal_matrix(&x->d, &y->d, x->batch_count) &&
           (x->beta == 0 || is_equal_matrix(&x->c, &y->c, x->batch_count));
}

static int format_problem(const tg_problem *problem, PyObject **text)
{
    char buffer[640];
    if (tgpy_raise_status(tg_format_problem(problem, buffer, sizeof buffer)))
        return -1;
    *text = PyUnicode_FromString(buffer);
    return *text ? 0 : -1;
}

static int make_plan(plan_object *self, tgpy_product *product, const tgpy_arguments *arguments)
{
    if (tgpy_arguments_set_problem(arguments, &self->scalars))
        return -1;
    product->scalars = &self->scalars;
    if (tgpy_product_describe(product, arguments))
        return -1;
    self->problem = product->problem;
    forget_pointers(&self->problem);
    self->is_on_gpu = product->operand[TGPY_OPERAND_A].is_on_gpu;
    self->device_index = product->operand[TGPY_OPERAND_A].device_index;
    return tgpy_raise_status(tg_create_plan(product->context, &self->problem, NULL, &self->plan)) ||
                   format_problem(&self->problem, &self->text)
               ? -1
               : 0;
}

/* Reads the arguments from a tuple and a dictionary, which keep them alive. */
static int read_arguments(tgpy_arguments *arguments, const char *function, PyObject *positional,
                          PyObject *keywords)
{
    PyObject *values[2 * TGPY_ARGUMENT_COUNT];
    const Py_ssize_t value_count = PyTuple_Size(positional);
    const Py_ssize_t keyword_count = keywords ? PyDict_Size(keywords) : 0;
    if (value_count + keyword_count > TGPY_ARGUMENT_COUNT) {
        PyErr_Format(PyExc_TypeError, "%s takes %d arguments at most; %zd were given", function,
                     (int)TGPY_ARGUMENT_COUNT, value_count + keyword_count);
        return -1;
    }
    PyObject *names = keyword_count ? PyTuple_New(keyword_count) : NULL;
    if (keyword_count && !names)
        return -1;
    for (Py_ssize_t i = 0; i < value_count; i++)
        values[i] = PyTuple_GetItem(positional, i);
    PyObject *name, *value;
    Py_ssize_t position = 0;
    for (Py_ssize_t i = 0; keyword_count && PyDict_Next(keywords, &position, &name, &value); i++) {
        Py_INCREF(name);
        PyTuple_SetItem(names, i, name);
        values[value_count + i] = value;
    }
    const int failure = tgpy_arguments_read(arguments, function, values, value_count, names);
    Py_XDECREF(names);
    return failure;
}

static PyObject *create_plan(PyTypeObject *type, PyObject *positional, PyObject *keywords)
{
    tgpy_arguments arguments;
    if (read_arguments(&arguments, "plan", positional, keywords))
        return NULL;
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    plan_object *self = (plan_object *)allocate(type, 0);
    if (!self)
        return NULL;
    self->scalars =
        (tg_problem){.struct_bytes = sizeof self->scalars, .batch_count = 1, .alpha = 1};
    tgpy_product product;
    tgpy_product_begin(&product);
    const int failure = make_plan(self, &product, &arguments);
    tgpy_product_release(&product);
    if (failure)
        Py_CLEAR(self);
    return (PyObject *)self;
}

static void destroy_plan(PyObject *object)
{
    plan_object *self = (plan_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    tg_destroy_plan(self->plan);
    Py_XDECREF(self->text);
    ((freefunc)PyType_GetSlot(type, Py_tp_free))(object);
    Py_DECREF(type);
}

/* A call may not change what was planned, so it takes no scalar but the stream. */
static int check_planned(const tgpy_arguments *arguments)
{
    static const tgpy_argument scalars[] = {TGPY_ACTIVATION, TGPY_ALPHA, TGPY_BETA, TGPY_PRECISION,
                                            TGPY_BATCH_INVARIANT};
    for (int i = 0; i < 5; i++) {
        if (arguments->value[scalars[i]])
            return tgpy_raise(TGPY_ARGUMENT_ERROR,
                              "a plan has alpha, beta, activation, precision and batch_invariant "
                              "of its making; pass arrays and the stream alone");
    }
    return 0;
}

static int run_plan(plan_object *self, tgpy_product *product, const tgpy_arguments *arguments)
{
    product->scalars = &self->scalars;
    if (check_planned(arguments) || tgpy_product_describe(product, arguments))
        return -1;
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    tg_problem described = product->problem;
    forget_pointers(&described);
    if (a->is_on_gpu != self->is_on_gpu || a->device_index != self->device_index)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "the plan is for another device than a's");
    if (!is_equal_problem(&self->problem, &described)) {
        PyObject *text;
        if (format_problem(&described, &text))
            return -1;
        tgpy_raise(TGPY_ARGUMENT_ERROR, "the plan is for %U and the arguments are %U; make another",
                   self->text, text);
        Py_DECREF(text);
        return -1;
    }
    return tgpy_product_compute(product, self->plan);
}

static PyObject *call_plan(PyObject *object, PyObject *positional, PyObject *keywords)
{
    tgpy_arguments arguments;
    if (read_arguments(&arguments, "Plan.__call__", positional, keywords))
        return NULL;
    tgpy_product product;
    tgpy_product_begin(&product);
    PyObject *result = NULL;
    if (run_plan((plan_object *)object, &product, &arguments) == 0) {
        result = product.result;
        product.result = NULL;
    }
    tgpy_product_release(&product);
    return result;
}

typedef enum plan_field {
    FIELD_PROBLEM,
    FIELD_KERNEL,
    FIELD_WORKSPACE,
    FIELD_SECONDS,
    FIELD_THREADS
} plan_field;

static PyObject *get_field(PyObject *object, void *which)
{
    const plan_object *self = (const plan_object *)object;
    tg_plan_info info;
    if (tgpy_raise_status(tg_get_plan_info(self->plan, &info, sizeof info)))
        return NULL;
    switch ((plan_field)(intptr_t)which) {
    case FIELD_KERNEL:
        return PyUnicode_FromString(info.kernel);
    case FIELD_WORKSPACE:
        return PyLong_FromLongLong(info.workspace_bytes);
    case FIELD_SECONDS:
        return PyFloat_FromDouble(info.predicted_s);
    case FIELD_THREADS:
        return PyLong_FromLong(info.thread_count);
    default:
        Py_INCREF(self->text);
        return self->text;
    }
}

static PyObject *show_plan(PyObject *object)
{
    const plan_object *self = (const plan_object *)object;
    tg_plan_info info;
    if (tgpy_raise_status(tg_get_plan_info(self->plan, &info, sizeof info)))
        return NULL;
    return PyUnicode_FromFormat("<tilegemm.Plan %U by %s>", self->text, info.kernel);
}

int tgpy_plan_add_type(PyObject *module)
{
    static PyGetSetDef fields[] = {
        {"problem", get_field, NULL, "the product as text, as tilegemm.explain takes it",
         (void *)(intptr_t)FIELD_PROBLEM},
        {"kernel", get_field, NULL, "the kernel's name", (void *)(intptr_t)FIELD_KERNEL},
        {"workspace_bytes", get_field, NULL, "bytes of workspace",
         (void *)(intptr_t)FIELD_WORKSPACE},
        {"predicted_s", get_field, NULL, "seconds that the model predicts",
         (void *)(intptr_t)FIELD_SECONDS},
        {"thread_count", get_field, NULL, "CPU threads at most", (void *)(intptr_t)FIELD_THREADS},
        {NULL, NULL, NULL, NULL, NULL},
    };
    static const char doc[] =
        "Plan(a, b, out=None, *, bias=None, activation=None, alpha=1.0, beta=0.0, c=None,"
        " scale_a=None, scale_b=None, precision=\"default\", batch_invariant=False, stream=None)\n"
        "--\n\n"
        "Choose the kernel of a product once, for any number of calls.\n\n"
        "The arguments are those of matmul. Calling the plan with arrays of the same shapes,\n"
        "strides, types and device computes the product: plan(a, b, out=None, *, bias=None,\n"
        "c=None, scale_a=None, scale_b=None, stream=None). Threads may call it at once.\n\n"
        "Raises what matmul raises; a call also ArgumentError if its arrays are not as planned.\n\n"
        ">>> import numpy, tilegemm\n"
        ">>> a = numpy.ones((2, 3), dtype=numpy.float32)\n"
        ">>> multiply = tilegemm.plan(a, a.T, alpha=2)\n"
        ">>> multiply(a, a.T)\n"
        "array([[6., 6.],\n"
        "       [6., 6.]], dtype=float32)\n"
        ">>> multiply.problem\n"
        "'2x2x3:alpha=2:rsb=1:csb=3'\n";
    static PyType_Slot slots[] = {
        {Py_tp_doc, (void *)(uintptr_t)doc},
        {Py_tp_new, create_plan},
        {Py_tp_dealloc, destroy_plan},
        {Py_tp_call, call_plan},
        {Py_tp_repr, show_plan},
        {Py_tp_getset, fields},
        {0, NULL},
    };
    static PyType_Spec spec = {"tilegemm.Plan", sizeof(plan_object), 0, Py_TPFLAGS_DEFAULT, slots};
    PyObject *type = PyType_FromSpec(&spec);
    if (!type || PyModule_AddObject(module, "Plan", type)) {
        Py_XDECREF(type);
        return -1;
    }
    return 0;
}
