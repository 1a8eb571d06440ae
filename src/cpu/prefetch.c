#include "cpu/prefetch.h"

#include <stddef.h>

#include "core/checked.h"

#define LINE_BYTES 64

/* The least stride of prefetches. A line is then requested eight times; more requests gain
 * nothing. */
#define STRIDE_MIN (LINE_BYTES / 8)

void tgi_cpu_start_prefetch(tgi_prefetch *prefetch, const void *start, int64_t row_bytes,
                            int64_t row_stride, int64_t row_count)
{
    /* Rows begin anywhere in a line. The line in which a row begins is also the last one of the
     * block before, so that the walk begins at its end. */
    prefetch->at = (const char *)start + LINE_BYTES - 1;
    prefetch->row_end = prefetch->at + row_bytes;
    prefetch->row_bytes = row_bytes;
    prefetch->row_stride = row_stride;
    prefetch->row_count = row_count;
}

tgi_prefetch *tgi_cpu_pace_prefetches(tgi_prefetch *prefetches, int count, int64_t iterations)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes += tgi_round_up(prefetches[i].row_bytes, LINE_BYTES) * prefetches[i].row_count;
    int64_t stride = tgi_divide_up(bytes, iterations > 0 ? iterations : 1);
    stride = stride < STRIDE_MIN ? STRIDE_MIN : stride > LINE_BYTES ? LINE_BYTES : stride;
    for (int i = 0; i < count; i++) {
        prefetches[i].stride = stride;
        prefetches[i].next = i + 1 < count ? &prefetches[i + 1] : NULL;
    }
    return count > 0 ? prefetches : NULL;
}
