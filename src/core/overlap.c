/* Do two strided matrices share memory? */
#include <stdlib.h>

#include "core/problem.h"

/* A matrix as contiguous runs of `run_bytes` at multiples of strides: the dimension with the smallest stride
 * is the run, holes in it included; `low`..`high` is its whole address range. */
typedef struct runs {
    int64_t low, high; /* addresses, high exclusive */
    int64_t run_bytes;
    int64_t stride_gcd; /* of the outer strides, bytes; 0 where there is one run */
} runs;

static int64_t find_gcd(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

static runs find_runs(const tgi_extent *extent)
{
    int64_t counts[] = {extent->row_count, extent->col_count, extent->batch_count};
    int64_t strides[] = {extent->layout.row, extent->layout.col, extent->layout.batch};
    int64_t low = (int64_t)(intptr_t)extent->data, high = low;
    int inner = -1;
    for (int i = 0; i < 3; i++) {
        strides[i] *= extent->element_bytes;
        int64_t reach = strides[i] * (counts[i] - 1);
        if (reach < 0) low += reach;
        if (reach > 0) high += reach;
        if (counts[i] > 1 && (inner < 0 || llabs(strides[i]) < llabs(strides[inner]))) inner = i;
    }
    runs result = {low, high + extent->element_bytes, extent->element_bytes, 0};
    for (int i = 0; i < 3; i++) {
        if (counts[i] <= 1) continue;
        if (i == inner) {
            result.run_bytes += llabs(strides[i]) * (counts[i] - 1);
        } else {
            result.stride_gcd = find_gcd(result.stride_gcd, llabs(strides[i]));
        }
    }
    return result;
}

int tgi_problem_may_overlap(const tgi_extent *x, const tgi_extent *y)
{
    runs p = find_runs(x), q = find_runs(y);
    if (p.high <= q.low || q.high <= p.low) return 0;
    /* Runs start at low + multiples of the gcd. Seen modulo that gcd the two may still lie in
     * different places, as two blocks of columns of one matrix do. */
    int64_t period = find_gcd(p.stride_gcd, q.stride_gcd);
    if (period == 0) return 1;
    int64_t distance = (q.low - p.low) % period;
    if (distance < 0) distance += period;
    return distance < p.run_bytes || period - distance < q.run_bytes;
}
