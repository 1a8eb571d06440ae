/*
 * Draws attentions with hostile lengths, strides and lists, and compares their outputs, and what
 * lies beside them, with what they must be.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_ATTENTION_ORACLE_H
#define TEST_ATTENTION_ORACLE_H

#include "core/attention_problem.h"

typedef struct attention_case {
    tg_attention attention;
    char *memory[TGI_ATTENTION_TENSOR_COUNT]; /* owned; NaN in every type where no element lies */
    int64_t bytes[TGI_ATTENTION_TENSOR_COUNT];
    void *slopes;
    int32_t *query_offsets, *key_offsets, *key_lengths, *pages;
} attention_case;

typedef enum attention_fill {
    FILL_UNIFORM_HEADS,
    FILL_NONFINITE_HEADS,
    FILL_V_ONES
} attention_fill;

/* Lays out and fills the tensors of `attention`, whose strides are drawn where `is_strided` is 1,
 * and its lists. FILL_NONFINITE_HEADS puts Inf and NaN among the values of V, fewer of them among
 * those of K, and -Inf among the bias. */
void case_open(attention_case *c, const tg_attention *attention, attention_fill fill,
               int is_strided, uint64_t *random);
void case_close(attention_case *c);

/* Poisons the outputs. */
void case_poison(attention_case *c);

/* Returns the largest |error| / bound of D and of log_sum_exp on the device; Inf where NaN, Inf or
 * zeros are not as they must be, or where a byte beside the elements was written. */
double case_compare(const attention_case *c, const char *device);

/* Draws sizes, masks and operands. */
tg_attention draw_attention(uint64_t *random);

#endif /* TEST_ATTENTION_ORACLE_H */
