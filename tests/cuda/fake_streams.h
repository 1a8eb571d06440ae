/*
 * The streams of the fake driver, with their copies, events and launches.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_FAKE_STREAMS_H
#define TEST_FAKE_STREAMS_H

#include "fake_driver.h"

enum {
    error_invalid_value = 1,
    error_out_of_memory = 2,
    error_not_ready = 600
}; /* codes of cuda.h */

/* Returns the error that `symbol` must give at this call, or 0. */
int fake_fail(const char *symbol);

#define RETURN_FAILURE()                                                                           \
    do {                                                                                           \
        int failure = fake_fail(__func__);                                                         \
        if (failure)                                                                               \
            return failure;                                                                        \
    } while (0)

/* Allocate and free memory that other processes can open, if FAKE_CUDA_SHARED is set. */
void *fake_allocate(size_t bytes);
void fake_release(void *memory);

/* Returns the argument of a kernel. Those of the short function and of the strips of family small
 * are written to `expanded` as a tgi_gemm_args, zeros behind it, so that tests know one form of
 * operands. Behind a tgi_add_args or a tgi_add_terms_args, which are shorter than what tests
 * record, there are zeros too. */
const void *fake_expand_argument(const char *kernel, uint32_t batch_count, const void *argument,
                                 void *expanded, size_t expanded_bytes);

/* Puts a launch with this first argument into the stream. */
void fake_put_launch(void *stream, const void *argument);

/* Does all work of all streams. */
void fake_finish_streams(void);

#endif /* TEST_FAKE_STREAMS_H */
