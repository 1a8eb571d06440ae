/* Allocation: the only place that asks the system for memory. */
#ifndef TGI_ALLOC_H
#define TGI_ALLOC_H

#include <stdint.h>

#define TGI_CACHE_LINE_BYTES 64

/* Zeroed memory for a small object; NULL, with the thread's detail set, where there is none. */
void *tgi_alloc_object(int64_t size_bytes);

/* Uninitialised memory for matrix blocks, aligned to 64 bytes (to 2 MiB, and huge pages asked for,
 * from 2 MiB up); NULL with the detail set where there is none. */
void *tgi_alloc_block(int64_t size_bytes);

/* Frees either; NULL is allowed. */
void tgi_alloc_free(void *memory);

#endif
