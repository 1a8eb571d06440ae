/* The counts that the model and the simulator share, as JSON. */
#ifndef TG_CLI_TRAFFIC_JSON_H
#define TG_CLI_TRAFFIC_JSON_H

#include "tilegemm_lab.h"

#include <jansson.h>

/* Adds them to the object under the names of their fields. Returns 0 when out of memory. */
int cli_set_traffic_json(json_t *object, const tg_traffic *traffic);

#endif /* TG_CLI_TRAFFIC_JSON_H */
