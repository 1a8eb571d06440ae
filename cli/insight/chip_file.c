/*
 * Reads a chip from a JSON file, for `explain --gpu FILE`. The library checks the ranges of its
 * figures.
 */
#include "insight/explain.h"

#include "fields.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* Returns 1 for text that no terminal takes for a command. */
static int is_plain_text(const json_t *value)
{
    const char *text = json_string_value(value);
    while (text && *text && (unsigned char)*text >= ' ' && *text != '\x7f')
        text++;
    return text && !*text;
}

static int read_field(const char *path, const json_t *root, const cli_field *field, tg_chip *chip)
{
    const json_t *value = json_object_get(root, field->key);
    void *place = (char *)chip + field->offset;
    const int is_real = field->kind == CLI_FIELD_DOUBLE, is_int = field->kind == CLI_FIELD_INT;
    if (!value && (field->kind == CLI_FIELD_TEXT || field->is_optional))
        return 1;
    if (field->kind == CLI_FIELD_TEXT) {
        if (is_plain_text(value))
            return 1;
        cli_print_error("%s: \"%s\" must be text without control characters", path, field->key);
        return 0;
    }
    if (!value) {
        cli_print_error("%s: the key \"%s\" is missing; `tilegemm explain 8x8x8 --gpu h100 --json` "
                        "prints every key of a chip",
                        path, field->key);
        return 0;
    }
    const double number = json_number_value(value);
    const json_int_t whole = json_integer_value(value);
    if (is_real ? !json_is_number(value)
                : !json_is_integer(value) || (is_int && (whole < INT_MIN || whole > INT_MAX))) {
        cli_print_error("%s: \"%s\" must be a %s", path, field->key,
                        is_real  ? "number"
                        : is_int ? "whole number of 32 bits"
                                 : "whole number");
        return 0;
    }
    if (is_real)
        memcpy(place, &number, sizeof number);
    else if (is_int)
        *(int *)place = (int)whole;
    else
        *(int64_t *)place = whole;
    return 1;
}

/* A key that no field has is refused as a spelling mistake. */
static int check_keys(const char *path, const json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        int is_known = 0;
        for (const cli_field *field = cli_chip_fields; field->key; field++)
            is_known |= strcmp(key, field->key) == 0;
        if (!is_known) {
            cli_print_error("%s: \"%.64s\" is not a key of a chip; `tilegemm explain 8x8x8 --gpu "
                            "h100 --json` prints them under \"gpu\"",
                            path, key);
            return 0;
        }
    }
    return 1;
}

int cli_read_chip_file(const char *path, tg_chip *chip)
{
    json_error_t error;
    struct stat info;
    if (stat(path, &info) == 0 && S_ISDIR(info.st_mode)) {
        cli_print_error(
            "--gpu = '%s' is a directory; pass a chip's name, such as h100, or its JSON "
            "file",
            path);
        return CLI_EXIT_USAGE;
    }
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    memset(chip, 0, sizeof *chip);
    if (!root) {
        cli_print_error("%s: %s%s", path, error.text,
                        error.line > 0 ? "; a chip's file is a JSON object" : "");
        return error.line > 0 ? CLI_EXIT_USAGE : CLI_EXIT_MISSING;
    }
    int is_right = json_is_object(root);
    if (!is_right)
        cli_print_error("%s: a chip's file is a JSON object", path);
    is_right = is_right && check_keys(path, root);
    for (const cli_field *field = cli_chip_fields; field->key && is_right; field++)
        is_right = read_field(path, root, field, chip);
    if (is_right) {
        const char *name = json_string_value(json_object_get(root, "name"));
        const char *title = json_string_value(json_object_get(root, "title"));
        snprintf(chip->name, sizeof chip->name, "%s", name ? name : "file");
        snprintf(chip->title, sizeof chip->title, "%s", title ? title : chip->name);
    }
    json_decref(root);
    return is_right ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}
