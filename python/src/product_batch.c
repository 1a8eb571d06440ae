/*
 * The batch of a product: dimensions that one stride describes become the library's batch or rows
 * of A, and the others loops.
 */
#include "extension.h"

#include <stdlib.h>

/* Joins neighbouring loops that one stride describes in every operand. Drops those of size 1. */
static void join_loops(tgpy_product *product)
{
    int count = 0;
    for (int i = 0; i < product->loop_count; i++) {
        const tgpy_batch inner = product->loops[i];
        if (inner.size == 1)
            continue;
        tgpy_batch *outer = count ? &product->loops[count - 1] : NULL;
        int is_joined = outer != NULL;
        for (int j = 0; j < TGPY_OPERAND_COUNT && is_joined; j++)
            is_joined = outer->stride[j] == inner.stride[j] * inner.size;
        if (is_joined) {
            const int64_t size = outer->size * inner.size;
            *outer = inner;
            outer->size = size;
        } else {
            product->loops[count++] = inner;
        }
    }
    product->loop_count = count;
}

/* Makes rows of a batch whose entries share B, as in a linear layer. */
static int fold_batch(tg_problem *problem, const tgpy_batch *batch, int is_c_read)
{
    tg_matrix *matrices[] = {&problem->a, &problem->d, &problem->c};
    static const tgpy_operand operands[] = {TGPY_OPERAND_A, TGPY_OPERAND_D, TGPY_OPERAND_C};
    const int64_t row_count = problem->a.row_count;
    if (batch->stride[TGPY_OPERAND_B] != 0 || problem->bias == TG_BIAS_ROW ||
        problem->a_scale == TG_SCALE_VECTOR)
        return 0;
    for (int i = 0; i < 2 + is_c_read && row_count != 1; i++) {
        if (batch->stride[operands[i]] != row_count * matrices[i]->row_stride)
            return 0;
    }
    for (int i = 0; i < 3; i++) {
        matrices[i]->row_count = row_count * batch->size;
        if (row_count == 1)
            matrices[i]->row_stride = batch->stride[operands[i]];
    }
    return 1;
}

/* Gives the library the longest batch dimension; the others stay loops. */
static void choose_batch(tgpy_product *product)
{
    tg_problem *problem = &product->problem;
    int longest = 0;
    for (int i = 0; i < product->loop_count; i++) {
        if (product->loops[i].size == 0) {
            problem->batch_count = 0;
            product->loop_count = 0;
            return;
        }
        if (product->loops[i].size > product->loops[longest].size)
            longest = i;
    }
    if (product->loop_count == 0)
        return;
    const tgpy_batch batch = product->loops[longest];
    product->loop_count--;
    for (int i = longest; i < product->loop_count; i++)
        product->loops[i] = product->loops[i + 1];
    if (fold_batch(problem, &batch, product->is_c_read))
        return;
    problem->batch_count = batch.size;
    problem->a.batch_stride = batch.stride[TGPY_OPERAND_A];
    problem->b.batch_stride = batch.stride[TGPY_OPERAND_B];
    problem->c.batch_stride = batch.stride[TGPY_OPERAND_C];
    problem->d.batch_stride = batch.stride[TGPY_OPERAND_D];
}

typedef struct byte_range {
    uintptr_t first, end;
} byte_range;

static byte_range find_range(const tgpy_array *array)
{
    int64_t low = 0, high = 1;
    for (int dim = 0; dim < array->dim_count; dim++) {
        if (array->shape[dim] == 0)
            return (byte_range){0, 0};
        const int64_t reach = (array->shape[dim] - 1) * array->strides[dim];
        *(reach < 0 ? &low : &high) += reach;
    }
    const int64_t elem_bytes = tg_get_type_bytes(array->type);
    const uintptr_t data = (uintptr_t)array->data;
    return (byte_range){data + (uintptr_t)(low * elem_bytes),
                        data + (uintptr_t)(high * elem_bytes)};
}

/* Returns 1 if each product of the loops reads the C that it overwrites, or the library refuses
 * it. */
static int is_c_in_place(const tgpy_product *product)
{
    int is_equal = product->operand[TGPY_OPERAND_C].data == product->operand[TGPY_OPERAND_D].data;
    for (int i = 0; i < product->loop_count && is_equal; i++) {
        const int64_t *stride = product->loops[i].stride;
        is_equal = stride[TGPY_OPERAND_C] == stride[TGPY_OPERAND_D];
    }
    return is_equal;
}

/* Refuses an out in which two elements may share an address. Each stride must exceed the reach of
 * the smaller ones. */
static int check_distinct(const tgpy_array *out)
{
    int order[TGPY_DIM_MAX], count = 0; /* dimensions by their strides, the smallest first */
    for (int dim = 0; dim < out->dim_count; dim++) {
        int at = count;
        if (out->shape[dim] < 2)
            continue;
        for (; at > 0 && llabs(out->strides[order[at - 1]]) > llabs(out->strides[dim]); at--)
            order[at] = order[at - 1];
        order[at] = dim;
        count++;
    }
    long long reach = 0, span;
    for (int i = 0; i < count; i++) {
        const long long stride = llabs(out->strides[order[i]]), last = reach;
        if (__builtin_mul_overflow(stride, out->shape[order[i]] - 1, &span) ||
            __builtin_add_overflow(last, span, &reach) || stride <= last)
            return tgpy_raise(
                TGPY_ARGUMENT_ERROR,
                "out may overlap itself: its dimension %d has a stride of %lld elements, "
                "which its smaller strides reach; pass an out without overlap",
                order[i], (long long)out->strides[order[i]]);
    }
    return 0;
}

/* The library sees one product of the loops at a time. Refuses what it would miss: an out that
 * shares memory with itself, or with an operand of another of these products. */
static int check_loops(const tgpy_product *product)
{
    const tgpy_array *out = &product->operand[TGPY_OPERAND_D];
    const tgpy_array *const others[] = {&product->operand[TGPY_OPERAND_A],
                                        &product->operand[TGPY_OPERAND_B],
                                        &product->bias,
                                        &product->a_scale,
                                        &product->b_scale,
                                        &product->operand[TGPY_OPERAND_C]};
    const tg_matrix *d = &product->problem.d;
    if (product->loop_count == 0 || product->result || d->row_count == 0 || d->col_count == 0)
        return 0;
    if (check_distinct(out))
        return -1;
    const byte_range range = find_range(out);
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const tgpy_array *other = others[i];
        if (!other->object ||
            (other == &product->operand[TGPY_OPERAND_C] && is_c_in_place(product)))
            continue;
        const byte_range used = find_range(other);
        if (used.first < range.end && range.first < used.end)
            return tgpy_raise(TGPY_ARGUMENT_ERROR, "out shares memory with %s; pass a copy",
                              other->name);
    }
    return 0;
}

int tgpy_batch_describe(tgpy_product *product)
{
    join_loops(product);
    choose_batch(product);
    return check_loops(product);
}
