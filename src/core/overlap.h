/* Tells whether two operands share memory. Planning finds the spans and each execution compares
 * them. */
#ifndef TGI_OVERLAP_H
#define TGI_OVERLAP_H

#include "core/operand_view.h"

/* The bytes of an operand, relative to its data pointer. They lie from `low` to `high` (exclusive),
 * in contiguous runs of `run_bytes` that start at low plus multiples of `stride_gcd` (0: one
 * run). */
typedef struct tgi_span {
    int64_t low, high, run_bytes, stride_gcd;
} tgi_span;

/* Returns the span of an operand of at least one element. */
tgi_span tgi_overlap_find_span(const tgi_operand_view *view);

/* Returns 0 if all runs of one operand lie in the gaps of the other. Their address ranges overlap,
 * and their low ends are `distance` bytes apart. */
int tgi_overlap_may_meet(int64_t distance, const tgi_span *x_span, const tgi_span *y_span);

/* Returns 0 only if x and y share no byte. The answer is exact for blocks of rows or columns of one
 * larger matrix, and otherwise as strict as the address ranges. */
static inline int tgi_overlap_may_share(const void *x, const tgi_span *x_span, const void *y,
                                        const tgi_span *y_span)
{
    int64_t distance = (int64_t)((uintptr_t)y - (uintptr_t)x);
    if (distance + y_span->low >= x_span->high || distance + y_span->high <= x_span->low)
        return 0;
    return tgi_overlap_may_meet(distance + y_span->low - x_span->low, x_span, y_span);
}

#endif
