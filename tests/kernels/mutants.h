/*
 * Computes D by a correct triple loop, which the runner must pass, and by broken ones, which it
 * must catch.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_KERNEL_MUTANTS_H
#define TEST_KERNEL_MUTANTS_H

#include "tilegemm.h"

typedef enum mutant_defect {
    DEFECT_NONE,
    DEFECT_DROPS_LAST_K,
    DEFECT_SWAPS_TILES,     /* swaps the first two tiles of 4 columns */
    DEFECT_ZEROES_TILE,     /* zeroes the last 4 x 4 elements */
    DEFECT_WRONG_EDGE_ROW,  /* the last row repeats the one before */
    DEFECT_LEAVES_LAST_COL, /* leaves it as it was */
    DEFECT_WRITES_PAST_ROW, /* writes one element after the last of each row */
    DEFECT_READS_PAST_K,    /* adds one more product, times 0 */
    DEFECT_IGNORES_BETA,
    DEFECT_SCALES_C_BY_ALPHA,
    DEFECT_READS_C_AT_BETA_0,
    DEFECT_READS_A_AT_ALPHA_0,
    DEFECT_SKIPS_ZEROS, /* skips zeros of A: loses 0 * NaN */
    DEFECT_CLEARS_NAN,  /* acts like max(x, 0) in the wrong order */
    DEFECT_SATURATES,   /* stores the largest finite value for Inf */
    DEFECT_SWAPS_BIAS,  /* takes the bias by row, not by column */
    DEFECT_NO_ACTIVATION,
    DEFECT_WRONG_GELU,         /* takes the tanh form, not the erf form */
    DEFECT_ROUNDS_INPUTS,      /* rounds to 11 bits, as TF32 does */
    DEFECT_SUMS_IN_INPUT_TYPE, /* keeps 16-bit sums */
    DEFECT_FLUSHES_SUBNORMALS, /* flushes those of the inputs */
    DEFECT_SAME_BATCH_ENTRY,   /* takes entry 0 of B for all */
    DEFECT_WRITES_INPUT,
    DEFECT_WRITES_AND_REFUSES,
    DEFECT_REFUSES_ALL,
    DEFECT_COUNT
} mutant_defect;

/* Computes D; *state is a mutant_defect. */
tg_status mutant_compute(void *state, const tg_problem *problem);

#endif /* TEST_KERNEL_MUTANTS_H */
