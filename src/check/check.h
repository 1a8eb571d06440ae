/*
 * This folder fills operands, computes reference results and compares, for both the command and the
 * tests. It depends on include/ and on the list of operands. It is linked into the command and the
 * tests, not into the library.
 */
#ifndef TG_CHECK_H
#define TG_CHECK_H

#include "core/operand_list.h"
#include "tilegemm.h"
#include "tilegemm_lab.h"

/* The operands of a filled problem, indexed by tgi_operand_id. */
typedef struct check_operands {
    void *allocation[TGI_OPERAND_COUNT]; /* owned; NULL if the problem has none */
    int64_t size_bytes[TGI_OPERAND_COUNT];
} check_operands;

/* Allocates the operands of `problem`: A, B and D, the vectors that it has, and those matrices of
 * the epilogue that are used (C if beta is not 0). Fills matrices and the bias with uniform numbers
 * in [-1, 1) from `seed`, rounded to the type, scales with numbers in [0.5, 2) and D with NaN, and
 * sets the data pointers. The numbers come from splitmix64, so they are the same on every machine.
 * Strides may be any that the library takes. Returns 0 if memory runs out. Free the operands with
 * check_free_operands. */
int check_make_operands(tg_problem *problem, uint64_t seed, check_operands *operands);
void check_free_operands(check_operands *operands);

/* Moves the pointers of a filled problem from each allocation to the same offset in copies[id]. */
void check_move_operands(tg_problem *problem, const check_operands *operands,
                         void *const copies[TGI_OPERAND_COUNT]);

/* Copies the operands of a filled problem to memory of their own, and moves its pointers there.
 * Returns 0 if memory runs out. */
int check_copy_operands(tg_problem *problem, const check_operands *operands, check_operands *copy);

/* Return the next number of the splitmix64 stream: 64 bits, or a uniform number in [-1, 1). */
uint64_t check_next_random(uint64_t *state);
double check_next_uniform(uint64_t *state);

/* Read and write one element of any type as a double. `index` counts elements. */
double check_get_element(tg_type type, const void *data, int64_t index);
void check_set_element(tg_type type, void *data, int64_t index, double value);

/* Returns 1 for an FP8 type. A D of FP8 saturates. */
int check_is_fp8(tg_type type);

/* The verdict on D against the triple loop in FP64 (long double for FP64 inputs). */
typedef struct check_result {
    int is_ok; /* every element is within the bound of tilegemm.h, and NaN and Inf are right */
    /* The largest |d - exact| / (|alpha| |A||B| + |beta||C| + |bias|): 0 for 0/0, Inf if only one
     * of d and exact is finite. */
    double max_error;
    double max_bound_share; /* largest |d - exact| / bound; <= 1 if D is right */
    int64_t checked_count;  /* elements compared; one in a sampled row and column counts twice */
    int64_t bad_batch, bad_row, bad_col; /* first element out of bounds, -1 if none */
    double bad_value, bad_expected;
} check_result;

/* Compares all of D if m n k batch <= `flop_limit`; otherwise whole rows and columns in a fixed
 * random sample that includes the corners (checked_count tells). C must be the C before the call:
 * pass it in `problem`, not D itself. A problem without C (beta 0) needs none. Returns 1, or 0 if
 * memory ran out; then is_ok is 0. */
int check_compare(const tg_problem *problem, double flop_limit, check_result *result);

/* Does the same with another sample: the crossings of random rows and random columns, with the
 * corners. It keeps to the limit for lines of any length, but compares less of each line. */
int check_compare_crossings(const tg_problem *problem, double flop_limit, check_result *result);

/* Verifies D by Freivalds' method: `rounds` random vectors x of +-1 compare D x with alpha A (B x)
 * + beta C x in FP64, with a bound per row of the product of magnitudes. The time is linear in the
 * operands' size. A wrong D passes with probability at most 2^-rounds. Activations other than none
 * and an FP8 D are refused (returns -1). Returns 1 if D passes, 0 if not; *worst_share is the
 * largest |difference| / bound, *bad_row its row. */
int check_freivalds(const tg_problem *problem, int rounds, uint64_t seed, double *worst_share,
                    int64_t *bad_row);

#endif /* TG_CHECK_H */
