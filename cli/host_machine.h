/* Describes the machine as the operating system does, for `info` and the head of a measurement. */
#ifndef TG_CLI_HOST_MACHINE_H
#define TG_CLI_HOST_MACHINE_H

#include "tilegemm.h"

#include <jansson.h>

typedef struct cli_machine {
    char system[200];    /* operating system with its version */
    char governor[64];   /* clock governor of processor 0; "" if unknown */
    double clock_mhz;    /* clock of processor 0 at this moment; 0 if unknown */
    double load_average; /* load of the last minute; -1 if unknown */
    int processor_count; /* online */
    int64_t memory_bytes;
} cli_machine;

void cli_read_machine(cli_machine *machine);

/* Returns machine, device and caches as a JSON object; NULL when out of memory. */
json_t *cli_make_machine_json(const cli_machine *machine, const tg_device_info *info);

/* Returns the compiler that built this command. */
const char *cli_get_compiler(void);

/* Returns the state of the source that the command was built from, as `git describe` names it; ""
 * or "unknown" if git did not know. source_state.cmake writes the text at each build. */
extern const char cli_source_state[];
const char *cli_get_source(void);

#endif /* TG_CLI_HOST_MACHINE_H */
