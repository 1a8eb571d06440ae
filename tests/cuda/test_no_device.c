/*
 * test_no_device WORD... asserts that a context for CUDA is refused with NO_DEVICE and every word
 * in its detail, each time it is asked for, and that the CPU serves as before.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdio.h>
#include <string.h>

#include "tilegemm_lab.h"

static int is_refused(int word_count, char **words)
{
    tg_context *context = NULL;
    tg_context_options options = {.struct_bytes = sizeof options, .device = "cuda"};
    tg_status status = tg_create_context(&options, &context);
    printf("%s: %s\n", tg_get_status_name(status), tg_get_error_detail());
    for (int i = 0; i < word_count; i++) {
        if (!strstr(tg_get_error_detail(), words[i])) {
            printf("the detail lacks \"%s\"\n", words[i]);
            return 0;
        }
    }
    return status == TG_STATUS_NO_DEVICE && context == NULL;
}

int main(int argc, char **argv)
{
    float a = 3.0F, b = 5.0F, d = 0.0F;
    tg_problem problem = tg_make_problem(tg_make_matrix(TG_TYPE_FP32, &a, 1, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &b, 1, 1),
                                         tg_make_matrix(TG_TYPE_FP32, &d, 1, 1));
    for (int i = 0; i < 2; i++) {
        if (!is_refused(argc - 1, argv + 1))
            return 1;
    }
    return tg_multiply(NULL, &problem) == TG_STATUS_OK && d == 15.0F ? 0 : 1;
}
