/*
 * Parses texts that must be right. Include it after cmocka.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_PROBLEM_TEXTS_H
#define TEST_PROBLEM_TEXTS_H

#include <string.h>

#include "tilegemm_lab.h"

#define TEXT_BYTES 640

/* Returns the problem of a text. The parser sets every field. */
static inline tg_problem parse(const char *text)
{
    tg_problem problem;
    memset(&problem, 0xee, sizeof problem);
    if (tg_parse_problem(text, &problem, sizeof problem) != TG_STATUS_OK)
        fail_msg("%s: %s", text, tg_get_error_detail());
    assert_null(problem.a.data);
    assert_null(problem.b.data);
    assert_null(problem.c.data);
    assert_null(problem.d.data);
    assert_null(problem.bias_data);
    return problem;
}

#endif
