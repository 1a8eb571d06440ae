/* This file chooses the cache blocking of the packed family. */
#ifndef TGI_CPU_BLOCKING_H
#define TGI_CPU_BLOCKING_H

#include "cpu/cpu.h"
#include "model/cpu_model.h"

/* Chooses the blocking for `thread_count` threads and fills in the work that follows from it. */
void tgi_cpu_choose_blocking(const tgi_machine *machine, const tgi_problem *problem,
                             const tgi_kernel *kernel, int thread_count,
                             tgi_packed_decision *decision, tgi_cpu_work *work);

/* Returns the number of threads worth waking for work that takes one thread `serial_s`:
 * 1 .. machine->thread_count. */
int tgi_cpu_count_threads(const tgi_machine *machine, double serial_s);

#endif
