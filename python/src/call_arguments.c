/*
 * The arguments of matmul, describe and plan: their names, and the scalars among them.
 */
#include "extension.h"

#include <stdio.h>
#include <string.h>

static const char *const names[TGPY_ARGUMENT_COUNT] = {
    [TGPY_A] = "a",
    [TGPY_B] = "b",
    [TGPY_OUT] = "out",
    [TGPY_BIAS] = "bias",
    [TGPY_ACTIVATION] = "activation",
    [TGPY_ALPHA] = "alpha",
    [TGPY_BETA] = "beta",
    [TGPY_C] = "c",
    [TGPY_SCALE_A] = "scale_a",
    [TGPY_SCALE_B] = "scale_b",
    [TGPY_PRECISION] = "precision",
    [TGPY_BATCH_INVARIANT] = "batch_invariant",
    [TGPY_STREAM] = "stream",
};
static PyObject *interned[TGPY_ARGUMENT_COUNT];

int tgpy_arguments_intern(void)
{
    for (int i = 0; i < TGPY_ARGUMENT_COUNT; i++) {
        interned[i] = PyUnicode_InternFromString(names[i]);
        if (!interned[i])
            return -1;
    }
    return 0;
}

static int find_argument(PyObject *name)
{
    for (int i = 0; i < TGPY_ARGUMENT_COUNT; i++) {
        if (interned[i] == name)
            return i;
    }
    for (int i = 0; i < TGPY_ARGUMENT_COUNT; i++) {
        if (PyUnicode_CompareWithASCIIString(name, names[i]) == 0)
            return i;
    }
    return -1;
}

static int refuse(const char *format, const char *function, PyObject *name)
{
    PyErr_Format(PyExc_TypeError, format, function, name);
    return -1;
}

int tgpy_arguments_read(tgpy_arguments *arguments, const char *function, PyObject *const *values,
                        Py_ssize_t value_count, PyObject *keyword_names)
{
    enum { POSITIONAL_COUNT = TGPY_OUT + 1 };
    *arguments = (tgpy_arguments){0};
    if (value_count > POSITIONAL_COUNT) {
        PyErr_Format(PyExc_TypeError,
                     "%s takes %d positional arguments, a, b and out; %zd were given", function,
                     POSITIONAL_COUNT, value_count);
        return -1;
    }
    for (Py_ssize_t i = 0; i < value_count; i++)
        arguments->value[i] = values[i];
    const Py_ssize_t keyword_count = keyword_names ? PyTuple_Size(keyword_names) : 0;
    for (Py_ssize_t i = 0; i < keyword_count; i++) {
        PyObject *name = PyTuple_GetItem(keyword_names, i);
        const int argument = find_argument(name);
        if (argument < 0)
            return refuse("%s has no argument '%U'", function, name);
        if (arguments->value[argument])
            return refuse("%s got the argument '%U' twice", function, name);
        arguments->value[argument] = values[value_count + i];
    }
    for (int i = 0; i < TGPY_ARGUMENT_COUNT; i++) {
        if (arguments->value[i] == Py_None && i != TGPY_A && i != TGPY_B)
            arguments->value[i] = NULL;
    }
    if (!arguments->value[TGPY_A] || !arguments->value[TGPY_B])
        return refuse("%s needs the argument '%U'", function,
                      interned[arguments->value[TGPY_A] ? TGPY_B : TGPY_A]);
    return 0;
}

static int read_number(const tgpy_arguments *arguments, tgpy_argument argument, double *number)
{
    PyObject *value = arguments->value[argument];
    if (!value)
        return 0;
    *number = PyFloat_AsDouble(value);
    if (!PyErr_Occurred())
        return 0;
    return tgpy_raise(TGPY_OPERAND_ERROR, "%s = %R is no number", names[argument], value);
}

typedef const char *get_name(int value);
static const char *get_activation_name(int value)
{
    return tg_get_activation_name((tg_activation)value);
}
static const char *get_precision_name(int value)
{
    return tg_get_precision_name((tg_precision)value);
}

/* Sets *found to the value whose name the argument is. The error lists the names. */
static int read_name(const tgpy_arguments *arguments, tgpy_argument argument, get_name *get,
                     int *found)
{
    PyObject *value = arguments->value[argument];
    if (!value)
        return 0;
    const char *text = PyUnicode_Check(value) ? PyUnicode_AsUTF8AndSize(value, NULL) : NULL;
    if (PyErr_Occurred())
        return -1;
    char list[256] = "";
    for (int i = 0; get(i); i++) {
        if (text && strcmp(text, get(i)) == 0) {
            *found = i;
            return 0;
        }
        const size_t length = strlen(list);
        snprintf(list + length, sizeof list - length, "%s%s", i ? ", " : "", get(i));
    }
    return tgpy_raise(TGPY_ARGUMENT_ERROR, "%s = %R is none of %s", names[argument], value, list);
}

int tgpy_arguments_set_problem(const tgpy_arguments *arguments, tg_problem *problem)
{
    int activation = problem->activation, precision = problem->precision;
    if (read_number(arguments, TGPY_ALPHA, &problem->alpha) ||
        read_number(arguments, TGPY_BETA, &problem->beta) ||
        read_name(arguments, TGPY_ACTIVATION, get_activation_name, &activation) ||
        read_name(arguments, TGPY_PRECISION, get_precision_name, &precision))
        return -1;
    problem->activation = (tg_activation)activation;
    problem->precision = (tg_precision)precision;
    if (arguments->value[TGPY_BATCH_INVARIANT]) {
        problem->is_batch_invariant = PyObject_IsTrue(arguments->value[TGPY_BATCH_INVARIANT]);
        if (problem->is_batch_invariant < 0)
            return -1;
    }
    return 0;
}
