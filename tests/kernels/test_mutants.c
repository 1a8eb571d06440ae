/*
 * The kernel tests can fail: a correct triple loop passes them in every type, and each of two dozen
 * broken ones is caught.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "kernels/mutants.h"
#include "harness/stride.h"
#include "kernels/runner.h"

#define HONEST_CASES 600
#define MUTANT_CASES 1500

static const char *const names[] = {"none",
                                    "drops last k",
                                    "swaps tiles",
                                    "zeroes a tile",
                                    "wrong edge row",
                                    "leaves last column",
                                    "writes past the row",
                                    "reads past k",
                                    "ignores beta",
                                    "scales C by alpha",
                                    "reads C at beta = 0",
                                    "reads A at alpha = 0",
                                    "skips zeros of A",
                                    "ReLU clears NaN",
                                    "saturates",
                                    "swaps bias",
                                    "no activation",
                                    "wrong GELU",
                                    "rounds inputs",
                                    "sums in the input type",
                                    "flushes subnormals",
                                    "same batch entry",
                                    "writes an input",
                                    "writes and refuses",
                                    "refuses all"};
_Static_assert(sizeof names / sizeof *names == DEFECT_COUNT, "a name a defect");

static run_summary run_mutant(mutant_defect defect, tg_type type, int case_count)
{
    run_summary summary;
    case_domain domain = {type, 4, 4, 4000, 0};
    runner_run_cases(&domain, stride_choose_seed(1000 + (uint64_t)type), case_count, mutant_compute,
                     &defect, &summary);
    return summary;
}

static void test_correct_loop_passes(void **state)
{
    (void)state;
    for (int type = TG_TYPE_FP32; type <= TG_TYPE_FP16; type++) {
        int case_count = stride_count_cases(HONEST_CASES);
        run_summary summary = run_mutant(DEFECT_NONE, (tg_type)type, case_count);
        printf("%s: %d passed, largest share of the bound %.3f\n", tg_get_type_name((tg_type)type),
               summary.passed_count, summary.bound_share);
        if (summary.failed_count)
            fail_msg("%s", summary.first_failure);
        assert_int_equal(summary.passed_count, case_count);
    }
}

/* Returns 1 if the runner reports a failure or the mutant dies of an unreadable page. It runs in a
 * child process. */
static int is_caught(mutant_defect defect, tg_type type)
{
    fflush(NULL);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        struct rlimit no_core = {0, 0};
        setrlimit(RLIMIT_CORE, &no_core);
        if (!freopen("/dev/null", "w", stderr))
            _exit(0);
        run_summary summary = run_mutant(defect, type, MUTANT_CASES);
        _exit(summary.failed_count > 0 || summary.passed_count == 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    return status != 0;
}

static void test_every_mutant_is_caught(void **state)
{
    (void)state;
    for (int defect = DEFECT_NONE + 1; defect < DEFECT_COUNT; defect++) {
        /* Only BF16 shows 16-bit sums, and BF16 may lose subnormals. */
        tg_type type = defect == DEFECT_SUMS_IN_INPUT_TYPE ? TG_TYPE_BF16 : TG_TYPE_FP32;
        if (defect == DEFECT_FLUSHES_SUBNORMALS)
            type = TG_TYPE_FP16;
        if (!is_caught((mutant_defect)defect, type))
            fail_msg("not caught: %s", names[defect]);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_correct_loop_passes),
        cmocka_unit_test(test_every_mutant_is_caught),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
