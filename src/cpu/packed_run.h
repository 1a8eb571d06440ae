/* The files of family `packed` share these declarations. */
#ifndef TGI_CPU_PACKED_RUN_H
#define TGI_CPU_PACKED_RUN_H

#include "cpu/packing.h"

typedef struct tgi_packed_run {
    tgi_packing packing;
    tgi_packed_decision decision; /* the plan's; is_streamed is 0 if D's rows are unaligned */
    int64_t chunk_k, chunk_count;
    /* Bytes of one thread's blocks. The last one holds running sums that D cannot hold, or the sums
     * of a micropanel that are transposed to D. */
    int64_t a_bytes, b_bytes, running_bytes;
    char *thread_blocks; /* thread_count x (a + b + running) */
    char *chunk_sums;    /* chunk_count x m x n if k is split, else NULL */
} tgi_packed_run;

/* A chunk of k of a block. */
typedef struct tgi_packed_chunk {
    int64_t index, k0, k;
    int64_t next_k;     /* length of the next chunk of this task, or 0 */
    int64_t col0, col1; /* columns of all strips */
} tgi_packed_chunk;

/* Lets the tiles of a block, among rows row0 .. row1 - 1, prefetch what is packed, read or written
 * next, if they can. The walk over these lines stays valid as long as the array does. */
void tgi_cpu_start_prefetches(const tgi_packed_run *run, const tgi_packed_chunk *chunk,
                              tgi_micropanels *s, int64_t row0, int64_t row1,
                              tgi_prefetch prefetches[TGI_PREFETCH_COUNT]);

#endif
