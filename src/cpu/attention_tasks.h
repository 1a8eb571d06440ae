/* The files of attention on the CPU share these declarations. */
#ifndef TGI_CPU_ATTENTION_TASKS_H
#define TGI_CPU_ATTENTION_TASKS_H

#include "cpu/attention_isa.h"
#include "cpu/cpu.h"
#include "plan/attention_backend.h"

/* Keys are summed in blocks, whose scores stay in L1 or L2, and in splits, whose states are merged
 * in order. Both begin at multiples of their length, so that a row's bits depend on its keys
 * alone. */
#define TGI_ATTENTION_BLOCK 240        /* tiles of 4, 6 and 8 rows divide it */
#define TGI_ATTENTION_SLICED_BLOCK 256 /* tiles of 32 rows do */
#define TGI_ATTENTION_BLOCKS_OF_SPLIT 4

/* The keys that the queries of a query block see. */
typedef struct tgi_attention_range {
    int64_t low, high; /* some query sees a key of low .. high - 1; low >= high: none does */
    int64_t all_low, all_high; /* every query sees all keys of all_low .. all_high - 1 */
} tgi_attention_range;

/* The matrices that are sliced. */
typedef enum tgi_attention_sliced {
    TGI_ATTENTION_QUERIES,
    TGI_ATTENTION_KEYS,
    TGI_ATTENTION_WEIGHTS,
    TGI_ATTENTION_VALUES,
    TGI_ATTENTION_SLICED_COUNT
} tgi_attention_sliced;

/* Addresses of a thread's blocks, as accumulators; a query block is `cols` queries. */
typedef struct tgi_attention_scratch {
    char *queries; /* query blocks x head_size x cols: Q^T */
    char *totals;  /* query blocks x states: all keys so far, first those of the first split */
    char *splits;  /* query blocks x states: a later split of the keys */
    char *sums;    /* a state: a block of keys that is not the first one of its split */
    char *scores;  /* BLOCK x cols */
    char *bias;    /* BLOCK x cols */
    char *keys;    /* BLOCK x head_size, converted */
    char *values;  /* BLOCK x v_head_size, converted */
    char *slices[TGI_ATTENTION_SLICED_COUNT]; /* operands of products of slices */
    char *odd_columns; /* for each query block a mask of the queries that are not sliced */
    char *odd_keys;    /* 1 for each key of the block that is not sliced */
    tgi_attention_range *ranges;                               /* one for each query block */
    char *lows, *highs, *slopes, *places, *low, *high, *place; /* query blocks x cols, or cols */
} tgi_attention_scratch;

/* One execution. */
typedef struct tgi_attention_run {
    const tg_attention *attention;
    const tgi_attention_choice *choice;
    const tgi_isa_kernels *kernels, *sum_kernels; /* for the inputs' and for the sums' type */
    const tgi_attention_isa *isa;
    const tgi_tile_set *tiles;
    const tgi_attention_slices *slices; /* forms the products; NULL: tiles do */
    int64_t block_keys, split_keys;
    int64_t group;             /* query heads that share keys */
    int64_t tile_count;        /* tiles of queries of a head of keys */
    int64_t split_count;       /* splits of n keys */
    int64_t query_block_count; /* query blocks of a tile */
    int64_t state_bytes, scratch_bytes;
    char *thread_scratch; /* one for each thread */
    char *states;         /* where the splits are tasks: item x split x query block */
} tgi_attention_run;

/* A tile of queries of one head of keys, in one batch entry. Query `c` of the tile is row
 * (first + c) % queries of the head (first + c) / queries of the group. */
typedef struct tgi_attention_item {
    int64_t batch, kv_head, first, count; /* count of queries, of all heads of the group */
    int64_t queries, keys;                /* lengths of the batch entry */
    int is_first; /* 1: the first item that reads these keys, of more than one vector of queries */
    const char *next_queries; /* rows of Q that the next item reads */
    int64_t next_count;       /* 0: not known */
} tgi_attention_item;

static inline int64_t tgi_attention_round_bytes(int64_t bytes)
{
    return tgi_round_up(bytes, TGI_ALIGN_BYTES);
}

/* Returns element (entry, head, row, element) of a tensor. */
static inline char *tgi_attention_at(const tg_heads *heads, int64_t bytes, int64_t entry,
                                     int64_t head, int64_t row, int64_t element)
{
    return (char *)heads->data + (entry * heads->batch_stride + head * heads->head_stride +
                                  row * heads->row_stride + element * heads->element_stride) *
                                     bytes;
}

/* Returns the queries of the item that lie in the first one's head, one row after the other. */
static inline int64_t tgi_attention_count_run(const tgi_attention_item *item)
{
    const int64_t left = item->queries - item->first % item->queries;
    return left < item->count ? left : item->count;
}

/* Returns the query head of query `c` of the item. Sets *row to its row in the tensor, and *entry
 * to the batch entry of that row. */
int64_t tgi_attention_find_row(const tgi_attention_run *run, const tgi_attention_item *item,
                               int64_t c, int64_t *entry, int64_t *row);

/* Copies Q^T of the item into scratch->queries. */
void tgi_attention_load_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                                const tgi_attention_scratch *scratch);

