/* Declares what the reader and the writer of attentions as text share. tilegemm_attention.h has
 * the grammar. */
#ifndef TGI_ATTENTION_TEXT_H
#define TGI_ATTENTION_TEXT_H

#include "core/attention_problem.h"

/* Parts without a value that set a flag, TGI_FLAG(word, member). */
#define TGI_ATTENTION_FLAGS(TGI_FLAG)                                                              \
    TGI_FLAG("bias", has_bias)                                                                     \
    TGI_FLAG("slopes", has_slopes)                                                                 \
    TGI_FLAG("lse", has_log_sum_exp)                                                               \
    TGI_FLAG("qoffsets", has_query_offsets)                                                        \
    TGI_FLAG("koffsets", has_key_offsets)                                                          \
    TGI_FLAG("lengths", has_key_lengths)                                                           \
    TGI_FLAG("batch_invariant", is_batch_invariant)

/* Sizes, TGI_SIZE(word, member), and factors, TGI_FACTOR_PART(word, member). */
#define TGI_ATTENTION_SIZES(TGI_SIZE)                                                              \
    TGI_SIZE("dv", v_head_size) TGI_SIZE("before", keys_before) TGI_SIZE("after", keys_after)
#define TGI_ATTENTION_FACTORS(TGI_FACTOR_PART)                                                     \
    TGI_FACTOR_PART("scale", scale) TGI_FACTOR_PART("cap", soft_cap)

/* A stride is a letter of the tensor and one of the dimension: "kr". */
#define TGI_ATTENTION_TENSOR_LETTERS "qkvdbl"
#define TGI_ATTENTION_STRIDE_LETTERS "bhre"

/* Gives every tensor the strides that a text leaves out. */
void tgi_attention_lay_out_all(tg_attention *attention);

/* Returns the address of a stride. */
int64_t *tgi_attention_find_stride(tg_attention *attention, int tensor, int stride);

#endif
