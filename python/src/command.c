/*
 * The command inside the module: Python starts a process of its own for each run, since the command
 * prints, and ends the process where its arguments are wrong.
 */
#include "extension.h"

#include <stdio.h>
#include <stdlib.h>

#if TGPY_HAVE_COMMAND

int tgpy_command_main(int argc, char **argv); /* cli/main.c */

/* The build renames stdin to this in jansson, which compares streams with it. */
extern FILE *tgpy_no_stream;
FILE *tgpy_no_stream;

static char **list_words(PyObject *arguments, Py_ssize_t count)
{
    char **words = calloc((size_t)count + 1, sizeof *words);
    for (Py_ssize_t i = 0; words && i < count; i++) {
        PyObject *word = PyList_GetItem(arguments, i);
        if (!word || PyBytes_AsStringAndSize(word, &words[i], NULL)) {
            free(words);
            return NULL;
        }
    }
    return words;
}

PyObject *tgpy_run_command(PyObject *module, PyObject *arguments)
{
    (void)module;
    PyObject *list;
    if (!PyArg_ParseTuple(arguments, "O!", &PyList_Type, &list))
        return NULL;
    const Py_ssize_t count = PyList_Size(list);
    char **words = count < 0 ? NULL : list_words(list, count);
    if (!words)
        return PyErr_Occurred() ? NULL : PyErr_NoMemory();
    const int code = tgpy_command_main((int)count, words);
    fflush(stdout);
    free(words);
    return PyLong_FromLong(code);
}

#else

PyObject *tgpy_run_command(PyObject *module, PyObject *arguments)
{
    (void)module;
    (void)arguments;
    tgpy_raise(TGPY_UNSUPPORTED_ERROR,
               "this build lacks the command: it was built without libjansson.a");
    return NULL;
}

#endif
