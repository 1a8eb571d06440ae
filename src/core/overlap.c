#include "core/overlap.h"

#include <stdlib.h>

static int64_t find_gcd(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

tgi_span tgi_overlap_find_span(const tgi_operand_view *view)
{
    const int64_t counts[] = {view->row_count, view->col_count, view->batch_count};
    const int64_t element_bytes = tgi_type_bytes(view->type);
    int64_t strides[] = {view->layout.row, view->layout.col,
                         view->layout.batch}; /* to bytes below */
    tgi_span span = {0, element_bytes, element_bytes, 0};
    int inner = -1; /* the dimension of the smallest stride: its entries and their gaps are a run */
    for (int i = 0; i < 3; i++) {
        strides[i] *= element_bytes;
        int64_t reach = strides[i] * (counts[i] - 1);
        if (reach < 0)
            span.low += reach;
        if (reach > 0)
            span.high += reach;
        if (counts[i] > 1 && (inner < 0 || llabs(strides[i]) < llabs(strides[inner])))
            inner = i;
    }
    for (int i = 0; i < 3; i++) {
        if (counts[i] <= 1)
            continue;
        if (i == inner) {
            span.run_bytes += llabs(strides[i]) * (counts[i] - 1);
        } else {
            span.stride_gcd = find_gcd(span.stride_gcd, llabs(strides[i]));
        }
    }
    return span;
}

int tgi_overlap_may_meet(int64_t distance, const tgi_span *x_span, const tgi_span *y_span)
{
    /* Seen modulo a common divisor of all strides between runs, the two may still lie in different
     * places, as two blocks of columns of one matrix do. */
    int64_t period = find_gcd(x_span->stride_gcd, y_span->stride_gcd);
    if (period == 0)
        return 1;
    distance %= period;
    if (distance < 0)
        distance += period;
    return distance < x_span->run_bytes || period - distance < y_span->run_bytes;
}
