/*
 * Declares the canonical problem. Validation makes it from the caller's problem, and planning and
 * the kernels see nothing else. Transposes are folded into strides. D's shorter stride runs along
 * its rows, unless D is at most TGI_SKINNY_ROWS rows high.
 */
#ifndef TGI_PROBLEM_H
#define TGI_PROBLEM_H

#include "core/epilogue_args.h"
#include "core/types.h"

/* A product of at most this many rows (or columns) reads its large operand once, by kernels of its
 * own. */
#define TGI_SKINNY_ROWS 16

/* Element (i, j) of batch entry p lies at p * batch + i * row + j * col elements. The stride of a
 * single row or column is 1, and that of a single batch entry is 0, a multiple of any alignment.
 * Equal problems are therefore equal bytes. */
typedef struct tgi_layout {
    int64_t row, col, batch;
} tgi_layout;

#define TGI_LAYOUT_MATRIX(name) tgi_layout name;
#define TGI_LAYOUT_BIAS(name)
#define TGI_LAYOUT_SCALE(name)

/* Problems are compared and hashed as bytes. tgi_problem_validate clears the padding. */
typedef struct tgi_problem {
    int64_t m, n, k, batch_count;
    /* The layouts of the matrices a, b, c, d, of the shapes in operands.def. */
#define TGI_OPERAND(name, title, form, ...) TGI_LAYOUT_##form(name)
#include "core/operands.def"
#undef TGI_OPERAND
    tg_type type, b_type; /* types of A and of B; they differ only if both are FP8 */
    tg_type d_type;       /* type of C, D and bias */
    tg_precision precision;
    tgi_epilogue epilogue; /* epilogue of the canonical A, B and D */
    int32_t is_batch_invariant;
    int32_t is_swapped; /* 1: computes D^T = op(B)^T op(A)^T, so A is the caller's B */
    /* 1: the pointer is not a multiple of the backend's operand_alignment. Planning sets both. */
    int32_t is_a_offset, is_b_offset;
} tgi_problem;

#undef TGI_LAYOUT_MATRIX
#undef TGI_LAYOUT_BIAS
#undef TGI_LAYOUT_SCALE

/* Checks the arguments of the caller's problem that concern neither its shape nor a layout. */
tg_status tgi_problem_check_arguments(const tg_problem *problem);

/* Folds the caller's problem into *canonical. Data pointers are not used. Errors: INVALID_ARGUMENT,
 * SIZE_OVERFLOW, OVERLAP (D with itself). */
tg_status tgi_problem_validate(const tg_problem *problem, tgi_problem *canonical);

/* Transposes the problem to D^T = B^T A^T. */
void tgi_problem_transpose(tgi_problem *problem);

/* Returns 1 if no product is formed: A and B are not read, because k or alpha is 0. */
static inline int tgi_problem_is_scale_only(const tgi_problem *problem)
{
    return problem->k == 0 || problem->epilogue.alpha == 0.0;
}

/* Returns 1 if D has no element. */
static inline int tgi_problem_is_empty(const tgi_problem *problem)
{
    return problem->m == 0 || problem->n == 0 || problem->batch_count == 0;
}

#endif
