/*
 * Declares the argument of a production kernel on a GPU: the canonical problem, device pointers and
 * choices of the launch. The host (C11) fills it, the kernel (CUDA) reads it from constant memory.
 */
#ifndef TGI_GEMM_ARGS_H
#define TGI_GEMM_ARGS_H

#include "core/problem.h"

/* A block of the kernel that adds splits (splits.cu): threads along D, 16 bytes each, and the
 * most threads across splits. */
#define TGI_ADD_COLS 32
#define TGI_ADD_ROWS_MAX 16

typedef struct tgi_gemm_args {
    tgi_problem problem; /* batch_count >= 1, k >= 1; any strides, in elements */
    /* A pointer to each operand, a, b, ...; NULL if the operand is not read. */
#define TGI_OPERAND(name, title, form, role, ...) TGI_POINTER_##form##_##role(name);
#include "core/operands.def"
#undef TGI_OPERAND
    /* Sums of splits, in the accumulator's type. Split s of batch entry p has m x n sums,
     * row-major without gaps, from element (p * split_count + s) * m * n on. Unused if
     * split_count is 1. */
    void *workspace;

    /* Split s sums over k from s * split_elems to min(k, (s + 1) * split_elems) - 1. The kernel of
     * splits.cu adds the splits in order and applies the epilogue. Family wgmma splits only some
     * tiles, and stores their sums in another order (wgmma/partial_tiles.cuh). */
    int64_t split_elems;
    int32_t split_count;

    /* Elements of one access to A, B and D: 1, or those of 16 bytes if pointers and strides allow
     * it. a_along_k, b_along_k: 1 if the shorter stride runs along k, not along m or n. */
    int32_t a_vector_elems, b_vector_elems, d_vector_elems;
    int32_t a_along_k, b_along_k;

    /* Columns of D of each tile of family rank, for narrow types; at most the kernel's. */
    int32_t tile_cols;

    /* 1: D is the converted sum, because alpha is 1, beta 0 and the epilogue has no other
     * operation. */
    int32_t is_sum_alone;
    /* 1: D also has the accumulator's type, so that it is the sum without conversion. */
    int32_t is_plain;
    /* Tiles are numbered down columns of this many tile rows, so that blocks that run together
     * share operands in L2. */
    int32_t tile_rows_per_group;
} tgi_gemm_args;

#endif
