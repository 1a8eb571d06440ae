/*
 * tilegemm: attention, for any length, any strides, with a stated error bound.
 *
 *     D = softmax(scale * Q K^T + bias) V
 *
 * Q is m x head_size for each batch entry and query head, K is n x head_size and V n x v_head_size
 * for each head of keys, D is m x v_head_size. The score matrix is never in memory. The smallest
 * program, for arrays [batch][head][row][element] without gaps:
 *
 *     tg_attention attention;
 *     tg_init_attention(&attention, sizeof attention, TG_TYPE_FP32, 1, 8, 8, m, n, 64);
 *     attention.q.data = q, attention.k.data = k, attention.v.data = v, attention.d.data = d;
 *     if (tg_attend(NULL, &attention) != TG_STATUS_OK) puts(tg_get_error_detail());
 *
 * Structs, statuses, contexts, streams, ownership and threads follow tilegemm.h. On the CPU the
 * bits of a row of D depend on its own query, its keys and the instruction set alone: never on the
 * number of threads, the batch, the other rows or where memory lies. On a GPU they depend on the
 * sizes of the plan too, which decide how keys are split: on batch_count unless is_batch_invariant
 * is 1. GPUs from compute capability 7.5 on have attention of FP32 and FP64, and from 8.0 on of
 * BF16 and FP16 too, with head sizes up to 256 and lengths up to 2^30.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TILEGEMM_ATTENTION_H
#define TILEGEMM_ATTENTION_H

#include "tilegemm.h"

#ifdef __cplusplus
extern "C" {
#endif

/* --------------------------------------------------------------------- attention, since 0.1 -- */

/* Element e of row r of head h of batch entry b is at
 *     data + b * batch_stride + h * head_stride + r * row_stride + e * element_stride.
 * Strides count elements and may be negative or zero; those of an output keep its elements
 * distinct. This struct never changes. */
typedef struct tg_heads {
    void *data; /* not owned; written in D and log_sum_exp alone */
    int64_t batch_stride, head_stride, row_stride, element_stride;
} tg_heads;

/* A causal mask decides which keys j the query at place i sees. */
typedef enum tg_causal {
    TG_CAUSAL_NONE = 0,
    TG_CAUSAL_TOP_LEFT = 1,    /* j <= i: the first query stands beside the first key */
    TG_CAUSAL_BOTTOM_RIGHT = 2 /* j <= i + keys - queries of the batch entry: last beside last */
} tg_causal;

/* tg_attention describes one attention. Fill it by tg_init_attention and change what differs.
 *
 * m, n and head counts are at most 2^31 - 1, head sizes at most 65536. No operand spans more than
 * 2^61 bytes, and batch_count * head_count * m is at most 2^61. A problem beyond these limits
 * is refused with SIZE_OVERFLOW.
 *
 * The score of query i and key j, in the order of its operations, is
 *     s = scale * (q_i k_j);  s = soft_cap * tanh(s / soft_cap);  s = s + bias - slope * |p - j|
 * where p = i, or i + keys - queries with TG_CAUSAL_BOTTOM_RIGHT. A key that the mask, the window
 * or a length hides has weight zero and never affects D, whatever it holds. A key whose score is
 * -Inf has weight zero too, but its V is multiplied by that zero. A row that sees no key is zero,
 * and its log_sum_exp is -Inf. A NaN or +Inf among the scores of a row makes the row NaN.
 *
 * Sums and scores are FP32, or FP64 for FP64 inputs, with unit roundoff u. Every element of D obeys
 *     |d - exact| <= (2 e + g + u_w) sum_j w_j |v_j| + u_D |exact| + n 2^-125 max|v|
 * where w_j are the exact weights, u_D is the unit roundoff of D's type,
 * g = (2 min(n, 256) + 4 n / 240 + 40) u, and e = exp(t) - 1 with t the largest, over the keys that
 * the row sees, of
 *     (head_size + 16) u * (scale |q_i||k_j| + soft_cap + |bias| + slope |p - j|).
 * On the CPU u_w is 2^-16 for BF16 and FP16, whose weights may have 16 bits, else 0. For these
 * types, and for FP32 on a GPU, elements of q_i and k_j count as at least 2^-101 here, and max|v|
 * as at least 1, because products of BF16 and TF32 lose numbers near the smallest. A GPU rounds
 * weights of BF16 and FP16 to D's type, so that u_w is u_D and, for FP16, 2^-125 reads 2^-24; its
 * tensor cores round sums toward zero, so that g has n u / 8 more. For FP32 and FP64 g has n u / 4
 * more on a GPU, which adds sums of 16 keys or more.
 * For FP64, 2^-125 reads 2^-1021. Subnormal numbers of D's type have their own half unit. An
 * element l of log_sum_exp obeys |l - exact| <= t + g + 8 u |exact|. */
