/*
 * Reads the lines, words and numbers of a MatrixMarket file.
 *
 * SPDX-License-Identifier: MIT
 */
#include "files/mtx_text.h"

#include <stdlib.h>
#include <string.h>

#define NUMBER_BYTES 512 /* longer numbers are taken for garbage */

static int is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r';
}

cli_mtx_text cli_make_mtx_text(const void *bytes, int64_t byte_count, cli_file_error *error)
{
    const char *start = bytes;
    return (cli_mtx_text){.at = start, .end = start + byte_count, .error = error};
}

int cli_next_mtx_line(cli_mtx_text *text)
{
    if (text->line > 0) /* past the rest of the last line and its line feed */
        text->at = text->line_end < text->end ? text->line_end + 1 : text->end;
    while (text->at < text->end) {
        const char *feed = memchr(text->at, '\n', (size_t)(text->end - text->at));
        text->line_end = feed ? feed : text->end;
        text->line++;
        while (text->at < text->line_end && is_blank(*text->at))
            text->at++;
        if (text->at < text->line_end)
            return 1;
        text->at = feed ? feed + 1 : text->end;
    }
    text->line_end = text->end;
    return 0;
}

int cli_is_mtx_comment(const cli_mtx_text *text)
{
    return text->at < text->line_end && *text->at == '%';
}

cli_mtx_word cli_next_mtx_word(cli_mtx_text *text)
{
    while (text->at < text->line_end && is_blank(*text->at))
        text->at++;
    cli_mtx_word word = {.start = text->at};
    while (text->at < text->line_end && !is_blank(*text->at))
        text->at++;
    word.length = text->at - word.start;
    return word;
}

int cli_read_mtx_integer(cli_mtx_word word, int64_t *value)
{
    int is_negative = word.length > 0 && word.start[0] == '-';
    int64_t i = is_negative || (word.length > 0 && word.start[0] == '+');
    *value = 0;
    if (i == word.length)
        return 0;
    for (; i < word.length; i++) {
        int digit = word.start[i] - '0';
        if (digit < 0 || digit > 9 || __builtin_mul_overflow(*value, 10, value) ||
            __builtin_add_overflow(*value, is_negative ? -digit : digit, value))
            return 0;
    }
    return 1;
}

int cli_read_mtx_number(cli_mtx_word word, int is_fp32, double *value)
{
    char number[NUMBER_BYTES], *end;
    if (word.length == 0 || word.length >= NUMBER_BYTES || memchr(word.start, 'x', word.length) ||
        memchr(word.start, 'X', (size_t)word.length) || memchr(word.start, 0, (size_t)word.length))
        return 0;
    /* The word is copied, because the map has no NUL after it. The command stays in the C locale,
     * whose decimal point is '.'. */
    memcpy(number, word.start, (size_t)word.length);
    number[word.length] = 0;
    *value = is_fp32 ? strtof(number, &end) : strtod(number, &end);
    return end == number + word.length;
}
