/* Tells whether two operands share memory. Planning finds the spans and each execution compares
 * them. */
#ifndef TGI_OVERLAP_H
#define TGI_OVERLAP_H

#include "core/operand_view.h"

enum { TGI_OVERLAP_DIMS_MAX = 4 };

/* A progression is the places 0, stride, 2 stride, ... (count - 1) stride, in bytes. */
typedef struct tgi_progression {
    int64_t stride, count;
} tgi_progression;

/* A span has the bytes of an operand: runs of run_bytes contiguous bytes. The first run begins
 * `low` bytes from the data pointer. Each run lies further on by the sum of one place of each
 * progression, and every such sum has a run. The last run ends before `high`. */
typedef struct tgi_span {
    int64_t low, high, run_bytes;
    int progression_count;
    tgi_progression progressions[TGI_OVERLAP_DIMS_MAX]; /* strides grow and are longer than a run */
} tgi_span;

/* A gap has the distances from x's data pointer to y's at which the address ranges of x and y
 * overlap: `extent` consecutive distances in bytes, from -bias on. */
typedef struct tgi_gap {
    uint64_t bias, extent;
} tgi_gap;

/* Returns the distances at which the address range of y overlaps that of x. */
static inline tgi_gap tgi_overlap_find_gap(const tgi_span *x_span, const tgi_span *y_span)
{
    const uint64_t bias = (uint64_t)y_span->high - (uint64_t)x_span->low - 1;
    return (tgi_gap){bias, bias + (uint64_t)x_span->high - (uint64_t)y_span->low};
}

/* Returns 1 if the address ranges of x and y overlap: they may share memory. */
static inline int tgi_overlap_is_near(const void *x, const void *y, tgi_gap gap)
{
    return (uint64_t)((uintptr_t)y - (uintptr_t)x) + gap.bias < gap.extent;
}

/* Returns the span of an array with dim_count dimensions. Dimension i has counts[i] >= 1 places,
 * strides[i] elements apart. */
tgi_span tgi_overlap_measure(int dim_count, const int64_t *counts, const int64_t *strides,
                             int64_t element_bytes);

/* Returns the span of an operand of at least one element. */
static inline tgi_span tgi_overlap_find_span(const tgi_operand_view *view)
{
    const int64_t counts[] = {view->row_count, view->col_count, view->batch_count};
    const int64_t strides[] = {view->layout.row, view->layout.col, view->layout.batch};
    return tgi_overlap_measure(3, counts, strides, tgi_type_bytes(view->type));
}

/* Returns 0 if all runs of one operand lie in the gaps of the other. Their address ranges overlap,
 * and the low end of y is `distance` bytes above that of x. */
int tgi_overlap_may_meet(int64_t distance, const tgi_span *x, const tgi_span *y);

/* Returns 0 only if x and y share no byte. The answer is exact except for strides that neither nest
 * nor repeat. Their search ends after a bounded time, and 1 is returned. */
static inline int tgi_overlap_may_share(const void *x, const tgi_span *x_span, const void *y,
                                        const tgi_span *y_span)
{
    const uint64_t x_low = (uintptr_t)x + (uint64_t)x_span->low;
    const uint64_t y_low = (uintptr_t)y + (uint64_t)y_span->low;
    if (y_low - x_low >= (uint64_t)(x_span->high - x_span->low) &&
        x_low - y_low >= (uint64_t)(y_span->high - y_span->low))
        return 0;
    return tgi_overlap_may_meet((int64_t)(y_low - x_low), x_span, y_span);
}

#endif
