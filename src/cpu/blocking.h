/* How the packed family cuts a problem. */
#ifndef TGI_CPU_BLOCKING_H
#define TGI_CPU_BLOCKING_H

#include "cpu/cpu.h"
#include "model/cpu_model.h"

/* Fills the blocking for `thread_count` threads and the work it means. */
void tgi_cpu_choose_blocking(const tgi_machine *machine, const tgi_problem *problem,
                             const tgi_kernel *kernel, int thread_count, tgi_blocking *blocking,
                             tgi_cpu_work *work);

/* Threads worth waking for the problem, 1 .. machine->thread_count. */
int tgi_cpu_count_threads(const tgi_machine *machine, const tgi_problem *problem,
                          double macs_per_cycle);

#endif
