/* Tiles prefetch later blocks while they multiply, so that memory works all the time. */
#ifndef TGI_CPU_PREFETCH_H
#define TGI_CPU_PREFETCH_H

#include <stdint.h>

#include "core/alloc.h"
#include "core/problem.h"

/* Rows of memory that are prefetched at an even pace: each iteration of a tile's loop takes one
 * stride. A stride is at most a cache line; a smaller one touches a line several times. */
typedef struct tgi_prefetch {
    const char *at, *row_end;
    int64_t stride; /* bytes */
    int64_t row_bytes, row_stride, row_count;
    const struct tgi_prefetch *next; /* the rows that follow these, or NULL */
} tgi_prefetch;

/* A small matrix that is prefetched at once: the lines of all its rows, or of its columns if those
 * are contiguous. */
typedef struct tgi_prefetch_block {
    int64_t run_count, run_bytes, run_stride; /* no runs: nothing is prefetched */
    int is_to_l2;                             /* it has more lines than can be on their way to L1 */
} tgi_prefetch_block;

/* Returns the block of a matrix, or none if it is larger than prefetches serve. */
tgi_prefetch_block tgi_cpu_find_block(const tgi_layout *layout, int64_t rows, int64_t cols,
                                      int64_t elem_bytes);

/* Prefetches a block. All its lines then come at the same time, while a loop that reads them asks
 * for few at once. */
static inline void tgi_cpu_prefetch_block(const char *start, const tgi_prefetch_block *block)
{
    for (int64_t left = block->run_count; left > 0; left--, start += block->run_stride)
        for (const char *at = start - (uintptr_t)start % TGI_CACHE_LINE_BYTES;
             at < start + block->run_bytes; at += TGI_CACHE_LINE_BYTES) {
            if (block->is_to_l2)
                __builtin_prefetch(at, 0, 2);
            else
                __builtin_prefetch(at);
        }
}

/* The tiles of a block prefetch parts of the next blocks of B and of A, and a transposed D. */
#define TGI_PREFETCH_COUNT 3

/* Begins `prefetch` with rows of `row_bytes` bytes, `row_stride` bytes apart. */
void tgi_cpu_start_prefetch(tgi_prefetch *prefetch, const void *start, int64_t row_bytes,
                            int64_t row_stride, int64_t row_count);

/* Links `count` prefetches and spreads them over `iterations` iterations of a loop. Returns the
 * first one, or NULL if there is none. */
tgi_prefetch *tgi_cpu_pace_prefetches(tgi_prefetch *prefetches, int count, int64_t iterations);

/* Prefetches the next line. It is inlined with all it does: around a call a tile would store its
 * sums. */
static inline __attribute__((always_inline)) void tgi_cpu_prefetch_next(tgi_prefetch *prefetch)
{
    __builtin_prefetch(prefetch->at, 0, 2);
    prefetch->at += prefetch->stride;
    if (prefetch->at < prefetch->row_end)
        return;
    if (--prefetch->row_count > 0) {
        prefetch->row_end += prefetch->row_stride;
        prefetch->at = prefetch->row_end - prefetch->row_bytes;
    } else if (prefetch->next) {
        *prefetch = *prefetch->next;
    } else {
        /* All is prefetched: the walk stays where it is. */
        prefetch->stride = 0;
        prefetch->row_end = prefetch->at + 1;
    }
}

/* A loop over blocks of rows prefetches `count` lines in each of its steps, `stride` bytes apart,
 * from `bytes` behind the block's first row on, and `step` bytes further in the next step. */
typedef struct tgi_ahead {
    int64_t bytes, stride, step;
    int count;
} tgi_ahead;

/* Rows of which a block reads or writes used_bytes of row_bytes in `steps` steps. */
typedef struct tgi_row_blocks {
    int64_t row_bytes, used_bytes;
    int64_t rows, all_rows;    /* rows of a block, and of all blocks */
    int64_t steps, most_bytes; /* a larger block is not prefetched as a run */
} tgi_row_blocks;

/* Returns what a block prefetches. Rows side by side are prefetched as a run, as the processor
 * follows runs, a block ahead. Rows of many steps are prefetched some steps ahead where they are
 * long or blocks are few, and others that lie apart in the block before. */
tgi_ahead tgi_cpu_find_row_ahead(const tgi_row_blocks *blocks);

#endif
