/*
 * Runs cases of tests/attention on a GPU. A test that draws many has a share of them if
 * TG_TEST_STRIDE is set (harness/stride.h).
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_GPU_ATTENTION_H
#define TEST_GPU_ATTENTION_H

#include "attention/oracle.h"

/* Copies the case to the GPU and back, and executes its attention there, or `broken` if that is not
 * NULL. */
tg_status gpu_attend(tg_context *context, attention_case *c, const tg_attention *broken);

/* Runs case `number`, holds D against the bound and closes the case. */
void gpu_check_attention(tg_context *context, attention_case *c, int number);

/* Draws hostile cases of the two types in turn and checks them. */
void gpu_check_hostile(tg_context *context, const tg_type types[2], attention_fill fill,
                       uint64_t seed);

/* Checks the parts of long keys, of few queries and of many. */
void gpu_check_long(tg_context *context, const tg_type types[2], uint64_t seed);

/* Checks that a V of ones gives ones, up to `units` units roundoff of FP32 or FP64, and zeros where
 * no key is seen. */
void gpu_check_ones(tg_context *context, const tg_type types[2], int count, double units,
                    uint64_t seed);

/* Checks that a batch entry has the bits that it has alone, if batch invariance is asked for. */
void gpu_check_batch_invariance(tg_context *context, tg_type type);

/* Checks that the oracle refuses attentions that are a little wrong. */
void gpu_check_mutants(tg_context *context, tg_type type);

#endif /* TEST_GPU_ATTENTION_H */
