/*
 * Declares the argument of a rung of attention: tensors [batch][head][row][element] without gaps,
 * of the row's type. The host (C11) fills it, the kernel reads it from constant memory.
 */
#ifndef TGI_ATTENTION_RUNG_ARGS_H
#define TGI_ATTENTION_RUNG_ARGS_H

typedef struct tgi_attention_rung_args {
    const void *q, *k, *v;
    void *d;
    float *scores;         /* m x n for each head, for rung 1 alone */
    int m, n, head_size;   /* queries and keys of a head, elements of a row */
    int heads_per_kv_head; /* heads of Q that share one of K and V */
    int shift;             /* query i sees keys 0 .. i + shift; n where no mask hides any */
    float scale;           /* factor of scores, times log2(e): weights are powers of two */
} tgi_attention_rung_args;

#endif
