/*
 * JSON to a file (under a temporary name, then renamed) or to standard output.
 */
#ifndef TG_CLI_JSON_OUTPUT_H
#define TG_CLI_JSON_OUTPUT_H

#include "files/output_file.h"

#include <jansson.h>

typedef struct json_output {
    cli_output file;
    int is_file, is_stdout; /* neither: nothing is written */
} json_output;

/* `path` may be NULL (no output) or "-" (standard output). On success the caller calls
 * cli_write_json. Returns a cli_exit. */
int cli_open_json(const char *path, json_output *output);

/* Writes the text of cli_format_json (NULL: nothing; a file that was there before stays) and closes
 * the output. Returns a cli_exit. */
int cli_write_json(json_output *output, const char *text);

/* Append to an array, set in an object; both take over `value`, NULL included. Return 0 where
 * `value` is NULL or memory ran out. */
int cli_append_json(json_t *list, json_t *value);
int cli_set_json(json_t *object, const char *key, json_t *value);

/* `value`, or NULL in place of one of which a part is missing: it is released, and json_pack makes
 * NULL of what it would be a part of. */
json_t *cli_keep_whole_json(json_t *value, int is_whole);

/* Text from outside (a file, the environment), with ? for each byte that is not UTF-8, which JSON
 * cannot hold; NULL when out of memory. */
json_t *cli_make_text_json(const char *text);

/* The text of `root`, which it releases; NULL stands for out of memory on both sides. The caller
 * frees the text. */
char *cli_format_json(json_t *root);

/* The same on one line, for a program that reads it. */
char *cli_pack_json(json_t *root);

/* Prints `root` to standard output and releases it; NULL stands for out of memory. For commands
 * whose --json takes no file. Returns a cli_exit. */
int cli_print_json(json_t *root);

#endif /* TG_CLI_JSON_OUTPUT_H */
