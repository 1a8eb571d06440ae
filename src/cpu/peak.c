/* This file measures the peak: each thread runs FMAs on registers alone. */
#include "cpu/cpu.h"
#include "plan/clock.h"
#include "threads/threads.h"

#define LOOP_S 0.004  /* length of one measurement */
#define LOOP_COUNT 10 /* the shortest one counts, because interruptions only slow a loop down */

/* Returns the tiles of the widest instruction set in use that has tiles for the type. */
static const tgi_tile_set *find_tiles(const tgi_machine *machine, tg_type type)
{
    const tgi_tile_set *widest = tgi_isa_generic[type].tiles;
    for (int i = 0; i < tgi_kernels_count(); i++) {
        const tgi_kernel *kernel = tgi_kernels_get(i);
        if (kernel->family == TGI_FAMILY_cpu_packed && kernel->type == type &&
            tgi_kernels_isa_runs(kernel->isa, machine->features)) {
            widest = tgi_cpu_select(kernel)->tiles;
        }
    }
    return widest;
}

typedef struct peak_task {
    const tgi_tile_set *tiles;
    int64_t iterations;
} peak_task;

static void run_loop(void *state, int64_t index, int thread)
{
    const peak_task *loop = state;
    /* The compiler would drop a loop whose result nobody reads. */
    volatile double unused = loop->tiles->fma_loop(loop->iterations);
    (void)unused, (void)index, (void)thread;
}

/* Returns the seconds of one loop on each thread. */
static double time_loops(const tgi_tile_set *tiles, int64_t iterations, int thread_count)
{
    peak_task loop = {tiles, iterations};
    const double start_s = tgi_clock_read_s();
    tgi_threads_run(run_loop, &loop, thread_count, thread_count);
    return tgi_clock_read_s() - start_s;
}

tg_status tgi_cpu_measure_peak(const tgi_machine *machine, tg_type type, int thread_count,
                               double *flop_per_s)
{
    const tgi_tile_set *tiles = find_tiles(machine, type);
    int64_t iterations = 1024;
    double best_s = 0.0;
    while ((best_s = time_loops(tiles, iterations, thread_count)) < LOOP_S)
        iterations *= 2;
    for (int i = 0; i < LOOP_COUNT; i++) {
        double elapsed_s = time_loops(tiles, iterations, thread_count);
        if (elapsed_s < best_s)
            best_s = elapsed_s;
    }
    double flops = 2.0 * (double)iterations * TGI_PEAK_CHAINS * tiles->vector_elems *
                   (double)tiles->k_per_elem;
    *flop_per_s = flops * thread_count / best_s;
    return TG_STATUS_OK;
}
