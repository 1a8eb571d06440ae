/* This file measures the peak: each thread runs FMAs on registers alone. */
#include <omp.h>

#include "cpu/cpu.h"

#define LOOP_S 0.004  /* length of one measurement */
#define LOOP_COUNT 10 /* the best one counts, because interruptions only slow a loop down */

/* Returns the tiles of the widest instruction set in use that has some for the type. */
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

/* Returns the seconds of one loop on each thread. All threads start together. */
static double time_loops(const tgi_tile_set *tiles, int64_t iterations, int thread_count)
{
    double start_s = 0.0, unused = 0.0;
#pragma omp parallel num_threads(thread_count) reduction(+ : unused)
    {
#pragma omp barrier
#pragma omp master
        start_s = omp_get_wtime();
        unused += tiles->fma_loop(iterations);
    }
    double elapsed_s = omp_get_wtime() - start_s;
    return unused == 0.0
               ? elapsed_s
               : 0.0; /* always zero; the comparison keeps the compiler from dropping the loop */
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
