/*
 * A chip from a JSON file, for `explain --gpu FILE`.
 */
#include "explain.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

/* Keys are the fields of tg_chip. */
typedef enum field_kind { FIELD_INT, FIELD_INT64, FIELD_DOUBLE } field_kind;

static const struct {
    const char *key;
    size_t offset;
    field_kind kind;
    int is_needed;
} fields[] = {
#define FIELD(name, kind, is_needed)                                                               \
    {                                                                                              \
#name, offsetof(tg_chip, name), kind, is_needed                                            \
    }
    FIELD(compute_capability, FIELD_INT, 1),
    FIELD(sm_count, FIELD_INT, 1),
    FIELD(fp32_lanes_per_sm, FIELD_INT, 1),
    FIELD(registers_per_sm, FIELD_INT, 1),
    FIELD(threads_per_sm, FIELD_INT, 1),
    FIELD(blocks_per_sm, FIELD_INT, 1),
    FIELD(shared_bytes_per_sm, FIELD_INT64, 1),
    FIELD(shared_bytes_per_block, FIELD_INT64, 1),
    FIELD(l2_bytes, FIELD_INT64, 1),
    FIELD(memory_bytes, FIELD_INT64, 0),
    FIELD(clock_hz, FIELD_DOUBLE, 1),
    FIELD(memory_bytes_per_s, FIELD_DOUBLE, 1),
    FIELD(fp64_flop_per_s, FIELD_DOUBLE, 0),
    FIELD(tf32_flop_per_s, FIELD_DOUBLE, 0),
    FIELD(fp16_flop_per_s, FIELD_DOUBLE, 0),
#undef FIELD
};
enum { field_count = sizeof fields / sizeof fields[0] };

static int read_field(const char *path, const json_t *root, int index, tg_chip *chip)
{
    const json_t *value = json_object_get(root, fields[index].key);
    void *field = (char *)chip + fields[index].offset;
    const int is_real = fields[index].kind == FIELD_DOUBLE;
    const double highest = fields[index].kind == FIELD_INT ? 1e6 : 1e18;
    if (!value && !fields[index].is_needed)
        return 1;
    if (!value) {
        cli_print_error("%s: the key \"%s\" is missing; `tilegemm explain --json` prints every key "
                        "of a chip",
                        path, fields[index].key);
        return 0;
    }
    const double number = json_number_value(value);
    if (!(is_real ? json_is_number(value) : json_is_integer(value)) || !(number >= 0.0) ||
        number > highest) {
        cli_print_error("%s: \"%s\" must be a %s from 0 to %g", path, fields[index].key,
                        is_real ? "number" : "whole number", highest);
        return 0;
    }
    if (is_real)
        memcpy(field, &number, sizeof number);
    else if (fields[index].kind == FIELD_INT)
        *(int *)field = (int)json_integer_value(value);
    else
        *(int64_t *)field = json_integer_value(value);
    return 1;
}

/* A key that no field has is a mistake in spelling. */
static int check_keys(const char *path, const json_t *root)
{
    const char *key;
    json_t *value;
    json_object_foreach((json_t *)(uintptr_t)root, key, value)
    {
        int is_known = strcmp(key, "name") == 0 || strcmp(key, "title") == 0;
        for (int i = 0; i < field_count; i++)
            is_known = is_known || strcmp(key, fields[i].key) == 0;
        if (!is_known) {
            cli_print_error("%s: \"%s\" is no key of a chip; `tilegemm explain --json` prints them",
                            path, key);
            return 0;
        }
    }
    return 1;
}

int cli_read_chip_file(const char *path, tg_chip *chip)
{
    json_error_t error;
    json_t *root = json_load_file(path, 0, &error);
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
    for (int i = 0; i < field_count && is_right; i++)
        is_right = read_field(path, root, i, chip);
    if (is_right) {
        const char *name = json_string_value(json_object_get(root, "name"));
        const char *title = json_string_value(json_object_get(root, "title"));
        snprintf(chip->name, sizeof chip->name, "%s", name ? name : "file");
        snprintf(chip->title, sizeof chip->title, "%s", title ? title : chip->name);
    }
    json_decref(root);
    return is_right ? CLI_EXIT_OK : CLI_EXIT_USAGE;
}
