/* Declares the GPUs as `tilegemm info` shows them. */
#ifndef TG_CLI_INFO_GPU_H
#define TG_CLI_INFO_GPU_H

#include <jansson.h>

/* Prints a line for every GPU, or the reason why there is none. */
void cli_print_gpus(void);

/* Returns {"devices": [...], "reason": null, or why there is none}; NULL when out of memory. */
json_t *cli_make_gpus_json(void);

#endif /* TG_CLI_INFO_GPU_H */
