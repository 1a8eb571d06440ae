/*
 * One list of calls that covers every public function but those that only read a value or a name.
 * Tests run all of them under one strain: failing allocations, a small stack.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_PUBLIC_CALLS_H
#define TEST_PUBLIC_CALLS_H

#include "tilegemm_lab.h"

/* A call by name. `run` takes a context of the CPU with two threads, or NULL for the default
 * context. */
typedef struct public_call {
    const char *name;
    tg_status (*run)(tg_context *context);
    int may_touch_output; /* 1: D is undefined if the call fails; only the simulator's is */
    int alike_count;      /* number of equal allocations in a row, of which one fails */
} public_call;

extern const public_call public_calls[];
extern const int public_call_count;

/* Returns the call of that name, or NULL. */
const public_call *public_calls_find(const char *name);

/* Makes the context of the calls. */
tg_status public_calls_open(tg_context **context);

/* Fills the inputs, the same in every process. */
void public_calls_fill(void);

/* Sets every byte of the output. Then is_untouched returns 1 if all are unchanged, hash returns a
 * number that differs between outputs, and spoil changes a byte. */
void public_calls_clear_output(void);
void public_calls_spoil_output(void);
int public_calls_is_untouched(void);
uint64_t public_calls_hash_output(void);

#endif /* TEST_PUBLIC_CALLS_H */
