/* Writes structs as JSON, by the lists of fields.h. */
#ifndef TG_CLI_FIELDS_JSON_H
#define TG_CLI_FIELDS_JSON_H

#include "fields.h"

#include <jansson.h>

/* Adds the fields of the struct at `record` to the object under their keys. Returns 0 when out of
 * memory. */
int cli_set_fields_json(json_t *object, const cli_field *fields, const void *record);

#endif /* TG_CLI_FIELDS_JSON_H */
