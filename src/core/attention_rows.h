/* The rows of attention_kernels.def as C. */
#ifndef TGI_ATTENTION_ROWS_H
#define TGI_ATTENTION_ROWS_H

#include "core/kernels.h"

typedef struct tgi_attention_row {
    const char *name, *image;
    tgi_isa isa;
    tg_type type;
    int queries;    /* a block has these */
    int head_size;  /* the largest of Q and V */
    int has_boxes;  /* TMA copies what it can */
    int is_grouped; /* products by groups of warps; its blocks take one tile after another */
    int is_split;   /* the warps of a block have the same queries, and parts of the keys */
    int cluster;    /* most blocks of a cluster whose warps share them; 1: no cluster */
    int warps, keys, tiles, resident_blocks;
} tgi_attention_row;

/* Returns row `index`, or NULL if there are not as many. */
const tgi_attention_row *tgi_attention_rows_get(int index);

#endif
