/*
 * Two operands share a byte if a sum of multiples, one of each stride of both operands, lies in a
 * window. One operand is counted from its high end, so that all strides are positive. VALIDATE
 * bounds every span by 2^61 bytes, so that sums stay below 2^62.
 */
#include "core/overlap.h"

#include <stdlib.h>

#define PROGRESSIONS_MAX (2 * TGI_OVERLAP_DIMS_MAX)
#define SUMS_TRIED 2048 /* sums of the larger strides after which the search ends */

static int64_t find_gcd(int64_t x, int64_t y)
{
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return x;
}

/* Inserts an entry into the list, which is sorted by stride. Returns the new count. */
static int insert_progression(tgi_progression *progressions, int progression_count,
                              tgi_progression added)
{
    int at = progression_count;
    for (; at > 0 && progressions[at - 1].stride > added.stride; at--)
        progressions[at] = progressions[at - 1];
    progressions[at] = added;
    return progression_count + 1;
}

/* Merges entries whose sums are all multiples of the smaller stride, without a gap. Returns the new
 * count. */
static int join_progressions(tgi_progression *progressions, int progression_count)
{
    int used = 0;
    for (int i = 0; i < progression_count; i++) {
        tgi_progression *last = used > 0 ? &progressions[used - 1] : NULL;
        if (last && progressions[i].stride % last->stride == 0 &&
            progressions[i].stride / last->stride <= last->count)
            last->count += progressions[i].stride / last->stride * (progressions[i].count - 1);
        else
            progressions[used++] = progressions[i];
    }
    return used;
}

tgi_span tgi_overlap_measure(int dim_count, const int64_t *counts, const int64_t *strides,
                             int64_t element_bytes)
{
    tgi_progression all[1 + TGI_OVERLAP_DIMS_MAX] = {
        {1, element_bytes}}; /* bytes of an element first */
    tgi_span span = {.high = element_bytes};
    int count = 1;
    for (int i = 0; i < dim_count; i++) {
        if (counts[i] <= 1 || strides[i] == 0)
            continue;
        const int64_t stride = strides[i] * element_bytes, reach = stride * (counts[i] - 1);
        if (reach < 0)
            span.low += reach;
        else
            span.high += reach;
        count = insert_progression(all, count, (tgi_progression){llabs(stride), counts[i]});
    }
    count = join_progressions(all, count);
    span.run_bytes = all[0].count;
    span.progression_count = count - 1;
    for (int i = 1; i < count; i++)
        span.progressions[i - 1] = all[i];
    return span;
}

/* Returns 1 if low <= factor x mod modulus <= high for an x of 0 .. most. 0 <= low <= high <
 * modulus; modulus * most does not overflow. As in Euclid's algorithm, the modulus is halved at
 * least each time. */
static int has_multiple(int64_t factor, int64_t modulus, int64_t low, int64_t high, int64_t most)
{
    for (factor %= modulus; low > 0; factor %= modulus) {
        if (factor == 0)
            return 0;
        if (factor > modulus - factor) { /* count down from the modulus */
            const int64_t least = modulus - high;
            factor = modulus - factor;
            high = modulus - low;
            low = least;
        }
        const int64_t first = low / factor + (low % factor != 0);
        if (first > most)
            return 0;
        if (first * factor <= high)
            return 1;
        /* No multiple lies in the first window. One lies in the window that is y moduli further on
         * if y times the modulus falls, modulo the factor, short of a multiple by as much. */
        const int64_t least = factor - high % factor, next_modulus = factor;
        most = (factor * most - low) / modulus;
        high = factor - low % factor;
        low = least;
        factor = modulus;
        modulus = next_modulus;
    }
    return 1;
}

typedef struct sum_search {
    tgi_progression progressions[PROGRESSIONS_MAX]; /* sorted by stride */
    int64_t reach[PROGRESSIONS_MAX + 1]; /* reach[i] is the largest sum of the first i entries */
    int64_t gcd[PROGRESSIONS_MAX + 1];   /* gcd[i] divides all of their sums */
    int sums_left;
} sum_search;

/* Returns 1 if the sums of the first `count` entries have no gap as wide as a window of
 * `window_places` places that are multiples of `gcd` apart. */
static int has_no_gap(const sum_search *s, int count, int64_t gcd, int64_t window_places)
{
    for (int i = 0; i < count; i++) {
        if (s->progressions[i].stride > s->reach[i] + window_places * gcd)
            return 0;
    }
    return 1;
}

/* Returns 1 if a sum of two entries lies in low .. high, which holds neither 0 nor their largest
 * sum. */
static int has_sum_of_two(const sum_search *s, int64_t low, int64_t high)
{
    const int64_t small = s->progressions[0].stride, large = s->progressions[1].stride;
    const int64_t beyond =
        low - s->reach[1]; /* bytes that places of the smaller stride do not reach */
    const int64_t first = beyond > 0 ? beyond / large + (beyond % large != 0) : 0;
    int64_t last = high / large;
    if (last > s->progressions[1].count - 1)
        last = s->progressions[1].count - 1;
    if (first > last)
        return 0;
    /* Above a place of the larger stride, a multiple of the smaller one must end the window or lie
     * less than its width before the end. */
    const int64_t rest = (high - first * large) % small, width = high - low;
    if (rest <= width)
        return 1;
    return has_multiple(large, small, rest - width, rest, last - first);
}

/* Returns 1 if a sum of the first `count` entries lies in low .. high, or if the search ended. */
static int has_sum(sum_search *s, int count, int64_t low, int64_t high)
{
    if (high < 0 || low > s->reach[count])
        return 0;
    if (low <= 0 || high >= s->reach[count])
        return 1;
    const int64_t gcd = s->gcd[count];
    const int64_t window_places = high / gcd - (low - 1) / gcd;
    if (window_places == 0)
        return 0;
    if (has_no_gap(s, count, gcd, window_places))
        return 1;
    if (count == 2)
        return has_sum_of_two(s, low, high);
    const tgi_progression *largest = &s->progressions[count - 1];
    const int64_t beyond = low - s->reach[count - 1];
    int64_t place = beyond > 0 ? beyond / largest->stride + (beyond % largest->stride != 0) : 0;
    for (; place < largest->count && place * largest->stride <= high; place++) {
        const int64_t offset = place * largest->stride;
        if (s->sums_left-- == 0 || has_sum(s, count - 1, low - offset, high - offset))
            return 1;
    }
    return 0;
}

int tgi_overlap_may_meet(int64_t distance, const tgi_span *x, const tgi_span *y)
{
    sum_search s = {.sums_left = SUMS_TRIED};
    int count = 0;
    for (int i = 0; i < x->progression_count; i++)
        count = insert_progression(s.progressions, count, x->progressions[i]);
    for (int i = 0; i < y->progression_count; i++)
        count = insert_progression(s.progressions, count, y->progressions[i]);
    count = join_progressions(s.progressions, count);
    for (int i = 0; i < count; i++) {
        s.reach[i + 1] = s.reach[i] + s.progressions[i].stride * (s.progressions[i].count - 1);
        s.gcd[i + 1] = find_gcd(s.gcd[i], s.progressions[i].stride);
    }
    const int64_t y_reach = y->high - y->low - y->run_bytes;
    return has_sum(&s, count, distance + y_reach - (x->run_bytes - 1),
                   distance + y_reach + (y->run_bytes - 1));
}
