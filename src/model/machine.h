/* Declares the machine of a context, as the model sees it. */
#ifndef TGI_MACHINE_H
#define TGI_MACHINE_H

#include "core/kernels.h"

/* A GPU. Rates are upper bounds, from its clocks and its bus. */
typedef struct tgi_gpu {
    int ordinal;    /* the driver's number of the device */
    char bus[16];   /* PCI address, "0000:17:00.0" */
    int capability; /* 10 major + minor: 90 */
    int sm_count;
    int threads_per_sm, blocks_per_sm, registers_per_sm; /* most that are resident */
    int64_t shared_bytes_per_sm, shared_bytes_per_block; /* a block has to opt in */
    int64_t l2_bytes, memory_bytes;
    double clock_hz, memory_bytes_per_s;
    double mma_share;  /* the part of arch.def's tensor-core rates that it has */
    double fp64_share; /* the part of arch.def's FP64 rates that it has */
} tgi_gpu;

#define TGI_GRID_HEIGHT_MAX 65535 /* most blocks of a launch along y, and along z */

typedef struct tgi_machine {
    char name[64];
    unsigned features;          /* set of features (arch.h) in use */
    tgi_isa isa;                /* last instruction set that the features allow */
    int thread_count;           /* threads of the context */
    int64_t l1_bytes, l2_bytes; /* data caches of one core */
    int64_t l3_bytes;           /* cache that cores share */
    int is_hot; /* operands lie in caches, as in the calls to which figures are fitted */
    int64_t workspace_limit_bytes; /* limit of the context; 0: the default */
    tgi_gpu gpu;                   /* set for a CUDA context, whose L2 is l2_bytes above too */
    void *device;                  /* the backend's device; NULL on the CPU */
} tgi_machine;

#endif
