/*
 * Runs cases against a function that computes D and judges all that can go wrong: the values, the
 * bytes around them, the inputs, the status, the reason.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_KERNEL_RUNNER_H
#define TEST_KERNEL_RUNNER_H

#include "kernels/cases.h"

/* Computes D: the library with some kernel, or a mutant of the triple loop. */
typedef tg_status compute_function(void *state, const tg_problem *problem);

typedef enum case_verdict { CASE_PASSED, CASE_REFUSED, CASE_FAILED } case_verdict;

typedef struct case_outcome {
    case_verdict verdict;
    char reason[400];   /* tells a refusal or failure */
    double bound_share; /* largest |error| / bound; 0 if refused */
} case_outcome;

/* The counts of a run, and its first failure. */
typedef struct run_summary {
    int passed_count, refused_count, failed_count;
    double bound_share; /* largest of the cases that passed */
    char first_failure[1280];
} run_summary;

/* Runs one case. TG_STATUS_UNSUPPORTED with a reason and an untouched D is a refusal. */
void runner_run_case(test_operands *operands, const operand_spec *spec, compute_function *compute,
                     void *state, case_outcome *outcome);

/* Runs `case_count` cases drawn from the run's seed and `salt`. */
void runner_run_cases(const case_domain *domain, uint64_t salt, int case_count,
                      compute_function *compute, void *state, run_summary *summary);

/* Returns the seed of the run: TG_TEST_SEED, or a fixed one if that is not set. The first call
 * prints it. */
uint64_t runner_get_seed(void);

/* Returns the operands of the running case, for a function that takes them to a device and back. */
const test_operands *runner_get_operands(void);

/* Returns 1 if the name begins with one of these, which are separated by commas. */
int runner_is_named(const char *name, const char *starts);

/* Computes through a plan of a context by the named kernel (NULL: the library's choice). Problems
 * whose kernel begins with one of the names `left_out` are refused (NULL: none). */
typedef struct library_choice {
    tg_context *context;
    const char *kernel, *left_out;
} library_choice;
tg_status runner_compute_with_library(void *choice, const tg_problem *problem);

/* Computes on a GPU's context: copies the operands there with guard bands round each, and back.
 * Returns DEVICE_FAILURE, with a line on stderr, if a kernel wrote past the operands. */
tg_status runner_compute_on_device(void *choice, const tg_problem *problem);

#endif /* TEST_KERNEL_RUNNER_H */
