/*
 * Writes JSON in one form for every command: an indent of two spaces, keys in the order in which
 * they were set. The page of a report holds the same without spaces.
 */
#include "json_output.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int cli_append_json(json_t *list, json_t *value)
{
    int is_done = json_array_append(list, value) == 0;
    json_decref(value);
    return is_done;
}

int cli_set_json(json_t *object, const char *key, json_t *value)
{
    int is_done = json_object_set(object, key, value) == 0;
    json_decref(value);
    return is_done;
}

json_t *cli_keep_whole_json(json_t *value, int is_whole)
{
    if (is_whole)
        return value;
    json_decref(value);
    return NULL;
}

/* Returns the bytes of the character that `text` begins with; 0 if it is not UTF-8. */
static size_t measure_character(const char *text)
{
    const unsigned char first = (unsigned char)text[0], second = (unsigned char)text[1];
    if (first < 0x80)
        return 1;
    size_t bytes = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    /* UTF-8 excludes overlong forms, surrogates and numbers above U+10FFFF. */
    if (first < 0xC2 || first > 0xF4 || (first == 0xE0 && second < 0xA0) ||
        (first == 0xED && second > 0x9F) || (first == 0xF0 && second < 0x90) ||
        (first == 0xF4 && second > 0x8F))
        return 0;
    for (size_t i = 1; i < bytes; i++) {
        if (((unsigned char)text[i] & 0xC0) != 0x80) /* the end of the text too */
            return 0;
    }
    return bytes;
}

json_t *cli_make_text_json(const char *text)
{
    char *legal = strdup(text);
    if (!legal)
        return NULL;
    for (char *rest = legal; *rest;) {
        size_t bytes = measure_character(rest);
        if (bytes == 0)
            *rest = '?';
        rest += bytes > 0 ? bytes : 1;
    }
    json_t *made = json_string(legal);
    free(legal);
    return made;
}

int cli_open_json(const char *path, json_output *output)
{
    memset(output, 0, sizeof *output);
    if (!path)
        return CLI_EXIT_OK;
    output->is_stdout = strcmp(path, "-") == 0;
    if (output->is_stdout)
        return CLI_EXIT_OK;
    cli_file_error error;
    int exit_code = cli_open_output(path, &output->file, &error);
    if (exit_code != CLI_EXIT_OK)
        cli_print_error("%s", error.text);
    output->is_file = exit_code == CLI_EXIT_OK;
    return exit_code;
}

static char *format(json_t *root, size_t flags)
{
    /* The size comes first: json_dumps drops a piece of text for which its buffer cannot grow. */
    size_t bytes = root ? json_dumpb(root, NULL, 0, flags) : 0;
    char *text = bytes > 0 ? malloc(bytes + 1) : NULL;
    if (text && json_dumpb(root, text, bytes, flags) != bytes) {
        free(text);
        text = NULL;
    }
    if (text)
        text[bytes] = '\0';
    json_decref(root);
    return text;
}

json_t *cli_make_real_json(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

char *cli_format_json(json_t *root)
{
    return format(root, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
}

char *cli_pack_json(json_t *root)
{
    return format(root, JSON_COMPACT | JSON_REAL_PRECISION(9));
}

/* Returns a cli_exit. */
static int print_text(const char *text)
{
    if (puts(text) != EOF)
        return CLI_EXIT_OK;
    cli_print_error("cannot write JSON to standard output: %s", strerror(errno));
    return CLI_EXIT_WRONG;
}

int cli_write_json(json_output *output, const char *text)
{
    cli_file_error error = {""};
    int exit_code = CLI_EXIT_OK;
    if (text && output->is_stdout)
        return print_text(text);
    if (text && output->is_file) {
        if (fputs(text, output->file.stream) == EOF || putc('\n', output->file.stream) == EOF)
            exit_code = cli_fail_output(&output->file, errno, &error);
        else
            exit_code = cli_commit_output(&output->file, &error);
        if (exit_code != CLI_EXIT_OK)
            cli_print_error("%s", error.text);
    }
    if (output->is_file)
        cli_discard_output(&output->file);
    return exit_code;
}

int cli_print_json(json_t *root)
{
    char *text = cli_format_json(root);
    if (!text) {
        cli_print_error("out of memory for the JSON text");
        return CLI_EXIT_WRONG;
    }
    int exit_code = print_text(text);
    free(text);
    return exit_code;
}
