/*
 * The GPUs as `tilegemm info` shows them.
 */
#ifndef TG_CLI_INFO_GPU_H
#define TG_CLI_INFO_GPU_H

#include <jansson.h>

/* Text lines of every GPU, or of the reason why there is none. */
void cli_print_gpus(void);

/* {"devices": [...], "reason": null or why there is none}; NULL when out of memory. */
json_t *cli_make_gpus_json(void);

#endif /* TG_CLI_INFO_GPU_H */
