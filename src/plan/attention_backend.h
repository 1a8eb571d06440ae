/* DISPATCH of attention: what a backend offers for it. The table is in plan/attention_plan.c. */
#ifndef TGI_ATTENTION_BACKEND_H
#define TGI_ATTENTION_BACKEND_H

#include "core/attention_problem.h"
#include "core/attention_rows.h"
#include "model/machine.h"

#define TGI_ATTENTION_KERNEL_BYTES 64

/* A backend's choice says how an attention runs on a machine. */
typedef struct tgi_attention_choice {
    char kernel[TGI_ATTENTION_KERNEL_BYTES];
    tgi_isa isa;
    int thread_count;
    int64_t workspace_bytes;
    int64_t query_tile; /* queries of a task or a tile, of all heads that share keys */
    int is_split;       /* CPU. 1: parts of the keys are tasks */
    /* The following members are set on a GPU alone. */
    const tgi_attention_row *row;
    int64_t shared_heads;  /* query heads whose queries share tiles */
    int64_t turn_count;    /* row->queries queries of a tile that a block has in turn */
    int64_t tile_count;    /* tiles of the queries of these heads, one for each block */
    int64_t part_count;    /* blocks that share the keys of a tile of queries */
    int64_t cluster_count; /* or clusters of these many blocks */
    int64_t split_count;   /* warps of each that share its keys, 1 in rows that are not split */
    int64_t part_keys;     /* keys of a block, or of each of these warps */
    int64_t kept_keys;     /* few keys: those of part_keys for which a block has room */
    int64_t block_threads, shared_bytes;
    int is_resident;        /* 1: all blocks are on their multiprocessors at the same time */
    int64_t section_groups; /* groups of heads whose tiles come in turn */
} tgi_attention_choice;

typedef struct tgi_attention_call {
    const tgi_machine *machine;
    const tg_attention *attention; /* its pointers are checked */
    const tgi_attention_choice *choice;
    void *prepared; /* the plan's block, which `prepare` has filled */
    void *workspace;
    void *stream;
} tgi_attention_call;

typedef struct tgi_attention_backend {
    const char *device;
    int64_t prepared_bytes; /* size of the block that `prepare` fills; 0: none */
    /* Fills *choice, which begins with zeros. Errors: UNSUPPORTED. */
    tg_status (*choose)(const tgi_machine *machine, const tg_attention *attention,
                        tgi_attention_choice *choice);
    /* Derives what a launch needs beside its pointers. `prepared` begins with zeros. */
    void (*prepare)(const tgi_machine *machine, const tg_attention *attention,
                    const tgi_attention_choice *choice, void *prepared);
    tg_status (*launch)(const tgi_attention_call *call);
} tgi_attention_backend;

extern const tgi_attention_backend tgi_attention_cpu;
extern const tgi_attention_backend tgi_attention_cuda; /* absent from some builds */

#endif
