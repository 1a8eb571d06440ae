#include "core/alloc.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "core/status.h"

#define HUGE_PAGE_BYTES ((int64_t)2 << 20)

static void *report_failure(int64_t size_bytes)
{
    tgi_status_fail(TG_STATUS_OUT_OF_MEMORY,
                    "no %lld bytes of memory could be had; free some or multiply in smaller parts",
                    (long long)size_bytes);
    return NULL;
}

void *tgi_alloc_object(int64_t size_bytes)
{
    void *memory = NULL;
    if (posix_memalign(&memory, TGI_CACHE_LINE_BYTES, (size_t)size_bytes))
        return report_failure(size_bytes);
    return memset(memory, 0, (size_t)size_bytes);
}

void *tgi_alloc_block(int64_t size_bytes)
{
    int64_t alignment = size_bytes >= HUGE_PAGE_BYTES ? HUGE_PAGE_BYTES : TGI_CACHE_LINE_BYTES;
    void *memory = NULL;
    if (posix_memalign(&memory, (size_t)alignment, (size_t)size_bytes)) {
        return report_failure(size_bytes);
    }
    if (alignment == HUGE_PAGE_BYTES) {
        /* Kernels walk packed blocks with long strides, and one TLB entry for 2 MiB saves page
         * walks. Only whole pages are advised; a refusal costs only speed. */
        madvise(memory, (size_t)(size_bytes / HUGE_PAGE_BYTES * HUGE_PAGE_BYTES), MADV_HUGEPAGE);
    }
    return memory;
}

void tgi_alloc_free(void *memory)
{
    free(memory);
}
