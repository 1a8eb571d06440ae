/* Declares the pinned blocks through which copies from and to pageable memory go. */
#ifndef TGI_CUDA_STAGING_H
#define TGI_CUDA_STAGING_H

#include "cuda/runtime/driver.h"

/* The bytes of a block. Threads meet after each block; with smaller blocks they would wait for each
 * other longer than they copy. */
#define TGI_CUDA_STAGE_BYTES ((int64_t)16 << 20)
enum { tgi_cuda_stage_count = 8 };

typedef struct tgi_cuda_staging {
    void *memory; /* pinned memory of all blocks, one behind another */
    char *blocks[tgi_cuda_stage_count];
    void *events[tgi_cuda_stage_count]; /* recorded when a block has left the bus */
} tgi_cuda_staging;

/* Makes a set of blocks in the current context. Error: OUT_OF_MEMORY, DEVICE_FAILURE; then *staging
 * is NULL. */
tg_status tgi_cuda_make_staging(const tgi_driver *driver, tgi_cuda_staging **staging);

/* Frees a set, after the copies that use it. NULL is allowed. */
void tgi_cuda_free_staging(const tgi_driver *driver, tgi_cuda_staging *staging);

#endif
