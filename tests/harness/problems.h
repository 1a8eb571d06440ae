/*
 * Compares two descriptions of a problem.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_PROBLEMS_H
#define TEST_PROBLEMS_H

#include <math.h>

#include "core/operand_list.h"

static inline int is_same_view(const tg_matrix *one, const tg_matrix *other)
{
    return one->type == other->type && one->row_count == other->row_count &&
           one->col_count == other->col_count && one->row_stride == other->row_stride &&
           one->col_stride == other->col_stride && one->batch_stride == other->batch_stride;
}

static inline int is_same_factor(double one, double other)
{
    return one == other || (isnan(one) && isnan(other));
}

/* Returns NULL if both problems mean the same, otherwise the first member that differs. Data
 * pointers, the batch stride of a batch of one and unused matrices do not count. */
static inline const char *find_problem_difference(const tg_problem *one, const tg_problem *other)
{
    const unsigned used = tgi_operands_find_used(one);
    for (int id = 0; id < TGI_OPERAND_COUNT; id++) {
        const tg_matrix *view = tgi_operands_get_matrix(one, id);
        if (view) {
            tg_matrix x = *view, y = *tgi_operands_get_matrix(other, id);
            if (one->batch_count == 1)
                x.batch_stride = y.batch_stride = 0;
            if ((used >> id & 1u || tgi_operands_get(id)->role != TGI_ROLE_EPILOGUE) &&
                !is_same_view(&x, &y))
                return tgi_operands_get(id)->name;
        }
        if (tgi_operands_get_kind(one, id) != tgi_operands_get_kind(other, id))
            return tgi_operands_get(id)->name;
    }
    if (one->op_a != other->op_a || one->op_b != other->op_b)
        return "op_a or op_b";
    if (one->batch_count != other->batch_count)
        return "batch_count";
#define TGI_FACTOR(name, value)                                                                    \
    if (!is_same_factor(one->name, other->name))                                                   \
        return #name;
#include "core/operands.def"
#undef TGI_FACTOR
    if (one->precision != other->precision)
        return "precision";
    if (one->is_batch_invariant != other->is_batch_invariant)
        return "is_batch_invariant";
    return one->activation != other->activation ? "activation" : NULL;
}

#endif /* TEST_PROBLEMS_H */
