/* Allocates memory. No other source asks the system for memory. */
#ifndef TGI_ALLOC_H
#define TGI_ALLOC_H

#include <stdint.h>

#define TGI_CACHE_LINE_BYTES 64

/* Returns zeroed memory for a small object, aligned to a cache line, or NULL with the thread's
 * detail set. */
void *tgi_alloc_object(int64_t size_bytes);

/* Returns uninitialized memory for matrix blocks, or NULL with the detail set. Blocks are aligned
 * to 64 bytes. Blocks of 2 MiB and more are aligned to 2 MiB and ask for huge pages. */
void *tgi_alloc_block(int64_t size_bytes);

/* Frees memory of either function. NULL is allowed. */
void tgi_alloc_free(void *memory);

#endif
