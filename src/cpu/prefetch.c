#include "cpu/prefetch.h"

#include <stddef.h>

#include "core/checked.h"

/* The least stride of prefetches. A line is then requested eight times; more requests gain
 * nothing. */
#define STRIDE_MIN (TGI_CACHE_LINE_BYTES / 8)

/* Rows of a tall matrix are prefetched so many bytes ahead. */
#define TALL_AHEAD 4096

/* A larger block costs more instructions than it saves time, as the lines that are waited for are
 * then a small part. */
#define BLOCK_BYTES_MAX 8192

tgi_prefetch_block tgi_cpu_find_block(const tgi_layout *layout, int64_t rows, int64_t cols,
                                      int64_t elem_bytes)
{
    const int is_by_rows = layout->col == 1;
    const int64_t runs = is_by_rows ? rows : cols, elems = is_by_rows ? cols : rows;
    const int64_t stride = is_by_rows ? layout->row : layout->col;
    if (rows * cols * elem_bytes > BLOCK_BYTES_MAX)
        return (tgi_prefetch_block){0};
    if (stride == elems)
        return (tgi_prefetch_block){.run_count = 1, .run_bytes = rows * cols * elem_bytes};
    return (tgi_prefetch_block){
        .run_count = runs, .run_bytes = elems * elem_bytes, .run_stride = stride * elem_bytes};
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

void tgi_cpu_start_tall(tgi_tall_prefetch *prefetch, const void *start, int64_t row_bytes,
                        int64_t used_bytes, int64_t rows, int64_t block_rows)
{
    const int is_one_run = row_bytes >= used_bytes && row_bytes < used_bytes + TGI_CACHE_LINE_BYTES;
    const int64_t run_bytes = is_one_run ? row_bytes : used_bytes;
    const int64_t skipped = tgi_divide_up(TALL_AHEAD, run_bytes), left = rows - skipped;
    const char *at = (const char *)start + skipped * row_bytes;
    const int64_t row_lines = tgi_divide_up(used_bytes, TGI_CACHE_LINE_BYTES);
    const int64_t block_bytes = block_rows * run_bytes;
    prefetch->lines = (tgi_prefetch){.stride = TGI_CACHE_LINE_BYTES};
    prefetch->block_lines = left <= 0 ? 0 : block_rows * row_lines;
    if (is_one_run) {
        prefetch->block_lines =
            left <= 0 ? 0 : tgi_divide_up(block_bytes, TGI_CACHE_LINE_BYTES);
        tgi_cpu_start_prefetch(&prefetch->lines, at, left * row_bytes, 0, 1);
        prefetch->lines.stride = block_bytes / tgi_divide_up(block_bytes, TGI_CACHE_LINE_BYTES);
    } else {
        tgi_cpu_start_prefetch(&prefetch->lines, at, used_bytes, row_bytes, left);
    }
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
