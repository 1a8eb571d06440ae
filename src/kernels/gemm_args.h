/*
 * The one argument of every production kernel on a GPU: the canonical problem, device pointers and
 * what the launch chose. Filled by the host (C11), read by the kernel (CUDA) from constant memory.
 */
#ifndef TGI_GEMM_ARGS_H
#define TGI_GEMM_ARGS_H

#include "core/problem.h"

typedef struct tgi_gemm_args {
    tgi_problem problem; /* batch_count >= 1, k >= 1; any strides, in elements */
    /* A pointer to each operand, a, b, ...; NULL for an operand that is not read. */
#define TGI_OPERAND(name, title, form, role, ...) TGI_POINTER_##form##_##role(name);
#include "core/operands.def"
#undef TGI_OPERAND
    /* Partial sums, type of the accumulator: part s of batch entry p holds m x n sums, row-major
     * without gaps, from element (p * k_part_count + s) * m * n. Unused where k_part_count is 1. */
    void *workspace;

    /* Family wgmma cuts some tiles alone, and keeps their sums otherwise (wgmma/args.h). Of the
     * others part s sums over k from s * k_part_elems to min(k, (s + 1) * k_part_elems) - 1; the
     * parts are added in order by the kernel of parts.cu, which applies the epilogue. */
    int64_t k_part_elems;
    int32_t k_part_count;

    /* Elements of one access to A, B and D: 1, or the number in 16 bytes where pointers and strides
     * allow it. a_along_k, b_along_k: 1 where the shorter stride runs along k, not along m or n. */
    int32_t a_vector_elems, b_vector_elems, d_vector_elems;
    int32_t a_along_k, b_along_k;

    /* Family rank, of narrow types: columns of D that each tile has, at most the kernel's. */
    int32_t tile_cols;

    /* 1: alpha = 1, beta = 0 and nothing else: D is the sum, converted. */
    int32_t is_sum_alone;
    /* 1: and D has the accumulator's type, so that it is the sum as it stands. */
    int32_t is_plain;
    /* Tiles are numbered down columns of this many tile rows, so that blocks that run together
     * share operands in L2. */
    int32_t tile_rows_per_group;
} tgi_gemm_args;

#endif
