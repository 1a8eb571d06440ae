/*
 * Predicted time of a CPU kernel: closed formulas, no I/O. They rank kernels, so ratios matter more
 * than seconds.
 */
#ifndef TGI_CPU_MODEL_H
#define TGI_CPU_MODEL_H

#include "core/problem.h"
#include "model/machine.h"

/* Work of one kernel on one problem, as its family counts it. */
typedef struct tgi_cpu_work {
    double macs;           /* multiply-adds issued, edges of tiles included */
    double macs_per_cycle; /* of one core at best */
    double memory_bytes;   /* compulsory traffic: operands once */
    double memory_share;   /* of the memory's rate that the order of access reaches, 0..1 */
    double fixed_cycles;   /* set-up of each call, panel and tile */
    int thread_count;
} tgi_cpu_work;

/* Seconds for the work on the machine. */
double tgi_model_cpu_seconds(const tgi_machine *machine, const tgi_cpu_work *work);

/* Bytes of A, B and D (C where it is read), once. */
double tgi_model_operand_bytes(const tgi_problem *problem);

#endif
