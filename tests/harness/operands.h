/*
 * Puts operands under guard: every matrix of a problem lies in a mapping of its own, against an
 * unreadable page or at an odd address, among bytes that are NaN in every type. After a call,
 * operands_find_damage reports bytes that should not have been written.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_OPERANDS_H
#define TEST_OPERANDS_H

#include "check/check.h"

typedef enum operand_fill {
    FILL_UNIFORM, /* uniform in [-1, 1) */
    FILL_ONES,    /* all 1, C and bias too */
    FILL_SPECIAL, /* uniform with a few NaN, Inf, zeros of both signs */
    FILL_TINY,    /* uniform with many subnormals of the type */
    FILL_LARGE    /* products near the overflow threshold of D's type */
} operand_fill;

typedef enum operand_placement {
    PLACE_AT_END,   /* last byte before an unreadable page */
    PLACE_AT_START, /* first byte after one */
    PLACE_ODD,      /* middle, at an odd multiple of the element size */
    PLACEMENT_COUNT
} operand_placement;

/* Describes what to lay out. The data pointers of `problem` are ignored. */
typedef struct operand_spec {
    tg_problem problem;
    int is_in_place; /* 1: C is D, with D's strides */
    operand_fill fill;
    operand_placement placement;
    uint64_t seed;
} operand_spec;

/* A mapping with an unreadable page on either side, and the bytes that one operand fills in it. */
typedef struct operand_region {
    char *base; /* first usable byte */
    int64_t usable_bytes;
    char *guarded; /* operand with its bands: compared after the call */
    int64_t guarded_bytes;
    char *before;         /* copy of the guarded bytes before the call */
    int64_t before_bytes; /* its capacity */
} operand_region;

typedef struct test_operands {
    tg_problem problem; /* to compute: A, B are unreadable where alpha is 0, C where beta is */
    tg_problem check;   /* check_compare's problem: C as it was before the call */
    operand_region region[TGI_OPERAND_COUNT];
    char *unreadable; /* middle of a large mapping without access */
} test_operands;

/* Zeroes *operands and maps the unreadable area. */
void operands_open(test_operands *operands);
void operands_close(test_operands *operands);

/* Lays out and fills the operands of a case. D is NaN, or C if the case is in place. */
void operands_place(test_operands *operands, const operand_spec *spec);

/* Returns NULL, or a text that says what was written beside the elements of D. With is_d_untouched,
 * an element of D counts too. The text holds until the next call. */
const char *operands_find_damage(const test_operands *operands, int is_d_untouched);

#endif /* TEST_OPERANDS_H */
