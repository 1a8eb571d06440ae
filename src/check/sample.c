#include <math.h>
#include <stdlib.h>

#include "reference.h"

int64_t check_count_sample(double flops, double flops_each, int64_t limit)
{
    const double count = flops / fmax(flops_each, 1);
    const int64_t least = limit < 2 ? limit : 2;
    return count >= (double)limit ? limit : count < (double)least ? least : (int64_t)count;
}

int64_t *check_sample_indices(int64_t limit, int64_t count, uint64_t *random)
{
    int64_t *items = malloc((size_t)count * sizeof *items);
    for (int64_t i = 0; items && i < count; i++) {
        double low = (double)limit / (double)count * (double)i;
        double width = (double)limit / (double)count;
        double share = (double)(check_next_random(random) >> 11) * 0x1p-53;
        int64_t index = (int64_t)(low + share * width);
        items[i] = index < limit ? index : limit - 1;
    }
    if (items) {
        items[0] = 0;
        items[count - 1] = limit - 1;
    }
    return items;
}
