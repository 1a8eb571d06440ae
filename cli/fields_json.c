#include "fields_json.h"

#include "json_output.h"

#include <string.h>

static json_t *make_value(const cli_field *field, const char *place)
{
    int small;
    int64_t large;
    double real;
    const char *name;
    tg_refusal refusal;
    switch (field->kind) {
    case CLI_FIELD_TEXT:
        return cli_make_text_json(place);
    case CLI_FIELD_NAME:
        memcpy(&name, place, sizeof name);
        return cli_make_text_json(name);
    case CLI_FIELD_REFUSAL:
        memcpy(&refusal, place, sizeof refusal);
        return cli_make_text_json(tg_get_refusal_name(refusal));
    case CLI_FIELD_DOUBLE:
        memcpy(&real, place, sizeof real);
        return json_real(real);
    case CLI_FIELD_INT64:
        memcpy(&large, place, sizeof large);
        return json_integer(large);
    default:
        memcpy(&small, place, sizeof small);
        return field->kind == CLI_FIELD_BOOLEAN ? json_boolean(small) : json_integer(small);
    }
}

int cli_set_fields_json(json_t *object, const cli_field *fields, const void *record)
{
    int is_done = object != NULL;
    for (; fields->key && is_done; fields++)
        is_done = cli_set_json(object, fields->key,
                               make_value(fields, (const char *)record + fields->offset));
    return is_done;
}
