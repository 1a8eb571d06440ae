/*
 * The candidates of a problem as Python sees them, and the command.
 */
#include "extension.h"

#include <stdlib.h>
#include <tilegemm_lab.h>

static PyObject *make_row(const tg_candidate *row)
{
    return Py_BuildValue("(sdOOssLLiLddd)", row->kernel, row->predicted_s,
                         row->is_legal ? Py_True : Py_False, row->is_chosen ? Py_True : Py_False,
                         tg_get_refusal_name(row->refusal), row->reason,
                         (long long)row->block_count, (long long)row->split_count,
                         row->threads_per_block, (long long)row->shared_bytes,
                         row->global_read_bytes, row->global_write_bytes, row->occupancy);
}

static PyObject *make_rows(const tg_candidate *rows, int count)
{
    PyObject *list = PyList_New(count);
    for (int i = 0; list && i < count; i++) {
        PyObject *row = make_row(&rows[i]);
        if (!row || PyList_SetItem(list, i, row))
            Py_CLEAR(list);
    }
    return list;
}

/* Finds the candidates on a chip that need not be here, or on a device that is. */
static int find_candidates(const char *text, const char *device, const char *chip_name,
                           tg_candidate *rows, int capacity, int *count)
{
    tg_problem problem;
    if (tgpy_raise_status(tg_parse_problem(text, &problem, sizeof problem)))
        return -1;
    if (chip_name) {
        tg_chip chip;
        return tgpy_raise_status(tg_find_chip(chip_name, &chip)) ||
                       tgpy_raise_status(
                           tg_list_chip_candidates(&chip, &problem, rows, capacity, count))
                   ? -1
                   : 0;
    }
    tg_context *context = NULL;
    const tg_context_options options = {.struct_bytes = sizeof options, .device = device};
    const tg_status status = tg_create_context(&options, &context);
    int failure = tgpy_raise_status(status);
    if (!failure)
        failure = tgpy_raise_status(tg_list_candidates(context, &problem, rows, capacity, count));
    tg_destroy_context(context);
    return failure;
}

PyObject *tgpy_list_candidates(PyObject *module, PyObject *arguments)
{
    (void)module;
    const char *text, *device, *chip_name;
    if (!PyArg_ParseTuple(arguments, "szz", &text, &device, &chip_name))
        return NULL;
    int count = 0;
    const int capacity = tg_get_kernel_count();
    tg_candidate *rows = calloc((size_t)capacity, sizeof *rows);
    if (!rows)
        return PyErr_NoMemory();
    PyObject *list = NULL;
    if (find_candidates(text, device, chip_name, rows, capacity, &count) == 0)
        list = make_rows(rows, count);
    free(rows);
    return list;
}
