/* Counts the blocks of a kernel that are resident on a multiprocessor. */
#ifndef TGI_OCCUPANCY_H
#define TGI_OCCUPANCY_H

#include "model/machine.h"

#define TGI_BLOCK_THREADS_MAX 1024
#define TGI_BLOCK_REGISTERS_MAX 65536

typedef struct tgi_occupancy {
    int block_count;         /* 0 if the chip cannot hold one */
    double share;            /* resident warps over the most that there can be, 0..1 */
    int64_t block_registers; /* registers of a block, in allocation units */
    /* "threads", "blocks", "registers" or "shared memory", whichever runs out first */
    const char *limiter;
} tgi_occupancy;

/* Returns the occupancy of blocks with this many threads, registers a thread and bytes of shared
 * memory. */
tgi_occupancy tgi_model_occupancy(const tgi_gpu *gpu, int thread_count, int register_count,
                                  int64_t shared_bytes);

#endif
