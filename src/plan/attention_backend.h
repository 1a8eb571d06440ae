/* DISPATCH of attention: what a backend offers for it. The table is in plan/attention_plan.c. */
#ifndef TGI_ATTENTION_BACKEND_H
#define TGI_ATTENTION_BACKEND_H

#include "core/attention_problem.h"
#include "model/machine.h"

#define TGI_ATTENTION_KERNEL_BYTES 48

/* A backend's choice says how an attention runs on a machine. */
typedef struct tgi_attention_choice {
    char kernel[TGI_ATTENTION_KERNEL_BYTES];
    tgi_isa isa;
    int thread_count;
    int64_t workspace_bytes;
    int64_t query_tile; /* queries of a task, of all heads that share keys */
    int is_split;       /* 1: parts of the keys are tasks */
} tgi_attention_choice;

typedef struct tgi_attention_call {
    const tg_attention *attention; /* its pointers are checked */
    const tgi_attention_choice *choice;
    void *workspace;
    void *stream;
} tgi_attention_call;

typedef struct tgi_attention_backend {
    const char *device;
    void (*choose)(const tgi_machine *machine, const tg_attention *attention,
                   tgi_attention_choice *choice);
    tg_status (*launch)(const tgi_attention_call *call);
} tgi_attention_backend;

extern const tgi_attention_backend tgi_attention_cpu;

#endif
