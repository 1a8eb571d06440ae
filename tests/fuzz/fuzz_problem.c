/*
 * Reads any text as a problem. It is refused with a reason, or gives a problem that is the same
 * after it has been written and read again, or one that is not legal and is not written.
 *
 * SPDX-License-Identifier: MIT
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "harness/problems.h"
#include "tilegemm_lab.h"

#define TEXT_BYTES 640 /* is always enough, as tilegemm.h says */

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count);

static void require(int condition)
{
    if (!condition)
        abort();
}

/* Writes the problem, reads it and compares. */
static void go_round(const tg_problem *problem)
{
    char text[TEXT_BYTES], again[TEXT_BYTES];
    tg_problem read;
    if (tg_format_problem(problem, text, sizeof text) != TG_STATUS_OK) {
        require(tg_get_error_detail()[0] != 0 && !strstr(tg_get_error_detail(), "text_bytes"));
        return;
    }
    require(tg_parse_problem(text, &read, sizeof read) == TG_STATUS_OK);
    require(find_problem_difference(problem, &read) == NULL);
    require(tg_format_problem(&read, again, sizeof again) == TG_STATUS_OK);
    require(strcmp(text, again) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t byte_count)
{
    char *text = malloc(byte_count + 1); /* has that size, so that a read past the end is seen */
    tg_problem problem;
    require(text != NULL);
    memcpy(text, bytes, byte_count);
    text[byte_count] = 0;
    tg_status status = tg_parse_problem(text, &problem, sizeof problem);
    require(status == TG_STATUS_OK || status == TG_STATUS_INVALID_ARGUMENT);
    if (status == TG_STATUS_OK)
        go_round(&problem);
    else
        require(tg_get_error_detail()[0] != 0);
    free(text);
    return 0;
}