typedef struct tg_attention {
    size_t struct_bytes;
    tg_type type; /* FP32, FP64, BF16 or FP16: Q, K, V and D have it */
    tg_causal causal;
    int64_t batch_count;               /* >= 0 */
    int64_t head_count, kv_head_count; /* >= 1; heads of K and V divide those of Q: query head h
                                            reads head h / (head_count / kv_head_count) */
    int64_t m, n;                      /* >= 0; if batch entries differ, the largest lengths */
    int64_t head_size, v_head_size;    /* >= 1 */
    tg_heads q, k, v, d;
    double scale;                    /* finite; 1 / sqrt(head_size) after tg_init_attention */
    int64_t keys_before, keys_after; /* window around p: p - keys_before <= j <= p + keys_after;
                                            -1: no limit, as after tg_init_attention */
    double soft_cap;                 /* 0: none, else positive */
    /* These flags but is_batch_invariant add operands; each is absent while its flag is 0. */
    int has_bias;        /* one value for each query and key, added to the score */
    int has_slopes;      /* ALiBi: one factor for each query head */
    int has_log_sum_exp; /* a second output, ln sum_j exp(s_j) of each row */
    int has_query_offsets, has_key_offsets; /* batch entries of different lengths */
    int has_key_lengths;                    /* only the first keys of each batch entry count */
    int is_batch_invariant; /* 1: on a GPU, too, the bits of a row of D do not depend on batch_count
                               nor on other batch entries, for the same m and n */
    tg_heads bias; /* batch x head x m x n values of the sums' type; strides of 0 broadcast */
    tg_heads log_sum_exp; /* batch x head x m values of the sums' type; no element_stride */
    const void *slopes;   /* head_count values of the sums' type */
    /* Lengths have one value for each batch entry, offsets one more. With offsets, rows of entry b
     * are rows offsets[b] .. offsets[b + 1] - 1 of one long tensor, whose batch_stride is not used;
     * query offsets hold for Q, D, bias and log_sum_exp, key offsets for K and V. Values are read,
     * and on the CPU checked, when the plan is executed. */
    const int32_t *query_offsets, *key_offsets, *key_lengths;
    /* Keys in pages: with page_rows > 0, key j of entry b is row j % page_rows of entry
     * pages[b * pages_stride + j / page_rows] of K and V, whose batch_stride leads from page to
     * page. */
    int64_t page_rows;    /* 0: none, else >= 1 */
    int64_t page_count;   /* entries of K and V */
    int64_t pages_stride; /* >= pages of n keys */
    const int32_t *pages;
} tg_attention;

/* Sets *attention, which has `struct_bytes` bytes, to attention without a mask on tensors
 * [batch][head][row][element] without gaps, with data NULL. V has the head size of K. Errors:
 * INVALID_ARGUMENT. */
TG_API tg_status tg_init_attention(tg_attention *attention, size_t struct_bytes, tg_type type,
                                   int64_t batch_count, int64_t head_count, int64_t kv_head_count,
                                   int64_t m, int64_t n, int64_t head_size);

/* -------------------------------------------------------------------------- plan, since 0.1 -- */

/* A plan of one attention: immutable, reusable, thread safe. */
typedef struct tg_attention_plan tg_attention_plan;

