/*
 * Runs a function on a thread with little stack, and tells how much of it the function took.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_SMALL_STACK_H
#define TEST_SMALL_STACK_H

#include <stddef.h>

/* Every public call fits into a stack of so many bytes, the smallest one that POSIX allows. Frames
 * of a sanitized build are larger. */
#ifdef TEST_IS_SANITIZED
#define SMALL_STACK_BYTES ((size_t)1 << 18)
#else
#define SMALL_STACK_BYTES ((size_t)16384)
#endif

/* Runs the function on a thread with `stack_bytes` of stack, above memory that nobody may touch.
 * Returns what it returned, or -1 if there is no such thread. Sets *used_bytes, in which the
 * thread's own data are counted. */
int small_stack_run(int (*function)(void *argument), void *argument, size_t stack_bytes,
                    size_t *used_bytes);

#endif /* TEST_SMALL_STACK_H */
