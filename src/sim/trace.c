/* Records what happens between two barriers of a block, for the reader of a small product. */
#include "sim/trace.h"

#include <string.h>

#include "core/alloc.h"
#include "sim/thread_index.h"

struct sim_tracer {
    tg_trace_access *accesses;
    tg_trace_sum *sums;
    const void **sum_places; /* place of each sum */
    int access_count, access_capacity, sum_count, sum_capacity;
    int phase;
    uint32_t block; /* serial of the block that `phase` counts in */
};

sim_tracer *tgi_sim_open_tracer(void)
{
    return tgi_alloc_object(sizeof(sim_tracer));
}

void tgi_sim_close_tracer(sim_tracer *tracer)
{
    if (!tracer)
        return;
    tgi_alloc_free(tracer->accesses);
    tgi_alloc_free(tracer->sums);
    tgi_alloc_free(tracer->sum_places);
    tgi_alloc_free(tracer);
}

/* Returns the array with room for one more entry. The run stops if memory runs out. */
static void *grow(sim_run *run, void *array, int count, int *capacity, size_t entry_bytes)
{
    if (count < *capacity)
        return array;
    int larger = *capacity ? 2 * *capacity : 256;
    void *grown = tgi_alloc_block(larger * (int64_t)entry_bytes);
    if (!grown) {
        tgi_sim_stop_without_memory(run);
    }
    if (count)
        memcpy(grown, array, (size_t)count * entry_bytes);
    tgi_alloc_free(array);
    *capacity = larger;
    return grown;
}

void tgi_sim_trace_access(sim_run *run, access_kind kind, uintptr_t address, int size_bytes,
                          int site)
{
    sim_tracer *tracer = run->tracer;
    tracer->accesses = grow(run, tracer->accesses, tracer->access_count, &tracer->access_capacity,
                            sizeof *tracer->accesses);
    tg_trace_access *access = &tracer->accesses[tracer->access_count++];
    *access =
        (tg_trace_access){.thread_x = tgi_sim_thread_index.x,
                          .thread_y = tgi_sim_thread_index.y,
                          .line = tgi_sim_get_line(site),
                          .elem_count = size_bytes / tgi_sim_get_elem_bytes(run, address),
                          .is_write = kind != ACCESS_GLOBAL_READ && kind != ACCESS_SHARED_READ};
    access->space = tgi_sim_find_element(run, address, &access->index);
}

void tgi_sim_trace_sum(sim_run *run, const void *place, float value)
{
    sim_tracer *tracer = run->tracer;
    for (int i = tracer->sum_count - 1; i >= 0; i--) {
        if (tracer->sum_places[i] == place) {
            tracer->sums[i].value = value;
            return;
        }
    }
    int capacity = tracer->sum_capacity;
    tracer->sum_places =
        grow(run, tracer->sum_places, tracer->sum_count, &capacity, sizeof *tracer->sum_places);
    tracer->sums =
        grow(run, tracer->sums, tracer->sum_count, &tracer->sum_capacity, sizeof *tracer->sums);
    tracer->sum_places[tracer->sum_count] = place;
    tracer->sums[tracer->sum_count++] =
        (tg_trace_sum){tgi_sim_thread_index.x, tgi_sim_thread_index.y, value};
}

void tgi_sim_trace_phase(sim_run *run, int barrier_site)
{
    sim_tracer *tracer = run->tracer;
    if (tracer->block != run->block_serial)
        tracer->phase = 0;
    tracer->block = run->block_serial;
    const tg_trace_phase phase = {
        .block_x = tgi_sim_block_index.x,
        .block_y = tgi_sim_block_index.y,
        .phase = tracer->phase++,
        .barrier_line = barrier_site < 0 ? 0 : tgi_sim_get_line(barrier_site),
        .accesses = tracer->accesses,
        .access_count = tracer->access_count,
        .sums = tracer->sums,
        .sum_count = tracer->sum_count,
        .shared = (const void *)run->variable.low,
        .type = run->launch->type,
        .shared_bytes = (int64_t)(run->variable.high - run->variable.low),
    };
    run->launch->trace(run->launch->trace_state, &phase);
    tracer->access_count = tracer->sum_count = 0;
}
