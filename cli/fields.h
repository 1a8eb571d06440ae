/*
 * Declares the fields of the instruments' structs by name. JSON is written from these lists and
 * chips are read by them. fields.c needs no library, because the report's page is built with it
 * too.
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
    int is_optional; /* 1: a chip file may leave it out, which means 0 */
} cli_field;

extern const cli_field cli_chip_fields[];   /* tg_chip */
extern const cli_field cli_kernel_fields[]; /* tg_explanation: the kernel */
extern const cli_field cli_count_fields[];  /* tg_traffic: counts that the simulator makes too */
extern const cli_field cli_reuse_fields[];  /* tg_traffic: figures of the model alone */
extern const cli_field cli_prediction_fields[]; /* tg_prediction */
extern const cli_field cli_candidate_fields[];  /* tg_candidate */

#endif /* TG_CLI_FIELDS_H */
