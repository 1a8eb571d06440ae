/*
 * Reads clock, power and throttling of a GPU through NVML (libnvidia-ml.so.1, opened at run time).
 */
#ifndef TG_CLI_GPU_STATE_H
#define TG_CLI_GPU_STATE_H

typedef struct cli_gpu_state {
    int is_known;
    double clock_mhz, power_w;
    int is_throttled; /* 1: power or heat limits the clock */
} cli_gpu_state;

/* Returns the present state of the GPU at the PCI address ("0000:17:00.0"). Without NVML nothing is
 * known. */
cli_gpu_state cli_read_gpu_state(const char *bus_id);

#endif /* TG_CLI_GPU_STATE_H */
