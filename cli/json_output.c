/*
 * One form of JSON for every command: two spaces of indent, keys in the order they were made.
 */
#include "json_output.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const size_t json_flags = JSON_INDENT(2) | JSON_REAL_PRECISION(9);

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

/* Bytes of the character that `text` begins with, 0 where it is not UTF-8. */
static size_t measure_character(const char *text)
{
    const size_t text_bytes = strnlen(text, 4);
    for (size_t bytes = 1; bytes <= text_bytes; bytes++) {
        json_t *character = json_stringn(text, bytes);
        json_decref(character);
        if (character)
            return bytes;
    }
    return 0;
}

json_t *cli_make_text_json(const char *text)
{
    json_t *made = json_string(text);
    if (made)
        return made;
    char *legal = strdup(text);
    if (!legal)
        return NULL;
    for (char *rest = legal; *rest;) {
        size_t bytes = measure_character(rest);
        if (bytes == 0)
            *rest = '?';
        rest += bytes > 0 ? bytes : 1;
    }
    made = json_string(legal);
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

int cli_write_json(json_output *output, const json_t *root)
{
    cli_file_error error = {""};
    int exit_code = CLI_EXIT_OK;
    if (root && output->is_stdout) {
        if (json_dumpf(root, stdout, json_flags) != 0 || putchar('\n') == EOF) {
            cli_print_error("cannot write JSON to standard output: %s", strerror(errno));
            return CLI_EXIT_WRONG;
        }
    } else if (root && output->is_file) {
        if (json_dumpf(root, output->file.stream, json_flags) != 0 ||
            putc('\n', output->file.stream) == EOF)
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
    if (!root) {
        cli_print_error("out of memory for the JSON text");
        return CLI_EXIT_WRONG;
    }
    json_output output = {.is_stdout = 1};
    int exit_code = cli_write_json(&output, root);
    json_decref(root);
    return exit_code;
}
