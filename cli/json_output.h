/* Writes JSON to a file (under a temporary name, then renamed) or to standard output. */
#ifndef TG_CLI_JSON_OUTPUT_H
#define TG_CLI_JSON_OUTPUT_H

#include "files/output_file.h"

#include <jansson.h>

typedef struct json_output {
    cli_output file;
    int is_file, is_stdout; /* neither: nothing is written */
} json_output;

/* Opens the output. `path` may be NULL (no output) or "-" (standard output). On success the caller
 * calls cli_write_json. Returns a cli_exit. */
int cli_open_json(const char *path, json_output *output);

/* Writes the text of cli_format_json and closes the output. With NULL it writes nothing, and an
 * existing file stays. Returns a cli_exit. */
int cli_write_json(json_output *output, const char *text);

/* Append to an array, or set in an object; both take over `value`. Return 0 if `value` is NULL or
 * memory ran out. */
int cli_append_json(json_t *list, json_t *value);
int cli_set_json(json_t *object, const char *key, json_t *value);

/* Returns `value` if it is whole, else releases it and returns NULL. json_pack returns NULL if one
 * of its parts is NULL. */
json_t *cli_keep_whole_json(json_t *value, int is_whole);

/* Returns text from a file or the environment as JSON; '?' replaces each byte that is not UTF-8.
 * NULL when out of memory. */
json_t *cli_make_text_json(const char *text);

/* Returns a number as JSON, which has no NaN and no Inf: null stands for them. */
json_t *cli_make_real_json(double value);

/* Returns the text of `root`, which it releases; NULL stands for out of memory on both sides. The
 * caller frees the text. */
char *cli_format_json(json_t *root);

/* Returns the text of `root` on one line, for a program that reads it. Releases `root`. */
char *cli_pack_json(json_t *root);

/* Prints `root` to standard output and releases it, for commands whose --json takes no file. NULL
 * stands for out of memory. Returns a cli_exit. */
int cli_print_json(json_t *root);

#endif /* TG_CLI_JSON_OUTPUT_H */
