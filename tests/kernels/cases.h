/*
 * Random cases for the kernels: shapes round the edges of a register tile, every layout that the
 * library takes, special scalars, types, bias, activations, contents.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_KERNEL_CASES_H
#define TEST_KERNEL_CASES_H

#include "harness/operands.h"

/* What a case is drawn for. */
typedef struct case_domain {
    tg_type type;                 /* of A and B */
    int64_t tile_rows, tile_cols; /* shapes lie round their multiples; 0: 8 */
    int64_t work_limit;           /* m n k batch of most cases; one in 64 may have 16 times it */
    /* 1: contiguous row-major products without an epilogue, one in two with sizes that 8, 16 or 32
     * divides: all that a rung of a GPU's ladder takes. */
    int is_plain;
} case_domain;

/* Draws the case of `seed`: the same on every machine. */
void case_draw(const case_domain *domain, uint64_t seed, operand_spec *spec);

/* Writes all that tells the case from others; 800 bytes suffice. */
void case_describe(const operand_spec *spec, char *text, size_t text_bytes);

#endif /* TEST_KERNEL_CASES_H */
