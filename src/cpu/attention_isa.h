/* The functions of an instruction set for attention, for sums of FP32 and of FP64. */
#ifndef TGI_CPU_ATTENTION_ISA_H
#define TGI_CPU_ATTENTION_ISA_H

#include <stdint.h>

/*
 * The state of a query block after some keys: rows of `row` accumulators, a query a column.
 * Rows 0 .. size - 1 are the sums of weights times V, row `size` the sum of the weights, row
 * size + 1 the largest score, base 2. Weights are 2^(score - largest).
 */
typedef struct tgi_attention_state {
    void *rows;
    int64_t size; /* v_head_size */
    int64_t row;
    int64_t cols; /* a multiple of the vector's elements, at most `row` */
} tgi_attention_state;

/* Rows of a state beside the sums. */
#define TGI_ATTENTION_STATE_EXTRA 2

/* A block of scores, keys x columns of a state, which become weights in place. */
typedef struct tgi_attention_block {
    int64_t keys;
    void *scores;            /* products q k; rows of the state's length */
    double scale;            /* factor to base 2 */
    double cap, cap_inverse; /* base 2; 0: none */
    const void *bias;        /* as the scores, base 2; NULL: none */
    const void *slopes;      /* a value for each column, base 2; NULL: none */
    const void *places;      /* the query's place of each column, counted from the first key */
    const void *low, *high;  /* column c sees keys low[c] .. high[c] - 1 of the block; NULL: all */
} tgi_attention_block;

typedef struct tgi_attention_isa {
    /* Converts scores to weights, and sets the sum of the weights and the largest score in the
     * block's own state. The sums of weights times V are formed later. */
    void (*weigh)(const tgi_attention_block *block, const tgi_attention_state *state);
    /* Adds a state of later keys to `state`. */
    void (*merge)(const tgi_attention_state *state, const void *later_rows);
    /* Divides the sums by the sum of the weights; a query without a key keeps its zeros. */
    void (*divide)(const tgi_attention_state *state);
    /* Returns 1 if all elements of `count` rows of `size` accumulators are finite. */
    int (*is_finite)(const void *rows, int64_t stride, int64_t count, int64_t size);
} tgi_attention_isa;

/* [0]: sums of FP32, [1]: of FP64 */
extern const tgi_attention_isa tgi_attention_generic[2];
#if defined(__x86_64__)
extern const tgi_attention_isa tgi_attention_avx2[2], tgi_attention_avx512[2];
#endif

#endif
