/* The machine that a context runs on, as the model sees it. */
#ifndef TGI_MACHINE_H
#define TGI_MACHINE_H

#include "core/kernels.h"

/* A GPU. Rates are upper bounds: those of its clocks and its bus. */
typedef struct tgi_gpu {
    int ordinal;    /* of the driver */
    char bus[16];   /* PCI address, "0000:17:00.0" */
    int capability; /* 10 major + minor: 90 */
    int sm_count;
    int threads_per_sm, blocks_per_sm, registers_per_sm; /* at most resident */
    int64_t shared_bytes_per_sm, shared_bytes_per_block; /* the latter by opting in */
    int64_t l2_bytes, memory_bytes;
    double clock_hz, memory_bytes_per_s;
} tgi_gpu;

/* Seconds from one launch to the next, for kernels that do next to nothing, first bytes from memory
 * included. Predicted times of the ladder begin with it. */
#define TGI_GPU_LAUNCH_S 3e-6

#define TGI_GRID_HEIGHT_MAX 65535 /* blocks of a launch along y, and along z */

typedef struct tgi_machine {
    char name[64];
    unsigned features;             /* set of arch.h, in use */
    tgi_isa isa;                   /* the last one that the features allow */
    int thread_count;              /* of the context */
    int64_t l1_bytes, l2_bytes;    /* data caches of one core */
    int64_t l3_bytes;              /* shared */
    int64_t workspace_limit_bytes; /* of the context; 0: the default */
    tgi_gpu gpu;                   /* of a CUDA context; l2_bytes above is its L2 too */
    void *device;                  /* the backend's own, NULL on the CPU */
} tgi_machine;

#endif
