/*
 * Two descriptions of a problem, compared.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_PROBLEMS_H
#define TEST_PROBLEMS_H

#include <math.h>

#include "tilegemm.h"

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

/* NULL where both mean the same, else the first field that differs. Data pointers do not count, nor
 * does the batch stride of a batch of one; C counts where beta is not 0. */
static inline const char *find_problem_difference(const tg_problem *one, const tg_problem *other)
{
    tg_problem x = *one, y = *other;
    if (x.batch_count == 1) {
        x.a.batch_stride = x.b.batch_stride = x.c.batch_stride = x.d.batch_stride = 0;
        y.a.batch_stride = y.b.batch_stride = y.c.batch_stride = y.d.batch_stride = 0;
    }
    if (!is_same_view(&x.a, &y.a))
        return "a";
    if (!is_same_view(&x.b, &y.b))
        return "b";
    if (!is_same_view(&x.d, &y.d))
        return "d";
    if (x.beta != 0 && !is_same_view(&x.c, &y.c))
        return "c";
    if (x.op_a != y.op_a || x.op_b != y.op_b)
        return "op_a or op_b";
    if (x.batch_count != y.batch_count)
        return "batch_count";
    if (!is_same_factor(x.alpha, y.alpha) || !is_same_factor(x.beta, y.beta))
        return "alpha or beta";
    if (x.precision != y.precision)
        return "precision";
    if (x.a_scale != y.a_scale || x.b_scale != y.b_scale || x.d_scale != y.d_scale)
        return "a scale";
    if (x.is_batch_invariant != y.is_batch_invariant)
        return "is_batch_invariant";
    return x.bias != y.bias || x.activation != y.activation ? "bias or activation" : NULL;
}

#endif /* TEST_PROBLEMS_H */
