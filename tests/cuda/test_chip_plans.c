/*
 * Tests that chips of the built-in table, which need not be here, have plans for random problems.
 *
 * SPDX-License-Identifier: MIT
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include <stdint.h>
#include <stdio.h>

#include "tilegemm_lab.h"

/* Every chip from sm_80 on has a kernel for every BF16 and FP16 product: of any shape, layout,
 * padding, batch and epilogue. Every prediction is a positive number. */
static void test_16_bits_have_a_kernel_on_every_chip(void **state)
{
    static const char *const words[] = {"",
                                        ":nt",
                                        ":tn",
                                        ":tt",
                                        ":batch=3",
                                        ":bias=row",
                                        ":beta=1",
                                        ":batch_invariant",
                                        ":act=silu:d=fp32"};
    enum { WORD_COUNT = sizeof words / sizeof *words, CASE_COUNT = 40 };
    uint64_t random = 20261125;
    (void)state;
    for (int i = 0; i < tg_get_chip_count(); i++) {
        tg_chip chip;
        assert_int_equal(tg_get_chip(i, &chip), TG_STATUS_OK);
        for (int j = 0; chip.compute_capability >= 80 && j < CASE_COUNT; j++) {
            tg_candidate candidates[256];
            int64_t size[3];
            int count = 0, legal_count = 0;
            char text[128];
            for (int d = 0; d < 3; d++) {
                random = random * 6364136223846793005u + 1442695040888963407u;
                size[d] = 1 + (int64_t)((random >> 33) % (1u << (random >> 60)));
            }
            snprintf(text, sizeof text, "%lldx%lldx%lld:%s%s", (long long)size[0],
                     (long long)size[1], (long long)size[2], j % 2 ? "bf16" : "fp16",
                     words[j % WORD_COUNT]);
            tg_problem problem;
            if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
                fail_msg("%s: %s", text, tg_get_error_detail());
            assert_int_equal(tg_list_chip_candidates(&chip, &problem, candidates, 256, &count),
                             TG_STATUS_OK);
            for (int c = 0; c < count; c++) {
                if (candidates[c].is_legal && !(candidates[c].predicted_s > 0.0))
                    fail_msg("%s on %s: %s is predicted to take no time", text, chip.name,
                             candidates[c].kernel);
                legal_count += candidates[c].is_legal;
            }
            if (legal_count == 0)
                fail_msg("%s on %s has no kernel", text, chip.name);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_16_bits_have_a_kernel_on_every_chip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
