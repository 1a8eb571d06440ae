/*
 * The canonical problem: what VALIDATE makes of the caller's, and all that PLAN and the kernels
 * see. Transposes are folded into strides, and D's shorter stride runs along its rows, or D is at
 * most TGI_SKINNY_ROWS rows high.
 */
#ifndef TGI_PROBLEM_H
#define TGI_PROBLEM_H

#include "core/types.h"

/* Up to this many rows (or columns) a product streams its large operand once: its own kernels. */
#define TGI_SKINNY_ROWS 16

/* Element (i, j) of batch entry p lies at p * batch + i * row + j * col elements. So that equal
 * problems are equal bytes, the stride of one row or column is 1, that of one batch entry 0, which
 * is a multiple of any alignment. */
typedef struct tgi_layout {
    int64_t row, col, batch;
} tgi_layout;

/* Compared and hashed as bytes: tgi_problem_validate clears the padding. */
typedef struct tgi_problem {
    int64_t m, n, k, batch_count;
    tgi_layout a, b, c, d; /* A is m x k, B is k x n, C and D are m x n */
    double alpha, beta;    /* rounded to FP32 unless type is FP64 */
    tg_type type, b_type;  /* of A, of B; they differ only where both are FP8 */
    tg_type d_type;        /* of C, D and bias */
    tg_precision precision;
    tg_bias bias; /* of the canonical D */
    tg_activation activation;
    tg_scale a_scale, b_scale, d_scale; /* of the canonical A, B and D */
    int32_t is_batch_invariant;
    int32_t is_swapped; /* 1: computes D^T = op(B)^T op(A)^T, so A is the caller's B */
    /* 1: the pointer is no multiple of the backend's operand_alignment (PLAN fills them in). */
    int32_t is_a_offset, is_b_offset;
} tgi_problem;

/* Folds the caller's problem into *canonical. Data pointers are not looked at. Errors:
 * INVALID_ARGUMENT, SIZE_OVERFLOW, OVERLAP (D with itself). */
tg_status tgi_problem_validate(const tg_problem *problem, tgi_problem *canonical);

/* The same problem as D^T = B^T A^T: rows and columns change roles. */
void tgi_problem_transpose(tgi_problem *problem);

/* 1 if no product is formed: k = 0 or alpha = 0, so A and B are not read. */
static inline int tgi_problem_is_scale_only(const tgi_problem *problem)
{
    return problem->k == 0 || problem->alpha == 0.0;
}

/* 1 if any operand has a scale. */
static inline int tgi_problem_has_scale(const tgi_problem *problem)
{
    return problem->a_scale != TG_SCALE_NONE || problem->b_scale != TG_SCALE_NONE ||
           problem->d_scale != TG_SCALE_NONE;
}

/* 1 if D is the sum of products itself, converted. */
static inline int tgi_problem_is_sum_alone(const tgi_problem *problem)
{
    return problem->alpha == 1.0 && problem->beta == 0.0 && problem->bias == TG_BIAS_NONE &&
           problem->activation == TG_ACTIVATION_NONE && !tgi_problem_has_scale(problem);
}

/* 1 if D has no element. */
static inline int tgi_problem_is_empty(const tgi_problem *problem)
{
    return problem->m == 0 || problem->n == 0 || problem->batch_count == 0;
}

#endif
