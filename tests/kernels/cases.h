/*
 * Draws random cases for the kernels: shapes round the edges of a register tile, every layout that
 * the library takes, special scalars, types, bias, activations, contents.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_KERNEL_CASES_H
#define TEST_KERNEL_CASES_H

#include "harness/operands.h"

/* The kernel for which cases are drawn. */
typedef struct case_domain {
    tg_type type;                 /* type of A and B */
    int64_t tile_rows, tile_cols; /* shapes lie round their multiples; 0 means 8 */
    int64_t work_limit;           /* bounds m n k batch of most cases; a few have 16 times it */
    /* If 1, draws contiguous row-major products without an epilogue, one in two with sizes that 8,
     * 16 or 32 divides: a rung of a GPU's ladder takes nothing else. */
    int is_plain;
} case_domain;

/* Draws the case of `seed`, which is the same on every machine. */
void case_draw(const case_domain *domain, uint64_t seed, operand_spec *spec);

/* Writes all that tells the case from others; 800 bytes suffice. */
void case_describe(const operand_spec *spec, char *text, size_t text_bytes);

#endif /* TEST_KERNEL_CASES_H */
