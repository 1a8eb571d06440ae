/* Tiles prefetch later blocks while they multiply, so that memory works all the time. */
#ifndef TGI_CPU_PREFETCH_H
#define TGI_CPU_PREFETCH_H

#include <stdint.h>

/* Rows of memory that are prefetched at an even pace: each iteration of a tile's loop takes one
 * stride. A stride is at most a cache line; a smaller one touches a line several times. */
typedef struct tgi_prefetch {
    const char *at, *row_end;
    int64_t stride; /* bytes */
    int64_t row_bytes, row_stride, row_count;
    const struct tgi_prefetch *next; /* the rows that follow these, or NULL */
} tgi_prefetch;

/* The tiles of a block prefetch parts of the next blocks of B and of A. */
#define TGI_PREFETCH_COUNT 2

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

#endif
