#include "model/cpu_model.h"

/* A server core of 2020-2026: clock; what a core draws from memory, all cores together, a core
 * from the last-level and from its own caches; cycles to move an element through a packing copy;
 * what waking threads costs. */
#define CLOCK_HZ 3.5e9
#define MEMORY_BYTES_PER_S 25e9
#define ALL_MEMORY_BYTES_PER_S 200e9
#define CACHE_BYTES_PER_S 60e9
#define OWN_CACHE_BYTES_PER_S 400e9
#define THREADS_WAKE_S 2e-6
#define THREAD_WAKE_S 0.1e-6

double tgi_model_operand_bytes(const tgi_problem *problem)
{
    double in_bytes = (double)tgi_type_bytes(problem->type);
    double out_bytes = (double)tgi_type_bytes(problem->d_type);
    double m = (double)problem->m, n = (double)problem->n, k = (double)problem->k;
    double c_share = problem->epilogue.beta != 0.0 ? 2.0 : 1.0;
    return (double)problem->batch_count *
           (in_bytes * (m * k + k * n) + c_share * out_bytes * m * n);
}

double tgi_model_cpu_seconds(const tgi_machine *machine, const tgi_cpu_work *work)
{
    double threads = work->thread_count;
    double cycles = work->macs / work->macs_per_cycle + work->fixed_cycles;
    double compute_s = cycles / CLOCK_HZ / threads;
    double rate = OWN_CACHE_BYTES_PER_S * threads;
    if (work->memory_bytes > (double)machine->l3_bytes) {
        rate = MEMORY_BYTES_PER_S * threads * work->memory_share;
        if (rate > ALL_MEMORY_BYTES_PER_S)
            rate = ALL_MEMORY_BYTES_PER_S;
    } else if (work->memory_bytes > (double)machine->l2_bytes) {
        rate = CACHE_BYTES_PER_S * threads * work->memory_share;
    }
    double memory_s = work->memory_bytes / rate;
    double wake_s = threads > 1 ? THREADS_WAKE_S + threads * THREAD_WAKE_S : 0.0;
    /* The two overlap, but not wholly: the shorter one still costs a tenth. */
    double longer_s = compute_s > memory_s ? compute_s : memory_s;
    return longer_s + 0.1 * (compute_s + memory_s - longer_s) + wake_s;
}
