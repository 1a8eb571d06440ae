#include "model/cpu_model.h"

#include <math.h>

#include "model/figures.h"

/* The processor that the figures are fitted to has so much. The rest of a larger L2 is left out,
 * because the operands of a call are seldom there. */
#define COUNTED_L2_BYTES ((int64_t)1 << 20)

/* A tall D of more bytes, of which L1 does not hold much, costs so many cycles a byte. */
#define TALL_ROWS 96
#define TALL_BYTES 32768.0
#define TALL_CYCLES 0.03

double tgi_model_operand_bytes(const tgi_problem *problem)
{
    double in_bytes = (double)tgi_type_bytes(problem->type);
    double out_bytes = (double)tgi_type_bytes(problem->d_type);
    double m = (double)problem->m, n = (double)problem->n, k = (double)problem->k;
    double c_share = problem->epilogue.beta != 0.0 ? 2.0 : 1.0;
    return (double)problem->batch_count *
           (in_bytes * (m * k + k * n) + c_share * out_bytes * m * n);
}

double tgi_model_cpu_l2_bytes(const tgi_machine *machine)
{
    return (double)(machine->l2_bytes < COUNTED_L2_BYTES ? machine->l2_bytes : COUNTED_L2_BYTES);
}

double tgi_model_cpu_column_cycles(const tgi_machine *machine, double micropanel_count,
                                   double a_bytes, double wide_bytes)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    const double l2_bytes = tgi_model_cpu_l2_bytes(machine);
    double again_cycles = a_bytes > (double)machine->l1_bytes ? f->direct_a_cycles : 0.0;
    again_cycles = a_bytes > l2_bytes / 2.0 ? f->direct_far_a_cycles : again_cycles;
    if (micropanel_count < 2.0)
        return 0.0;
    return f->direct_column_cycles * tgi_model_find_excess(wide_bytes, l2_bytes / 8.0) +
           f->direct_far_column_cycles * tgi_model_find_excess(wide_bytes, l2_bytes) +
           again_cycles * a_bytes * (micropanel_count - 1.0);
}

double tgi_model_cpu_tall_cycles(double micropanel_count, const tgi_problem *p)
{
    const double d_bytes = (double)(p->m * p->n * tgi_type_bytes(p->d_type));
    /* An activation beyond the tiles reads D anew, and finds it near. */
    const int is_tall = micropanel_count >= 2.0 && p->m >= TALL_ROWS && d_bytes > TALL_BYTES &&
                        p->epilogue.activation <= TG_ACTIVATION_RELU;
    return is_tall ? TALL_CYCLES * d_bytes : 0.0;
}

/* Returns the seconds that a job takes to start its threads and to wait for them. */
static double find_wake_s(const tgi_cpu_figures *f, double threads)
{
    return threads > 1.0 ? f->threads_wake_s + threads * f->thread_wake_s : 0.0;
}

int tgi_model_cpu_threads(double serial_s, int most)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    /* Each thread more takes thread_wake_s and saves serial_s / threads^2. */
    const double best = floor(sqrt(serial_s / f->thread_wake_s));
    const double threads = best < (double)most ? best : (double)most;
    return threads > 1.0 && serial_s / threads + find_wake_s(f, threads) < serial_s ? (int)threads
                                                                                    : 1;
}

double tgi_model_cpu_seconds(const tgi_machine *machine, const tgi_cpu_work *work)
{
    const tgi_cpu_figures *f = tgi_figures_find_cpu();
    double threads = work->thread_count;
    double cycles = work->macs / work->macs_per_cycle + work->fixed_cycles +
                    (machine->is_hot ? 0.0 : work->cold_cycles);
    double compute_s = cycles / f->clock_hz / threads;
    double rate = f->own_cache_bytes_per_s * threads;
    if (work->memory_bytes > (double)machine->l3_bytes) {
        rate = f->memory_bytes_per_s * threads * work->memory_share;
        if (rate > f->all_memory_bytes_per_s)
            rate = f->all_memory_bytes_per_s;
    } else if (work->memory_bytes > tgi_model_cpu_l2_bytes(machine)) {
        rate = f->cache_bytes_per_s * threads * work->memory_share;
    }
    double memory_s = work->memory_bytes / rate;
    double wake_s = find_wake_s(f, threads);
    /* Products and memory overlap, but not wholly. */
    double longer_s = compute_s > memory_s ? compute_s : memory_s;
    return longer_s + f->overlap_share * (compute_s + memory_s - longer_s) + wake_s;
}
