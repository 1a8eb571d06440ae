/* Declares the rows of attention_kernels.def as C. */
#ifndef TGI_ATTENTION_ROWS_H
#define TGI_ATTENTION_ROWS_H

#include "core/kernels.h"

/* The kind of a row says which attention it serves. */
typedef enum tgi_attention_kind {
    TGI_ATTENTION_WIDE, /* many queries */
    TGI_ATTENTION_THIN, /* few queries: the warps of a block share them, and divide the keys */
    TGI_ATTENTION_FEW_QUERIES, /* the queries of a token or a few, in FP32 and FP64 */
    TGI_ATTENTION_FEW_KEYS,    /* few keys */
    TGI_ATTENTION_SHORT        /* keys that all fit into shared memory */
} tgi_attention_kind;

typedef struct tgi_attention_row {
    const char *name, *image;
    tgi_isa isa;
    tg_type type;
    int queries;   /* queries of a block */
    int head_size; /* largest head size of Q and V */
    tgi_attention_kind kind;
    int has_boxes; /* 1: TMA copies what it can, and wide blocks have tiles in turn */
    int cluster;   /* most blocks of a cluster that share the keys; 1: no cluster */
    int warps, keys, tiles, resident_blocks;
} tgi_attention_row;

/* Returns row `index`, or NULL if there are not as many. */
const tgi_attention_row *tgi_attention_rows_get(int index);

#endif
