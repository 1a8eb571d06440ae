/* The functions of an instruction set for attention, for sums of FP32 and of FP64. */
#ifndef TGI_CPU_ATTENTION_ISA_H
#define TGI_CPU_ATTENTION_ISA_H

#include <stdint.h>

#include "tilegemm.h"

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
    /* Rounds `count` sums of FP32 to BF16 or FP16; NULL in the table of FP64. */
    void (*narrow)(tg_type type, uint16_t *target, const float *sums, int64_t count);
    /* Returns 1 if all elements of `count` rows of `size` accumulators are finite. */
    int (*is_finite)(const void *rows, int64_t stride, int64_t count, int64_t size);
} tgi_attention_isa;

/* [0]: sums of FP32, [1]: of FP64 */
extern const tgi_attention_isa tgi_attention_generic[2];
#if defined(__x86_64__)
extern const tgi_attention_isa tgi_attention_avx2[2], tgi_attention_avx512[2];
#endif

/* Columns of a query block, rows of a tile register and pairs of its rows, and rows that are
 * multiplied at once. */
#define TGI_SLICES_COLS 32
#define TGI_SLICES_SIDE 16
#define TGI_SLICES_ROWS 32
#define TGI_SLICES_TILE (TGI_SLICES_SIDE * TGI_SLICES_SIDE)

/*
 * A matrix of FP32 as a sum of matrices of BF16: slice 0 is rounded from it, and each later slice
 * from what the ones before leave. An element is a pair of BF16 along k, and a step is
 * TGI_SLICES_SIDE pairs. Tiles that a register loads at once lie in one piece, in the order of
 * their use, because rows that lie apart take several times as long to load. Each step has two:
 * of a left matrix the upper and the lower rows of TGI_SLICES_ROWS, which take all steps before the
 * next rows; of a right matrix the columns to the left and to the right.
 */
typedef struct tgi_slices {
    uint32_t *pairs;
    int64_t slice; /* pairs from one slice to the next */
    int64_t steps; /* steps of k that there is room for */
    int count;     /* slices */
} tgi_slices;

/* Returns the first pair of a row of a left matrix in a step. */
static inline uint32_t *tgi_slices_find_row(const tgi_slices *slices, int64_t row, int64_t step)
{
    const int64_t rows = row / TGI_SLICES_SIDE;
    return slices->pairs + ((rows / 2 * slices->steps + step) * 2 + rows % 2) * TGI_SLICES_TILE +
           row % TGI_SLICES_SIDE * TGI_SLICES_SIDE;
}

/* Returns an element of a right matrix. */
static inline uint32_t *tgi_slices_find_pair(const tgi_slices *slices, int64_t pair, int64_t col)
{
    return slices->pairs + (pair / TGI_SLICES_SIDE * 2 + col / TGI_SLICES_SIDE) * TGI_SLICES_TILE +
           pair % TGI_SLICES_SIDE * TGI_SLICES_SIDE + col % TGI_SLICES_SIDE;
}

/* Numbers from here on are not sliced, nor are Inf and NaN: their bits as FP32 without the sign. */
#define TGI_SLICES_LEAST_ODD 0x7f000000u

/* Products of slices, for sums of FP32. Zeros fill steps of k. */
typedef struct tgi_attention_slices {
    void (*open)(void); /* a thread calls the other functions between these two */
    void (*close)(void);
    /* Slices a right matrix, k rows of TGI_SLICES_COLS. A column with a number that is not sliced
     * becomes zero. Returns a mask of such columns. */
    uint32_t (*slice_right)(const float *rows, int64_t k, const tgi_slices *target);
    /* Slices rows of a left matrix of `size` columns. A row with a number that is not sliced
     * becomes zero, and is_odd tells so. Returns 1 if there is one. */
    int (*slice_rows)(const float *rows, int64_t stride, int64_t count, int64_t size,
                      const tgi_slices *target, unsigned char *is_odd);
    /* Slices the transpose of `count` rows of `size` columns, a left matrix. Numbers that are not
     * sliced become zero. Returns 1 if there is one. */
    int (*slice_transpose)(const float *rows, int64_t stride, int64_t count, int64_t size,
                           const tgi_slices *target);
    /* These three work as those above for BF16, whose numbers are slices. They return 1 if there is
     * one that is not sliced; the target is then of no use. A right matrix has TGI_SLICES_COLS
     * columns, each in one piece; NULL: zeros. */
    int (*pair_rows)(const uint16_t *rows, int64_t stride, int64_t count, int64_t size,
                     const tgi_slices *target);
    int (*pair_columns)(const uint16_t *const *columns, int64_t size, const tgi_slices *target);
    int (*pair_transpose)(const uint16_t *rows, int64_t stride, int64_t count, int64_t size,
                          const tgi_slices *target);
    /* Sets D, `rows` rows of TGI_SLICES_COLS sums of which the first `cols` count, to the products
     * of slices whose numbers add up to at most `most`. */
    void (*multiply)(int64_t rows, int64_t cols, int64_t steps, const tgi_slices *left,
                     const tgi_slices *right, int most, float *d);
    /* Works as `weigh` of tgi_attention_isa, but weights become slices, a right matrix. They also
     * replace the scores if keeps_weights is 1. */
    void (*weigh)(const tgi_attention_block *block, const tgi_attention_state *state,
                  const tgi_slices *weights, int keeps_weights);
} tgi_attention_slices;

#if defined(__x86_64__)
extern const tgi_attention_slices tgi_attention_amx;
#endif

#endif
