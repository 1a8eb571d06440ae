/*
 * The fields of the instruments' structs by name. JSON is written from these lists and chips are
 * read by them. fields.c needs no library, because the report's page is built with it too.
 */
#ifndef TG_CLI_FIELDS_H
#define TG_CLI_FIELDS_H

#include "tilegemm_lab.h"

#include <stddef.h>

typedef enum cli_field_kind {
    CLI_FIELD_INT,
    CLI_FIELD_INT64,
    CLI_FIELD_DOUBLE,
    CLI_FIELD_BOOLEAN, /* an int */
    CLI_FIELD_TEXT,    /* an array of char */
    CLI_FIELD_NAME,    /* const char * */
    CLI_FIELD_REFUSAL  /* a tg_refusal, told by its name */
} cli_field_kind;

typedef struct cli_field {
    const char *key; /* NULL ends a list */
    size_t offset;
    cli_field_kind kind;
    int is_optional; /* of a chip in a file: 0 if it is left out */
} cli_field;

extern const cli_field cli_chip_fields[];       /* of tg_chip */
extern const cli_field cli_kernel_fields[];     /* of tg_explanation: which kernel */
extern const cli_field cli_count_fields[];      /* of tg_traffic: what the simulator counts too */
extern const cli_field cli_reuse_fields[];      /* of tg_traffic: what the model alone derives */
extern const cli_field cli_prediction_fields[]; /* of tg_prediction */
extern const cli_field cli_candidate_fields[];  /* of tg_candidate */

#endif /* TG_CLI_FIELDS_H */
