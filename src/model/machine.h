/* What the model knows of the machine that a context runs on. */
#ifndef TGI_MACHINE_H
#define TGI_MACHINE_H

#include "core/kernels.h"

typedef struct tgi_machine {
    char name[64];
    tgi_isa isa;                /* highest in use */
    int thread_count;           /* of the context */
    int64_t l1_bytes, l2_bytes; /* data caches of one core */
    int64_t l3_bytes;           /* shared */
} tgi_machine;

#endif
