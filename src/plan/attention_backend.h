/* Declares the functions of a backend for attention. plan/attention_plan.c has the table of
 * them. */
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
    int is_split;       /* CPU. 1: splits of the keys are tasks */
    /* The following members are set only on a GPU. */
    const tgi_attention_row *row;
    int64_t shared_heads;     /* query heads whose queries share tiles */
    int64_t subtile_count;    /* sets of row->queries queries of a tile, one after another */
    int64_t tile_places;      /* FP32, FP64: 1: tiles of K and V take turns in one place; 2 */
    int64_t tile_count;       /* tiles of the queries of shared_heads heads, one a block */
    int64_t split_count;      /* blocks, or clusters, that share the keys of a tile */
    int64_t cluster_count;    /* blocks of a cluster; 1: no clusters */
    int64_t warp_split_count; /* warps of a block that share its keys; 1: none. Short sequences:
                                 groups of four warps, which have tiles of their own */
    int64_t split_keys;       /* keys of a block, or of each warp that shares them */
    int64_t step_keys;        /* keys of a step; those of the row, or fewer for short sequences */
    int64_t kept_keys;        /* few keys: those of split_keys that shared memory holds */
    int64_t block_threads, shared_bytes;
    int is_resident;        /* 1: all blocks run at the same time */
    int64_t section_groups; /* groups of heads whose tiles come in turn */
    int64_t round_blocks;   /* FP32, FP64: blocks of a round; every other round is reversed */
} tgi_attention_choice;

typedef struct tgi_attention_call {
    const tgi_machine *machine;
    const tg_attention *attention; /* the attention, with checked pointers */
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
    /* Derives the data of a launch other than its pointers. `prepared` begins with zeros. */
    void (*prepare)(const tgi_machine *machine, const tg_attention *attention,
                    const tgi_attention_choice *choice, void *prepared);
    tg_status (*launch)(const tgi_attention_call *call);
} tgi_attention_backend;

extern const tgi_attention_backend tgi_attention_cpu;
extern const tgi_attention_backend tgi_attention_cuda; /* absent from some builds */

#endif
