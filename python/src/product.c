/*
 * A product of arrays, from the arguments of a call to the library's call.
 */
#include "extension.h"

static int borrow(tgpy_product *product, const tgpy_arguments *arguments, tgpy_operand operand,
                  tgpy_argument argument, const char *name)
{
    PyObject *object = arguments->value[argument];
    return object ? tgpy_array_borrow(&product->operand[operand], object, name, &product->stream)
                  : 0;
}

/* Refuses arrays that are not all on the device of a. */
static int check_devices(const tgpy_product *product)
{
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    const tgpy_array *others[] = {&product->operand[TGPY_OPERAND_B],
                                  &product->operand[TGPY_OPERAND_C],
                                  &product->operand[TGPY_OPERAND_D],
                                  &product->bias,
                                  &product->a_scale,
                                  &product->b_scale};
    for (int i = 0; i < 6; i++) {
        if (tgpy_array_check_device(a, others[i]))
            return -1;
    }
    return 0;
}

static int check_types(const tgpy_product *product)
{
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    const tgpy_array *b = &product->operand[TGPY_OPERAND_B];
    const int is_fp8 = tg_get_type_bytes(a->type) == 1 && tg_get_type_bytes(b->type) == 1;
    if (a->type != b->type && !is_fp8)
        return tgpy_raise(TGPY_OPERAND_ERROR,
                          "a has type %s and b has %s; convert one to the other's",
                          tgpy_type_find(a->type)->name, tgpy_type_find(b->type)->name);
    return 0;
}

static int borrow_operands(tgpy_product *product, const tgpy_arguments *arguments)
{
    if (borrow(product, arguments, TGPY_OPERAND_A, TGPY_A, "a") ||
        borrow(product, arguments, TGPY_OPERAND_B, TGPY_B, "b") ||
        borrow(product, arguments, TGPY_OPERAND_D, TGPY_OUT, "out"))
        return -1;
    const tgpy_array *out = &product->operand[TGPY_OPERAND_D];
    if (out->object && out->is_read_only)
        return tgpy_raise(TGPY_ARGUMENT_ERROR, "out is read-only; pass a writable array");
    product->is_c_read = product->problem.beta != 0;
    if (!product->is_c_read)
        return 0;
    if (borrow(product, arguments, TGPY_OPERAND_C, TGPY_C, "c"))
        return -1;
    if (!out->object && !arguments->value[TGPY_C])
        return tgpy_raise(TGPY_ARGUMENT_ERROR,
                          "beta is not 0 and there is neither c nor out; pass c");
    return 0;
}

void tgpy_product_begin(tgpy_product *product)
{
    for (int i = 0; i < TGPY_OPERAND_COUNT; i++)
        tgpy_array_begin(&product->operand[i]);
    tgpy_array_begin(&product->bias);
    tgpy_array_begin(&product->a_scale);
    tgpy_array_begin(&product->b_scale);
    product->scalars = NULL;
    product->result = NULL;
    product->stream = (tgpy_stream){0};
}

int tgpy_product_describe(tgpy_product *product, const tgpy_arguments *arguments)
{
    tg_problem *problem = &product->problem;
    *problem = (tg_problem){.struct_bytes = sizeof *problem, .batch_count = 1, .alpha = 1};
    if (product->scalars)
        *problem = *product->scalars;
    else if (tgpy_arguments_set_problem(arguments, problem))
        return -1;
    PyObject *stream = arguments->value[TGPY_STREAM];
    if ((stream && tgpy_stream_parse(stream, &product->stream)) ||
        borrow_operands(product, arguments) || check_types(product) ||
        tgpy_shape_describe(product) || tgpy_vectors_describe(product, arguments) ||
        check_devices(product))
        return -1;
    if (!product->operand[TGPY_OPERAND_A].is_on_gpu)
        product->stream.handle = NULL;
    if (tgpy_batch_describe(product))
        return -1;
    if (!product->result) {
        product->result = arguments->value[TGPY_OUT];
        Py_INCREF(product->result);
    }
    const tgpy_array *a = &product->operand[TGPY_OPERAND_A];
    return tgpy_context_find(a->is_on_gpu, a->device_index, &product->context);
}

void tgpy_product_release(tgpy_product *product)
{
    for (int i = 0; i < TGPY_OPERAND_COUNT; i++)
        tgpy_array_release(&product->operand[i]);
    tgpy_array_release(&product->bias);
    tgpy_array_release(&product->a_scale);
    tgpy_array_release(&product->b_scale);
    Py_CLEAR(product->result);
}

static void move(tg_matrix *matrix, int64_t elem_count)
{
    if (matrix->data)
        matrix->data = (char *)matrix->data + elem_count * tg_get_type_bytes(matrix->type);
}

static tg_status compute_one(const tgpy_product *product, const tg_problem *problem,
                             const tg_plan *plan)
{
    if (!plan)
        return tg_multiply_on_stream(product->context, problem, product->stream.handle);
    const tg_buffers buffers = {.struct_bytes = sizeof buffers,
                                .a = problem->a.data,
                                .b = problem->b.data,
                                .c = problem->c.data,
                                .d = problem->d.data,
                                .bias = problem->bias_data,
                                .a_scale = problem->a_scale_data,
                                .b_scale = problem->b_scale_data,
                                .stream = product->stream.handle};
    return tg_execute_plan(plan, &buffers);
}

/* Computes the products of loop `depth` and of those inside it. `problem` has the pointers that the
 * loops outside have reached. */
static tg_status compute_loops(const tgpy_product *product, const tg_problem *problem,
                               const tg_plan *plan, int depth)
{
    if (depth == product->loop_count)
        return compute_one(product, problem, plan);
    tg_problem entry = *problem;
    const tgpy_batch *loop = &product->loops[depth];
    tg_status status = TG_STATUS_OK;
    for (int64_t i = 0; i < loop->size && status == TG_STATUS_OK; i++) {
        status = compute_loops(product, &entry, plan, depth + 1);
        move(&entry.a, loop->stride[TGPY_OPERAND_A]);
        move(&entry.b, loop->stride[TGPY_OPERAND_B]);
        move(&entry.c, loop->stride[TGPY_OPERAND_C]);
        move(&entry.d, loop->stride[TGPY_OPERAND_D]);
    }
    return status;
}

int tgpy_product_compute(tgpy_product *product, const tg_plan *plan)
{
    /* Releasing the GIL costs as much as a product of this size, in multiply-adds. */
    const double released_from = 32768;
    const tg_problem *problem = &product->problem;
    double work = (double)problem->d.row_count * (double)problem->d.col_count *
                  (double)problem->a.col_count * (double)problem->batch_count;
    for (int i = 0; i < product->loop_count; i++)
        work *= (double)product->loops[i].size;
    PyThreadState *state = work >= released_from ? PyEval_SaveThread() : NULL;
    const tg_status status = compute_loops(product, problem, plan, 0);
    if (state)
        PyEval_RestoreThread(state);
    if (tgpy_raise_status(status))
        return -1;
    return tgpy_array_finish(&product->operand[TGPY_OPERAND_D], &product->operand[TGPY_OPERAND_A],
                             product->context, product->stream.handle, &product->result);
}
