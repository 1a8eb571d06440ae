/*
 * Compares the counts of the model with those of the simulator, for the tests of this folder. A
 * file that includes it has included cmocka.h.
 *
 * SPDX-License-Identifier: MIT
 */
#ifndef TG_TESTS_MODEL_TRAFFIC_COUNTS_H
#define TG_TESTS_MODEL_TRAFFIC_COUNTS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "tilegemm_sim.h"

/* Each entry names a count of tg_traffic and tells its place in it. */
static const struct {
    const char *name;
    size_t offset;
} traffic_counts[] = {
#define COUNT(field)                                                                               \
    {                                                                                              \
#field, offsetof(tg_traffic, field)                                                        \
    }
    COUNT(grid_x),
    COUNT(grid_y),
    COUNT(block_count),
    COUNT(edge_block_count),
    COUNT(global_read_elems),
    COUNT(global_read_bytes),
    COUNT(global_write_elems),
    COUNT(global_write_bytes),
    COUNT(global_load_requests),
    COUNT(global_load_sectors),
    COUNT(global_store_requests),
    COUNT(global_store_sectors),
    COUNT(shared_load_requests),
    COUNT(shared_store_requests),
    COUNT(bank_conflicts),
    COUNT(barriers),
    COUNT(counter_shared_loads),
    COUNT(counter_shared_turns),
    COUNT(counter_bank_conflicts),
    COUNT(useful_flops),
    COUNT(issued_flops),
#undef COUNT
};
enum { traffic_count_count = sizeof traffic_counts / sizeof traffic_counts[0] };

static int64_t traffic_get_count(const tg_traffic *traffic, int index)
{
    int64_t value;
    memcpy(&value, (const char *)traffic + traffic_counts[index].offset, sizeof value);
    return value;
}

/* Returns how many counts differ between model and simulator; `sizes` tells what was run. */
static inline int traffic_compare(const char *sizes, const tg_explanation *predicted,
                                  const tg_simulation *simulated)
{
    int wrong_count = 0;
    for (int i = 0; i < traffic_count_count; i++) {
        const int64_t model = traffic_get_count(&predicted->traffic, i);
        const int64_t simulator = traffic_get_count(&simulated->traffic, i);
        if (model != simulator)
            print_error("%s %s: %s: model %lld, simulator %lld\n", predicted->kernel, sizes,
                        traffic_counts[i].name, (long long)model, (long long)simulator);
        wrong_count += model != simulator;
    }
    if (simulated->shared_bytes != predicted->prediction.shared_bytes) {
        print_error("%s: shared_bytes: model %lld, simulator %lld\n", predicted->kernel,
                    (long long)predicted->prediction.shared_bytes,
                    (long long)simulated->shared_bytes);
        wrong_count++;
    }
    return wrong_count;
}

#endif