/* Finds the keys that each query of the item sees. */
void tgi_attention_find_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                                const tgi_attention_scratch *scratch);

/* A block of rows of K or V as tiles read it: row j lies at data + j * stride elements. */
typedef struct tgi_attention_rows {
    const void *data;
    int64_t stride;
} tgi_attention_rows;

/* Returns 1 if tiles read K (or V) in place. */
static inline int tgi_attention_is_in_place(const tgi_attention_run *run, const tg_heads *heads)
{
    return tgi_type_bytes(run->attention->type) == run->tiles->accum_bytes &&
           run->attention->page_rows == 0 && heads->element_stride == 1;
}

/* Returns the rows of K (or V) from `first` on where they lie, if they do not lie in pages. */
tgi_attention_rows tgi_attention_find_rows(const tgi_attention_run *run,
                                           const tgi_attention_item *item, const tg_heads *heads,
                                           int64_t first);

/* Returns rows first .. first + count - 1 of K (or V), in place if their type and strides allow it,
 * else converted into `scratch`. */
tgi_attention_rows tgi_attention_load_rows(const tgi_attention_run *run,
                                           const tgi_attention_item *item, const tg_heads *heads,
                                           int64_t size, int64_t first, int64_t count,
                                           void *scratch);

/* Fills scratch->bias, the block of the bias in base 2, for a query block and `count` keys from
 * `first` on. */
void tgi_attention_load_bias(const tgi_attention_run *run, const tgi_attention_item *item,
                             const tgi_attention_scratch *scratch, int64_t query_block,
                             int64_t first, int64_t count);

/* Divides a query block's state and writes its rows of D and log_sum_exp. The place of scores is
 * overwritten. */
void tgi_attention_store(const tgi_attention_run *run, const tgi_attention_item *item,
                         const tgi_attention_scratch *scratch, int64_t query_block, char *state);

/* Forms the states of a split of the keys, all query blocks of the item, in `states`. A split
 * behind the last key gets the states of no keys. */
void tgi_attention_form_split(const tgi_attention_run *run, const tgi_attention_item *item,
                              int64_t split, const tgi_attention_scratch *scratch, char *states);

/* A block of keys with its V. */
typedef struct tgi_attention_keys {
    int64_t first, length;
    tgi_attention_rows keys, values;  /* loaded when a query block first sees the block */
    int is_finite;                    /* 1 if all of V is; -1: not known */
    int has_odd_keys, has_odd_values; /* 1: numbers that are not sliced */
} tgi_attention_keys;

/* attention_slices.c: */

/* Returns the bytes of the slices of all query blocks or of one block of keys; 0 if there are
 * none. */
int64_t tgi_attention_count_slice_bytes(const tgi_attention_run *run, tgi_attention_sliced which);

/* Slices the queries where they lie, and returns 1, if they are BF16 that allows it; else returns
 * 0. */
int tgi_attention_pair_queries(const tgi_attention_run *run, const tgi_attention_item *item,
                               const tgi_attention_scratch *scratch);

/* Slices the queries that are in scratch->queries. */
void tgi_attention_slice_queries(const tgi_attention_run *run,
                                 const tgi_attention_scratch *scratch);

/* Slices a block of keys and its V where they lie, and returns 1, if they are BF16 that allows it;
 * else returns 0. */
int tgi_attention_pair_keys(const tgi_attention_run *run, const tgi_attention_item *item,
                            const tgi_attention_scratch *scratch, tgi_attention_keys *keys);

/* Slices a block of keys and its V, which have been converted. */
void tgi_attention_slice_keys(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                              tgi_attention_keys *keys);

/* Sets the scores of the first `count` keys of the block. */
void tgi_attention_multiply_keys(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                                 const tgi_attention_keys *keys, int64_t query_block, int64_t count,
                                 int64_t cols);

/* Converts the scores of a block to weights, and sets the block's own state, `sums`. */
void tgi_attention_sum_values(const tgi_attention_run *run, const tgi_attention_scratch *scratch,
                              const tgi_attention_keys *keys, const tgi_attention_block *block,
                              const tgi_attention_state *sums);

/* Accumulators: one type at run time. */
static inline double tgi_attention_read(const void *accums, int64_t index, int is_fp64)
{
    return is_fp64 ? ((const double *)accums)[index] : (double)((const float *)accums)[index];
}

static inline void tgi_attention_write(void *accums, int64_t index, int is_fp64, double value)
{
    if (is_fp64)
        ((double *)accums)[index] = value;
    else
        ((float *)accums)[index] = (float)value;
}

static inline int tgi_attention_is_fp64(const tgi_attention_run *run)
{
    return run->attention->type == TG_TYPE_FP64;
}

/* Returns the columns of a query block that hold queries, rounded up to vectors; 0: none. */
static inline int64_t tgi_attention_count_cols(const tgi_attention_run *run,
                                               const tgi_attention_item *item, int64_t query_block)
{
    const int64_t left = item->count - query_block * run->tiles->cols;
    const int64_t cols = left < run->tiles->cols ? left : run->tiles->cols;
    return cols > 0 ? tgi_round_up(cols, run->tiles->vector_elems) : 0;
}

#endif
