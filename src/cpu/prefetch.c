#include "cpu/prefetch.h"

#include <stddef.h>

#include "core/checked.h"

/* The least stride of prefetches. A line is then requested eight times; more requests gain
 * nothing. */
#define STRIDE_MIN (TGI_CACHE_LINE_BYTES / 8)

/* Rows side by side are prefetched at least so many bytes ahead, and long ones that are not so many
 * steps. Rows of so many steps are long. */
#define RUN_AHEAD 4096
#define STEPS_AHEAD 4
#define LONG_STEPS 8

/* A larger block costs more instructions than it saves time, as the lines that are waited for are
 * then a small part. */
#define BLOCK_BYTES_MAX 8192

/* A block of so many bytes has more lines than can be on their way to L1 at the same time. */
#define L2_BLOCK_BYTES 2048

tgi_prefetch_block tgi_cpu_find_block(const tgi_layout *layout, int64_t rows, int64_t cols,
                                      int64_t elem_bytes)
{
    const int is_by_rows = layout->col == 1;
    const int64_t runs = is_by_rows ? rows : cols, elems = is_by_rows ? cols : rows;
    const int64_t stride = is_by_rows ? layout->row : layout->col;
    const int64_t bytes = rows * cols * elem_bytes;
    const int is_to_l2 = bytes >= L2_BLOCK_BYTES;
    if (bytes > BLOCK_BYTES_MAX)
        return (tgi_prefetch_block){0};
    if (stride == elems)
        return (tgi_prefetch_block){.run_count = 1, .run_bytes = bytes, .is_to_l2 = is_to_l2};
    return (tgi_prefetch_block){.run_count = runs,
                                .run_bytes = elems * elem_bytes,
                                .run_stride = stride * elem_bytes,
                                .is_to_l2 = is_to_l2};
}

void tgi_cpu_start_prefetch(tgi_prefetch *prefetch, const void *start, int64_t row_bytes,
                            int64_t row_stride, int64_t row_count)
{
    /* Rows begin anywhere in a line. The line in which a row begins is also the last one of the
     * block before, so that the walk begins at its end. */
    prefetch->at = (const char *)start + TGI_CACHE_LINE_BYTES - 1;
    prefetch->row_end = prefetch->at + row_bytes;
    prefetch->row_bytes = row_bytes;
    prefetch->row_stride = row_stride;
    prefetch->row_count = row_count;
}

tgi_ahead tgi_cpu_find_row_ahead(const tgi_row_blocks *blocks)
{
    const int64_t line = TGI_CACHE_LINE_BYTES, row_bytes = blocks->row_bytes, rows = blocks->rows;
    const int64_t steps = blocks->steps, block_bytes = rows * row_bytes;
    const int is_run =
        row_bytes >= blocks->used_bytes && row_bytes < blocks->used_bytes + line && steps > 0;
    if (is_run && blocks->all_rows > 2 * rows && block_bytes <= blocks->most_bytes) {
        const int64_t count = tgi_divide_up(tgi_divide_up(block_bytes, line), steps);
        return (tgi_ahead){.bytes = block_bytes > RUN_AHEAD ? block_bytes : RUN_AHEAD,
                           .stride = line,
                           .step = count * line,
                           .count = (int)count};
    }
    const int is_long = steps >= LONG_STEPS;
    const int64_t count = is_long || blocks->all_rows > rows ? rows : 0;
    return (tgi_ahead){.bytes = is_long ? STEPS_AHEAD * line : block_bytes,
                       .stride = row_bytes,
                       .step = line,
                       .count = (int)(count < blocks->all_rows ? count : blocks->all_rows)};
}

tgi_prefetch *tgi_cpu_pace_prefetches(tgi_prefetch *prefetches, int count, int64_t iterations)
{
    int64_t bytes = 0;
    for (int i = 0; i < count; i++)
        bytes +=
            tgi_round_up(prefetches[i].row_bytes, TGI_CACHE_LINE_BYTES) * prefetches[i].row_count;
    int64_t stride = tgi_divide_up(bytes, iterations > 0 ? iterations : 1);
    stride = stride < STRIDE_MIN ? STRIDE_MIN : stride;
    stride = stride > TGI_CACHE_LINE_BYTES ? TGI_CACHE_LINE_BYTES : stride;
    for (int i = 0; i < count; i++) {
        prefetches[i].stride = stride;
        prefetches[i].next = i + 1 < count ? &prefetches[i + 1] : NULL;
    }
    return count > 0 ? prefetches : NULL;
}
