/* Declares the operands and the validation of an attention. */
#ifndef TGI_ATTENTION_PROBLEM_H
#define TGI_ATTENTION_PROBLEM_H

#include "core/structs.h"
#include "tilegemm_attention.h"

extern const tgi_struct tgi_struct_attention;

/* The tensors of an attention. */
typedef enum tgi_attention_tensor_id {
    TGI_ATTENTION_Q,
    TGI_ATTENTION_K,
    TGI_ATTENTION_V,
    TGI_ATTENTION_D,
    TGI_ATTENTION_BIAS,
    TGI_ATTENTION_LOG_SUM_EXP,
    TGI_ATTENTION_TENSOR_COUNT
} tgi_attention_tensor_id;

/* A tensor with its counts: entries of the batch (or pages), heads, rows, elements. */
typedef struct tgi_attention_tensor {
    const char *name;
    int is_used, is_output, has_offsets;
    int64_t element_bytes;
    int64_t counts[4];
    const tg_heads *heads;
} tgi_attention_tensor;

/* Returns the tensor as the attention describes it. The counts of a tensor with offsets are those
 * of one entry, in a batch of one. */
tgi_attention_tensor tgi_attention_get(const tg_attention *attention, tgi_attention_tensor_id id);

/* Sets *heads to a tensor [batch][head][row][element] without gaps, with data NULL. */
void tgi_attention_lay_out(tg_heads *heads, int64_t head_count, int64_t row_count,
                           int64_t element_count);

/* Refuses an attention that no execution could compute, whatever its pointers are. Errors:
 * INVALID_ARGUMENT, SIZE_OVERFLOW, OVERLAP, UNSUPPORTED. */
tg_status tgi_attention_validate(const tg_attention *attention);

/* A list beside the tensors: lengths, pages or slopes. Its other members count if is_used is 1. */
typedef struct tgi_attention_list {
    const char *name;
    int is_used;
    const void *data;
    int64_t count, element_bytes;
} tgi_attention_list;

#define TGI_ATTENTION_LIST_COUNT 5

/* Returns list 0 .. TGI_ATTENTION_LIST_COUNT - 1. */
tgi_attention_list tgi_attention_get_list(const tg_attention *attention, int id);

/* Refuses an output in which two elements share an address. Errors: OVERLAP. */
tg_status tgi_attention_check_distinct(const tgi_attention_tensor *tensor);

/* Refuses missing pointers, values of lists that are out of range, and outputs that overlap other
 * operands. Lists that the processor cannot read (`has_lists` is 0) are not checked, nor are the
 * tensors whose rows they count. Errors: INVALID_ARGUMENT, OVERLAP. */
tg_status tgi_attention_check_pointers(const tg_attention *attention, int has_lists);

/* Returns the type of scores and sums. */
static inline tg_type tgi_attention_sum_type(const tg_attention *attention)
{
    return attention->type == TG_TYPE_FP64 ? TG_TYPE_FP64 : TG_TYPE_FP32;
}

/* Return the queries and the keys of batch entry `batch`, once pointers are checked. */
static inline int64_t tgi_attention_count_queries(const tg_attention *a, int64_t batch)
{
    return a->has_query_offsets ? a->query_offsets[batch + 1] - a->query_offsets[batch] : a->m;
}

static inline int64_t tgi_attention_count_keys(const tg_attention *a, int64_t batch)
{
    return a->has_key_lengths   ? a->key_lengths[batch]
           : a->has_key_offsets ? a->key_offsets[batch + 1] - a->key_offsets[batch]
                                : a->n;
}

#endif
