/*
 * These allocations fail on request, by the linker's --wrap. They replace the calls of the objects
 * linked into the program, the static library among them, and of the C library's own calls only
 * those of strdup, strndup, realpath, getline and fdopen.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TEST_WRAPPED_ALLOCATION_H
#define TEST_WRAPPED_ALLOCATION_H

/* Starts counting. The allocation number `failing` (1, 2, ...) fails, once; with 0 none fails. */
void allocation_watch(int failing);

/* Starts counting. That allocation and all after it fail. */
void allocation_watch_rest(int failing);

/* Lets no further allocation fail; counting goes on. */
void allocation_stop_failing(void);

typedef struct allocation_counts {
    int call_count;   /* allocations asked for */
    int failed_count; /* 0 if the failing one was not reached */
    int live_count;   /* blocks not yet freed */
} allocation_counts;

/* Ends counting. */
allocation_counts allocation_unwatch(void);

/* Returns the counts so far. */
allocation_counts allocation_get_counts(void);

#endif /* TEST_WRAPPED_ALLOCATION_H */