/* Plans an attention, whose pointers are ignored. `context` may be NULL: the default one. The
 * caller owns *plan and passes it to tg_destroy_attention_plan while the context lives. Errors:
 * INVALID_ARGUMENT, SIZE_OVERFLOW, OVERLAP (an output's elements share memory), UNSUPPORTED,
 * OUT_OF_MEMORY, and those of tg_create_context for the default context; then *plan is NULL. */
TG_API tg_status tg_create_attention_plan(tg_context *context, const tg_attention *attention,
                                          tg_attention_plan **plan);

/* Frees the plan. NULL is allowed. */
TG_API void tg_destroy_attention_plan(tg_attention_plan *plan);

/* Returns the name of the plan's kernel, which lives as long as the plan. */
TG_API const char *tg_get_attention_kernel(const tg_attention_plan *plan);

/* Returns the bytes of workspace that an execution needs. */
TG_API int64_t tg_get_attention_workspace_bytes(const tg_attention_plan *plan);

/* Runs the plan on the pointers of `attention`, whose other members must be those of the plan.
 * `workspace` has `workspace_bytes` bytes, aligned to 64 (256 on a GPU) and apart from every
 * operand, or is NULL: the context's own. `stream` is NULL on the CPU, a CUstream or NULL on a GPU,
 * where pointers, of lists too, are device pointers and the call only puts work into the stream. An
 * output must share no byte with another operand. On a GPU the values of lists are not checked, nor
 * the overlap of operands whose rows they count. Errors: INVALID_ARGUMENT (a needed pointer is
 * NULL, or on the CPU a list's value is out of range), OVERLAP, WORKSPACE_TOO_SMALL, OUT_OF_MEMORY;
 * then D is untouched. */
TG_API tg_status tg_execute_attention(const tg_attention_plan *plan, const tg_attention *attention,
                                      void *workspace, int64_t workspace_bytes, void *stream);

/* Plans and executes. `context` may be NULL: the default one. Errors: those of both, and on a GPU
 * INVALID_ARGUMENT for an operand or a list in pageable memory. */
TG_API tg_status tg_attend(tg_context *context, const tg_attention *attention);

/* ------------------------------------------------------------- attention as text, since 0.1 -- */

/* An attention as text is batch,heads,kv_heads,m,n,head_size, then what differs from
 * tg_init_attention, each part after a colon:
 *     1,16,16,1024,1024,64               FP32, tensors [batch][head][row][element]
 *     1,32,8,1,4096,128:bf16:dv=64       type; head size of V
 *     2,8,8,100,300,64:causal=top_left:before=128:after=0:scale=0.5:cap=30
 *     2,8,8,100,300,64:causal            bottom right
 *     2,8,8,100,300,64:bias:slopes:lse   operands that are there; bias and lse without gaps
 *     4,8,8,1,900,64:lengths:pages=16x300x64     rows of a page, pages, pages of a batch entry
 *     4,8,8,50,60,64:qoffsets:koffsets:batch_invariant
 *     1,8,8,100,100,64:qb=9:qh=64:qr=512:qe=1    batch, head, row and element stride of a tensor:
 *                                        q, k, v, d, b (bias), l (log_sum_exp)
 * Data and lists are not part of the text. */

/* Fills *attention, which has `struct_bytes` bytes. Errors: INVALID_ARGUMENT, which names the part,
 * and OUT_OF_MEMORY. */
TG_API tg_status tg_parse_attention(const char *text, tg_attention *attention, size_t struct_bytes);

/* Writes the shortest text of the attention, with its NUL, into `text`, which has `text_bytes`
 * bytes; 1024 always suffice. Errors: INVALID_ARGUMENT where `text_bytes` is too small, and those
 * of tg_create_attention_plan. */
TG_API tg_status tg_format_attention(const tg_attention *attention, char *text, size_t text_bytes);

#ifdef __cplusplus
}
#endif
#endif /* TILEGEMM_ATTENTION_H */
